//! A run in virtual time: the same address streams, recorder, steadiness test and stop rule as a
//! real run, with a device that answers how long a request would have taken.
//!
//! Every outstanding request has a slot; [`closed`] and [`open`] say when a slot issues. Either way
//! the device sees requests in the order of the virtual clock, and completions are seen in order,
//! so a slice of time is complete as soon as a later completion is seen. A request is counted at
//! its completion; the part of it outside the window is kept apart, as in a real run.

#![forbid(unsafe_code)]

mod closed;
mod machine;
mod machine_run;
mod open;

use leadline_base::clock::{ns_from_s, s_from_ns};
use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::HostUse;
use leadline_sim::Profile;
use leadline_sim::law::{SimulatedRun, SimulatedSystem, truth};
use leadline_wire::event::measure::{ClockSource, MeasureResult, Offered, SimulatedFacts, Slice};
use leadline_wire::finding::{Code, Finding};
use leadline_wire::job::measure::{Limits, MeasureJob};
use leadline_wire::job::target::Target;
use leadline_wire::ranges::SMALLEST_TRANSFER_BYTES;

use crate::access::arrival::ArrivalStream;
use crate::access::stream::{Draw, sizes_of};
use crate::run::backlog::Backlog;
use crate::run::controller::{Controller, Decision};
use crate::run::offered::{due_spans, offered};
use crate::run::recorder::{Tally, Window};
use crate::target::assemble::{Evidence, Finished, assemble};
use crate::target::session::{mixed_streams, streams};
use leadline_base::request::Request;

use closed::ClosedSlots;
use machine_run::MachineRun;
use open::OpenSlots;

/// Most requests one job simulates, so that it ends in a second or so of real time.
pub const OPERATIONS_MAX: u64 = 2_000_000;
/// Most of them that a shortest warm-up asks for.
const WARM_UP_OPERATIONS_MAX: u64 = OPERATIONS_MAX / 8;

/// Most requests that become due in one job, so that even a hopeless rate ends in seconds.
const DUE_MAX: f64 = 1e8;

/// Requests in one slice, at least: a batch of the stop rule then holds fifty or more.
const OPERATIONS_PER_SLICE: f64 = 5.0;

/// Slices in the longest window, about.
const SLICES_PER_WINDOW: f64 = 1500.0;

/// Slices in the longest window, at most.
const SLICES_MOST: f64 = 4000.0;

/// Slices in the longest warm-up, about, and in the longest window, at least.
const SLICES_MIN: f64 = 64.0;

/// Requests per worker, and in all, from which the length of a slice is found.
const CALIBRATION_TURNS: u64 = 2;
const CALIBRATION_OPERATIONS: u64 = 200;

/// Something that knows how long a request takes.
pub trait VirtualDevice {
    /// Nanoseconds the worker waits; called in the order of `now_ns`, the absolute virtual clock.
    fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64;
    /// Bytes its page cache holds.
    fn cache_resident_bytes(&self) -> u64;
    /// Bytes its disks read and wrote so far.
    fn device_bytes(&self) -> (u64, u64);
}

/// What a run counts of a device, of whatever kind.
trait Counted {
    /// Bytes its page cache holds.
    fn resident_bytes(&self) -> u64;
    /// Bytes its disks read and wrote so far.
    fn moved_bytes(&self) -> (u64, u64);
    /// Whether the run has cost as much of the host's time as one may, or its warm-up has.
    fn spent(&self, measuring: bool) -> bool;
}

impl<D: VirtualDevice> Counted for D {
    fn resident_bytes(&self) -> u64 {
        self.cache_resident_bytes()
    }

    fn moved_bytes(&self) -> (u64, u64) {
        self.device_bytes()
    }

