//! A disk: one arm, turning platters, a buffer on the drive.
//!
//! After a read the drive reads on into its buffer until it is full or the arm is wanted elsewhere,
//! so that a sequential reader gets the rate of the platter however late it asks. Writes are told as
//! done once they are in the buffer, if it has room and nobody insists on the platter.

mod geometry;
mod queue;

#[cfg(test)]
mod tests;

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
            cylinder: 0.0,
            ahead: None,
            busy: false,
        }
    }

    fn transfer_ns(&self, bytes: u64) -> f64 {
        transfer_ns(bytes, self.interface_mb_s)
    }

    /// A write whose issuer need not wait for the platter; none if it must.
    fn absorb(&mut self, hub: &mut Hub, io: IoId) -> Option<IoId> {
        let asked = hub.io(io);
        let (span, issuer) = (asked.span, asked.issuer);
        let room = self.write_buffer.saturating_sub(self.buffered);
        if !span.write || asked.durable || span.bytes > room {
            return None;
        }
        self.buffered += span.bytes;
        let end_ns = hub.now_ns as f64 + self.overhead_ns + self.transfer_ns(span.bytes);
        hub.at(ns(end_ns), Event::Done(io));
        Some(hub.open(span, issuer, Owner::Alone(self.id)))
    }

    fn start(&mut self, hub: &mut Hub) {
        let Some(next) = self.queue.pop(&self.geometry, self.cylinder, hub.now_ns) else { return };
        self.busy = true;
        let span = hub.io(next.io).span;
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
        let io = self.absorb(hub, io).unwrap_or(io);
        let byte = hub.io(io).span.from;
        let cylinder = self.geometry.cylinder(byte);
        self.queue.push(Waiting { io, byte, cylinder, since_ns: hub.now_ns });
        if !self.busy {
            self.start(hub);
        }
    }

    fn wake(&mut self, hub: &mut Hub, what: u64) {
        hub.finish(IoId(what as u32));
        self.busy = false;
        self.start(hub);
    }

    fn own_ended(&mut self, hub: &mut Hub, io: IoId) {
        self.buffered -= hub.io(io).span.bytes;
    }

    fn warm(&mut self, _span: Span, _down: &mut Vec<(PartId, Span)>) {}
}
