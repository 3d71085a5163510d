//! Workers: each draws a request, makes it, counts it, and again.
//!
//! A worker is a thread with its own address stream, open file and buffers. Its loop allocates
//! nothing, takes no lock and makes no system call but the I/O itself. There are two loops, because
//! the way a backend waits decides what can be known when: [`Blocking`] has one request outstanding
//! and reads the clock just before and just after it; [`Queued`] has several, sends and collects
//! them in batches and reads the clock once for each.

mod blocking;
pub(crate) mod pace;
mod probe;
mod queued;
mod replay;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use leadline_base::clock::{Clock, ns_from_s, sleep_until};
use leadline_base::error::EngineError;
use leadline_wire::job::measure::MeasureJob;

use crate::access::stream::{AccessStream, Draw};
use crate::run::recorder::{Tally, Window};
use leadline_base::request::Request;

pub use blocking::Blocking;
pub use pace::Schedule;
pub use probe::Probe;
pub use queued::Queued;
pub(crate) use replay::{Lane, Open};

/// Stages all workers go through together.
pub const WARMING: u8 = 0;
/// The window is open.
pub const MEASURING: u8 = 1;
/// The window is closed; workers leave after what is in flight.
pub const STOPPED: u8 = 2;

/// Longest sleep before a worker that waits looks whether the run is over.
const WAIT_SLICE_NS: u64 = 20_000_000;

/// One worker, ready to be moved to its thread.
pub trait Issue: Send {
    /// Called once on the worker's own thread, before all start together.
    ///
    /// # Errors
    /// What the kernel refuses only there.
    fn begin(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Issues until the run is over; returns what completed within the window.
    ///
    /// # Errors
    /// The backend's first failure.
    fn issue(self, context: &Context) -> Result<Tally, EngineError>;
}

/// What a worker asks for and what it counts, whatever its backend.
#[derive(Debug)]
pub struct Demand<S = AccessStream> {
    /// Its addresses.
    pub stream: S,
    /// Pause between a completion and the next request of a closed loop, in nanoseconds.
    pub think_ns: u64,
    /// Its lookups in the page cache.
    pub probe: Probe,
    /// Its own cost per request.
    pub cost: OwnCost,
    /// What it counted.
    pub tally: Tally,
}

impl<S: Draw> Demand<S> {
    /// The demand of one worker of a job.
    #[must_use]
    pub fn new(job: &MeasureJob, stream: S, probe: Probe, cost: OwnCost) -> Self {
        let think_ns = ns_from_s(job.workload.think_time_s);
        let tally = Tally::of(&job.arrivals)
            .with_load(job.load.as_ref(), job.limits.measure_s_max)
            .with_streams(job.streams.len());
        Self { stream, think_ns, probe, cost, tally }
    }

    /// Counts a request as one of its stream's, where there are several.
    #[inline]
    fn count_stream(&mut self, request: &Request, response_ns: u64) {
        if S::MIXED {
            self.tally.count_stream(request, response_ns);
        }
    }

    /// What was counted, at the end.
    fn counted(mut self) -> Tally {
        let tally = &mut self.tally;
        self.stream.count_rounds(&mut |stream, rounds| tally.streams[stream].rounds = rounds);
        self.tally
    }

    /// The worker starts at `now_ns`.
    fn start(&mut self, now_ns: u64) {
        self.probe.start(now_ns);
    }

    /// The next request, and whether it was looked up in the page cache, its turn having come.
    #[inline]
    fn draw(&mut self, context: &Context) -> (Request, bool) {
        let request = self.stream.draw();
        let looked_up = self.probe.before(&request, context, &mut self.tally);
        (request, looked_up)
    }
}

/// What every worker shares with the controlling thread.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Where the run stands.
    pub signals: &'a Signals,
    /// The worker's running totals.
    pub live: &'a Live,
    /// What requests wait for in an open loop.
    pub schedule: Option<&'a Schedule>,
}

/// Runs one worker on the present thread from its beginning to its end.
///
/// # Errors
/// The worker's.
pub fn run(mut worker: impl Issue, context: &Context) -> Result<Tally, EngineError> {
    let signals = context.signals;
    pace::wake_in_time();
    let begun = worker.begin();
    signals.ready.fetch_add(1, Ordering::Release);
    let outcome = begun.and_then(|()| {
        drop(signals.start());
        worker.issue(context)
    });
    if outcome.is_err() {
        signals.fail();
    }
    outcome
}

