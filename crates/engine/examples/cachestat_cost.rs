//! What one lookup in the page cache costs here, by the length of its range, for a file read in
//! order (large folios), read page by page in no order, and not in the cache:
//! `cargo run --release --example cachestat_cost [DIRECTORY]`.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use leadline_engine::evidence::residency::Residency;

const FILE_BYTES: u64 = 64 << 20;
const TURNS: u64 = 20_000;
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let path = format!("{folder}/leadline-cachestat-{}", std::process::id());
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?; // the open file stays until the end
    let mut text = vec![7u8; FILE_BYTES as usize];
    (&file).write_all(&text)?;
    file.sync_all()?;
    let residency = Residency::new(&file)?;
    for state in ["not cached", "in order", "page by page"] {
        // SAFETY: a valid descriptor.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let pages = FILE_BYTES / 4096;
        match state {
            "in order" => file.read_exact_at(&mut text, 0)?,
            "page by page" => {
                // SAFETY: a valid descriptor.
                unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
                for turn in 0..pages {
                    let place = turn.wrapping_mul(SPREAD) % pages * 4096;
                    file.read_exact_at(&mut text[..4096], place)?;
                }
            }
            _ => {}
        }
        for length in [512, 4096, 65536, 1 << 20] {
            let turns = TURNS * 4096 / length.max(4096) + 100;
            let mut costs: Vec<f64> =
                (0..ROUNDS).map(|_| cost(&residency, length, turns)).collect();
            costs.sort_by(f64::total_cmp);
            let share = residency.cached_bytes(0, FILE_BYTES).unwrap_or(0) * 100 / FILE_BYTES;
            let (median, least, most) = (costs[ROUNDS / 2], costs[0], costs[ROUNDS - 1]);
            println!(
                "{state:12} ({share:3}%), {length:7} bytes: {median:6.0} ns ({least:.0}-{most:.0})"
            );
        }
    }
    Ok(())
}

/// Nanoseconds of one lookup, over places spread over the file.
fn cost(residency: &Residency, length: u64, turns: u64) -> f64 {
    let began = Instant::now();
    let mut sum = 0;
    for turn in 0..turns {
        let place = turn.wrapping_mul(SPREAD) % (FILE_BYTES / length) * length;
        sum += residency.cached_bytes(place, length).unwrap_or(0);
    }
    std::hint::black_box(sum);
    began.elapsed().as_nanos() as f64 / turns as f64
}
