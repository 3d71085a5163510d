//! Another tenant: busy and idle by turns, taking processors' time and making requests of its own.

use crate::calendar::Event;
use crate::document::Neighbour as Document;
use crate::io::{Hub, IoId, NOBODY, Owner, Part, PartId, Span, ns};

const TURN: u64 = 0;
const REQUEST: u64 = 1;

/// Its requests outstanding, at most: it waits for its own answers too.
const OUTSTANDING_MAX: u32 = 64;

/// One tenant beside the one that is measured.
#[derive(Debug)]
pub(crate) struct Neighbour {
    id: PartId,
    below: PartId,
    document: Document,
    capacity: u64,
    busy: bool,
    /// Whether its next request is in the calendar.
    coming: bool,
    outstanding: u32,
}

impl Neighbour {
    /// Busy or idle as it is in the long run; its first turn is in the calendar.
    pub fn new(
        document: &Document,
        id: PartId,
        below: PartId,
        capacity: u64,
        hub: &mut Hub,
    ) -> Self {
        let busy_frac = document.mean_busy_s / (document.mean_busy_s + document.mean_idle_s);
        let busy = hub.random.unit() >= busy_frac; // turned round at once
        let document = document.clone();
        let mut tenant =
            Self { id, below, document, capacity, busy, coming: false, outstanding: 0 };
        tenant.turn(hub);
        tenant
    }

    fn turn(&mut self, hub: &mut Hub) {
        self.busy = !self.busy;
        let mean_s = if self.busy { self.document.mean_busy_s } else { self.document.mean_idle_s };
        let taken = if self.busy { self.document.processor_frac } else { 0.0 };
        hub.processor_share = 1.0 - taken;
        let length_ns = ns(hub.random.exponential() * mean_s * 1e9);
        hub.at(hub.now_ns + length_ns, Event::Wake(self.id, TURN));
        self.expect(hub);
    }

    /// Puts its next request into the calendar.
    fn expect(&mut self, hub: &mut Hub) {
        if !self.busy || self.coming || self.document.requests_per_s == 0.0 {
            return;
        }
        self.coming = true;
        let wait_ns = hub.random.exponential() * 1e9 / self.document.requests_per_s;
        hub.at(hub.now_ns + ns(wait_ns), Event::Wake(self.id, REQUEST));
    }

    fn ask(&mut self, hub: &mut Hub) {
        self.coming = false;
        if self.busy && self.outstanding < OUTSTANDING_MAX {
            let bytes = self.document.size_bytes.min(self.capacity);
            let from = hub.random.below(self.capacity / bytes) * bytes;
            let write = hub.random.unit() >= self.document.read_frac;
            let io = hub.open(Span { from, bytes, write }, NOBODY, Owner::Alone(self.id));
            self.outstanding += 1;
            hub.submit(self.below, io);
        }
        self.expect(hub);
    }
}

impl Part for Neighbour {
    /// Nobody's requests pass it.
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        hub.submit(self.below, io);
    }

    fn own_ended(&mut self, _hub: &mut Hub, _io: IoId) {
        self.outstanding -= 1;
    }

    fn wake(&mut self, hub: &mut Hub, what: u64) {
        match what {
            TURN => self.turn(hub),
            _ => self.ask(hub),
        }
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        down.push((self.below, span));
    }
}
