//! Slots before a machine made of parts, which says when a request ends only once it has ended.
//!
//! What [`super::closed`] and [`super::open`] do with a device that knows at once: completions come
//! in order, and requests are sent in the order of the virtual clock.

use std::collections::VecDeque;

use leadline_base::clock::ns_from_s;
use leadline_sim::EFFORT_MAX;
use leadline_wire::job::measure::MeasureJob;

use crate::access::arrival::ArrivalStream;
use crate::access::stream::Draw;
use crate::run::recorder::{Passage, Tally, Window};
use crate::target::virtual_time::machine_run::MachineRun;
use crate::target::virtual_time::{Counted, Slots, closed, count_rounds, open};
use leadline_base::request::{Kind, Request};

/// A warm-up may take this part of what a run may cost the host.
const WARM_UP_SHARE: u64 = 3;

impl Counted for MachineRun {
    fn resident_bytes(&self) -> u64 {
        self.cache_resident_bytes()
    }

    fn moved_bytes(&self) -> (u64, u64) {
        self.device_bytes()
    }

    fn spent(&self, measuring: bool) -> bool {
        let effort_max = if measuring { EFFORT_MAX } else { EFFORT_MAX / WARM_UP_SHARE };
        self.effort() >= effort_max
    }
}

/// All reads are looked up: it costs nothing here. Of a write a machine does not say it.
#[inline]
fn count_found(request: &Request, found_bytes: u64, tally: &mut Tally) {
    if request.kind == Kind::Read {
        tally.found.record(request, found_bytes);
    }
}

/// A closed loop: a slot issues again when its request has ended and it has thought.
#[derive(Debug)]
pub(super) struct ClosedSlots<S> {
    streams: Vec<S>,
    slots_per_stream: usize,
    think_ns: u64,
    flights: Vec<closed::Flight>,
    /// Whether the slot's request is under way.
    sent: Vec<bool>,
    /// When each other slot issues next: in order, because ends are and all think equally long.
    ready: VecDeque<(u64, usize)>,
}

impl<S: Draw> ClosedSlots<S> {
    /// Every slot is ready at `start_ns`.
    pub fn start(job: &MeasureJob, streams: Vec<S>, start_ns: u64) -> Self {
        let slots_per_stream = job.workload.queue_depth as usize;
        let slots = streams.len() * slots_per_stream;
        Self {
            streams,
            slots_per_stream,
            think_ns: ns_from_s(job.workload.think_time_s),
            flights: vec![closed::Flight::ended_at(start_ns); slots],
            sent: vec![false; slots],
            ready: (0..slots).map(|slot| (start_ns, slot)).collect(),
        }
    }
}

impl<S: Draw> Slots<MachineRun> for ClosedSlots<S> {
    type Flight = (closed::Flight, u64);

    fn number(&self) -> usize {
        self.flights.len()
    }

    #[inline]
    fn complete_before(
        &mut self,
        device: &mut MachineRun,
        until_ns: u64,
    ) -> Option<(u64, Self::Flight)> {
        loop {
            let ready = self.ready.front().copied();
            let sooner_ns = ready.map_or(until_ns, |(ready_ns, _)| ready_ns.min(until_ns));
            if let Some(end) = device.next_end(sooner_ns) {
                let slot = end.token as usize;
                self.flights[slot].ended_ns = end.at_ns;
                self.sent[slot] = false;
                self.ready.push_back((end.at_ns + self.think_ns, slot));
                return Some((end.at_ns, (self.flights[slot], end.found_bytes)));
            }
            let (ready_ns, slot) = ready.filter(|(ready_ns, _)| *ready_ns < until_ns)?;
            self.ready.pop_front();
            let worker = slot / self.slots_per_stream;
            let request = self.streams[worker].draw();
            self.flights[slot].begin(ready_ns, request);
            self.sent[slot] = true;
            device.submit(ready_ns, slot, worker, &request);
        }
    }

