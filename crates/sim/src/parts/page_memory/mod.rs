//! A page cache: the host's page cache, or a server's memory.
//!
//! A page that is not there is read by a request of the memory's own, on which everybody who needs
//! it waits, so that two workers never read it twice and a reader catches up with its read-ahead. A
//! write to a part of a page that is not there reads that page first.

mod dirty_set;
mod flusher;
mod read_ahead;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::cache::table::NONE;
use crate::cache::{Cache, Evicted};
use crate::calendar::Event;
use crate::document::PageCache;
use crate::io::{Hub, IoId, NOBODY, Owner, Part, PartId, Span};
use flusher::Flusher;
use read_ahead::Ahead;

/// What a request of its own is for.
const FILL: u64 = 0;
const FLUSH: u64 = 1;
const LEAVE: u64 = 2;
/// A fill that somebody waits for.
const DEMAND: u64 = 3;

/// Pages in memory before something slower.
#[derive(Debug)]
pub(crate) struct PageMemory {
    id: PartId,
    below: PartId,
    page_bytes: u64,
    request_pages: u64,
    /// Pages of the data; nothing is read beyond.
    data_pages: u64,
    cache: Cache,
    ahead: Option<Ahead>,
    flusher: Option<Flusher>,
    /// Fills that somebody waits for.
    demands: u32,
    /// Whether what passes below counts as the host's device.
    counted: bool,
    lookups: (u64, u64),
}

impl PageMemory {
    /// An empty memory for data of `data_bytes`.
    pub fn new(
        document: &PageCache,
        id: PartId,
        below: PartId,
        data_bytes: u64,
        counted: bool,
    ) -> Self {
        let page = document.page_bytes;
        let capacity = (document.capacity_bytes / page) as usize;
        Self {
            id,
            below,
            page_bytes: page,
            request_pages: (document.request_max_bytes / page).max(1),
            data_pages: data_bytes.div_ceil(page),
            cache: Cache::new(document.policy, capacity, page, data_bytes.div_ceil(page) as usize),
            ahead: document.read_ahead.as_ref().map(|ahead| Ahead::new(ahead, page)),
            flusher: document.dirty.as_ref().map(|dirty| Flusher::new(dirty, page)),
            demands: 0,
            counted,
            lookups: (0, 0),
        }
    }

    /// First page and the one after the last.
    fn pages(&self, span: Span) -> (u64, u64) {
        (span.from / self.page_bytes, span.end().div_ceil(self.page_bytes))
    }

    fn span(&self, first: u64, pages: u64, write: bool) -> Span {
        Span { from: first * self.page_bytes, bytes: pages * self.page_bytes, write }
    }

    fn read(&mut self, hub: &mut Hub, io: IoId) {
        let (first, end) = self.pages(hub.io(io).span);
        let (mut missing, mut found) = (first..first, 0);
        for page in first..end {
            hub.effort += 1;
            if let Some(slot) = self.cache.touch(page) {
                found += 1;
                wait_for(hub, io, self.cache.page(slot).filling);
                self.fill(hub, missing, io);
                missing = page + 1..page + 1;
            } else {
                missing.end = page + 1;
            }
        }
        self.fill(hub, missing, io);
        let bytes = hub.io(io).span.bytes as f64;
        hub.io_mut(io).found = (bytes * f64::from(found) / (end - first) as f64) as u64;
        let reader = hub.io(io).worker;
        if let Some((from, pages)) =
            self.ahead.as_mut().and_then(|ahead| ahead.step(reader, first, end))
        {
            self.read_on(hub, from, pages, reader);
        }
        if hub.io(io).pending == 0 {
            self.complete(hub, io);
        }
    }

    /// Reads pages that nobody has asked for yet.
    fn read_on(&mut self, hub: &mut Hub, from: u64, pages: u64, reader: u32) {
        let mut missing = from..from;
        for page in from..(from + pages).min(self.data_pages) {
            hub.effort += 1;
            if self.cache.find(page).is_some() {
                self.fill_ahead(hub, missing, reader);
                missing = page + 1..page + 1;
            } else {
                missing.end = page + 1;
            }
        }
        self.fill_ahead(hub, missing, reader);
    }

    /// Reads pages that are not here and that `asker` waits for.
    fn fill(&mut self, hub: &mut Hub, pages: Range<u64>, asker: IoId) {
        let reader = hub.io(asker).worker;
        for part in self.requests(pages) {
            let fill = self.fetch(hub, part, reader, true);
            wait_for(hub, asker, fill.0);
        }
    }

    fn fill_ahead(&mut self, hub: &mut Hub, pages: Range<u64>, reader: u32) {
        for part in self.requests(pages) {
            self.fetch(hub, part, reader, false);
        }
    }

