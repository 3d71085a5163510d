//! What of a request lies in the page cache just before it is made.
//!
//! `cachestat(2)` counts the pages of a range that are in the cache without touching them. Asked
//! before every k-th read it is a sample of what the reads found; read-ahead's work counts as
//! found, and [`crate::evidence::provenance`] takes it out again.

use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd;

use leadline_base::host::FileSystem;

use leadline_base::request::{Kind, Request};

/// `cachestat(2)` has this number on every architecture but Alpha.
const CACHESTAT: libc::c_long = 451;

/// Nanoseconds of one lookup, and of each page of its range, on the safe side of what
/// was measured on an EPYC: 140-570 ns, and 15 ns a page in a cache of single pages
/// half of which had been evicted (large folios and empty ranges cost next to nothing).
const LOOKUP_NS: f64 = 600.0;
const LOOKUP_PAGE_NS: f64 = 15.0;

/// Share of the time that lookups may cost.
const LOOKUP_SHARE_MAX: f64 = 0.003;

/// `struct cachestat_range`.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// `struct cachestat`.
#[derive(Default)]
#[repr(C)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Asks what of a file is in the page cache. Its own descriptor, so that it outlives the file it
/// was made from.
#[derive(Debug)]
pub struct Residency {
    file: File,
    page_bytes: u64,
}

impl Residency {
    /// A view of `file`'s cached pages.
    ///
    /// # Errors
    /// In words, why that cannot be known here: the kernel is older than 6.5 or forbids it, or the
    /// file system has a cache of its own.
    pub fn new(file: &File) -> Result<Self, String> {
        if let Some(name) = FileSystem::of(file).and_then(FileSystem::own_cache) {
            return Err(format!("{name} keeps a cache of its own, which cachestat does not see"));
        }
        let copy = file.try_clone().map_err(|error| format!("no descriptor for it: {error}"))?;
        // SAFETY: sysconf has no preconditions.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page_bytes = u64::try_from(page_bytes).unwrap_or(4096).max(1);
        let residency = Self { file: copy, page_bytes };
        match residency.cached_pages(0, 1) {
            Ok(_) => Ok(residency),
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                Err("this kernel has no cachestat (it came with Linux 6.5)".to_owned())
            }
            Err(error) => Err(format!("the kernel refuses cachestat: {error}")),
        }
    }

    /// Bytes of the range that are in the cache now, 0 to `length_bytes`; none when the kernel does
    /// not answer. Exact when all or nothing of it is there; of a part, the range has the same
    /// share as the pages it touches. Allocates nothing.
    #[must_use]
    pub fn cached_bytes(&self, offset_bytes: u64, length_bytes: u64) -> Option<u64> {
        // The kernel takes a length of 0 for all the rest of the file.
        let last = length_bytes.checked_sub(1)?.checked_add(offset_bytes)?;
        let pages = last / self.page_bytes - offset_bytes / self.page_bytes + 1;
        let cached = self.cached_pages(offset_bytes, length_bytes).ok()?.min(pages);
        Some((length_bytes as f64 * (cached as f64 / pages as f64)).round() as u64)
    }

    fn cached_pages(&self, offset: u64, length: u64) -> Result<u64, Error> {
        let range = Range { offset, length };
        let mut counts = Counts::default();
        // SAFETY: a valid descriptor, a range to read and counts to write, laid out as the kernel
        // has them.
        let code = unsafe {
            libc::syscall(CACHESTAT, self.file.as_raw_fd(), &raw const range, &raw mut counts, 0)
        };
        if code == 0 { Ok(counts.cached) } else { Err(Error::last_os_error()) }
    }
}

/// Every how many reads to look one up, so that lookups cost less than 0.3% of the time of reads
/// that take `mean_turn_ns` and are `size_mean_bytes` long; at least 1.
#[must_use]
pub fn probe_every(mean_turn_ns: f64, size_mean_bytes: f64) -> u32 {
    let lookup_ns = LOOKUP_NS + LOOKUP_PAGE_NS * (size_mean_bytes / 4096.0).ceil();
    // The cast saturates, and a turn of no length asks for no lookup.
    (lookup_ns / (LOOKUP_SHARE_MAX * mean_turn_ns.max(0.0))).ceil().max(1.0) as u32
}

/// Bytes asked for and found by looked-up requests of one kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FoundKind {
    /// Reads looked up.
    pub reads: u64,
    /// Bytes they asked for.
    pub asked_bytes: u64,
    /// Bytes of those that were in the cache.
    pub found_bytes: u64,
    /// Bytes of the pages that were not: what had to be fetched, without read-ahead.
    pub missed_page_bytes: u64,
}

/// What lies in the page cache where requests are about to be made, at places drawn at random.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Placed {
    /// Requests looked up, reads and writes.
    pub requests: u64,
    /// Bytes they asked for.
    pub asked_bytes: u64,
    /// Bytes of those that were in the cache.
    pub found_bytes: u64,
}

