//! An open loop in virtual time: requests are due by a clock and wait, first come first served, for
//! one of the slots.
//!
//! A request sent later can complete earlier, so completions stand in a heap of their own and a
//! request is sent only once every completion before that moment has been seen. The slot that has
//! been free for longest sends first. The generator itself takes no time here: a request is late
//! only when every slot was still waiting for the device.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use leadline_wire::job::measure::MeasureJob;

use crate::access::arrival::ArrivalStream;
use crate::access::stream::Draw;
use crate::run::recorder::{Passage, Tally, Window};
use crate::target::virtual_time::{Slots, VirtualDevice, count_rounds, serve};
use leadline_base::request::Request;

/// One outstanding request.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub(super) passage: Passage,
    pub(super) completed_ns: u64,
    pub(super) request: Request,
}

impl Flight {
    /// What a slot holds before its first.
    pub(super) const NONE: Self = Self {
        passage: Passage { due_ns: 0, free_ns: 0, behind_ns: 0, submitted_ns: 0 },
        completed_ns: 0,
        request: Request::NONE,
    };

    /// Counts it after its end within the window.
    #[inline]
    pub(super) fn count(&self, opened_ns: u64, tally: &mut Tally) {
        tally.record_open(&self.request, &self.passage, self.completed_ns, opened_ns);
        let response_ns = self.completed_ns.saturating_sub(self.passage.submitted_ns);
        tally.count_stream(&self.request, response_ns);
    }
}

/// All slots of an open loop, before the one queue they share.
#[derive(Debug)]
pub struct OpenSlots<S> {
    streams: Vec<S>,
    slots_per_stream: usize,
    schedule: ArrivalStream,
    start_ns: u64,
    /// When the next request nobody took is due, and its ticket.
    due_ns: u64,
    ticket: u64,
    fresh: ArrivalStream,
    flights: Vec<Flight>,
    /// When each slot in use is done, and which slot; equal times go by the slot's number.
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    /// Since when each other slot is free, in the order of time.
    free: VecDeque<(u64, usize)>,
}

impl<S: Draw> OpenSlots<S> {
    /// Every slot is free at `start_ns`, when the schedule starts.
    pub fn start(
        job: &MeasureJob,
        streams: Vec<S>,
        schedule: ArrivalStream,
        start_ns: u64,
    ) -> Self {
        let slots_per_stream = job.workload.queue_depth as usize;
        let slots = streams.len() * slots_per_stream;
        let fresh = schedule.clone();
        let mut all = Self {
            streams,
            slots_per_stream,
            schedule,
            start_ns,
            due_ns: 0,
            ticket: 0,
            fresh,
            flights: vec![Flight::NONE; slots],
            busy: BinaryHeap::with_capacity(slots),
            free: (0..slots).map(|slot| (start_ns, slot)).collect(),
        };
        all.due_ns = start_ns.saturating_add(all.schedule.next_due_ns());
        all
    }

    /// Sends the next request of the queue by the slot at the head of those free.
    #[inline]
    fn send(&mut self, device: &mut impl VirtualDevice, submitted_ns: u64) {
        let Some((free_ns, slot)) = self.free.pop_front() else { return };
        let request = self.streams[slot / self.slots_per_stream].draw();
        let completed_ns = serve(device, submitted_ns, &request);
        let passage = Passage { due_ns: self.due_ns, free_ns, behind_ns: 0, submitted_ns };
        self.flights[slot] = Flight { passage, completed_ns, request };
        self.busy.push(Reverse((completed_ns, slot)));
        self.ticket += 1;
        self.due_ns = self.start_ns.saturating_add(self.schedule.next_due_ns());
    }
}

impl<D: VirtualDevice, S: Draw> Slots<D> for OpenSlots<S> {
    type Flight = Flight;

    fn number(&self) -> usize {
        self.flights.len()
    }

    #[inline]
    fn complete_before(&mut self, device: &mut D, until_ns: u64) -> Option<(u64, Flight)> {
        loop {
            let send_ns = self.free.front().map(|(free_ns, _)| self.due_ns.max(*free_ns));
            let done = self.busy.peek().map(|Reverse(done)| *done);
            match (done, send_ns) {
                (Some((done_ns, slot)), send_ns) if send_ns.is_none_or(|send| done_ns <= send) => {
                    if done_ns >= until_ns {
                        return None;
                    }
                    self.busy.pop();
                    self.free.push_back((done_ns, slot));
                    return Some((done_ns, self.flights[slot]));
                }
                (_, Some(send_ns)) if send_ns < until_ns => self.send(device, send_ns),
                _ => return None,
            }
        }
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
        for Reverse((_, slot)) in &self.busy {
            tally.cut_in_flight(&self.flights[*slot].passage, window);
        }
        for (free_ns, _) in &self.free {
            tally.cut_free(*free_ns, window);
        }
        tally.cut_untaken(self.fresh, self.ticket, self.start_ns, window);
    }
}
