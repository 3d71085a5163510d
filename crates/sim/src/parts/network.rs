//! A way to a server: a link each way, a bound on what is under way, and losses.

use std::collections::VecDeque;

use super::servers::Servers;
use crate::calendar::Event;
use crate::document::Network as Document;
use crate::io::{Hub, IoId, Part, PartId, Span, ns, transfer_ns};

/// What a request or an answer has besides its data.
const HEADER_BYTES: u64 = 128;
/// Sendings of one request, at most.
const TRIES_MAX: u32 = 12;

/// Links between a client and a server.
#[derive(Debug)]
pub(crate) struct Network {
    id: PartId,
    below: PartId,
    half_ns: f64,
    mb_s: f64,
    window: u32,
    loss_frac: f64,
    retransmit_ns: f64,
    up: Servers,
    down: Servers,
    under_way: u32,
    waiting: VecDeque<IoId>,
}

impl Network {
    /// Idle links.
    pub fn new(document: &Document, id: PartId, below: PartId) -> Self {
        Self {
            id,
            below,
            half_ns: document.latency_us * 500.0,
            mb_s: document.mb_s,
            window: document.window,
            loss_frac: document.loss_frac,
            retransmit_ns: document.retransmit_ms * 1e6,
            up: Servers::new(1),
            down: Servers::new(1),
            under_way: 0,
            waiting: VecDeque::new(),
        }
    }

    fn send(&mut self, hub: &mut Hub, io: IoId) {
        self.under_way += 1;
        let span = hub.io(io).span;
        let bytes = HEADER_BYTES + if span.write { span.bytes } else { 0 };
        let sent_ns = self.up.serve(hub.now_ns, ns(transfer_ns(bytes, self.mb_s)));
        let mut lost_ns = 0.0;
        let mut wait_ns = self.retransmit_ns;
        for _ in 0..TRIES_MAX {
            if self.loss_frac == 0.0 || hub.random.unit() >= self.loss_frac {
                break;
            }
            lost_ns += wait_ns;
            wait_ns *= 2.0;
        }
        let child = hub.child(self.id, io, span);
        hub.at(sent_ns + ns(self.half_ns + lost_ns), Event::Submit(self.below, child));
    }
}

impl Part for Network {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        if self.under_way < self.window {
            self.send(hub, io);
        } else {
            self.waiting.push_back(io);
        }
    }

    fn child_ended(&mut self, hub: &mut Hub, parent: IoId, child: IoId) {
        hub.one_less(parent);
        let span = hub.io(child).span;
        let bytes = HEADER_BYTES + if span.write { 0 } else { span.bytes };
        let sent_ns = self.down.serve(hub.now_ns, ns(transfer_ns(bytes, self.mb_s)));
        hub.at(sent_ns + ns(self.half_ns), Event::Wake(self.id, u64::from(parent.0)));
    }

    /// An answer has come.
    fn wake(&mut self, hub: &mut Hub, what: u64) {
        hub.finish(IoId(what as u32));
        self.under_way -= 1;
        if let Some(next) = self.waiting.pop_front() {
            self.send(hub, next);
        }
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        down.push((self.below, span));
    }
}
