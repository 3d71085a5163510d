//! A run in virtual time: the same address streams, recorder, steadiness test and stop rule as a
//! real run, with a device that answers how long a request would have taken.
//!
//! Issuers are slots in a heap ordered by when they next issue, so the device sees requests in the
//! order of the virtual clock. Every slot thinks equally long, so completions come in order as
//! well, and a slice of time is complete as soon as a later completion is seen. A request is
//! counted at its completion; the part of it outside the window is kept apart, as in a real run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::access::AccessStream;
use crate::assemble::{Evidence, Finished, assemble};
use crate::backend::simulated::{SimulatedRun, SimulatedSystem, truth};
use crate::clock::{ns_from_s, s_from_ns};
use crate::controller::{Controller, Decision};
use crate::engine::streams;
use crate::error::EngineError;
use crate::events::{Phase, Reporter};
use crate::host::HostUse;
use crate::job::{Job, Kind, Limits, Request, SMALLEST_TRANSFER_BYTES, Target};
use crate::recorder::{Slice, Tally};
use crate::result::{ClockSource, EngineResult, SimulatedFacts};

/// Most requests one job simulates, so that it ends in a second or so of real time.
pub const OPERATIONS_MAX: u64 = 2_000_000;

/// Requests in one slice, at least: a batch of the stop rule then holds fifty or more.
const OPERATIONS_PER_SLICE: f64 = 5.0;

/// Slices in the longest window, about.
const SLICES_PER_WINDOW: f64 = 1500.0;

/// Slices in the longest window, at most.
const SLICES_MOST: f64 = 4000.0;

/// Slices in the longest warm-up, about, and in the longest window, at least.
const SLICES_MIN: f64 = 64.0;

/// Requests per issuer, and in all, from which the length of a slice is found.
const CALIBRATION_TURNS: u64 = 2;
const CALIBRATION_OPERATIONS: u64 = 200;

/// Something that knows how long a request takes.
pub trait VirtualDevice {
    /// Nanoseconds the issuer waits; called in the order of `now_ns`, the absolute virtual clock.
    fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64;
    /// Bytes its file cache holds.
    fn cache_resident_bytes(&self) -> u64;
    /// Bytes its disks read and wrote so far.
    fn device_bytes(&self) -> (u64, u64);
}

impl VirtualDevice for SimulatedRun {
    fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64 {
        Self::service_ns(self, now_ns, request)
    }

    fn cache_resident_bytes(&self) -> u64 {
        Self::cache_resident_bytes(self)
    }

    fn device_bytes(&self) -> (u64, u64) {
        Self::device_bytes(self)
    }
}

/// What a simulated run left behind. Times are on the absolute virtual clock, in nanoseconds.
#[derive(Debug)]
pub struct VirtualRun {
    /// Counts of all issuers over the window.
    pub tally: Tally,
    /// The slices and the decisions.
    pub controller: Controller,
    /// When the window opened.
    pub opened_ns: u64,
    /// When it closed.
    pub closed_ns: u64,
    /// Bytes the device read and wrote within it.
    pub device_bytes: (u64, u64),
    /// Whether [`OPERATIONS_MAX`] ended it.
    pub capped: bool,
}

/// Runs a simulated job.
pub(crate) fn run(job: &Job, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    let Target::Simulated { system, clock_s, run_seed } = &job.target else {
        return Err(EngineError::fault("only a simulated target runs in virtual time"));
    };
    let system = SimulatedSystem::from_value(system)?;
    let start_ns = ns_from_s(*clock_s);
    let mut device = SimulatedRun::new(&system, &job.workload, *run_seed, start_ns);
    let run = simulate(&mut device, job, start_ns, reporter)?;
    let truth_mb_s =
        truth::expected_throughput_mb_s(&system, &job.workload, run.opened_ns, run.closed_ns);
    finish(job, &run, &device, start_ns, truth_mb_s)
}

fn finish(
    job: &Job,
    run: &VirtualRun,
    device: &impl VirtualDevice,
    start_ns: u64,
    truth_mb_s: f64,
) -> Result<EngineResult, EngineError> {
    let mut warnings = Vec::new();
    if run.capped {
        warnings.push(format!(
            "the simulation ended after {OPERATIONS_MAX} requests, before the time asked for"
        ));
    }
    assemble(Finished {
        job,
        tally: &run.tally,
        controller: &run.controller,
        wall_s: s_from_ns(run.closed_ns - run.opened_ns),
        total_s: s_from_ns(run.closed_ns - start_ns),
        prepare_s: 0.0,
        host: HostUse {
            device: Some(run.device_bytes),
            cache_resident_bytes: Some(device.cache_resident_bytes()),
            ..HostUse::default()
        },
        own_allowance_s: 0.0,
        simulated: Some(SimulatedFacts { truth_mb_s, clock_s: s_from_ns(run.closed_ns) }),
        warnings,
        evidence: Evidence::none(ClockSource::Virtual),
    })
}

