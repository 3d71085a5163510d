//! Bandwidth of a lane: `lane_rate read|write|bare FILE MIB DEPTH direct|buffered|mmap [STRIPE_DIR...]`.
//!
//! `write` makes FILE anew of MIB mebibytes; `read` reads it to its end; `bare` does as well, by
//! nothing but `io_uring` in a loop on buffers of the same arena: what `read` is to be held against.
//! Prints MB/s, processor seconds of user and kernel, and bytes of the block layer.
#![allow(missing_docs)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use leadline_base::error::EngineError;
use leadline_kernels::chunks::{CHUNK_BYTES, Chunks};
use leadline_kernels::data_set::Input;
use leadline_kernels::lane::WriteLane;
use leadline_kernels::memory::{Memory, Region};
use leadline_kernels::output::Output;
use leadline_kernels::phases::{JobWatch, Moved};
use leadline_wire::job::stream::{self, Io, ReadBy};

fn main() -> Result<(), EngineError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, path, mib, depth, way, stripes @ ..] = words.as_slice() else {
        return Err(EngineError::bad_job("five words at least; see the source"));
    };
    let number = |word: &str| word.parse::<u64>().unwrap_or(8);
    let direct = way == "direct";
    let read = if way == "mmap" { ReadBy::Mmap } else { ReadBy::Uring };
    let io = Io { read, read_direct: direct, write_direct: direct, depth: number(depth) as u32 };
    let memory = Memory::new(64 << 20)?;
    let watch = JobWatch::open();
    let bytes = number(mib) << 20;
    let phase = if verb == "bare" {
        let mut regions = memory.take_many(io.depth as usize, CHUNK_BYTES)?;
        let phase = watch.start("read");
        let moved = bare(path, &mut regions).map_err(|error| EngineError::io(error.to_string()))?;
        phase.finish(Moved { bytes_read: moved, ..Moved::default() }, &[])
    } else if verb == "read" {
        let input = Input::open(path, &io)?;
        let phase = watch.start("read");
        let mut chunks = Chunks::new(&input, 0..input.bytes(), &memory, &io)?;
        let mut sum = 0u64;
        while let Some((_, bytes)) = chunks.next()? {
            sum += bytes.iter().step_by(4096).map(|byte| u64::from(*byte)).sum::<u64>();
        }
        std::hint::black_box(sum);
        phase.finish(Moved { bytes_read: input.bytes(), ..Moved::default() }, &[])
    } else {
        let spec = stream::Output {
            path: path.clone(),
            stripes: stripes.to_vec(),
            stripe_bytes: 65536,
            replace: true,
        };
        let output = Output::create(&spec, bytes, &io)?;
        let mut regions = memory.take_many(io.depth as usize + 1, CHUNK_BYTES)?;
        regions.iter_mut().enumerate().for_each(|(n, region)| region.fill(n as u8 + 1));
        let phase = watch.start("write");
        let mut lane = WriteLane::open(&output, &io)?;
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(CHUNK_BYTES as u64);
            let region = match regions.pop() {
                Some(region) => region,
                None => lane.take()?,
            };
            lane.submit(at, length as usize, region);
            at += length;
        }
        lane.finish()?;
        let result = phase.finish(Moved { bytes_written: bytes, ..Moved::default() }, &[]);
        output.publish()?;
        result
    };
    let moved = phase.bytes_read + phase.bytes_written;
    println!(
        "{:.0} MB/s  user {:.3} s  system {:.3} s  block {:?} {:?}",
        moved as f64 / phase.seconds / 1e6,
        phase.cpu_user_s,
        phase.cpu_system_s,
        phase.block_read_bytes,
        phase.block_written_bytes
    );
    Ok(())
}

/// Reads a file to its last whole chunk, a request always on its way into each region.
fn bare(path: &str, regions: &mut [Region]) -> Result<u64, std::io::Error> {
    let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let chunks = file.metadata()?.len() / CHUNK_BYTES as u64;
    let mut ring = IoUring::new(256)?;
    let (mut next, mut done) = (0, 0);
    let mut free: Vec<usize> = (0..regions.len()).collect();
    while done < chunks {
        while next < chunks
            && let Some(slot) = free.pop()
        {
            let memory = regions[slot].as_mut_ptr();
            let read = opcode::Read::new(Fd(file.as_raw_fd()), memory, CHUNK_BYTES as u32)
                .offset(next * CHUNK_BYTES as u64)
                .build()
                .user_data(slot as u64);
            // SAFETY: the region is held until the loop has seen every completion.
            unsafe { ring.submission().push(&read) }.map_err(std::io::Error::other)?;
            next += 1;
        }
        ring.submit_and_wait(1)?;
        for entry in ring.completion() {
            if entry.result() != CHUNK_BYTES as i32 {
                return Err(std::io::Error::other(format!("a read gave {}", entry.result())));
            }
            free.push(entry.user_data() as usize);
            done += 1;
        }
    }
    Ok(chunks * CHUNK_BYTES as u64)
}
