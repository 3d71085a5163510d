//! A closed loop in virtual time: a slot issues again when its request has completed and it has
//! thought.
//!
//! Slots stand in a heap ordered by when they next issue, so the device sees requests in the order
//! of the virtual clock. Every slot thinks equally long, so completions come in order as well.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use leadline_base::clock::ns_from_s;
use leadline_wire::job::measure::MeasureJob;

use crate::access::stream::Draw;
use crate::run::recorder::{Tally, Window};
use crate::target::virtual_time::{Slots, VirtualDevice, count_rounds, serve};
use leadline_base::request::Request;

/// One outstanding request.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    thought_from_ns: u64,
    began_ns: u64,
    /// When it ended; what the device said, or says later.
    pub(super) ended_ns: u64,
    pub(super) request: Request,
}

impl Flight {
    /// None yet: its slot has thought since `ended_ns`.
    pub(super) fn ended_at(ended_ns: u64) -> Self {
        Self { thought_from_ns: 0, began_ns: 0, ended_ns, request: Request::NONE }
    }

    /// The slot's next request begins.
    #[inline]
    pub(super) fn begin(&mut self, began_ns: u64, request: Request) {
        *self = Self { thought_from_ns: self.ended_ns, began_ns, ended_ns: began_ns, request };
    }

    /// Counts it after its end within the window.
    #[inline]
    pub(super) fn count(&self, opened_ns: u64, tally: &mut Tally) {
        tally.record(&self.request, self.ended_ns - self.began_ns);
        tally.count_stream(&self.request, self.ended_ns - self.began_ns);
        tally.edge_ns -= opened_ns.saturating_sub(self.began_ns) as i64;
        tally.think_ns += self.began_ns.saturating_sub(self.thought_from_ns.max(opened_ns));
    }

    /// Counts what lies within the window of one that is still outstanding.
    pub(super) fn cut(&self, window: Window, tally: &mut Tally) {
        let Window { opened_ns, closed_ns } = window;
        tally.edge_ns += closed_ns.saturating_sub(self.began_ns.max(opened_ns)) as i64;
        let thought_to_ns = self.began_ns.min(closed_ns);
        tally.think_ns += thought_to_ns.saturating_sub(self.thought_from_ns.max(opened_ns));
    }
}

/// All slots of a closed loop.
#[derive(Debug)]
pub struct ClosedSlots<S> {
    streams: Vec<S>,
    slots_per_stream: usize,
    think_ns: u64,
    flights: Vec<Flight>,
    /// When each slot issues next, and which slot; equal times go by the slot's number.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<S: Draw> ClosedSlots<S> {
    /// Issues the first request of every slot at `start_ns`.
    pub fn start(
        job: &MeasureJob,
        streams: Vec<S>,
        device: &mut impl VirtualDevice,
        start_ns: u64,
    ) -> Self {
        let slots_per_stream = job.workload.queue_depth as usize;
        let slots = streams.len() * slots_per_stream;
        let flight = Flight::ended_at(start_ns);
        let mut all = Self {
            streams,
            slots_per_stream,
            think_ns: ns_from_s(job.workload.think_time_s),
            flights: vec![flight; slots],
            next: BinaryHeap::with_capacity(slots),
        };
        for slot in 0..slots {
            let next = all.issue(device, slot, start_ns);
            all.next.push(Reverse((next, slot)));
        }
        all
    }

    /// Issues a slot's next request at `now_ns`; returns when the slot issues again.
    #[inline]
    fn issue(&mut self, device: &mut impl VirtualDevice, slot: usize, now_ns: u64) -> u64 {
        let request = self.streams[slot / self.slots_per_stream].draw();
        let ended_ns = serve(device, now_ns, &request);
        let thought_from_ns = self.flights[slot].ended_ns;
        self.flights[slot] = Flight { thought_from_ns, began_ns: now_ns, ended_ns, request };
        ended_ns + self.think_ns
    }
}

impl<D: VirtualDevice, S: Draw> Slots<D> for ClosedSlots<S> {
    type Flight = Flight;

    fn number(&self) -> usize {
        self.flights.len()
    }

    /// The slot of the request that completed has issued again.
    #[inline]
    fn complete_before(&mut self, device: &mut D, until_ns: u64) -> Option<(u64, Flight)> {
        let Reverse((ready_ns, slot)) = *self.next.peek()?;
        let flight = self.flights[slot];
        if flight.ended_ns >= until_ns {
            return None;
        }
        let again = self.issue(device, slot, ready_ns);
        if let Some(mut top) = self.next.peek_mut() {
            *top = Reverse((again, slot));
            // Dropping the guard puts the slot where its new time belongs.
            drop::<PeekMut<_>>(top);
        }
        Some((flight.ended_ns, flight))
    }

    #[inline]
    fn bytes(flight: &Flight) -> u64 {
        flight.request.length_bytes
    }

    #[inline]
    fn count(flight: &Flight, opened_ns: u64, tally: &mut Tally) {
        flight.count(opened_ns, tally);
    }

    fn close(self, window: Window, tally: &mut Tally) {
        count_rounds(&self.streams, tally);
        for flight in &self.flights {
            flight.cut(window, tally);
        }
    }
}
