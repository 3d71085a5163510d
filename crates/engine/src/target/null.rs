//! A job on nothing: measures Leadline itself.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::events::Reporter;

use crate::access::stream::Draw;
use crate::backend::null::{NullBackend, NullQueue};
use crate::run::phases::{self, Run, Setting};
use crate::run::worker::Demand;
use crate::target::assemble::Evidence;
use crate::target::session::{blocking, queued};
use crate::target::site::Site;

/// Nothing, asked with so many requests outstanding per worker.
pub(crate) struct Null {
    /// Requests outstanding per worker.
    pub depth: usize,
}

impl Site for Null {
    fn run<S: Draw>(
        self,
        demands: Vec<Demand<S>>,
        setting: &Setting,
        evidence: Evidence,
        reporter: &mut Reporter,
    ) -> Result<(Run, Evidence), EngineError> {
        let run = if self.depth == 1 {
            let backends = demands.iter().map(|_| NullBackend).collect();
            phases::run(blocking(backends, demands), setting, reporter)
        } else {
            let backends = demands.iter().map(|_| NullQueue::new(self.depth)).collect();
            phases::run(queued(backends, demands, self.depth), setting, reporter)
        }?;
        Ok((run, evidence))
    }
}