    /// Pages by the requests that ask for them below.
    fn requests(&self, pages: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let most = self.request_pages;
        let number = (pages.end - pages.start).div_ceil(most);
        let part = move |number: u64| {
            let from = pages.start + number * most;
            from..(from + most).min(pages.end)
        };
        (0..number).map(part)
    }

    fn fetch(&mut self, hub: &mut Hub, pages: Range<u64>, reader: u32, demanded: bool) -> IoId {
        let span = self.span(pages.start, pages.end - pages.start, false);
        let fill = hub.open(span, reader, Owner::Alone(self.id));
        hub.io_mut(fill).tag = if demanded { DEMAND } else { FILL };
        self.demands += u32::from(demanded);
        for page in pages {
            let slot = self.bring(hub, page, demanded);
            self.cache.page_mut(slot).filling = fill.0;
        }
        hub.submit(self.below, fill);
        fill
    }

    /// Gives a page a place. If what had to go for it was dirty, it is written out with the dirty
    /// pages that follow it, which will have to go soon.
    fn bring(&mut self, hub: &mut Hub, page: u64, demanded: bool) -> u32 {
        let (slot, evicted) = self.cache.insert(page, demanded);
        if let Some(Evicted { number, dirty: true }) = evicted
            && let Some(flusher) = &mut self.flusher
        {
            let pages = flusher.set.run(number, self.request_pages);
            self.clean(hub, number, pages, LEAVE);
        }
        slot
    }

    /// Writes dirty pages out; they are clean from now on.
    fn clean(&mut self, hub: &mut Hub, first: u64, pages: u64, what: u64) {
        let Some(flusher) = &mut self.flusher else { return };
        for page in first..first + pages {
            flusher.set.take(page);
            if let Some(slot) = self.cache.find(page) {
                self.cache.page_mut(slot).dirty = false;
            }
        }
        hub.effort += pages;
        flusher.begin(pages);
        self.write_out(hub, first, pages, what);
    }

    fn write_out(&mut self, hub: &mut Hub, first: u64, pages: u64, what: u64) {
        let io = hub.open(self.span(first, pages, true), NOBODY, Owner::Alone(self.id));
        hub.io_mut(io).tag = what;
        // Somebody waits until it is safe: it may not end in the next memory either.
        hub.io_mut(io).durable = self.flusher.as_ref().is_some_and(Flusher::somebody_waits);
        hub.submit(self.below, io);
    }

    fn write(&mut self, hub: &mut Hub, io: IoId) {
        let through = hub.io(io).durable || self.flusher.is_none();
        if !through && self.flusher.as_mut().is_some_and(|flusher| flusher.throttles(io)) {
            self.pump(hub);
            return;
        }
        let span = hub.io(io).span;
        let (first, end) = self.pages(span);
        for page in first..end {
            hub.effort += 1;
            let whole =
                page * self.page_bytes >= span.from && (page + 1) * self.page_bytes <= span.end();
            let slot = match self.cache.touch(page) {
                Some(slot) => {
                    if !whole {
                        wait_for(hub, io, self.cache.page(slot).filling);
                    }
                    Some(slot)
                }
                None if whole => Some(self.bring(hub, page, true)),
                None => {
                    self.fill(hub, page..page + 1, io);
                    self.cache.find(page)
                }
            };
            if !through && let Some(slot) = slot {
                self.soil(hub, slot, page);
            }
        }
        if through {
            self.write_through(hub, io, first, end);
        }
        self.pump(hub);
        if hub.io(io).pending == 0 {
            self.complete(hub, io);
        }
    }

    fn write_through(&mut self, hub: &mut Hub, io: IoId, first: u64, end: u64) {
        for part in self.requests(first..end) {
            let span = self.span(part.start, part.end - part.start, true);
            let child = hub.child(self.id, io, span);
            hub.submit(self.below, child);
        }
    }

    /// A page is dirty from now on.
    fn soil(&mut self, hub: &mut Hub, slot: u32, page: u64) {
        let Some(flusher) = &mut self.flusher else { return };
        if std::mem::replace(&mut self.cache.page_mut(slot).dirty, true) {
            return;
        }
        if let Some(at_ns) = flusher.dirtied(page, hub.now_ns) {
            hub.at(at_ns, Event::Wake(self.id, 0));
        }
    }

    /// Lets writeback write as much as it may.
    fn pump(&mut self, hub: &mut Hub) {
        while let Some(flusher) = &mut self.flusher
            && let Some((first, pages)) = flusher.next_run(self.request_pages, self.demands > 0)
        {
            self.clean(hub, first, pages, FLUSH);
        }
    }

