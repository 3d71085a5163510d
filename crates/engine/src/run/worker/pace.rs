//! What makes a request due: the completion before it, or a clock.

use std::sync::atomic::{AtomicU64, Ordering};

use leadline_base::clock::{Clock, sleep_until};

use crate::access::arrival::ArrivalStream;
use crate::run::worker::{STOPPED, Signals, WAIT_SLICE_NS};

/// How long before a due time a worker stops sleeping and looks at the clock instead: a sleeper is
/// woken some tens of microseconds late.
pub const SPIN_NS: u64 = 50_000;

/// The schedule that all workers of an open loop share.
#[derive(Debug)]
pub struct Schedule {
    /// The schedule from its first ticket on.
    pub stream: ArrivalStream,
    tickets: AtomicU64,
}

impl Schedule {
    /// A schedule of which no ticket has been taken.
    #[must_use]
    pub fn new(stream: ArrivalStream) -> Self {
        Self { stream, tickets: AtomicU64::new(0) }
    }

    /// Tickets taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.tickets.load(Ordering::Relaxed)
    }

    /// One worker's view of it, started at `start_ns` of the run's clock.
    #[must_use]
    pub fn view(&self, start_ns: u64) -> Pace<'_> {
        Pace { schedule: self, stream: self.stream.clone(), start_ns }
    }
}

/// One worker's view of the schedule.
#[derive(Debug)]
pub struct Pace<'a> {
    schedule: &'a Schedule,
    stream: ArrivalStream,
    start_ns: u64,
}

impl Pace<'_> {
    /// Takes the next ticket; returns when it is due, on the run's clock.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let ticket = self.schedule.tickets.fetch_add(1, Ordering::Relaxed);
        self.start_ns.saturating_add(self.stream.due_of(ticket))
    }
}

/// Waits until `due_ns`; false when the run was over first.
#[inline]
pub fn wait_until(due_ns: u64, signals: &Signals, clock: Clock) -> bool {
    let mut now_ns = clock.now_ns();
    while now_ns < due_ns {
        if signals.stage() == STOPPED {
            return false;
        }
        if due_ns - now_ns > SPIN_NS {
            sleep_until((due_ns - SPIN_NS).min(now_ns + WAIT_SLICE_NS));
        } else {
            std::hint::spin_loop();
        }
        now_ns = clock.now_ns();
    }
    true
}

/// Asks the kernel to wake this thread when it should, not up to 50 µs later.
pub fn wake_in_time() {
    // SAFETY: no pointers; a kernel that does not know it leaves things as they are.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}
