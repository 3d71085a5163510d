//! A real run: worker threads, and the controlling thread that opens and closes the window.

#![forbid(unsafe_code)]

use std::time::Duration;

use leadline_base::clock::{Clock, ns_from_s, s_from_ns, sleep_until};
use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::load::ProcessorWait;
use leadline_base::host::{BlockDevice, HostUse, HostWatch};
use leadline_wire::event::measure::{Offered, Placed, Slice};
use leadline_wire::job::measure::Limits;

use crate::access::arrival::ArrivalStream;
use crate::run::backlog::Backlog;
use crate::run::controller::{Controller, Decision};
use crate::run::offered::offered;
use crate::run::placement::pin;
use crate::run::recorder::{Tally, Window};
use crate::run::worker::{self, Context, Issue, Live, Schedule, Signals};

/// What a real run left behind.
#[derive(Debug)]
pub struct Run {
    /// Counts of all workers over the window.
    pub tally: Tally,
    /// The slices and the decisions.
    pub controller: Controller,
    /// The window, on the run's clock.
    pub window: Window,
    /// What the machine did during the window.
    pub host: HostUse,
    /// What an open loop offered.
    pub offered: Option<Offered>,
    /// Whether an open loop was given up as hopeless.
    pub given_up: bool,
}

impl Run {
    /// Settles what an open loop offered on the schedule that began at `start_ns`.
    fn offer(&mut self, schedule: &Schedule, start_ns: u64) {
        let Window { opened_ns, closed_ns } = self.window;
        let window_s = s_from_ns(closed_ns - opened_ns);
        let due = schedule.stream.due_between(opened_ns - start_ns, closed_ns - start_ns);
        self.tally.cut_untaken(schedule.stream.clone(), schedule.taken(), start_ns, self.window);
        self.offered = offered(schedule.stream.rate_per_s(), due, window_s, &self.tally);
    }
}

/// What a run needs beside its workers.
#[derive(Debug)]
pub struct Setting {
    /// The clock of the run.
    pub clock: Clock,
    /// Where the workers run.
    pub placement: Placed,
    /// When to stop.
    pub limits: Limits,
    /// When the job began, on the monotonic clock.
    pub job_began_ns: u64,
    /// Seconds of warm-up already used, by the pass that fills the cache.
    pub warm_up_spent_s: f64,
    /// Where the workload's file lies.
    pub device: Option<BlockDevice>,
    /// When requests are due, in an open loop.
    pub schedule: Option<ArrivalStream>,
    /// Mean response time of an open loop above which it is given up.
    pub abort_above_ms: Option<f64>,
}

/// Stack of a worker thread: its loop is flat.
const STACK_BYTES: usize = 256 << 10;

/// Pause between two looks whether every worker stands at the gate.
const GATE_PAUSE: Duration = Duration::from_micros(50);

/// Runs the workers from warm-up to drain, each on its own thread.
///
/// # Errors
/// The first failure of a worker; `Io` when threads cannot be had; `Target` when time was up
/// before measuring.
pub fn run<I: Issue>(
    workers: Vec<I>,
    setting: &Setting,
    reporter: &mut Reporter,
) -> Result<Run, EngineError> {
    let signals = Signals::new(setting.clock);
    let schedule = setting.schedule.clone().map(Schedule::new);
    let lives: Vec<Live> = workers.iter().map(|_| Live::default()).collect();
    let (outcome, tallies) = std::thread::scope(|scope| {
        let held = signals.hold();
        let mut threads = Vec::with_capacity(workers.len());
        let mut refused = None;
        for (index, (worker, live)) in workers.into_iter().zip(&lives).enumerate() {
            let context = Context { signals: &signals, live, schedule: schedule.as_ref() };
            let cpu = setting.placement.cpus.get(index).copied();
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            let body = move || {
                cpu.into_iter().for_each(pin);
                worker::run(worker, &context)
            };
            match builder.spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => refused = Some(error),
            }
        }
        while signals.ready() < threads.len() {
            std::thread::sleep(GATE_PAUSE);
        }
        if refused.is_some() || signals.failed() {
            signals.close();
        }
        signals.release(held);
        let outcome = match refused {
            Some(error) => Err(no_thread(&error)),
            None => Conductor::new(setting, &signals, &lives).conduct(reporter),
        };
        let joined = |thread: std::thread::ScopedJoinHandle<_>| {
            let died = || Err(EngineError::fault("a worker thread died; please report this"));
            thread.join().unwrap_or_else(|_| died())
        };
        let tallies = threads.into_iter().map(joined);
        (outcome, tallies.collect::<Result<Vec<Tally>, EngineError>>())
    });
    let tallies = tallies?;
    let mut run = outcome?;
    tallies.iter().for_each(|tally| run.tally.merge(tally));
    if let Some(schedule) = &schedule {
        run.offer(schedule, signals.started_ns());
    }
    Ok(run)
}