impl Placed {
    /// Share of the bytes asked for that were in the cache; none without a lookup.
    #[must_use]
    pub fn found_share(&self) -> Option<f64> {
        (self.asked_bytes > 0).then(|| self.found_bytes as f64 / self.asked_bytes as f64)
    }
}

/// What looked-up requests found in the page cache; workers' parts merge to the whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Found {
    /// Reads at places drawn at random.
    pub random: FoundKind,
    /// Reads that started where the worker's previous request ended.
    pub sequential: FoundKind,
    /// Requests at places drawn at random, writes too: a sample of what the cache holds.
    pub placed: Placed,
}

/// The unit of the page cache on which misses are rounded up.
const CACHE_PAGE_BYTES: u64 = 4096;

impl Found {
    /// Counts one looked-up request that found `cached_bytes`; of writes, where they were placed.
    /// Allocates nothing.
    #[inline]
    pub fn record(&mut self, request: &Request, cached_bytes: u64) {
        if !request.sequential {
            self.placed.requests += 1;
            self.placed.asked_bytes += request.length_bytes;
            self.placed.found_bytes += cached_bytes.min(request.length_bytes);
        }
        if request.kind == Kind::Write {
            return;
        }
        let kind = if request.sequential { &mut self.sequential } else { &mut self.random };
        let found = cached_bytes.min(request.length_bytes);
        let from = request.offset_bytes / CACHE_PAGE_BYTES * CACHE_PAGE_BYTES;
        let to = (request.offset_bytes + request.length_bytes).next_multiple_of(CACHE_PAGE_BYTES);
        let missed = if found == 0 {
            to - from
        } else {
            (request.length_bytes - found).next_multiple_of(CACHE_PAGE_BYTES)
        };
        kind.reads += 1;
        kind.asked_bytes += request.length_bytes;
        kind.found_bytes += found;
        kind.missed_page_bytes += missed;
    }

    /// Adds another worker's part.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in
            [(&mut self.random, &other.random), (&mut self.sequential, &other.sequential)]
        {
            mine.reads += theirs.reads;
            mine.asked_bytes += theirs.asked_bytes;
            mine.found_bytes += theirs.found_bytes;
            mine.missed_page_bytes += theirs.missed_page_bytes;
        }
        self.placed.requests += other.placed.requests;
        self.placed.asked_bytes += other.placed.asked_bytes;
        self.placed.found_bytes += other.placed.found_bytes;
    }

    /// Reads looked up.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.random.reads + self.sequential.reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset_bytes: u64, length_bytes: u64, sequential: bool) -> Request {
        Request {
            offset_bytes,
            length_bytes,
            kind: Kind::Read,
            sequential,
            stream: 0,
            ..Request::NONE
        }
    }

    #[test]
    fn random_and_sequential_reads_are_kept_apart_and_writes_left_out() {
        let mut found = Found::default();
        found.record(&read(0, 4096, false), 4096);
        found.record(&read(8192, 4096, true), 0);
        found.record(&Request { kind: Kind::Write, ..read(0, 4096, false) }, 4096);
        let mut whole = found;
        whole.merge(&found);
        assert_eq!(whole.reads(), 4);
        assert_eq!((whole.random.asked_bytes, whole.random.found_bytes), (8192, 8192));
        assert_eq!((whole.sequential.asked_bytes, whole.sequential.found_bytes), (8192, 0));
        assert_eq!((whole.placed.requests, whole.placed.asked_bytes), (4, 16384), "writes too");
        assert_eq!(whole.placed.found_share(), Some(1.0));
    }

    #[test]
    fn a_miss_costs_whole_pages() {
        let mut found = Found::default();
        found.record(&read(4000, 200, false), 0);
        assert_eq!(found.random.missed_page_bytes, 8192, "it lies across two pages");
        found.record(&read(0, 16384, false), 8192);
        assert_eq!(found.random.missed_page_bytes, 16384);
        found.record(&read(4000, 200, false), 200);
        assert_eq!(found.random.missed_page_bytes, 16384, "a hit costs none");
    }

    #[test]
    fn lookups_cost_less_than_their_share() {
        for (turn_ns, size) in [(500.0, 512.0), (700.0, 4096.0), (90_000.0, 1e6), (1e7, 4096.0)] {
            let every = f64::from(probe_every(turn_ns, size));
            let lookup_ns = LOOKUP_NS + LOOKUP_PAGE_NS * (size / 4096.0).ceil();
            assert!(lookup_ns / every / turn_ns <= LOOKUP_SHARE_MAX, "{turn_ns} {size}");
        }
        assert_eq!(probe_every(1e7, 4096.0), 1);
        assert_eq!(probe_every(0.0, 4096.0), u32::MAX);
    }
}
