//! What of a file lies in the cache, and the share from cache of real reads.
//!
//! The bytes fetched are counted for the whole process: what looks at them has a process of its own.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use leadline_wire::job::workload::Workload;

use crate::own_process::alone;
use crate::pinned::Pinned;
use crate::scratch::{Scratch, skip};
use leadline_base::host::{BlockDevice, HostWatch};
use leadline_base::request::{Kind, Request};
use leadline_engine::access::stream::AccessStream;
use leadline_engine::backend::data_file::DataFile;
use leadline_engine::evidence::provenance::{DataPlace, Verdict, Window, judge};
use leadline_engine::evidence::residency::{Found, Residency};
use serde_json::json;

const LENGTH: u64 = 64 << 20;

/// A written file that nothing of is cached, and the view of its cache.
struct Cold {
    data: DataFile,
    residency: Residency,
    _scratch: Scratch,
}

impl Cold {
    /// For `test`, unless it cannot run here.
    fn new(test: &str, length: u64) -> Option<Self> {
        let scratch = Scratch::new("residency");
        let data = DataFile::open(scratch.text()).unwrap();
        data.extend(length, u64::MAX, &mut |_| {}).unwrap();
        match (Residency::new(data.file()), BlockDevice::of(data.file())) {
            (Ok(residency), Some(_)) => {
                drop_cache(data.file());
                Some(Self { data, residency, _scratch: scratch })
            }
            (residency, device) => {
                let device = device.map_or("no block device", |_| "a block device");
                skip(test, &format!("{:?}, {device}", residency.err()));
                None
            }
        }
    }

    /// Keeps the first `length` bytes in the cache; says so when this user may not.
    fn pin(&self, test: &str, length: u64) -> Option<Pinned> {
        Pinned::new(self.data.file(), length).map_err(|reason| skip(test, &reason)).ok()
    }
}

