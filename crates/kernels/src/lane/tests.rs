//! Disks that fail, as lanes see them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leadline_base::error::ErrorKind;

use super::*;
use crate::mapped::Maps;
use crate::memory::Memory;
use crate::stripes::{Extent, StripeFile, Stripes};

struct Set(Vec<Extent>, Option<Arc<Maps>>);

impl Readable for Set {
    fn extents(&self) -> Vec<Extent> {
        self.0.clone()
    }

    fn mapped(&self) -> Option<Arc<Maps>> {
        self.1.clone()
    }
}

impl Writable for Set {
    fn extents(&self) -> Vec<Extent> {
        self.0.clone()
    }
}

fn io() -> Io {
    let read = leadline_wire::job::stream::ReadBy::Uring;
    Io { read, read_direct: true, write_direct: true, depth: 4 }
}

fn set(paths: &[&Path], bytes: u64) -> Set {
    let open = |path: &&Path| {
        let file = File::options().read(true).write(true).open(path).unwrap();
        StripeFile::new((*path).into(), file, true, true)
    };
    let files = paths.iter().map(open).collect();
    Set(vec![Extent { start: 0, bytes, stripes: Arc::new(Stripes { files, unit: 65536 }) }], None)
}

/// A file with a name of its own that goes with its test.
struct Scrap(PathBuf);

impl Scrap {
    fn new(name: &str, bytes: usize) -> Self {
        let path = std::env::temp_dir().join(format!("leadline-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![7; bytes]).unwrap();
        Self(path)
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// The first page of a process is never mapped: reading it here is an input/output error.
const UNREADABLE: &str = "/proc/self/mem";

#[test]
fn an_unreadable_stripe_is_named_and_what_lies_beside_it_is_not_lost() {
    let good = Scrap::new("good-stripe", 1 << 20);
    let set = set(&[&good.0, Path::new(UNREADABLE)], 2 << 20);
    let memory = Memory::new(4 << 20).unwrap();
    let mut lane = ReadLane::open(&set, &io()).unwrap();
    lane.submit(0, 65536, memory.take(65536).unwrap());
    lane.submit(65536, 131_072, memory.take(131_072).unwrap());
    lane.submit(131_072, 65536, memory.take(65536).unwrap());
    assert!(lane.take().unwrap().2.iter().all(|byte| *byte == 7));
    let error = lane.take().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.contains("failed at byte 0 of /proc/self/mem: Input/output"), "{error}");
    assert!(lane.take().unwrap().2.iter().all(|byte| *byte == 7));
    drop(lane);
    assert_eq!(memory.left(), 4 << 20, "an order that failed gave its memory back");
}

#[test]
fn a_full_disk_says_what_is_missing() {
    let set = set(&[Path::new("/dev/full")], 1 << 20);
    let memory = Memory::new(4 << 20).unwrap();
    let mut lane = WriteLane::open(&set, &io()).unwrap();
    lane.submit(0, 8192, memory.take(8192).unwrap());
    let error = lane.finish().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Target);
    assert!(error.message.contains("/dev/full: No space left"), "{error}");
    assert!(error.message.contains("8192 bytes more is missing"), "{error}");
}

#[test]
fn a_file_that_was_shortened_is_no_end_of_the_data() {
    let file = Scrap::new("short", 100_000);
    let memory = Memory::new(4 << 20).unwrap();
    let set = set(&[&file.0], 196_608);
    let mut lane = ReadLane::open(&set, &io()).unwrap();
    lane.submit(0, 196_608, memory.take(196_608).unwrap());
    let error = lane.take().unwrap_err();
    assert!(error.message.contains("reading ended at byte 100000 of"), "{error}");
    assert!(error.message.contains("too early"), "{error}");
}

#[test]
fn a_mapped_file_that_was_shortened_is_an_error_and_no_signal() {
    let file = Scrap::new("short-map", 1 << 20);
    let memory = Memory::new(4 << 20).unwrap();
    let mut set = set(&[&file.0], 1 << 20);
    set.1 = Some(Arc::new(Maps::new(set.0.clone()).unwrap()));
    File::options().write(true).open(&file.0).unwrap().set_len(65536).unwrap();
    let mut lane = ReadLane::open(&set, &io()).unwrap();
    lane.submit(0, 65536, memory.take(65536).unwrap());
    lane.submit(131_072, 65536, memory.take(65536).unwrap());
    assert!(lane.take().unwrap().2.iter().all(|byte| *byte == 7));
    assert_eq!(lane.copied_bytes(), 65536);
    let error = lane.take().unwrap_err();
    assert!(error.message.contains("reading 65536 bytes failed at byte 131072 of"), "{error}");
}

#[test]
fn a_file_system_without_direct_transfers_is_used_through_its_cache_and_says_so() {
    let open = || File::open("/proc/self/maps").unwrap();
    let refused = StripeFile::new("/proc/self/maps".into(), open(), true, false);
    assert!(refused.direct().is_none() && refused.refuses_direct());
    let not_asked = StripeFile::new("/proc/self/maps".into(), open(), false, false);
    assert!(not_asked.direct().is_none() && !not_asked.refuses_direct());
    let good = Scrap::new("direct", 4096);
    let file = StripeFile::new(good.0.clone(), File::open(&good.0).unwrap(), true, false);
    assert!(file.direct().is_some() && !file.refuses_direct());
    file.refuse_direct();
    assert!(file.direct().is_none() && file.refuses_direct());
}

#[test]
fn a_lane_that_is_dropped_leaves_no_transfer_behind() {
    const COUNT: usize = 48;
    let file = Scrap::new("dropped", COUNT << 20);
    File::open(&file.0).unwrap().sync_all().unwrap();
    let memory = Memory::new((COUNT as u64) << 20).unwrap();
    memory.take(COUNT << 20).unwrap().fill(9);
    let set = set(&[&file.0], (COUNT as u64) << 20);
    let mut lane = ReadLane::open(&set, &Io { depth: COUNT as u32, ..io() }).unwrap();
    for (number, region) in memory.take_many(COUNT, 1 << 20).unwrap().into_iter().enumerate() {
        lane.submit((number as u64) << 20, 1 << 20, region);
    }
    assert_eq!(lane.pending(), COUNT);
    // Long enough to be sent, much too short to be read.
    std::thread::sleep(std::time::Duration::from_millis(2));
    drop(lane);
    let mut whole = memory.take(COUNT << 20).unwrap();
    let last = &mut whole[(COUNT - 1) << 20..];
    last.fill(9);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(last.iter().all(|byte| *byte == 9), "nothing is read into it any more");
}

#[test]
fn what_lies_outside_the_data_set_or_its_region_is_refused() {
    let file = Scrap::new("outside", 65536);
    let memory = Memory::new(4 << 20).unwrap();
    let set = set(&[&file.0], 65536);
    let mut lane = ReadLane::open(&set, &io()).unwrap();
    lane.submit(0, 8192, memory.take(4096).unwrap());
    lane.submit(61_440, 8192, memory.take(8192).unwrap());
    lane.submit(0, 4096, memory.take(4096).unwrap());
    for _ in 0..2 {
        assert_eq!(lane.take().unwrap_err().kind, ErrorKind::Fault);
    }
    assert!(lane.take().is_ok());
    assert_eq!(lane.take().unwrap_err().kind, ErrorKind::Fault, "nothing was submitted");
}