    /// [`OPERATIONS_MAX`] bounds a device that answers at once.
    #[inline]
    fn spent(&self, _measuring: bool) -> bool {
        false
    }
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
    /// Counts of all workers over the window.
    pub tally: Tally,
    /// The slices and the decisions.
    pub controller: Controller,
    /// When the window opened.
    pub opened_ns: u64,
    /// When it closed.
    pub closed_ns: u64,
    /// Bytes the device read and wrote within it.
    pub device_bytes: (u64, u64),
    /// What an open loop offered.
    pub offered: Option<Offered>,
    /// Requests that completed, warm-up included.
    pub operations: u64,
    /// Whether [`OPERATIONS_MAX`], or as many requests due as a job may have, ended it.
    pub capped: bool,
    /// Whether it was given up as hopeless.
    pub given_up: bool,
}

/// Runs a simulated job.
pub(crate) fn run(job: &MeasureJob, reporter: &mut Reporter) -> Result<MeasureResult, EngineError> {
    let Target::Simulated { system, clock_s, run_seed } = &job.target else {
        return Err(EngineError::fault("only a simulated target runs in virtual time"));
    };
    let start_ns = ns_from_s(*clock_s);
    match Profile::from_value(system)? {
        Profile::Law(system) => run_law(job, &system, *run_seed, start_ns, reporter),
        Profile::Machine(system) => {
            reporter.phase(Phase::Prepare, 0);
            let mut device = MachineRun::new(&system, job, *run_seed, start_ns)?;
            let run = simulate_machine(&mut device, job, start_ns, reporter)?;
            finish(job, &run, &device, start_ns, None)
        }
    }
}

fn run_law(
    job: &MeasureJob,
    system: &SimulatedSystem,
    run_seed: u64,
    start_ns: u64,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    if !job.streams.is_empty() {
        return Err(EngineError::bad_job(
            "streams: a simulated law knows the five parameters of one workload; several streams \
             need a machine made of parts (a profile with [machine])",
        ));
    }
    if job.workload.access.is_skewed() && job.workload.seq_frac > 0.0 {
        return Err(EngineError::bad_job(
            "workload.access: a simulated law knows skew among random places only; write \
             seq_frac=0, or take a machine made of parts (a profile with [machine])",
        ));
    }
    let sync = job.backend.sync;
    let mut device = SimulatedRun::new(system, &job.workload, run_seed, start_ns).waiting(sync);
    let run = simulate(&mut device, job, start_ns, reporter)?;
    let (opened_ns, closed_ns) = (run.opened_ns, run.closed_ns);
    let able_mb_s =
        truth::waiting_throughput_mb_s(system, &job.workload, sync, opened_ns, closed_ns);
    let truth_mb_s = asked_mb_s(job)?.map_or(able_mb_s, |asked_mb_s| asked_mb_s.min(able_mb_s));
    finish(job, &run, &device, start_ns, Some(truth_mb_s))
}

/// Throughput an open loop asks for in the mean; none in a closed loop.
fn asked_mb_s(job: &MeasureJob) -> Result<Option<f64>, EngineError> {
    let Some(rate_per_s) = job.arrivals.rate_per_s() else { return Ok(None) };
    let sizes = sizes_of(&job.workload, SMALLEST_TRANSFER_BYTES)?;
    let mean_bytes = sizes.mean() * SMALLEST_TRANSFER_BYTES as f64;
    Ok(Some(rate_per_s * mean_bytes * 1e-6))
}

fn finish(
    job: &MeasureJob,
    run: &VirtualRun,
    device: &impl Counted,
    start_ns: u64,
    truth_mb_s: Option<f64>,
) -> Result<MeasureResult, EngineError> {
    let capped = || Finding::new(Code::SimulationCapped).with("requests", run.operations);
    assemble(Finished {
        job,
        tally: &run.tally,
        controller: &run.controller,
        wall_s: s_from_ns(run.closed_ns - run.opened_ns),
        total_s: s_from_ns(run.closed_ns - start_ns),
        prepare_s: 0.0,
        host: HostUse {
            device: Some(run.device_bytes),
            cache_resident_bytes: Some(device.resident_bytes()),
            ..HostUse::default()
        },
        own_allowance_s: 0.0,
        simulated: Some(SimulatedFacts { truth_mb_s, clock_s: s_from_ns(run.closed_ns) }),
        findings: run.capped.then(capped).into_iter().collect(),
        evidence: Evidence {
            due_spans: due_spans(&run.tally),
            offered: run.offered,
            given_up: run.given_up,
            ..Evidence::none(ClockSource::Virtual)
        },
    })
}