fn drop_cache(file: &File) {
    file.sync_all().unwrap();
    // SAFETY: a valid descriptor.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[test]
fn a_file_in_the_cache_is_cached_and_one_dropped_is_not() {
    let test = "evidence::residency::a_file_in_the_cache_is_cached_and_one_dropped_is_not";
    let Some(cold) = Cold::new(test, 8 << 20) else { return };
    assert_eq!(cold.residency.cached_bytes(0, 8 << 20), Some(0));
    let Some(pinned) = cold.pin(test, 8 << 20) else { return };
    assert_eq!(cold.residency.cached_bytes(0, 8 << 20), Some(8 << 20));
    assert_eq!(cold.residency.cached_bytes(1000, 100), Some(100), "clipped to the range");
    assert_eq!(cold.residency.cached_bytes(4000, 200), Some(200));
    assert_eq!(cold.residency.cached_bytes(0, 0), None, "not the whole file");
    drop(pinned);
    drop_cache(cold.data.file());
    assert_eq!(cold.residency.cached_bytes(0, 8 << 20), Some(0));
}

#[test]
fn half_a_range_in_the_cache_is_half_its_bytes() {
    let test = "evidence::residency::half_a_range_in_the_cache_is_half_its_bytes";
    let Some(cold) = Cold::new(test, 8 << 20) else { return };
    let Some(_pinned) = cold.pin(test, 2 << 20) else { return };
    assert_eq!(cold.residency.cached_bytes(1 << 20, 2 << 20), Some(1 << 20));
    assert_eq!(cold.residency.cached_bytes(0, 8 << 20), Some(2 << 20));
}

#[test]
fn the_view_outlives_the_file_it_was_made_from() {
    let test = "evidence::residency::the_view_outlives_the_file_it_was_made_from";
    let Some(cold) = Cold::new(test, 1 << 20) else { return };
    let again = Residency::new(&cold.data.reopen(false, false).unwrap()).unwrap();
    let Some(_pinned) = cold.pin(test, 1 << 20) else { return };
    assert_eq!(again.cached_bytes(0, 1 << 20), Some(1 << 20));
}

fn workload(size: u64, seq_frac: f64) -> Workload {
    let five = json!({
        "unique_bytes": LENGTH, "size_mean": size, "size_dist": "fixed", "read_frac": 1.0,
        "seq_frac": seq_frac, "process_num": 1,
    });
    serde_json::from_value(five).unwrap()
}

/// Runs `reads` reads, looking up every seventh, and judges them.
fn judged(cold: &Cold, size: u64, seq_frac: f64, reads: u64) -> Verdict {
    let file = cold.data.reopen(false, false).unwrap();
    let mut stream = AccessStream::new(&workload(size, seq_frac), 512, 1, 0).unwrap();
    let device = BlockDevice::of(&file);
    let place = DataPlace::of(&file, false, device.as_ref());
    let watch = HostWatch::start(device);
    let (mut found, mut sequential) = (Found::default(), 0);
    let mut block = vec![0; size as usize];
    for turn in 0..reads {
        let request: Request = stream.draw();
        assert_eq!(request.kind, Kind::Read);
        sequential += u64::from(request.sequential);
        if turn % 7 == 0 {
            let bytes = cold.residency.cached_bytes(request.offset_bytes, request.length_bytes);
            found.record(&request, bytes.unwrap());
        }
        file.read_exact_at(&mut block[..request.length_bytes as usize], request.offset_bytes)
            .unwrap();
    }
    judge(&Window {
        place: Some(&place),
        host: &watch.finish(),
        found: &found,
        read_bytes: reads * size,
        sequential_share: sequential as f64 / reads as f64,
    })
}

#[test]
fn reads_of_a_cached_file_come_from_cache_and_of_a_dropped_one_do_not() {
    let test =
        "evidence::residency::reads_of_a_cached_file_come_from_cache_and_of_a_dropped_one_do_not";
    alone(test, || {
        let Some(cold) = Cold::new(test, LENGTH) else { return };
        // Few reads of a large file: hardly any place twice.
        let first = judged(&cold, 4096, 0.0, 700);
        assert!(first.cached_share.unwrap() < 0.1, "{first:?}");
        assert!(first.provenance.process_bytes.unwrap().read > 600 * 4096, "{first:?}");
        let Some(_pinned) = cold.pin(test, LENGTH) else { return };
        let second = judged(&cold, 4096, 0.0, 20_000);
        assert_eq!(second.cached_share, Some(1.0), "{second:?}");
        assert_eq!(second.provenance.unchecked, Vec::<String>::new());
    });
}

#[test]
fn random_reads_of_a_half_cached_file_have_half() {
    let test = "evidence::residency::random_reads_of_a_half_cached_file_have_half";
    alone(test, || {
        let Some(cold) = Cold::new(test, LENGTH) else { return };
        let Some(_pinned) = cold.pin(test, LENGTH / 2) else { return };
        assert_eq!(cold.residency.cached_bytes(0, LENGTH), Some(LENGTH / 2));
        let verdict = judged(&cold, 4096, 0.0, 4200);
        // 600 lookups: two standard errors are 4 points; the kernel reads ahead between cached
        // pages, and some places are read twice.
        let share = verdict.cached_share.unwrap();
        assert!((0.42..0.75).contains(&share), "{verdict:?}");
    });
}

#[test]
fn a_first_pass_comes_from_the_device_although_it_finds_its_pages() {
    let test =
        "evidence::residency::a_first_pass_comes_from_the_device_although_it_finds_its_pages";
    alone(test, || {
        let Some(cold) = Cold::new(test, LENGTH) else { return };
        let verdict = judged(&cold, 65536, 1.0, LENGTH / 65536);
        assert!(verdict.cached_share.unwrap() < 0.1, "{verdict:?}");
        let found = verdict.provenance.found_share.unwrap();
        assert!(found > 0.5, "read-ahead was at work: {found}");
        let Some(_pinned) = cold.pin(test, LENGTH) else { return };
        let again = judged(&cold, 65536, 1.0, LENGTH / 65536);
        assert_eq!(again.cached_share, Some(1.0), "{again:?}");
    });
}
