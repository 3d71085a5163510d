//! Sums over slices of a trace, of as many requests each, so that phases can be found later.

use std::collections::BTreeSet;

use crate::bins::Bins;
use crate::digest::sample::CLASSES;
use crate::record::CALLS;

/// Slices at most; then two by two become one.
const SLICES_MAX: usize = 1024;
/// Requests of a slice, to begin with.
const REQUESTS_FIRST: u64 = 16;
/// Two bins in each octave, of sizes and of times.
pub const SIZE_BINS: Bins = Bins::per_octave(1);
const SIZES: usize = 106;
const GAPS: usize = 128;
/// Processes told apart in a slice.
const PROCESSES_MAX: usize = 1024;

/// Calls of one name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Called {
    pub calls: u64,
    pub took_ns: u64,
}

/// Times between requests.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    pub count: u64,
    pub sum_s: f64,
    pub squares_s2: f64,
    /// By [`SIZE_BINS`], in ns.
    pub bins: [u32; GAPS],
    /// Requests that began before their process's last had ended.
    pub overlapping: u64,
}

/// Requests that somebody finds on their way when he makes his.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outstanding {
    pub seen: u64,
    pub sum: f64,
    pub squares: f64,
    pub most: u64,
}

/// Sums over a part of a trace.
#[derive(Clone, Debug)]
pub struct Slice {
    /// References before it.
    pub first_clock: u64,
    pub first_ns: u64,
    pub last_ns: u64,
    pub requests: [u64; CLASSES],
    pub bytes: [u64; CLASSES],
    /// Other files gone to since a sequential request's own, of reads and of writes, added up.
    pub others_since: [u64; 2],
    /// Reads, and writes, of a file's first byte.
    pub begins: [u64; 2],
    /// By [`SIZE_BINS`], of reads and of writes.
    pub sizes: [[u32; SIZES]; 2],
    /// Reads, and writes, whose time is known.
    pub timed: [Called; 2],
    /// By [`CALLS`].
    pub called: [Called; CALLS.len()],
    pub syncs: u64,
    /// Bytes written and not yet waited for, summed over all syncs.
    pub dirty_at_sync: u64,
    pub unplaced_bytes: u64,
    pub busy_ns: u64,
    pub device_ns: u64,
    pub gaps: Gaps,
    pub outstanding: Outstanding,
    pub processes: BTreeSet<u32>,
}

impl Slice {
    /// Nothing happened.
    pub fn empty() -> Self {
        Self::new(0, 0)
    }

    fn new(first_clock: u64, first_ns: u64) -> Self {
        let (bins, overlapping) = ([0; GAPS], 0);
        Self {
            first_clock,
            first_ns,
            last_ns: first_ns,
            requests: [0; CLASSES],
            bytes: [0; CLASSES],
            others_since: [0; 2],
            begins: [0; 2],
            sizes: [[0; SIZES]; 2],
            timed: [Called::default(); 2],
            called: [Called::default(); CALLS.len()],
            syncs: 0,
            dirty_at_sync: 0,
            unplaced_bytes: 0,
            busy_ns: 0,
            device_ns: 0,
            gaps: Gaps { count: 0, sum_s: 0.0, squares_s2: 0.0, bins, overlapping },
            outstanding: Outstanding::default(),
            processes: BTreeSet::new(),
        }
    }

    /// Reads and writes.
    pub fn all_requests(&self) -> u64 {
        self.requests.iter().sum()
    }

    /// Counts a read or write.
    pub fn request(&mut self, class: u8, bytes: u64, process: u32) {
        self.requests[usize::from(class)] += 1;
        self.bytes[usize::from(class)] += bytes;
        self.sizes[usize::from(class / 2)][SIZE_BINS.of(bytes).min(SIZES - 1)] += 1;
        if self.processes.len() < PROCESSES_MAX {
            self.processes.insert(process);
        }
    }

    /// Counts the time between two requests.
    pub fn gap(&mut self, ns: u64) {
        let seconds = ns as f64 * 1e-9;
        self.gaps.count += 1;
        self.gaps.sum_s += seconds;
        self.gaps.squares_s2 += seconds * seconds;
        self.gaps.bins[SIZE_BINS.of(ns).min(GAPS - 1)] += 1;
    }

    /// Counts what a request found on its way.
    pub fn found(&mut self, outstanding: u64) {
        let own = &mut self.outstanding;
        own.seen += 1;
        own.sum += outstanding as f64;
        own.squares += (outstanding as f64).powi(2);
        own.most = own.most.max(outstanding);
    }

    /// Adds the slice that follows.
    pub fn add(&mut self, next: &Self) {
        self.last_ns = self.last_ns.max(next.last_ns);
        add_each(&mut self.requests, &next.requests);
        add_each(&mut self.bytes, &next.bytes);
        add_each(&mut self.others_since, &next.others_since);
        add_each(&mut self.begins, &next.begins);
        for (own, other) in self.sizes.iter_mut().zip(&next.sizes) {
            add_each(own, other);
        }
        add_each(&mut self.gaps.bins, &next.gaps.bins);
        let calls = self.called.iter_mut().chain(&mut self.timed);
        for (own, other) in calls.zip(next.called.iter().chain(&next.timed)) {
            own.calls += other.calls;
            own.took_ns += other.took_ns;
        }
        self.syncs += next.syncs;
        self.dirty_at_sync += next.dirty_at_sync;
        self.unplaced_bytes += next.unplaced_bytes;
        self.busy_ns += next.busy_ns;
        self.device_ns += next.device_ns;
        self.gaps.count += next.gaps.count;
        self.gaps.sum_s += next.gaps.sum_s;
        self.gaps.squares_s2 += next.gaps.squares_s2;
        self.gaps.overlapping += next.gaps.overlapping;
        self.outstanding.seen += next.outstanding.seen;
        self.outstanding.sum += next.outstanding.sum;
        self.outstanding.squares += next.outstanding.squares;
        self.outstanding.most = self.outstanding.most.max(next.outstanding.most);
        self.processes.extend(&next.processes);
    }
}

fn add_each<T: Copy + std::ops::AddAssign>(own: &mut [T], other: &[T]) {
    for (own, other) in own.iter_mut().zip(other) {
        *own += *other;
    }
}

/// All slices, the last of which grows.
#[derive(Debug)]
pub struct Slices {
    pub all: Vec<Slice>,
    requests_each: u64,
    in_last: u64,
}

impl Slices {
    pub fn new() -> Self {
        Self { all: Vec::new(), requests_each: REQUESTS_FIRST, in_last: 0 }
    }

    /// The slice that an event at this time belongs to.
    #[inline]
    pub fn now(&mut self, clock: u64, at_ns: u64) -> &mut Slice {
        if self.all.is_empty() || self.in_last >= self.requests_each {
            self.begin(clock, at_ns);
        }
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    /// The slice of a read or write, which counts towards its end.
    #[inline]
    pub fn next(&mut self, clock: u64, at_ns: u64) -> &mut Slice {
        self.now(clock, at_ns);
        self.in_last += 1;
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    fn begin(&mut self, clock: u64, at_ns: u64) {
        if self.all.len() == SLICES_MAX {
            let pairs = self.all.chunks(2).map(|pair| {
                let mut whole = pair[0].clone();
                pair[1..].iter().for_each(|next| whole.add(next));
                whole
            });
            self.all = pairs.collect();
            self.requests_each *= 2;
        }
        self.all.push(Slice::new(clock, at_ns));
        self.in_last = 0;
    }
}