/// Runs the job's workload on a device from `start_ns` of the virtual clock.
///
/// # Errors
/// `BadJob` from the address streams; `Target` when `total_s_max` ends before the window opens.
pub fn simulate(
    device: &mut impl VirtualDevice,
    job: &MeasureJob,
    start_ns: u64,
    reporter: &mut Reporter,
) -> Result<VirtualRun, EngineError> {
    reporter.phase(Phase::Prepare, 0);
    let streams = streams(job, SMALLEST_TRANSFER_BYTES)?;
    reporter.phase(Phase::WarmUp, 0);
    match ArrivalStream::new(&job.arrivals, job.seed) {
        None => {
            let slots = ClosedSlots::start(job, streams, device, start_ns);
            Driver::new(device, slots, job, start_ns).drive(reporter)
        }
        Some(schedule) => {
            let slots = OpenSlots::start(job, streams, schedule.clone(), start_ns);
            let driver = Driver::new(device, slots, job, start_ns);
            let mut run = driver.drive(reporter)?;
            run.offer(&schedule, start_ns);
            Ok(run)
        }
    }
}

/// The same on a machine made of parts.
fn simulate_machine(
    device: &mut MachineRun,
    job: &MeasureJob,
    start_ns: u64,
    reporter: &mut Reporter,
) -> Result<VirtualRun, EngineError> {
    if job.streams.is_empty() {
        simulate_parts(device, streams(job, SMALLEST_TRANSFER_BYTES)?, job, start_ns, reporter)
    } else {
        simulate_parts(
            device,
            mixed_streams(job, SMALLEST_TRANSFER_BYTES)?,
            job,
            start_ns,
            reporter,
        )
    }
}

fn simulate_parts<S: Draw>(
    device: &mut MachineRun,
    streams: Vec<S>,
    job: &MeasureJob,
    start_ns: u64,
    reporter: &mut Reporter,
) -> Result<VirtualRun, EngineError> {
    reporter.phase(Phase::WarmUp, 0);
    match ArrivalStream::new(&job.arrivals, job.seed) {
        None => {
            let slots = machine::ClosedSlots::start(job, streams, start_ns);
            Driver::new(device, slots, job, start_ns).drive(reporter)
        }
        Some(schedule) => {
            let slots = machine::OpenSlots::start(job, streams, schedule.clone(), start_ns);
            let mut run = Driver::new(device, slots, job, start_ns).drive(reporter)?;
            run.offer(&schedule, start_ns);
            Ok(run)
        }
    }
}

impl VirtualRun {
    /// Compares what completed with what `schedule` held.
    fn offer(&mut self, schedule: &ArrivalStream, start_ns: u64) {
        let due = schedule.due_between(self.opened_ns - start_ns, self.closed_ns - start_ns);
        let window_s = s_from_ns(self.closed_ns - self.opened_ns);
        self.offered = offered(schedule.rate_per_s(), due, window_s, &self.tally);
    }
}

/// Counts how often each of several streams began its data anew, by all workers.
fn count_rounds<S: Draw>(streams: &[S], tally: &mut Tally) {
    for stream in streams {
        stream.count_rounds(&mut |at, rounds| {
            if let Some(own) = tally.streams.get_mut(at) {
                own.rounds += rounds;
            }
        });
    }
}

/// When a request sent at `now_ns` completes.
#[inline]
fn serve(device: &mut impl VirtualDevice, now_ns: u64, request: &Request) -> u64 {
    now_ns + device.service_ns(now_ns, request).max(1)
}

