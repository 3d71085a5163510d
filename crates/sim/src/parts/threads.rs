//! A server's threads: each has one request from its arrival to its answer, disk included.

use std::collections::VecDeque;

use crate::calendar::Event;
use crate::document::Server as Document;
use crate::io::{Hub, IoId, Part, PartId, Span, ns};

/// So many requests inside, the others before the door.
#[derive(Debug)]
pub(crate) struct Threads {
    id: PartId,
    below: PartId,
    idle: u32,
    overhead_ns: u64,
    waiting: VecDeque<IoId>,
}

impl Threads {
    /// All idle.
    pub fn new(document: &Document, id: PartId, below: PartId) -> Self {
        Self {
            id,
            below,
            idle: document.threads,
            overhead_ns: ns(document.overhead_us * 1e3),
            waiting: VecDeque::new(),
        }
    }

    fn begin(&mut self, hub: &mut Hub, io: IoId) {
        let child = hub.child(self.id, io, hub.io(io).span);
        hub.at(hub.now_ns + self.overhead_ns, Event::Submit(self.below, child));
    }
}

impl Part for Threads {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        if self.idle == 0 {
            self.waiting.push_back(io);
            return;
        }
        self.idle -= 1;
        self.begin(hub, io);
    }

    fn child_ended(&mut self, hub: &mut Hub, parent: IoId, _child: IoId) {
        hub.one_less(parent);
        hub.finish(parent);
        match self.waiting.pop_front() {
            Some(next) => self.begin(hub, next),
            None => self.idle += 1,
        }
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        down.push((self.below, span));
    }
}