fn no_thread(error: &std::io::Error) -> EngineError {
    EngineError::io(format!(
        "a thread for a worker cannot be had: {error}; ask for fewer processes"
    ))
}

/// The controlling thread.
struct Conductor<'a> {
    setting: &'a Setting,
    signals: &'a Signals,
    lives: &'a [Live],
    controller: Controller,
    deadline_ns: u64,
    last: (u64, u64, u64),
    /// When to give up, where a bound was asked for.
    backlog: Option<Backlog>,
    given_up: bool,
}

impl<'a> Conductor<'a> {
    fn new(setting: &'a Setting, signals: &'a Signals, lives: &'a [Live]) -> Self {
        Self {
            setting,
            signals,
            lives,
            controller: Controller::new(setting.limits, setting.warm_up_spent_s),
            deadline_ns: setting.job_began_ns.saturating_add(ns_from_s(setting.limits.total_s_max)),
            last: (setting.clock.now_ns(), 0, 0),
            backlog: setting
                .schedule
                .clone()
                .zip(setting.abort_above_ms)
                .map(|(schedule, bound_ms)| Backlog::new(schedule, signals.started_ns(), bound_ms)),
            given_up: false,
        }
    }

    fn conduct(mut self, reporter: &mut Reporter) -> Result<Run, EngineError> {
        let from_the_start = self.setting.limits.operations_max.is_some();
        let warmed = from_the_start || self.follow(reporter, Decision::Measure);
        let watch = HostWatch::start(self.setting.device.clone());
        let waiting = ProcessorWait::start();
        let opened_ns = self.signals.open_window();
        self.last = self.sample();
        if let Some(backlog) = &mut self.backlog {
            backlog.open(opened_ns, self.last.1);
        }
        if warmed {
            reporter.phase(Phase::Measure, opened_ns - self.setting.job_began_ns);
            self.controller.cut_window(s_from_ns(self.deadline_ns.saturating_sub(opened_ns)));
            self.controller.force_measure();
            self.follow(reporter, Decision::Stop);
        }
        let waited_cpu = waiting.per_second();
        let closed_ns = self.signals.close();
        let mut host = watch.finish();
        host.other_load.waited_cpu = waited_cpu;
        if !warmed && !self.signals.lost() {
            return Err(EngineError::nothing_completed(
                "the time limit ended during warm-up, nothing was measured; raise total_s_max or \
                lower warm_up_s_max",
            ));
        }
        reporter.phase(Phase::Drain, closed_ns - self.setting.job_began_ns);
        Ok(Run {
            tally: Tally::default(),
            controller: self.controller,
            window: Window { opened_ns, closed_ns },
            host,
            offered: None,
            given_up: self.given_up,
        })
    }

    /// Feeds slices to the controller until it decides `wanted`; false when the job's time or an
    /// worker ended first.
    fn follow(&mut self, reporter: &mut Reporter, wanted: Decision) -> bool {
        let finest_ns = ns_from_s(Controller::slice_s(&self.setting.limits));
        let mut next_ns = self.last.0 + finest_ns;
        loop {
            sleep_until(next_ns);
            let slice = self.slice();
            if self.controller.push(slice) == wanted {
                return true;
            }
            let (now_ns, done, _) = self.last;
            if self.backlog.as_mut().is_some_and(|backlog| backlog.hopeless(now_ns, done)) {
                self.given_up = true;
                return true;
            }
            if self.signals.failed() || self.last.0 >= self.deadline_ns {
                return false;
            }
            reporter.progress(self.controller.done_frac());
            let slice_ns = finest_ns * self.controller.coarseness();
            // After a late wake-up the next slice is whole again, not a burst of empty ones.
            next_ns = (next_ns + slice_ns).max(self.last.0 + slice_ns / 2);
        }
    }

    fn sample(&self) -> (u64, u64, u64) {
        let totals = self
            .lives
            .iter()
            .map(Live::read)
            .fold((0, 0), |sum, live| (sum.0 + live.0, sum.1 + live.1));
        (self.setting.clock.now_ns(), totals.0, totals.1)
    }

    /// What happened since the last slice.
    fn slice(&mut self) -> Slice {
        let (before, now) = (self.last, self.sample());
        self.last = now;
        Slice {
            start_s: 0.0,
            seconds: s_from_ns(now.0 - before.0),
            operations: now.1 - before.1,
            bytes: now.2 - before.2,
        }
    }
}
