//! One line of the wire: a streaming job here, anything else in the engine.

use leadline_engine::engine;
use leadline_engine::error::EngineError;
use leadline_engine::events::{Phase, Reporter};

use crate::job::StreamJob;
use crate::result::StreamResult;

/// Runs one job of any kind and hands every event to `emit`; the last is `result` or `error`.
pub fn run_job(job_json: &str, emit: &mut dyn FnMut(&str)) {
    if !StreamJob::is_one(job_json) {
        engine::run_job(job_json, emit);
        return;
    }
    match StreamJob::parse(job_json) {
        Ok(job) => {
            let mut reporter = Reporter::new(&job.job_id, emit);
            match run(&job, &mut reporter) {
                Ok(result) => reporter.document(&result),
                Err(error) => reporter.error(&error),
            }
        }
        Err(error) => Reporter::new(&engine::job_id_of(job_json), emit).error(&error),
    }
}

fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    reporter.phase(Phase::Prepare, 0);
    Err(EngineError::bad_job(format!("the kernel {} is not built yet", job.kernel.name())))
}