/// What the controlling thread tells the workers.
#[derive(Debug)]
pub struct Signals {
    /// The clock of every time below and of the workers.
    pub clock: Clock,
    stage: AtomicU8,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    failed: AtomicBool,
    lost: AtomicBool,
    ready: AtomicUsize,
    started_ns: AtomicU64,
    gate: RwLock<()>,
}

impl Signals {
    /// Nothing has begun.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            stage: AtomicU8::new(WARMING),
            began_ns: AtomicU64::new(u64::MAX),
            ended_ns: AtomicU64::new(u64::MAX),
            failed: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            started_ns: AtomicU64::new(0),
            gate: RwLock::new(()),
        }
    }

    /// Holds every worker back until the guard is dropped; then all start together.
    pub fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the workers go, now: the schedule of an open loop starts here.
    pub fn release(&self, held: RwLockWriteGuard<'_, ()>) {
        self.started_ns.store(self.clock.now_ns(), Ordering::Release);
        drop(held);
    }

    /// When the workers were let go.
    pub fn started_ns(&self) -> u64 {
        self.started_ns.load(Ordering::Acquire)
    }

    /// Workers that stand at the gate or failed before it.
    pub fn ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// Opens the window; returns when it began.
    pub fn open_window(&self) -> u64 {
        let now = self.clock.now_ns();
        self.began_ns.store(now, Ordering::Release);
        self.stage.store(MEASURING, Ordering::Release);
        now
    }

    /// Closes the window, if one is open, and sends the workers home; returns when.
    pub fn close(&self) -> u64 {
        let now = self.clock.now_ns();
        self.ended_ns.store(now, Ordering::Release);
        self.stage.store(STOPPED, Ordering::Release);
        now
    }

    /// Whether a worker failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether a worker's server went away, so that the run ends with what was counted.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Waits until the window is closed, which a failure brings about within a slice.
    #[cold]
    fn wait_for_close(&self) {
        while self.stage() != STOPPED {
            sleep_until(self.clock.now_ns() + WAIT_SLICE_NS);
        }
    }

    #[inline]
    fn stage(&self) -> u8 {
        self.stage.load(Ordering::Acquire)
    }

    /// The window; `u64::MAX` stands for a moment that has not come.
    #[inline]
    fn window(&self) -> Window {
        Window { opened_ns: self.opened_ns(), closed_ns: self.closed_ns() }
    }

    /// When the window opened; `u64::MAX` before that.
    #[inline]
    fn opened_ns(&self) -> u64 {
        self.began_ns.load(Ordering::Acquire)
    }

    /// When it closed; `u64::MAX` before that.
    #[inline]
    fn closed_ns(&self) -> u64 {
        self.ended_ns.load(Ordering::Acquire)
    }
}

/// Running totals of one worker, written by it alone and read by the controlling thread; a cache
/// line pair each, so that workers do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Live {
    #[inline]
    fn add(&self, operations: u64, bytes: u64) {
        // A single writer needs no atomic addition, only stores that are not torn.
        let (had_operations, had_bytes) = self.read();
        self.operations.store(had_operations + operations, Ordering::Relaxed);
        self.bytes.store(had_bytes + bytes, Ordering::Relaxed);
    }

    /// Operations and bytes so far.
    #[inline]
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        (self.operations.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Nanoseconds Leadline itself needs per request, the least of several short runs on the null backend,
/// so that a moment's disturbance does not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCost {
    /// A whole turn: draw, two clock readings, counting.
    pub turn_ns: f64,
    /// What of it is neither the request nor a clock reading.
    pub between_ns: f64,
}

impl OwnCost {
    /// Measures it on the present processor.
    #[must_use]
    pub fn measured(stream: &impl Draw, clock: Clock) -> Self {
        let mut stream = stream.clone();
        let mut tally = Tally::default();
        let live = Live::default();
        let turn_ns = least_ns(clock, || {
            let request = stream.draw();
            let before_ns = clock.now_ns();
            live.add(1, request.length_bytes);
            tally.record(&request, clock.now_ns().saturating_sub(before_ns));
        });
        std::hint::black_box(&tally);
        let reading_ns = least_ns(clock, || {
            std::hint::black_box(clock.now_ns());
        });
        Self { turn_ns, between_ns: (turn_ns - 2.0 * reading_ns).max(0.0) }
    }
}

/// The least time of one of many turns, in nanoseconds.
fn least_ns(clock: Clock, mut turn: impl FnMut()) -> f64 {
    const TURNS: u32 = 400;
    let mut least = f64::INFINITY;
    for _ in 0..16 {
        let began_ns = clock.now_ns();
        for _ in 0..TURNS {
            turn();
        }
        least = least.min((clock.now_ns() - began_ns) as f64 / f64::from(TURNS));
    }
    least
}
