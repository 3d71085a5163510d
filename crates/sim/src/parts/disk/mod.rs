//! A disk: one arm, turning platters, a buffer on the drive.
//!
//! After a read the drive reads on into its buffer until it is full or the arm is wanted elsewhere,
//! so that a sequential reader gets the rate of the platter however late it asks. Writes are told as
//! done once they are in the buffer, unless somebody insists on the platter; they wait for room in
//! the order in which they came, and one of what still waits in the buffer takes no room.

mod geometry;
mod queue;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use crate::calendar::Event;
use crate::document::Disk as Document;
use crate::io::{Hub, IoId, Owner, Part, PartId, Span, ns, transfer_ns};
use geometry::Geometry;
use queue::{Queue, Waiting};

/// What was read last, and on.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    from: u64,
    /// The platter passed this byte at `at_ns`.
    reached: u64,
    at_ns: f64,
    /// Bytes in a nanosecond.
    rate: f64,
}

/// One disk.
#[derive(Debug)]
pub(crate) struct Disk {
    id: PartId,
    geometry: Geometry,
    queue: Queue,
    overhead_ns: f64,
    interface_mb_s: f64,
    read_buffer: u64,
    write_buffer: u64,
    /// Bytes of writes in the buffer.
    buffered: u64,
    /// Where those begin and end whose turn has not come.
    held: BTreeMap<u64, u64>,
    /// Writes that wait for room in the buffer.
    blocked: VecDeque<IoId>,
    cylinder: f64,
    ahead: Option<Ahead>,
    busy: bool,
}

impl Disk {
    /// The arm is at the outermost cylinder.
    pub fn new(document: &Document, id: PartId) -> Self {
        Self {
            id,
            geometry: Geometry::new(document),
            queue: Queue::new(document.queue, document.depth),
            overhead_ns: document.overhead_us * 1e3,
            interface_mb_s: document.interface_mb_s,
            read_buffer: document.read_buffer_bytes,
            write_buffer: document.write_buffer_bytes,
            buffered: 0,
            held: BTreeMap::new(),
            blocked: VecDeque::new(),
            cylinder: 0.0,
            ahead: None,
            busy: false,
        }
    }

    fn transfer_ns(&self, bytes: u64) -> f64 {
        transfer_ns(bytes, self.interface_mb_s)
    }

    /// Whether a request is a write whose worker need not wait for the platter.
    fn buffers(&self, hub: &Hub, io: IoId) -> bool {
        let asked = hub.io(io);
        asked.span.write && !asked.durable && asked.span.bytes <= self.write_buffer
    }

    /// Takes writes into the buffer for as long as there is room.
    fn admit(&mut self, hub: &mut Hub) {
        while let Some(&io) = self.blocked.front() {
            let (span, worker) = (hub.io(io).span, hub.io(io).worker);
            let again = self.rewrites(span);
            if !again && span.bytes > self.write_buffer.saturating_sub(self.buffered) {
                return;
            }
            self.blocked.pop_front();
            let end_ns = hub.now_ns as f64 + self.overhead_ns + self.transfer_ns(span.bytes);
            hub.at(ns(end_ns), Event::Done(io));
            if !again {
                self.buffered += span.bytes;
                self.held.insert(span.from, span.end());
                let own = hub.open(span, worker, Owner::Alone(self.id));
                self.queue_up(hub, own);
            }
        }
    }

    /// Whether all of a write takes the place of what waits in the buffer.
    fn rewrites(&self, span: Span) -> bool {
        let before = self.held.range(..=span.from).next_back();
        before.is_some_and(|(_, &end)| span.end() <= end)
    }

    fn queue_up(&mut self, hub: &mut Hub, io: IoId) {
        let byte = hub.io(io).span.from;
        let cylinder = self.geometry.cylinder(byte);
        self.queue.push(Waiting { io, byte, cylinder, since_ns: hub.now_ns });
        if !self.busy {
            self.start(hub);
        }
    }

    fn start(&mut self, hub: &mut Hub) {
        let Some(next) = self.queue.pop(&self.geometry, self.cylinder, hub.now_ns) else { return };
        self.busy = true;
        let span = hub.io(next.io).span;
        if span.write {
            self.held.remove(&span.from);
        }
        let now_ns = hub.now_ns as f64 + self.overhead_ns;
        let read_on = if span.write { None } else { self.through_buffer(now_ns, span) };
        let end_ns = read_on.unwrap_or_else(|| self.off_platter(now_ns, span, next.cylinder));
        hub.at(ns(end_ns), Event::Wake(self.id, u64::from(next.io.0)));
    }

    /// When a read is done that the drive has read on to, or will without moving the arm.
    fn through_buffer(&mut self, now_ns: f64, span: Span) -> Option<f64> {
        let mut ahead = self.ahead?;
        let full = ahead.reached + self.read_buffer;
        let read_on = ((now_ns - ahead.at_ns).max(0.0) * ahead.rate) as u64;
        let reached = (ahead.reached + read_on).min(full);
        if span.from < ahead.from || span.from > reached {
            return None;
        }
        let mut end_ns = now_ns + self.transfer_ns(span.bytes);
        if span.end() > ahead.reached {
            let full_ns = ahead.at_ns + self.read_buffer as f64 / ahead.rate;
            if span.end() > full && now_ns > full_ns {
                // It had stopped: the place has to come round again.
                let rest = (span.end() - full) as f64 / ahead.rate;
                ahead.at_ns = now_ns + self.geometry.rotation_ns() + rest;
            } else {
                ahead.at_ns += (span.end() - ahead.reached) as f64 / ahead.rate;
            }
            ahead.reached = span.end();
            end_ns = end_ns.max(ahead.at_ns);
        }
        ahead.from = ahead.from.max(ahead.reached.saturating_sub(self.read_buffer));
        self.ahead = Some(ahead);
        Some(end_ns)
    }

    fn off_platter(&mut self, now_ns: f64, span: Span, cylinder: f64) -> f64 {
        let there_ns = now_ns + self.geometry.seek_ns(self.cylinder, cylinder);
        let rate = self.geometry.rate(cylinder);
        let turn_ns = self.geometry.turn_ns(there_ns, span.from, cylinder);
        let end_ns = there_ns + turn_ns + span.bytes as f64 / rate;
        self.cylinder = self.geometry.cylinder(span.end());
        let from = span.from;
        let ahead = Ahead { from, reached: span.end(), at_ns: end_ns, rate };
        self.ahead = (!span.write && self.read_buffer > 0).then_some(ahead);
        end_ns.max(now_ns + self.transfer_ns(span.bytes))
    }
}

impl Part for Disk {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        if self.buffers(hub, io) {
            self.blocked.push_back(io);
            self.admit(hub);
        } else {
            self.queue_up(hub, io);
        }
    }

    fn wake(&mut self, hub: &mut Hub, what: u64) {
        hub.finish(IoId(what as u32));
        self.busy = false;
        self.start(hub);
    }

    fn own_ended(&mut self, hub: &mut Hub, io: IoId) {
        self.buffered -= hub.io(io).span.bytes;
        self.admit(hub);
    }

    fn warm(&mut self, _span: Span, _down: &mut Vec<(PartId, Span)>) {}
}