/// All slots of a run before a device `D`, and what makes them issue.
trait Slots<D> {
    /// One request from its beginning to its completion.
    type Flight;
    /// How many there are.
    fn number(&self) -> usize;
    /// The next completion if it is before `until_ns`, and when it was; completions come in order.
    fn complete_before(&mut self, device: &mut D, until_ns: u64) -> Option<(u64, Self::Flight)>;
    /// Bytes it moved.
    fn bytes(flight: &Self::Flight) -> u64;
    /// Counts a completion within the window.
    fn count(flight: &Self::Flight, opened_ns: u64, tally: &mut Tally);
    /// Counts what is still outstanding when the window closes.
    fn close(self, window: Window, tally: &mut Tally);
}

struct Driver<'a, D, S> {
    device: &'a mut D,
    slots: S,
    limits: Limits,
    rate_per_s: Option<f64>,
    start_ns: u64,
    operations: u64,
    slice: Slice,
    tally: Tally,
    controller: Controller,
    opened_ns: Option<u64>,
    now_ns: u64,
    device_before: (u64, u64),
    /// When to give up, where a bound was asked for.
    backlog: Option<Backlog>,
    given_up: bool,
}

/// What decides when to give up; none without a bound.
fn backlog(job: &MeasureJob, start_ns: u64) -> Option<Backlog> {
    let bound_ms = job.load.as_ref()?.abort_above_ms?;
    Some(Backlog::new(ArrivalStream::new(&job.arrivals, job.seed)?, start_ns, bound_ms))
}

impl<'a, D: Counted, S: Slots<D>> Driver<'a, D, S> {
    fn new(device: &'a mut D, slots: S, job: &MeasureJob, start_ns: u64) -> Self {
        Self {
            device,
            slots,
            limits: job.limits,
            rate_per_s: job.arrivals.rate_per_s(),
            start_ns,
            operations: 0,
            slice: Slice::default(),
            tally: Tally::of(&job.arrivals)
                .with_load(job.load.as_ref(), job.limits.measure_s_max)
                .with_streams(job.streams.len()),
            backlog: backlog(job, start_ns),
            controller: Controller::new(job.limits, 0.0),
            opened_ns: None,
            now_ns: start_ns,
            device_before: (0, 0),
            given_up: false,
        }
    }

    fn drive(mut self, reporter: &mut Reporter) -> Result<VirtualRun, EngineError> {
        let slice_ns = self.calibrate();
        self.conduct(slice_ns, reporter)?;
        Ok(self.close(reporter))
    }

    #[inline]
    fn complete_before(&mut self, until_ns: u64) -> Option<S::Flight> {
        let (ended_ns, flight) = self.slots.complete_before(self.device, until_ns)?;
        self.operations += 1;
        self.now_ns = ended_ns;
        Some(flight)
    }

    /// Runs a few requests to find how long a slice must be; returns its length in nanoseconds.
    fn calibrate(&mut self) -> u64 {
        let wanted = CALIBRATION_OPERATIONS.max(CALIBRATION_TURNS * self.slots.number() as u64);
        // A slow disk may need all its warm-up for this, but no more.
        let until_ns = self.start_ns + ns_from_s(self.limits.warm_up_s_max.max(1e-6));
        while self.operations < wanted && self.complete_before(until_ns).is_some() {}
        let spent_s = s_from_ns(self.now_ns - self.start_ns).max(1e-9);
        // Where nothing completed all that is known is that one request takes longer.
        let tried_s =
            if self.operations == 0 { s_from_ns(until_ns - self.start_ns) } else { spent_s };
        let seen_per_s = self.operations.max(1) as f64 / tried_s;
        let per_s = self.rate_per_s.map_or(seen_per_s, |rate_per_s| rate_per_s.min(seen_per_s));
        // Warming up must leave requests for the window.
        let warm_up_s_min = self.limits.warm_up_s_min.min(WARM_UP_OPERATIONS_MAX as f64 / per_s);
        self.controller = Controller::new(Limits { warm_up_s_min, ..self.limits }, spent_s);
        let window_s = self.limits.measure_s_max.min(OPERATIONS_MAX as f64 / per_s);
        let finest_s = (window_s / SLICES_PER_WINDOW).min(self.limits.warm_up_s_max / SLICES_MIN);
        let slice_s = finest_s.max(OPERATIONS_PER_SLICE / per_s).max(window_s / SLICES_MOST);
        ns_from_s(slice_s.min(self.limits.measure_s_max / SLICES_MIN)).max(1)
    }

