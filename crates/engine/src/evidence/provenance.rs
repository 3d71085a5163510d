//! Where the bytes came from: the share of the bytes read that no device had to deliver.
//!
//! Two witnesses are put together. Lookups just before every k-th read say what the reads found in
//! the page cache ([`Found`]); counters say what was fetched meanwhile. Neither is enough: found
//! bytes may have been brought by read-ahead a moment before, and fetched bytes may be read-ahead
//! that nobody reads. With, over the window,
//!
//! * `A` bytes asked for by reads, in random and sequential ones apart,
//! * `F` bytes of those found in the cache, scaled from the lookups to all reads of their kind,
//! * `M = A − F` bytes missed, and `M'` the same in whole pages, as the kernel fetches them,
//! * `D` bytes fetched for us ([`fetched_bytes`]),
//!
//! the bytes that read-ahead brought and sequential reads then found are
//! `P = min(F_sequential, max(0, D − M'))`, those missed but not fetched from a device came from a
//! cache further down, and
//!
//! ```text
//! cached_share = 1 − (min(M, D) + P) / A
//! ```
//!
//! For random reads this is the share found, however much read-ahead fetches beside it; for
//! sequential reads it is `1 − D/A`, so that a first pass over a file is not called cached because
//! read-ahead was quicker. Limits: in a mixture, pages fetched on behalf of partial writes, or by
//! read-ahead after random misses, count as fetched for sequential reads, so the share is then too
//! low, never by more than `F_sequential / A`. Without lookups (direct I/O passes the cache by) it
//! is `1 − D/A`, which read-ahead after random misses lowers.

#![forbid(unsafe_code)]

use std::fs::File;

use leadline_base::host::{BlockDevice, FileSystem, HostUse};
use leadline_wire::event::measure::{CachedShareFrom, MovedBytes, Provenance};
use leadline_wire::finding::{Code, Finding};

use crate::evidence::residency::{Found, FoundKind};

/// Least share of the bytes of direct reads that the device must have moved for a disk's number.
const DIRECT_SHARE_MIN: f64 = 0.9;

/// Largest share of the bytes read that may be in doubt without the share from cache being unknown.
const DOUBT_MAX: f64 = 0.01;

/// Why the share from cache of a remote file is not known.
pub const CLIENT_KEEPS_NOTHING: &str = "the share from cache: the client keeps nothing, so every \
    byte came from the server; what the server's cache gave can be seen only in the curve";

/// Where the data file lies, as far as it decides what counters mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataPlace {
    /// Whether the workload passes the page cache by.
    pub direct: bool,
    /// Name of the file system when its files live in memory and nowhere else.
    pub memory: Option<&'static str>,
    /// Whether the kernel charges this process with what it makes the file system fetch.
    pub charged: bool,
    /// Whether it is stored compressed, so that devices move fewer bytes than are asked for.
    pub compressed: bool,
    /// Whether it lies on a server, asked by a client that keeps nothing.
    pub remote: bool,
    /// Caches between the file system and the devices at the bottom, in words.
    pub caches_below: Vec<String>,
    /// What could not be checked, in words.
    pub unchecked: Vec<String>,
}

impl DataPlace {
    /// The place of `file`, used directly or through the cache, on `device`.
    #[must_use]
    pub fn of(file: &File, direct: bool, device: Option<&BlockDevice>) -> Self {
        let system = FileSystem::of(file);
        let charged = device.is_some() || system.is_some_and(FileSystem::charges_reads);
        Self {
            direct,
            compressed: false,
            remote: false,
            memory: system.and_then(FileSystem::memory),
            charged,
            caches_below: device.map_or(&[][..], BlockDevice::caches_below).to_vec(),
            unchecked: device.map_or(&[][..], BlockDevice::unchecked).to_vec(),
        }
    }
}

/// What is known of one window.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Where the data file lies; none without one.
    pub place: Option<&'a DataPlace>,
    /// What the machine counted.
    pub host: &'a HostUse,
    /// What lookups found.
    pub found: &'a Found,
    /// Bytes read by the workload.
    pub read_bytes: u64,
    /// Share of its requests that were sequential, 0 to 1.
    pub sequential_share: f64,
}

/// What follows from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Share of the bytes read that no device delivered, 0 to 1.
    pub cached_share: Option<f64>,
    /// The evidence.
    pub provenance: Provenance,
    /// Why the window is not valid; none when it is.
    pub disbelieved: Option<Finding>,
}

/// Puts the witnesses of a window together.
#[must_use]
pub fn judge(window: &Window) -> Verdict {
    if window.place.is_some_and(|place| place.remote) {
        let unchecked = vec![CLIENT_KEEPS_NOTHING.to_owned()];
        return Verdict {
            provenance: Provenance { unchecked, ..Provenance::default() },
            ..Verdict::default()
        };
    }
    let fetched = fetched_bytes(window.place, window.host);
    let estimate = (window.found.reads() > 0 && window.read_bytes > 0)
        .then(|| Estimate::of(window.found, window.read_bytes as f64, window.sequential_share));
    let mut unchecked = window.place.map(|place| place.unchecked.clone()).unwrap_or_default();
    let (cached_share, cached_share_from) = match share(window, estimate.as_ref(), fetched) {
        Ok(Some((share, from))) => (Some(share), Some(from)),
        Ok(None) => (None, None),
        Err(doubt) => {
            unchecked.extend(window.place.map(|_| doubt));
            (None, None)
        }
    };
    let moved = |bytes: (u64, u64)| MovedBytes { read: bytes.0, write: bytes.1 };
    let provenance = Provenance {
        process_bytes: window.place.and(window.host.process).map(moved),
        probed: window.found.reads(),
        found_share: estimate.as_ref().map(Estimate::found_share),
        probed_random: window.found.placed.requests,
        found_random_share: window.found.placed.found_share(),
        cached_share_from,
        cache_events: window.place.and(window.host.cache_events),
        unchecked,
    };
    Verdict { cached_share, provenance, disbelieved: disbelieved(window, fetched) }
}

