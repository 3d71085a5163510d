//! One issuer: draws a request, makes it, counts it, and again.
//!
//! Issuers are threads, each with its own address stream, open file and buffer. The loop allocates
//! nothing, takes no lock and makes no system call but the I/O itself; it reads the clock through
//! the vDSO, just before and just after the request, so that a response time holds the request and
//! one clock reading.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use crate::access::AccessStream;
use crate::backend::Backend;
use crate::clock::{now_ns, sleep_until};
use crate::error::EngineError;
use crate::recorder::Tally;

/// Stages all issuers go through together.
pub const WARMING: u8 = 0;
/// The window is open.
pub const MEASURING: u8 = 1;
/// The window is closed; issuers leave after the request in flight.
pub const STOPPED: u8 = 2;

/// Longest sleep before an issuer that thinks looks whether the run is over.
const THINK_SLICE_NS: u64 = 20_000_000;

/// What the controlling thread tells the issuers.
#[derive(Debug)]
pub struct Signals {
    stage: AtomicU8,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    failed: AtomicBool,
    gate: RwLock<()>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            stage: AtomicU8::new(WARMING),
            began_ns: AtomicU64::new(u64::MAX),
            ended_ns: AtomicU64::new(u64::MAX),
            failed: AtomicBool::new(false),
            gate: RwLock::new(()),
        }
    }
}

impl Signals {
    /// Holds every issuer back until the guard is dropped; then all start together.
    pub fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the window; returns when it began.
    pub fn open_window(&self) -> u64 {
        let now = now_ns();
        self.began_ns.store(now, Ordering::Release);
        self.stage.store(MEASURING, Ordering::Release);
        now
    }

    /// Closes the window, if one is open, and sends the issuers home; returns when.
    pub fn close(&self) -> u64 {
        let now = now_ns();
        self.ended_ns.store(now, Ordering::Release);
        self.stage.store(STOPPED, Ordering::Release);
        now
    }

    /// Whether an issuer failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    #[inline]
    fn stage(&self) -> u8 {
        self.stage.load(Ordering::Acquire)
    }
}

/// Running totals of one issuer, written by it alone and read by the controlling thread; a cache
/// line pair each, so that issuers do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Live {
    operations: AtomicU64,
    bytes: AtomicU64,
}

impl Live {
    #[inline]
    fn add(&self, bytes: u64) {
        // A single writer needs no atomic addition, only stores that are not torn.
        self.operations.store(self.operations.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Operations and bytes so far.
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        (self.operations.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// One issuer.
#[derive(Debug)]
pub struct Worker<'a, B> {
    backend: B,
    stream: AccessStream,
    think_ns: u64,
    signals: &'a Signals,
    live: &'a Live,
    tally: Tally,
}

impl<'a, B: Backend> Worker<'a, B> {
    /// An issuer that has not started yet.
    pub fn new(
        backend: B,
        stream: AccessStream,
        think_ns: u64,
        signals: &'a Signals,
        live: &'a Live,
    ) -> Self {
        Self { backend, stream, think_ns, signals, live, tally: Tally::default() }
    }

    /// Issues until the run is over; returns what completed within the window.
    ///
    /// # Errors
    /// The backend's first failure.
    pub fn run(mut self) -> Result<Tally, EngineError> {
        drop(self.signals.gate.read());
        let outcome = self.issue();
        if outcome.is_err() {
            self.signals.failed.store(true, Ordering::Relaxed);
        }
        outcome.map(|()| self.tally)
    }

    fn issue(&mut self) -> Result<(), EngineError> {
        let itself = self.backend.measures_itself();
        let mut free_ns = now_ns();
        loop {
            let request = self.stream.draw();
            let began_ns = if itself { free_ns } else { now_ns() };
            let moved = self.backend.transfer(&request)?;
            let ended_ns = now_ns();
            self.live.add(moved);
            match self.signals.stage() {
                MEASURING => {
                    let opened_ns = self.signals.began_ns.load(Ordering::Acquire);
                    if ended_ns >= opened_ns {
                        self.tally.record(&request, ended_ns - began_ns);
                        self.tally.edge_ns -= opened_ns.saturating_sub(began_ns) as i64;
                        self.tally.own_ns += began_ns.saturating_sub(free_ns.max(opened_ns));
                    }
                }
                STOPPED => {
                    self.finish(&request, began_ns, ended_ns, free_ns);
                    return Ok(());
                }
                _ => {}
            }
            free_ns = if self.think_ns == 0 { ended_ns } else { self.think(ended_ns) };
        }
    }

    /// The request during which the window closed: counted if it was done in time, else only its
    /// time within.
    #[cold]
    fn finish(
        &mut self,
        request: &crate::job::Request,
        began_ns: u64,
        ended_ns: u64,
        free_ns: u64,
    ) {
        let opened_ns = self.signals.began_ns.load(Ordering::Acquire);
        let closed_ns = self.signals.ended_ns.load(Ordering::Acquire);
        if opened_ns == u64::MAX {
            return;
        }
        if ended_ns >= opened_ns && ended_ns <= closed_ns {
            self.tally.record(request, ended_ns - began_ns);
            self.tally.edge_ns -= opened_ns.saturating_sub(began_ns) as i64;
        } else {
            self.tally.edge_ns += closed_ns.saturating_sub(began_ns.max(opened_ns)) as i64;
        }
        self.tally.own_ns += began_ns.min(closed_ns).saturating_sub(free_ns.max(opened_ns));
    }

    /// Thinks after a completion; returns when it was over.
    fn think(&mut self, from_ns: u64) -> u64 {
        let until_ns = from_ns + self.think_ns;
        let mut now = from_ns;
        while now < until_ns && self.signals.stage() != STOPPED {
            sleep_until(until_ns.min(now + THINK_SLICE_NS));
            now = now_ns();
        }
        if self.signals.stage() != WARMING {
            let opened_ns = self.signals.began_ns.load(Ordering::Acquire);
            let closed_ns = self.signals.ended_ns.load(Ordering::Acquire);
            self.tally.think_ns += now.min(closed_ns).saturating_sub(from_ns.max(opened_ns));
        }
        now
    }
}

/// Nanoseconds Leadline itself needs per request (draw, two clock readings, counting): the least of
/// several short runs against nothing, so that a moment's disturbance does not count.
#[must_use]
pub fn own_cost_ns(stream: &AccessStream) -> f64 {
    const TURNS: u32 = 400;
    let mut stream = stream.clone();
    let mut tally = Tally::default();
    let live = Live::default();
    let mut least = f64::INFINITY;
    for _ in 0..16 {
        let began_ns = now_ns();
        for _ in 0..TURNS {
            let request = stream.draw();
            let before_ns = now_ns();
            live.add(request.length_bytes);
            tally.record(&request, now_ns() - before_ns);
        }
        least = least.min((now_ns() - began_ns) as f64 / f64::from(TURNS));
    }
    std::hint::black_box(&tally);
    least
}
