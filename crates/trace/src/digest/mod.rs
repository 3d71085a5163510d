//! What is kept of a trace as it goes by.

pub mod sample;
pub mod sequence;
pub mod slices;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::format::Format;
use crate::hash::ByNumber;
use crate::record::{Deed, NO_FILE, OFFSET_END, REQUEST_BYTES_MAX, Record, Refused, Sink, UNKNOWN};
use sample::{PAGE_BYTES, Reference, Sample, class_of};
use sequence::{Ends, Turns};
use slices::{Slice, Slices};

/// Bits of a page's number that are its place in its file.
const PAGE_BITS: u32 = 40;
/// Outstanding requests that are told apart.
const OUTSTANDING_MAX: usize = 1 << 16;
/// Files in which ends of requests are remembered, by process: 250 MB.
const ENDS_MAX: usize = 1 << 20;
const SECOND_NS: u64 = 1_000_000_000;

/// Memory that processes hold of their own, over all looks at it.
#[derive(Debug, Default)]
pub struct Held {
    bytes: u64,
    looks: u64,
}

impl Held {
    /// One look.
    pub fn take(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.looks += 1;
    }

    /// In the mean; 0 where nobody looked.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes / self.looks.max(1)
    }
}

/// Sums over the whole trace, and what it takes to make them.
#[derive(Debug)]
pub struct Digest {
    /// References to pages so far.
    pub clock: u64,
    pub slices: Slices,
    pub sample: Sample,
    /// Reads and writes.
    pub requests: u64,
    /// Times that are no whole second.
    pub between_seconds: u64,
    /// Requests and calls whose time is known.
    pub timed: u64,
    pub held: Held,
    has_processes: bool,
    ends: ByNumber<(u32, u32), Ends>,
    dirty: ByNumber<u32, u64>,
    /// Of reads, and of writes.
    turns: [Turns; 2],
    /// By process: when its last call ended, or began where that is not known.
    last_ns: ByNumber<u32, u64>,
    on_their_way: BinaryHeap<Reverse<u64>>,
    busy_until_ns: u64,
}

impl Digest {
    pub fn of(format: Format) -> Self {
        Self {
            clock: 0,
            slices: Slices::new(),
            sample: Sample::new(),
            requests: 0,
            between_seconds: 0,
            timed: 0,
            held: Held::default(),
            has_processes: format.has_processes(),
            ends: ByNumber::default(),
            dirty: ByNumber::default(),
            turns: [Turns::default(), Turns::default()],
            last_ns: ByNumber::default(),
            on_their_way: BinaryHeap::new(),
            busy_until_ns: 0,
        }
    }

    fn request(&mut self, record: &Record) -> Result<(), Refused> {
        let Record { file, process, offset, bytes, .. } = *record;
        if bytes == 0 {
            return Ok(());
        }
        if record.end() > OFFSET_END || bytes > REQUEST_BYTES_MAX {
            return Err(Refused(format!(
                "its request {} is for {bytes} bytes from byte {offset}, beyond what any file holds \
                 or any call moves: the file is damaged, or of another format than it looks like",
                self.requests + 1
            )));
        }
        self.requests += 1;
        let write = record.deed == Deed::Write;
        let whose = if self.has_processes { process } else { 0 };
        if self.ends.len() >= ENDS_MAX {
            self.ends.clear(); // each has a file of its own, and most are closed by now
        }
        let ends = self.ends.entry((whose, file)).or_insert_with(Ends::new);
        let sequential = ends.goes_on(offset, record.end());
        let class = class_of(write, sequential);
        let others = self.turns[usize::from(write)].others_since((whose, file));
        let slice = self.slices.next(self.clock, record.at_ns);
        slice.request(class, bytes, process);
        slice.begins[usize::from(write)] += u64::from(offset == 0);
        if sequential {
            slice.others_since[usize::from(write)] += others.unwrap_or(0);
        }
        if write {
            *self.dirty.entry(file).or_insert(0) += bytes;
        }
        let (first, last) = (offset / PAGE_BYTES, (record.end() - 1) / PAGE_BYTES);
        let pages = (last - first + 1).min(u64::from(u16::MAX)) as u16;
        let shown_bytes = bytes.min(u64::from(u32::MAX)) as u32;
        for page in first..=last {
            let continued = page == first && sequential && !offset.is_multiple_of(PAGE_BYTES);
            self.sample.offer(Reference {
                page: u64::from(file) << PAGE_BITS | page,
                clock: self.clock,
                bytes: shown_bytes,
                pages,
                class,
                continued,
            });
            self.clock += 1;
        }
        Ok(())
    }

