//! When a job must have ended.

#![forbid(unsafe_code)]

use leadline_base::clock::{now_ns, ns_from_s};
use leadline_base::error::EngineError;

use leadline_wire::job::stream::StreamJob;

/// The end of a job's time; looked at once for every chunk.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at_ns: u64,
    total_s_max: f64,
}

impl Deadline {
    /// The time of a job that begins now.
    #[must_use]
    pub fn of(job: &StreamJob) -> Self {
        Self::after(job.total_s_max)
    }

    /// The given seconds from now.
    #[must_use]
    pub fn after(total_s_max: f64) -> Self {
        Self { at_ns: now_ns().saturating_add(ns_from_s(total_s_max)), total_s_max }
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// `Target` when there is none.
    pub fn check(&self) -> Result<(), EngineError> {
        if now_ns() < self.at_ns {
            return Ok(());
        }
        Err(EngineError::target(format!(
            "the kernel was not done within {} seconds and was stopped, without output; give it \
            more time, or less data",
            self.total_s_max
        )))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_job_is_stopped_after_its_time_and_not_before() {
        assert!(Deadline::after(60.0).check().is_ok());
        let error = Deadline::after(0.0).check().unwrap_err();
        assert!(error.message.contains("within 0 seconds"), "{error}");
    }
}