/// Bytes that were fetched for our reads: the smaller of what the kernel charged this process with
/// and what the devices at the bottom read, since the first leaves out other programs' reads, and
/// the second those that a cache further down answered. Nothing is fetched in memory; none when
/// neither is known, or what is fetched is compressed.
#[must_use]
pub fn fetched_bytes(place: Option<&DataPlace>, host: &HostUse) -> Option<u64> {
    if place.is_some_and(|place| place.memory.is_some()) {
        return Some(0);
    }
    if place.is_some_and(|place| place.compressed) {
        return None;
    }
    let charged = host.process.filter(|_| place.is_some_and(|place| place.charged));
    charged.into_iter().chain(host.device).map(|moved| moved.0).min()
}

/// The window's bytes by what the lookups found, scaled to all reads.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    asked: f64,
    found_random: f64,
    found_sequential: f64,
    missed_pages: f64,
}

impl Estimate {
    fn of(found: &Found, asked: f64, sequential_share: f64) -> Self {
        let mut both = found.random;
        both.asked_bytes += found.sequential.asked_bytes;
        both.found_bytes += found.sequential.found_bytes;
        both.missed_page_bytes += found.sequential.missed_page_bytes;
        // A kind of which none was looked up is taken to be like the other.
        let sample = |kind: FoundKind| if kind.asked_bytes > 0 { kind } else { both };
        let (random, sequential) = (sample(found.random), sample(found.sequential));
        let asked_sequential = asked * sequential_share;
        let asked_random = asked - asked_sequential;
        let share = |part: u64, kind: &FoundKind| part as f64 / kind.asked_bytes.max(1) as f64;
        Self {
            asked,
            found_random: asked_random * share(random.found_bytes, &random),
            found_sequential: asked_sequential * share(sequential.found_bytes, &sequential),
            missed_pages: asked_random * share(random.missed_page_bytes, &random)
                + asked_sequential * share(sequential.missed_page_bytes, &sequential),
        }
    }

    fn found_share(&self) -> f64 {
        ((self.found_random + self.found_sequential) / self.asked).clamp(0.0, 1.0)
    }

    fn cached_share(&self, fetched: f64) -> f64 {
        let missed = self.asked - self.found_random - self.found_sequential;
        let read_ahead = self.found_sequential.min((fetched - self.missed_pages).max(0.0));
        (1.0 - (missed.min(fetched) + read_ahead) / self.asked).clamp(0.0, 1.0)
    }
}

/// The share from cache and what it rests on; none without reads, or in words why it cannot be
/// known.
fn share(
    window: &Window,
    estimate: Option<&Estimate>,
    fetched: Option<u64>,
) -> Result<Option<(f64, CachedShareFrom)>, String> {
    if window.read_bytes == 0 {
        return Ok(None);
    }
    match (estimate, fetched) {
        (Some(estimate), Some(fetched)) => {
            Ok(Some((estimate.cached_share(fetched as f64), CachedShareFrom::Residency)))
        }
        (Some(estimate), None) if estimate.found_sequential <= DOUBT_MAX * estimate.asked => {
            Ok(Some((estimate.found_share(), CachedShareFrom::Residency)))
        }
        (Some(_), None) => Err("the share from cache: what was fetched is not counted for this \
            file system, so read-ahead cannot be told from what was in the cache before"
            .to_owned()),
        (None, Some(fetched)) => {
            let share = 1.0 - fetched as f64 / window.read_bytes as f64;
            Ok(Some((share.clamp(0.0, 1.0), CachedShareFrom::Device)))
        }
        (None, None) => Err("the share from cache: the bytes fetched are not counted for this \
            file system, and no read was looked up in the page cache"
            .to_owned()),
    }
}

/// Why a direct run is no disk's number.
fn disbelieved(window: &Window, fetched: Option<u64>) -> Option<Finding> {
    let place = window.place.filter(|place| place.direct)?;
    if let Some(name) = place.memory {
        return Some(Finding::new(Code::MemoryFileSystem).with("file_system", name.to_owned()));
    }
    let (asked, fetched) = (window.read_bytes, fetched?);
    if fetched as f64 >= DIRECT_SHARE_MIN * asked as f64 {
        return None;
    }
    let found = Finding::new(Code::CachedDiskNumber)
        .with("asked_bytes", asked)
        .with("device_bytes", fetched)
        .with("cached_frac", 1.0 - fetched as f64 / asked as f64);
    let caches = place.caches_below.join("; ");
    Some(if caches.is_empty() { found } else { found.with("caches", caches) })
}