    #[inline]
    fn bytes((flight, _): &Self::Flight) -> u64 {
        flight.request.length_bytes
    }

    #[inline]
    fn count((flight, found_bytes): &Self::Flight, opened_ns: u64, tally: &mut Tally) {
        flight.count(opened_ns, tally);
        count_found(&flight.request, *found_bytes, tally);
    }

    fn close(self, window: Window, tally: &mut Tally) {
        count_rounds(&self.streams, tally);
        for (flight, sent) in self.flights.iter().zip(self.sent) {
            if sent {
                flight.cut(window, tally);
            } else {
                let thought_from_ns = flight.ended_ns.max(window.opened_ns);
                tally.think_ns += window.closed_ns.saturating_sub(thought_from_ns);
            }
        }
    }
}

/// An open loop: requests are due by a clock and wait, first come first served, for a slot.
#[derive(Debug)]
pub(super) struct OpenSlots<S> {
    streams: Vec<S>,
    slots_per_stream: usize,
    schedule: ArrivalStream,
    start_ns: u64,
    due_ns: u64,
    ticket: u64,
    fresh: ArrivalStream,
    flights: Vec<open::Flight>,
    sent: Vec<bool>,
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
            flights: vec![open::Flight::NONE; slots],
            sent: vec![false; slots],
            free: (0..slots).map(|slot| (start_ns, slot)).collect(),
        };
        all.due_ns = start_ns.saturating_add(all.schedule.next_due_ns());
        all
    }

    fn send(&mut self, device: &mut MachineRun, submitted_ns: u64) {
        let Some((free_ns, slot)) = self.free.pop_front() else { return };
        let worker = slot / self.slots_per_stream;
        let request = self.streams[worker].draw();
        let passage = Passage { due_ns: self.due_ns, free_ns, behind_ns: 0, submitted_ns };
        self.flights[slot] = open::Flight { passage, completed_ns: submitted_ns, request };
        self.sent[slot] = true;
        device.submit(submitted_ns, slot, worker, &request);
        self.ticket += 1;
        self.due_ns = self.start_ns.saturating_add(self.schedule.next_due_ns());
    }
}

impl<S: Draw> Slots<MachineRun> for OpenSlots<S> {
    type Flight = (open::Flight, u64);

    fn number(&self) -> usize {
        self.flights.len()
    }

    #[inline]
    fn complete_before(
        &mut self,
        device: &mut MachineRun,
        until_ns: u64,
    ) -> Option<(u64, Self::Flight)> {
        loop {
            let send_ns = self.free.front().map(|(free_ns, _)| self.due_ns.max(*free_ns));
            let sooner_ns = send_ns.map_or(until_ns, |send_ns| send_ns.min(until_ns));
            if let Some(end) = device.next_end(sooner_ns) {
                let slot = end.token as usize;
                self.flights[slot].completed_ns = end.at_ns;
                self.sent[slot] = false;
                self.free.push_back((end.at_ns, slot));
                return Some((end.at_ns, (self.flights[slot], end.found_bytes)));
            }
            let send_ns = send_ns.filter(|send_ns| *send_ns < until_ns)?;
            self.send(device, send_ns);
        }
    }

    #[inline]
    fn bytes((flight, _): &Self::Flight) -> u64 {
        flight.request.length_bytes
    }

    #[inline]
    fn count((flight, found_bytes): &Self::Flight, opened_ns: u64, tally: &mut Tally) {
        flight.count(opened_ns, tally);
        count_found(&flight.request, *found_bytes, tally);
    }

    fn close(self, window: Window, tally: &mut Tally) {
        count_rounds(&self.streams, tally);
        for (flight, sent) in self.flights.iter().zip(&self.sent) {
            if *sent {
                tally.cut_in_flight(&flight.passage, window);
            }
        }
        for (free_ns, _) in &self.free {
            tally.cut_free(*free_ns, window);
        }
        tally.cut_untaken(self.fresh, self.ticket, self.start_ns, window);
    }
}
