//! Outstanding requests through the parts, and what every part shares.
//!
//! A part never calls another: it says what is to happen, now ([`Hub::submit`], [`Hub::finish`]) or
//! at a time ([`Hub::at`]), and the machine sees to it. A part that makes smaller requests of one
//! makes children of it; the last child that ends tells the part so.

use std::collections::VecDeque;

use crate::calendar::{Calendar, Event};
use crate::random::Random;

/// Nobody: a request that a part made for its own ends.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A part of the machine, by its place in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PartId(pub u16);

/// A request on its way.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct IoId(pub u32);

/// Whom the end of a request concerns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Owner {
    /// The worker, by what it called the request.
    Client(u64),
    /// The part that made it, of another request.
    Part(PartId, IoId),
    /// The part that made it for its own ends.
    Alone(PartId),
}

/// A part of the address space, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Span {
    pub from: u64,
    pub bytes: u64,
    pub write: bool,
}

impl Span {
    pub fn end(&self) -> u64 {
        self.from + self.bytes
    }
}

/// One request between two parts.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    pub span: Span,
    /// Number of the worker, for read-ahead.
    pub worker: u32,
    /// A write that no memory may absorb.
    pub durable: bool,
    /// A write after which everything dirty is to be written out before it ends.
    pub flush: bool,
    pub owner: Owner,
    /// Children, or others, that it waits for.
    pub pending: u32,
    /// The part's own note.
    pub tag: u64,
    /// Bytes of a worker's read that the host's memory had when it came.
    pub found: u64,
    /// Requests that wait for this one besides its owner.
    pub waiters: Vec<IoId>,
}

/// The end of a worker's request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct End {
    /// When it ended.
    pub at_ns: u64,
    /// What the worker called it.
    pub token: u64,
    /// Bytes of a read that lay in the host's memory when it came there, on their way or here; of
    /// a page in part the same share as of all pages.
    pub found_bytes: u64,
}

/// What all parts share: the clock, the calendar, the requests.
#[derive(Debug)]
pub(crate) struct Hub {
    pub now_ns: u64,
    pub random: Random,
    /// Steps taken so far: pages touched, events, chips. Bounds a run in the host's time.
    pub effort: u64,
    /// Share of the processors' time that nobody else takes now.
    pub processor_share: f64,
    /// Bytes read and written below the host's memory.
    pub below: (u64, u64),
    /// Requests of workers that ended.
    pub ended: VecDeque<End>,
    calendar: Calendar<Event>,
    ios: Vec<Io>,
    free: Vec<IoId>,
    now: VecDeque<Event>,
}

impl Hub {
    pub fn new(seed: u64, now_ns: u64) -> Self {
        Self {
            now_ns,
            random: Random::new(seed),
            effort: 0,
            processor_share: 1.0,
            below: (0, 0),
            ended: VecDeque::new(),
            calendar: Calendar::default(),
            ios: Vec::new(),
            free: Vec::new(),
            now: VecDeque::new(),
        }
    }

    /// A new request.
    pub fn open(&mut self, span: Span, worker: u32, owner: Owner) -> IoId {
        if let Some(id) = self.free.pop() {
            let io = &mut self.ios[id.0 as usize];
            io.waiters.clear();
            (io.span, io.worker, io.owner) = (span, worker, owner);
            (io.durable, io.flush, io.pending) = (false, false, 0);
            (io.tag, io.found) = (0, 0);
            return id;
        }
        let waiters = Vec::new();
        let (durable, flush, pending, tag, found) = (false, false, 0, 0, 0);
        self.ios.push(Io { span, worker, durable, flush, owner, pending, tag, found, waiters });
        IoId(self.ios.len() as u32 - 1)
    }

    /// A child of `parent` that `part` answers for; as durable as its parent.
    pub fn child(&mut self, part: PartId, parent: IoId, span: Span) -> IoId {
        let (worker, durable) = (self.io(parent).worker, self.io(parent).durable);
        self.io_mut(parent).pending += 1;
        let id = self.open(span, worker, Owner::Part(part, parent));
        self.io_mut(id).durable = durable && span.write;
        id
    }

    /// One of those that `parent` waits for has ended; true for the last.
    pub fn one_less(&mut self, parent: IoId) -> bool {
        let io = self.io_mut(parent);
        io.pending = io.pending.saturating_sub(1);
        io.pending == 0
    }

    pub fn io(&self, id: IoId) -> &Io {
        &self.ios[id.0 as usize]
    }

    pub fn io_mut(&mut self, id: IoId) -> &mut Io {
        &mut self.ios[id.0 as usize]
    }

    /// Nobody asks for it any more.
    pub fn close(&mut self, id: IoId) {
        self.free.push(id);
    }

    /// Hands a request to a part.
    pub fn submit(&mut self, part: PartId, id: IoId) {
        self.now.push_back(Event::Submit(part, id));
    }

    /// A request has ended.
    pub fn finish(&mut self, id: IoId) {
        self.now.push_back(Event::Done(id));
    }

    /// Something happens later; what should have happened before happens now.
    pub fn at(&mut self, at_ns: u64, event: Event) {
        self.calendar.at(at_ns.clamp(self.now_ns, FAR_NS), event);
    }

    /// What is to happen next before `until_ns`; the clock goes there.
    pub fn next(&mut self, until_ns: u64) -> Option<Event> {
        if let Some(event) = self.now.pop_front() {
            return Some(event);
        }
        let (at_ns, event) = self.calendar.pop_before(until_ns)?;
        self.effort += 1;
        self.now_ns = at_ns;
        Some(event)
    }

    /// What is to happen at this very instant.
    pub fn next_now(&mut self) -> Option<Event> {
        self.now.pop_front()
    }

    /// Bytes passed below the host's memory.
    pub fn count_below(&mut self, span: Span) {
        if span.write {
            self.below.1 += span.bytes;
        } else {
            self.below.0 += span.bytes;
        }
    }

    /// Requests open now.
    #[cfg(test)]
    pub fn open_ios(&self) -> usize {
        self.ios.len() - self.free.len()
    }
}

/// A part of a machine.
pub(crate) trait Part: std::fmt::Debug + Send {
    /// A request reaches it.
    fn submit(&mut self, hub: &mut Hub, io: IoId);

    /// A child of `parent` has ended; it is closed afterwards.
    fn child_ended(&mut self, hub: &mut Hub, parent: IoId, _child: IoId) {
        if hub.one_less(parent) {
            hub.finish(parent);
        }
    }

    /// A request that it made for its own ends has ended; it is closed afterwards.
    fn own_ended(&mut self, _hub: &mut Hub, _io: IoId) {}

    /// The time that it asked for has come.
    fn wake(&mut self, _hub: &mut Hub, _what: u64) {}

    /// A request passes before the clock starts: what the part remembers changes, nothing else.
    /// What goes on to other parts is put into `down`.
    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>);

    /// Bytes of the data that its memory holds.
    fn resident_bytes(&self) -> u64 {
        0
    }

    /// Lookups of its memory while warming: those found, and all.
    fn warm_lookups(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A time that never comes: two of them can still be added.
pub(crate) const FAR_NS: u64 = 1 << 62;

/// Nanoseconds of a time, rounded; at most [`FAR_NS`].
pub(crate) fn ns(nanoseconds: f64) -> u64 {
    (nanoseconds.round() as u64).min(FAR_NS)
}

/// Nanoseconds of bytes at a rate.
pub(crate) fn transfer_ns(bytes: u64, mb_s: f64) -> f64 {
    bytes as f64 * 1e3 / mb_s
}
