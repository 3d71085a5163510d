//! Flash before something slower: blocks of it are kept as a whole, as bcache and dm-cache do.
//!
//! A block that is missed is read whole and written to the flash besides. A write to a block that is
//! not there makes it one that is, whatever part of it was written.

use std::collections::BTreeSet;

use crate::cache::{Cache, Evicted};
use crate::document::{Tier as Document, TierWrites};
use crate::io::{Hub, IoId, NOBODY, Owner, Part, PartId, Span};

/// What a request of its own is for, in its tag's lowest bits; above them the block.
const PROMOTE: u64 = 0;
const CLEAN_READ: u64 = 1;
const CLEAN_WRITE: u64 = 2;
/// Children: a read of the slow device that fills a block.
const FILLS: u64 = 1;

/// Blocks brought down at once.
const CLEANERS: u32 = 4;

/// A cache of blocks on flash.
#[derive(Debug)]
pub(crate) struct Tier {
    id: PartId,
    fast: PartId,
    slow: PartId,
    document: Document,
    capacity: u64,
    cache: Cache,
    dirty: BTreeSet<u64>,
    dirty_max: usize,
    cursor: u64,
    cleaning: u32,
    /// Of each worker: where its next sequential request begins, and the bytes in a row so far.
    runs: Vec<(u64, u64)>,
    lookups: (u64, u64),
}

impl Tier {
    /// Empty flash before a device of so many bytes.
    pub fn new(document: &Document, ids: [PartId; 3], capacity: u64) -> Self {
        let blocks = (document.capacity_bytes / document.block_bytes) as usize;
        let [id, fast, slow] = ids;
        Self {
            id,
            fast,
            slow,
            capacity,
            cache: Cache::new(document.policy, blocks, document.block_bytes, 0),
            dirty: BTreeSet::new(),
            dirty_max: (blocks as f64 * document.dirty_max_frac) as usize,
            cursor: 0,
            cleaning: 0,
            runs: Vec::new(),
            lookups: (0, 0),
            document: document.clone(),
        }
    }

    /// The whole of a block, as far as the device goes.
    fn block(&self, block: u64, write: bool) -> Span {
        let from = block * self.document.block_bytes;
        let end = (from + self.document.block_bytes).min(self.capacity).max(from + 1);
        Span { from, bytes: end - from, write }
    }

    /// Where a part of a block is on the flash.
    fn on_flash(&self, slot: u32, span: Span) -> Span {
        let block = self.document.block_bytes;
        // Slots of what is remembered come beyond those of what is held: the flash wraps.
        let blocks = (self.document.capacity_bytes / block).max(1);
        Span { from: u64::from(slot) % blocks * block + span.from % block, ..span }
    }

    /// The parts of a request by blocks.
    fn parts(&self, span: Span) -> impl Iterator<Item = (u64, Span)> + use<> {
        let size = self.document.block_bytes;
        (span.from / size..=(span.end() - 1) / size).map(move |block| {
            let from = span.from.max(block * size);
            let end = span.end().min((block + 1) * size);
            (block, Span { from, bytes: end - from, ..span })
        })
    }

    /// Whether this request goes on a run that is too long for the flash.
    fn passes(&mut self, worker: u32, span: Span) -> bool {
        if self.document.sequential_cutoff_bytes == 0 || worker == NOBODY {
            return false;
        }
        let worker = worker as usize;
        if worker >= self.runs.len() {
            self.runs.resize(worker + 1, (u64::MAX, 0));
        }
        let (next, run) = &mut self.runs[worker];
        *run = if *next == span.from { *run + span.bytes } else { span.bytes };
        *next = span.end();
        *run > self.document.sequential_cutoff_bytes
    }

    fn read(&mut self, hub: &mut Hub, io: IoId, passes: bool) {
        for (block, part) in self.parts(hub.io(io).span) {
            hub.effort += 1;
            let (to, span, tag) = match self.cache.touch(block) {
                Some(slot) => (self.fast, self.on_flash(slot, part), 0),
                None if passes => (self.slow, part, 0),
                None => (self.slow, self.block(block, false), FILLS),
            };
            let child = hub.child(self.id, io, span);
            hub.io_mut(child).tag = tag;
            hub.submit(to, child);
        }
    }

