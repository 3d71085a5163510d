//! Tells the events of a job, one line of the wire each.

#![forbid(unsafe_code)]

use leadline_wire::event::Event;
pub use leadline_wire::event::Phase;

use crate::clock::{now_ns, s_from_ns};
use crate::error::EngineError;

/// Least wall time between two progress events, in nanoseconds (at most 4 per second).
const PROGRESS_GAP_NS: u64 = 250_000_000;

/// Writes event lines.
pub struct Reporter<'a> {
    job_id: &'a str,
    emit: &'a mut dyn FnMut(&str),
    phase: Phase,
    last_progress_ns: u64,
}

impl<'a> Reporter<'a> {
    /// Events of one job, handed line by line (without line end) to `emit`.
    pub fn new(job_id: &'a str, emit: &'a mut dyn FnMut(&str)) -> Self {
        Self { job_id, emit, phase: Phase::Prepare, last_progress_ns: 0 }
    }

    /// A phase begins, `elapsed_s` after the job did.
    pub fn phase(&mut self, phase: Phase, elapsed_ns: u64) {
        self.phase = phase;
        let event = Event::Phase { job_id: self.job_id, phase, elapsed_s: s_from_ns(elapsed_ns) };
        self.send(&event);
    }

    /// A share of the present phase is done; most calls write nothing.
    pub fn progress(&mut self, done_frac: f64) {
        let now = now_ns();
        if now.saturating_sub(self.last_progress_ns) < PROGRESS_GAP_NS {
            return;
        }
        self.last_progress_ns = now;
        let event = Event::Progress {
            job_id: self.job_id,
            phase: self.phase,
            done_frac: done_frac.clamp(0.0, 1.0),
        };
        self.send(&event);
    }

    /// The job failed.
    pub fn error(&mut self, error: &EngineError) {
        let event = Event::Error { job_id: self.job_id, kind: error.kind, message: &error.message };
        self.send(&event);
    }

    /// Runs what ends with one event, which is its result or its answer, or else the error.
    pub fn tell<T: Into<Event<'static>>>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) {
        match run(self) {
            Ok(said) => self.send(&said.into()),
            Err(error) => self.error(&error),
        }
    }

    fn send(&mut self, event: &Event) {
        (self.emit)(&event.line());
    }
}