    fn conduct(&mut self, slice_ns: u64, reporter: &mut Reporter) -> Result<(), EngineError> {
        let deadline_ns = self.start_ns.saturating_add(ns_from_s(self.limits.total_s_max));
        let mut began_ns = self.now_ns;
        loop {
            let until_ns = began_ns + slice_ns * self.controller.coarseness();
            self.fill_slice(until_ns);
            self.now_ns = until_ns;
            self.slice.seconds = s_from_ns(until_ns - began_ns);
            began_ns = until_ns;
            let decision = self.controller.push(std::mem::take(&mut self.slice));
            let done = self.operations;
            if self.backlog.as_mut().is_some_and(|backlog| backlog.hopeless(until_ns, done)) {
                self.given_up = true;
                return Ok(());
            }
            match decision {
                Decision::Stop => return Ok(()),
                Decision::Measure => self.open(deadline_ns, reporter),
                Decision::Continue => {}
            }
            if self.opened_ns.is_none() && until_ns >= deadline_ns {
                return Err(EngineError::nothing_completed(
                    "the time limit ended during warm-up, nothing was measured; \
                     raise total_s_max or lower warm_up_s_max",
                ));
            }
            if self.full() {
                if self.opened_ns.is_some() && decision != Decision::Measure {
                    return Ok(());
                }
                self.open(deadline_ns, reporter);
            }
            reporter.progress(self.controller.done_frac());
        }
    }

    /// Whether the job has simulated all it may.
    fn full(&self) -> bool {
        let elapsed_s = s_from_ns(self.now_ns - self.start_ns);
        let due = self.rate_per_s.map_or(0.0, |rate_per_s| rate_per_s * elapsed_s);
        self.operations >= OPERATIONS_MAX
            || due >= DUE_MAX
            || self.device.spent(self.opened_ns.is_some())
    }

    /// Counts what completes before `until_ns`.
    fn fill_slice(&mut self, until_ns: u64) {
        let opened_ns = self.opened_ns;
        while let Some(flight) = self.complete_before(until_ns) {
            self.slice.operations += 1;
            self.slice.bytes += S::bytes(&flight);
            if let Some(opened_ns) = opened_ns {
                S::count(&flight, opened_ns, &mut self.tally);
            }
        }
    }

    fn open(&mut self, deadline_ns: u64, reporter: &mut Reporter) {
        if self.opened_ns.is_some() {
            return;
        }
        self.opened_ns = Some(self.now_ns);
        if let Some(backlog) = &mut self.backlog {
            backlog.open(self.now_ns, self.operations);
        }
        self.device_before = self.device.moved_bytes();
        self.controller.cut_window(s_from_ns(deadline_ns.saturating_sub(self.now_ns)));
        self.controller.force_measure();
        reporter.phase(Phase::Measure, self.now_ns - self.start_ns);
    }

    /// Accounts for what is still outstanding when the window closes.
    fn close(mut self, reporter: &mut Reporter) -> VirtualRun {
        let (closed_ns, capped) = (self.now_ns, self.full());
        let opened_ns = self.opened_ns.unwrap_or(closed_ns);
        self.slots.close(Window { opened_ns, closed_ns }, &mut self.tally);
        reporter.phase(Phase::Drain, closed_ns - self.start_ns);
        let device = self.device.moved_bytes();
        VirtualRun {
            tally: self.tally,
            opened_ns,
            closed_ns,
            device_bytes: (device.0 - self.device_before.0, device.1 - self.device_before.1),
            offered: None,
            operations: self.operations,
            capped,
            given_up: self.given_up,
            controller: self.controller,
        }
    }
}
