//! The event lines of the wire, except the result.

use serde::Serialize;

use crate::clock::{now_ns, s_from_ns};
use crate::error::{EngineError, ErrorKind};

/// The part of a job that runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Laying out the data file.
    Prepare,
    /// Until the rate is steady.
    WarmUp,
    /// The measured window.
    Measure,
    /// Waiting for what is still outstanding.
    Drain,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Phase { job_id: &'a str, phase: Phase, elapsed_s: f64 },
    Progress { job_id: &'a str, phase: Phase, done_frac: f64 },
    Error { job_id: &'a str, kind: ErrorKind, message: &'a str },
}

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

    /// Any other document, whole.
    pub fn document(&mut self, document: &impl Serialize) {
        self.send(document);
    }

    /// Runs what ends with one document, which is that or the error.
    pub fn tell<T: Serialize>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, EngineError>) {
        match run(self) {
            Ok(document) => self.document(&document),
            Err(error) => self.error(&error),
        }
    }

    fn send(&mut self, document: &impl Serialize) {
        // These documents hold only strings, numbers and lists, which always serialise.
        if let Ok(line) = serde_json::to_string(document) {
            (self.emit)(&line);
        }
    }
}