/// Runs the job's workload on a device from `start_ns` of the virtual clock.
///
/// # Errors
/// `BadJob` from the address streams; `Target` when `total_s_max` ends before the window opens.
pub fn simulate(
    device: &mut impl VirtualDevice,
    job: &Job,
    start_ns: u64,
    reporter: &mut Reporter,
) -> Result<VirtualRun, EngineError> {
    reporter.phase(Phase::Prepare, 0);
    let streams = streams(job, SMALLEST_TRANSFER_BYTES)?;
    reporter.phase(Phase::WarmUp, 0);
    let mut driver = Driver::new(device, job, streams, start_ns);
    let slice_ns = driver.calibrate();
    let outcome = driver.conduct(slice_ns, reporter);
    outcome.map(|()| driver.close(reporter))
}

/// One outstanding request.
#[derive(Clone, Copy, Debug)]
struct Flight {
    thought_from_ns: u64,
    began_ns: u64,
    ended_ns: u64,
    request: Request,
}

struct Driver<'a, D> {
    device: &'a mut D,
    streams: Vec<AccessStream>,
    slots_per_stream: usize,
    limits: Limits,
    think_ns: u64,
    start_ns: u64,
    flights: Vec<Flight>,
    /// When each slot issues next, and which slot; equal times go by the slot's number.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    operations: u64,
    slice: Slice,
    tally: Tally,
    controller: Controller,
    opened_ns: Option<u64>,
    now_ns: u64,
    device_before: (u64, u64),
}

impl<'a, D: VirtualDevice> Driver<'a, D> {
    fn new(device: &'a mut D, job: &Job, streams: Vec<AccessStream>, start_ns: u64) -> Self {
        let slots_per_stream = job.workload.queue_depth as usize;
        let slots = streams.len() * slots_per_stream;
        let idle =
            Request { offset_bytes: 0, length_bytes: 0, kind: Kind::Read, sequential: false };
        let flight = Flight { thought_from_ns: 0, began_ns: 0, ended_ns: start_ns, request: idle };
        let mut driver = Self {
            device,
            streams,
            slots_per_stream,
            limits: job.limits,
            think_ns: ns_from_s(job.workload.think_time_s),
            start_ns,
            flights: vec![flight; slots],
            next: BinaryHeap::with_capacity(slots),
            operations: 0,
            slice: Slice::default(),
            tally: Tally::default(),
            controller: Controller::new(job.limits, 0.0),
            opened_ns: None,
            now_ns: start_ns,
            device_before: (0, 0),
        };
        for slot in 0..slots {
            let next = driver.issue(slot, start_ns);
            driver.next.push(Reverse((next, slot)));
        }
        driver
    }

    /// Issues a slot's next request at `now_ns`; returns when the slot issues again.
    #[inline]
    fn issue(&mut self, slot: usize, now_ns: u64) -> u64 {
        let request = self.streams[slot / self.slots_per_stream].draw();
        let ended_ns = now_ns + self.device.service_ns(now_ns, &request).max(1);
        let thought_from_ns = self.flights[slot].ended_ns;
        self.flights[slot] = Flight { thought_from_ns, began_ns: now_ns, ended_ns, request };
        ended_ns + self.think_ns
    }

    /// The next completion if it is before `until_ns`; its slot has then issued again.
    #[inline]
    fn complete_before(&mut self, until_ns: u64) -> Option<Flight> {
        let Reverse((ready_ns, slot)) = *self.next.peek()?;
        let flight = self.flights[slot];
        if flight.ended_ns >= until_ns {
            return None;
        }
        self.operations += 1;
        self.now_ns = flight.ended_ns;
        let again = self.issue(slot, ready_ns);
        if let Some(mut top) = self.next.peek_mut() {
            *top = Reverse((again, slot));
            // Dropping the guard puts the slot where its new time belongs.
            drop::<PeekMut<_>>(top);
        }
        Some(flight)
    }