    /// The part of a request that concerns this memory is done.
    fn complete(&mut self, hub: &mut Hub, io: IoId) {
        if std::mem::take(&mut hub.io_mut(io).flush)
            && self.flusher.as_mut().is_some_and(|flusher| flusher.sync(io))
        {
            self.pump(hub);
            return;
        }
        hub.finish(io);
    }

    fn filled(&mut self, hub: &mut Hub, fill: IoId) {
        let (first, end) = self.pages(hub.io(fill).span);
        for page in first..end {
            if let Some(slot) = self.cache.find(page)
                && self.cache.page(slot).filling == fill.0
            {
                self.cache.page_mut(slot).filling = NONE;
            }
        }
        let waiters = std::mem::take(&mut hub.io_mut(fill).waiters);
        for &io in &waiters {
            if hub.one_less(io) {
                self.complete(hub, io);
            }
        }
        hub.io_mut(fill).waiters = waiters; // its memory is used again
    }

    fn written_out(&mut self, hub: &mut Hub, io: IoId, own: bool) {
        let pages = hub.io(io).span.bytes / self.page_bytes;
        let Some(flusher) = &mut self.flusher else { return };
        flusher.end(pages, own);
        while let Some(waiting) = flusher.synced() {
            hub.finish(waiting);
        }
        let page_bytes = self.page_bytes;
        let pages_of = |io: IoId| hub.io(io).span.bytes.div_ceil(page_bytes);
        for waiting in flusher.release(pages_of) {
            hub.submit(self.id, waiting);
        }
        self.pump(hub);
    }

    fn count(&self, hub: &mut Hub, span: Span) {
        if self.counted {
            hub.count_below(span);
        }
    }

    /// One page passes while warming; whether it was there.
    fn warm_page(&mut self, page: u64, write: bool) -> bool {
        let found = self.cache.touch(page);
        let slot = found.unwrap_or_else(|| {
            let (slot, evicted) = self.cache.insert(page, true);
            if let Some((Evicted { number, dirty: true }, flusher)) =
                evicted.zip(self.flusher.as_mut())
            {
                flusher.set.take(number);
            }
            slot
        });
        if write
            && let Some(flusher) = &mut self.flusher
            && !flusher.beyond_background()
            && !std::mem::replace(&mut self.cache.page_mut(slot).dirty, true)
        {
            flusher.set.add(page);
        }
        found.is_some()
    }
}

/// `io` waits for the request that brings a page, unless the page is here.
fn wait_for(hub: &mut Hub, io: IoId, filling: u32) {
    if filling == NONE {
        return;
    }
    let waiters = &mut hub.io_mut(IoId(filling)).waiters;
    if waiters.last() == Some(&io) {
        return;
    }
    waiters.push(io);
    hub.io_mut(io).pending += 1;
}

impl Part for PageMemory {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        if hub.io(io).span.write {
            self.write(hub, io);
        } else {
            self.read(hub, io);
        }
    }

    fn child_ended(&mut self, hub: &mut Hub, parent: IoId, child: IoId) {
        self.count(hub, hub.io(child).span);
        if hub.one_less(parent) {
            self.complete(hub, parent);
        }
    }

    fn own_ended(&mut self, hub: &mut Hub, io: IoId) {
        self.count(hub, hub.io(io).span);
        match hub.io(io).tag {
            FILL => self.filled(hub, io),
            DEMAND => {
                self.demands -= 1;
                self.filled(hub, io);
                self.pump(hub);
            }
            what => self.written_out(hub, io, what == FLUSH),
        }
    }

    fn wake(&mut self, hub: &mut Hub, _what: u64) {
        if let Some(flusher) = &mut self.flusher {
            flusher.tick();
        }
        self.pump(hub);
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        let (first, end) = self.pages(span);
        let mut missing = first..first;
        for page in first..end {
            let found = self.warm_page(page, span.write);
            self.lookups.0 += u64::from(found);
            self.lookups.1 += 1;
            if found && !span.write {
                if !missing.is_empty() {
                    let pages = missing.end - missing.start;
                    down.push((self.below, self.span(missing.start, pages, false)));
                }
                missing = page + 1..page + 1;
            } else {
                missing.end = page + 1;
            }
        }
        if !missing.is_empty() {
            let pages = missing.end - missing.start;
            down.push((self.below, self.span(missing.start, pages, span.write)));
        }
    }

    fn resident_bytes(&self) -> u64 {
        self.cache.resident() as u64 * self.page_bytes
    }

    fn warm_lookups(&self) -> (u64, u64) {
        self.lookups
    }
}
