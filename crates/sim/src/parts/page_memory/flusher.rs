//! Dirty pages, who writes them and who waits for it.
//!
//! As in Linux: beyond `background` pages writeback writes in the order of their numbers, going
//! round, with a fixed number of requests outstanding; when the data have been dirty for
//! `expire_s`, all of them are written at the next tick; at `limit` writers wait. A page counts
//! against the limit until its write has ended. What a page that goes leaves behind is written at
//! once, whatever the depth.

use std::collections::VecDeque;

use super::dirty_set::DirtySet;
use crate::document::Dirty;
use crate::io::IoId;

/// The part of its depth that writeback uses while somebody waits for a read.
const DEPTH_BESIDE_READS: u32 = 8;

/// State of writeback of one memory.
#[derive(Debug)]
pub(super) struct Flusher {
    pub set: DirtySet,
    background: u64,
    limit: u64,
    interval_ns: u64,
    expire_ns: u64,
    depth: u32,
    cursor: u64,
    /// Pages being written.
    writing: u64,
    /// Requests of writeback's own.
    outstanding: u32,
    /// Pages to write before it rests, whatever is dirty.
    sweep: u64,
    ticking: bool,
    begun: u64,
    ended: u64,
    /// Requests that wait until so many pages in all have been written.
    syncs: VecDeque<(u64, IoId)>,
    /// Writers that wait.
    throttled: VecDeque<IoId>,
}

impl Flusher {
    pub fn new(document: &Dirty, page_bytes: u64) -> Self {
        Self {
            set: DirtySet::default(),
            background: document.background_bytes / page_bytes,
            limit: (document.limit_bytes / page_bytes).max(1),
            interval_ns: (document.interval_s * 1e9) as u64,
            expire_ns: (document.expire_s * 1e9) as u64,
            depth: document.depth,
            cursor: 0,
            writing: 0,
            outstanding: 0,
            sweep: 0,
            ticking: false,
            begun: 0,
            ended: 0,
            syncs: VecDeque::new(),
            throttled: VecDeque::new(),
        }
    }

    /// Whether as much is dirty as writeback leaves alone.
    pub fn beyond_background(&self) -> bool {
        self.set.count() >= self.background
    }

    /// Pages that may become dirty before writers wait.
    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.set.count() + self.writing)
    }

    /// Whether a writer has to wait, which it then does.
    pub fn throttles(&mut self, io: IoId) -> bool {
        if self.room() > 0 {
            return false;
        }
        self.throttled.push_back(io);
        true
    }

    /// A page became dirty at `now_ns`: when to look again, if nobody looks yet.
    pub fn dirtied(&mut self, page: u64, now_ns: u64) -> Option<u64> {
        self.set.add(page);
        if self.ticking {
            return None;
        }
        self.ticking = true;
        let interval_ns = self.interval_ns.max(1);
        Some((now_ns + self.expire_ns).div_ceil(interval_ns) * interval_ns)
    }

    /// The tick: everything dirty now is old enough.
    pub fn tick(&mut self) {
        self.ticking = false;
        self.sweep = self.set.count();
    }

    /// A request waits for everything that is dirty now; false when nothing is.
    pub fn sync(&mut self, io: IoId) -> bool {
        let goal = self.begun + self.set.count();
        if goal <= self.ended {
            return false;
        }
        self.sweep = self.set.count();
        self.syncs.push_back((goal, io));
        true
    }

    /// Whether a request waits for everything to be written.
    pub fn somebody_waits(&self) -> bool {
        !self.syncs.is_empty()
    }

    /// The next pages to write: first and number.
    ///
    /// While somebody waits for a read, only a part of the depth is used, as Linux's writeback
    /// throttling does it: reads would wait for all that is under way.
    pub fn next_run(&mut self, most: u64, somebody_reads: bool) -> Option<(u64, u64)> {
        let part = if somebody_reads { DEPTH_BESIDE_READS } else { 1 };
        let depth = (self.depth / part).max(1);
        let wanted =
            self.set.count() > self.background || self.sweep > 0 || !self.throttled.is_empty();
        if self.outstanding >= depth || !wanted {
            return None;
        }
        let Some(first) = self.set.next(self.cursor) else {
            self.sweep = 0;
            return None;
        };
        let pages = self.set.run(first, most);
        self.cursor = first + pages;
        self.sweep = self.sweep.saturating_sub(pages);
        self.outstanding += 1;
        Some((first, pages))
    }

    /// These pages are being written from now on.
    pub fn begin(&mut self, pages: u64) {
        self.begun += pages;
        self.writing += pages;
    }

    /// They are written; `own` says that writeback itself wrote them.
    pub fn end(&mut self, pages: u64, own: bool) {
        self.ended += pages;
        self.writing -= pages;
        self.outstanding -= u32::from(own);
    }

    /// A request whose wait for what was dirty has ended.
    pub fn synced(&mut self) -> Option<IoId> {
        let &(goal, io) = self.syncs.front()?;
        if goal > self.ended {
            return None;
        }
        self.syncs.pop_front();
        Some(io)
    }

    /// Writers that may go on, given how many pages each writes.
    pub fn release(&mut self, pages_of: impl Fn(IoId) -> u64) -> Vec<IoId> {
        let (mut room, mut free) = (self.room(), Vec::new());
        while room > 0
            && let Some(io) = self.throttled.pop_front()
        {
            room = room.saturating_sub(pages_of(io));
            free.push(io);
        }
        free
    }
}