    fn write(&mut self, hub: &mut Hub, io: IoId, passes: bool) {
        for (block, part) in self.parts(hub.io(io).span) {
            hub.effort += 1;
            let slot = self.cache.touch(block);
            let back = self.document.writes == TierWrites::Back;
            // What is being brought down is dirty until it is there.
            let room = self.dirty.len() + (self.cleaning as usize) < self.dirty_max;
            if back && (slot.is_some() || (room && !passes)) {
                let slot = slot.unwrap_or_else(|| self.bring(hub, block));
                self.cache.page_mut(slot).dirty = true;
                self.dirty.insert(block);
                self.ask(hub, io, self.fast, self.on_flash(slot, part));
                continue;
            }
            self.ask(hub, io, self.slow, part);
            match slot {
                Some(slot) if self.document.writes == TierWrites::Through => {
                    self.ask(hub, io, self.fast, self.on_flash(slot, part));
                }
                Some(_) => self.cache.forget(block),
                None => {}
            }
        }
        self.clean(hub);
    }

    fn ask(&self, hub: &mut Hub, io: IoId, to: PartId, span: Span) {
        let child = hub.child(self.id, io, span);
        hub.submit(to, child);
    }

    fn own(&self, hub: &mut Hub, to: PartId, span: Span, what: u64, block: u64) {
        let io = hub.open(span, NOBODY, Owner::Alone(self.id));
        hub.io_mut(io).tag = what | block << 2;
        hub.submit(to, io);
    }

    /// Gives a block a slot, and brings down what had to go if it was dirty.
    fn bring(&mut self, hub: &mut Hub, block: u64) -> u32 {
        let (slot, evicted) = self.cache.insert(block, true);
        if let Some(Evicted { number, dirty: true }) = evicted {
            self.dirty.remove(&number);
            self.begin_cleaning(hub, number, slot);
        }
        slot
    }

    fn begin_cleaning(&mut self, hub: &mut Hub, block: u64, slot: u32) {
        self.cleaning += 1;
        let span = self.on_flash(slot, self.block(block, false));
        self.own(hub, self.fast, span, CLEAN_READ, block);
    }

    /// Brings dirty blocks down in order, beyond half of what may be dirty.
    fn clean(&mut self, hub: &mut Hub) {
        while self.dirty.len() * 2 > self.dirty_max && self.cleaning < CLEANERS {
            let ahead = self.dirty.range(self.cursor..).next().copied();
            let Some(block) = ahead.or_else(|| self.dirty.first().copied()) else { return };
            self.cursor = block + 1;
            self.dirty.remove(&block);
            let Some(slot) = self.cache.find(block) else { continue };
            self.cache.page_mut(slot).dirty = false;
            self.begin_cleaning(hub, block, slot);
        }
    }

    /// A block was read from below for somebody: it goes to the flash as well.
    fn promote(&mut self, hub: &mut Hub, span: Span) {
        let block = span.from / self.document.block_bytes;
        if self.cache.find(block).is_none() {
            let slot = self.bring(hub, block);
            let to = self.on_flash(slot, Span { write: true, ..span });
            self.own(hub, self.fast, to, PROMOTE, block);
        }
    }
}

impl Part for Tier {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        let (span, worker) = (hub.io(io).span, hub.io(io).worker);
        let passes = self.passes(worker, span);
        if span.write {
            self.write(hub, io, passes);
        } else {
            self.read(hub, io, passes);
        }
    }

    fn child_ended(&mut self, hub: &mut Hub, parent: IoId, child: IoId) {
        if hub.io(child).tag == FILLS {
            self.promote(hub, hub.io(child).span);
        }
        if hub.one_less(parent) {
            hub.finish(parent);
        }
    }

    fn own_ended(&mut self, hub: &mut Hub, io: IoId) {
        let (what, block) = (hub.io(io).tag & 3, hub.io(io).tag >> 2);
        match what {
            CLEAN_READ => self.own(hub, self.slow, self.block(block, true), CLEAN_WRITE, block),
            CLEAN_WRITE => {
                self.cleaning -= 1;
                self.clean(hub);
            }
            _ => {}
        }
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        for (block, part) in self.parts(span) {
            self.lookups.1 += 1;
            if self.cache.touch(block).is_some() {
                self.lookups.0 += 1;
            } else {
                let (_, evicted) = self.cache.insert(block, true);
                if let Some(Evicted { number, dirty: true }) = evicted {
                    self.dirty.remove(&number);
                }
                down.push((self.slow, part));
            }
            let back = span.write && self.document.writes == TierWrites::Back;
            if back
                && self.dirty.len() * 2 < self.dirty_max
                && let Some(slot) = self.cache.find(block)
            {
                self.cache.page_mut(slot).dirty = true;
                self.dirty.insert(block);
            }
        }
    }

    fn resident_bytes(&self) -> u64 {
        self.cache.resident() as u64 * self.document.block_bytes
    }

    fn warm_lookups(&self) -> (u64, u64) {
        self.lookups
    }
}