    fn sync(&mut self, record: &Record) {
        let dirty = if record.file == NO_FILE {
            self.dirty.drain().map(|(_, bytes)| bytes).sum()
        } else {
            self.dirty.remove(&record.file).unwrap_or(0)
        };
        let slice = self.slices.now(self.clock, record.at_ns);
        slice.syncs += 1;
        slice.dirty_at_sync += dirty;
    }

    /// Times: what was outstanding, what was busy, and the gap before.
    fn time(&mut self, record: &Record) {
        let Record { at_ns, took_ns, process, deed, .. } = *record;
        self.between_seconds += u64::from(!at_ns.is_multiple_of(SECOND_NS));
        let known = took_ns != UNKNOWN;
        let end_ns = if known { at_ns.saturating_add(took_ns) } else { at_ns };
        if known {
            self.timed += 1;
            while self.on_their_way.peek().is_some_and(|Reverse(end)| *end <= at_ns) {
                self.on_their_way.pop();
            }
        }
        let newly_busy = end_ns.saturating_sub(self.busy_until_ns.max(at_ns));
        self.busy_until_ns = self.busy_until_ns.max(end_ns);
        let before = if deed == Deed::Device { None } else { self.last_ns.insert(process, end_ns) };
        let found = self.on_their_way.len() as u64;
        if known && self.on_their_way.len() < OUTSTANDING_MAX {
            self.on_their_way.push(Reverse(end_ns));
        }
        let slice = self.slices.now(self.clock, at_ns);
        slice.last_ns = slice.last_ns.max(end_ns);
        slice.busy_ns += newly_busy;
        if known {
            slice.found(found);
            count(slice, record);
        }
        if let Some(before_ns) = before {
            slice.gaps.overlapping += u64::from(known && before_ns > at_ns);
            slice.gap(at_ns.saturating_sub(before_ns));
        }
    }
}

/// Counts how long something took.
fn count(slice: &mut Slice, record: &Record) {
    match record.deed {
        Deed::Device => slice.device_ns += record.took_ns,
        Deed::Read | Deed::Write => {
            let timed = &mut slice.timed[usize::from(record.deed == Deed::Write)];
            timed.calls += 1;
            timed.took_ns += record.took_ns;
        }
        Deed::Sync | Deed::Metadata => {
            slice.called[usize::from(record.call)].took_ns += record.took_ns;
        }
        Deed::Unplaced | Deed::Length | Deed::Removed | Deed::Memory => {}
    }
}

impl Sink for Digest {
    fn take(&mut self, record: Record) -> Result<(), Refused> {
        match record.deed {
            Deed::Read | Deed::Write => self.request(&record)?,
            Deed::Sync if !record.begins_writeback() => self.sync(&record),
            Deed::Unplaced => {
                self.slices.now(self.clock, record.at_ns).unplaced_bytes += record.bytes;
                return Ok(()); // nobody knows whether it was storage
            }
            Deed::Memory => {
                self.held.take(record.bytes);
                return Ok(());
            }
            Deed::Length | Deed::Removed => return Ok(()),
            Deed::Sync | Deed::Metadata | Deed::Device => {}
        }
        if matches!(record.deed, Deed::Sync | Deed::Metadata) {
            let slice = self.slices.now(self.clock, record.at_ns);
            slice.called[usize::from(record.call)].calls += 1;
        }
        self.time(&record);
        Ok(())
    }
}