    /// Runs a few requests to find how long a slice must be; returns its length in nanoseconds.
    fn calibrate(&mut self) -> u64 {
        let wanted = CALIBRATION_OPERATIONS.max(CALIBRATION_TURNS * self.flights.len() as u64);
        // A slow disk may need all its warm-up for this, but no more.
        let until_ns = self.start_ns + ns_from_s(self.limits.warm_up_s_max.max(1e-6));
        while self.operations < wanted && self.complete_before(until_ns).is_some() {}
        let spent_s = s_from_ns(self.now_ns - self.start_ns).max(1e-9);
        self.controller = Controller::new(self.limits, spent_s);
        let per_s = self.operations.max(1) as f64 / spent_s;
        let window_s = self.limits.measure_s_max.min(OPERATIONS_MAX as f64 / per_s);
        let finest_s = (window_s / SLICES_PER_WINDOW).min(self.limits.warm_up_s_max / SLICES_MIN);
        let slice_s = finest_s.max(OPERATIONS_PER_SLICE / per_s).max(window_s / SLICES_MOST);
        ns_from_s(slice_s.min(self.limits.measure_s_max / SLICES_MIN)).max(1)
    }

    fn conduct(&mut self, slice_ns: u64, reporter: &mut Reporter) -> Result<(), EngineError> {
        let deadline_ns = self.start_ns.saturating_add(ns_from_s(self.limits.total_s_max));
        let mut began_ns = self.now_ns;
        loop {
            let until_ns = began_ns + slice_ns;
            self.fill_slice(until_ns);
            self.now_ns = until_ns;
            self.slice.seconds = s_from_ns(until_ns - began_ns);
            began_ns = until_ns;
            let decision = self.controller.push(std::mem::take(&mut self.slice));
            match decision {
                Decision::Stop => return Ok(()),
                Decision::Measure => self.open(deadline_ns, reporter),
                Decision::Continue => {}
            }
            if self.opened_ns.is_none() && until_ns >= deadline_ns {
                return Err(EngineError::target(
                    "the time limit ended during warm-up, nothing was measured; \
                     raise total_s_max or lower warm_up_s_max",
                ));
            }
            if self.operations >= OPERATIONS_MAX {
                if self.opened_ns.is_some() && decision != Decision::Measure {
                    return Ok(());
                }
                self.open(deadline_ns, reporter);
            }
            reporter.progress(self.controller.done_frac());
        }
    }

    /// Counts what completes before `until_ns`.
    fn fill_slice(&mut self, until_ns: u64) {
        let opened_ns = self.opened_ns;
        while let Some(flight) = self.complete_before(until_ns) {
            self.slice.operations += 1;
            self.slice.bytes += flight.request.length_bytes;
            if let Some(opened_ns) = opened_ns {
                self.tally.record(&flight.request, flight.ended_ns - flight.began_ns);
                self.tally.edge_ns -= opened_ns.saturating_sub(flight.began_ns) as i64;
                self.tally.think_ns +=
                    flight.began_ns.saturating_sub(flight.thought_from_ns.max(opened_ns));
            }
        }
    }

    fn open(&mut self, deadline_ns: u64, reporter: &mut Reporter) {
        if self.opened_ns.is_some() {
            return;
        }
        self.opened_ns = Some(self.now_ns);
        self.device_before = self.device.device_bytes();
        self.controller.cut_window(s_from_ns(deadline_ns.saturating_sub(self.now_ns)));
        self.controller.force_measure();
        reporter.phase(Phase::Measure, self.now_ns - self.start_ns);
    }

    /// Accounts for what is still outstanding when the window closes.
    fn close(mut self, reporter: &mut Reporter) -> VirtualRun {
        let closed_ns = self.now_ns;
        let opened_ns = self.opened_ns.unwrap_or(closed_ns);
        for flight in &self.flights {
            let began_ns = flight.began_ns.max(opened_ns);
            self.tally.edge_ns += closed_ns.saturating_sub(began_ns) as i64;
            let thought_to_ns = flight.began_ns.min(closed_ns);
            self.tally.think_ns +=
                thought_to_ns.saturating_sub(flight.thought_from_ns.max(opened_ns));
        }
        reporter.phase(Phase::Drain, closed_ns - self.start_ns);
        let device = self.device.device_bytes();
        VirtualRun {
            tally: self.tally,
            opened_ns,
            closed_ns,
            device_bytes: (device.0 - self.device_before.0, device.1 - self.device_before.1),
            capped: self.operations >= OPERATIONS_MAX,
            controller: self.controller,
        }
    }
}
