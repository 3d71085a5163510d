//! One job from its text to its last event.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::MeasureResult;
use leadline_wire::job::Job;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::job::target::Target;

use crate::error::EngineError;
use crate::events::Reporter;
use crate::file_test;
use crate::load::{nfs as nfs_load, simulated};
use crate::target::{ask, directory, nfs, null, virtual_time};

/// Runs one job and hands every event to `emit`, one JSON document without line end each; the last
/// is `result`, `answer` or `error`.
pub fn run_job(text: &str, emit: &mut dyn FnMut(&str)) {
    answer(text, emit, run);
}

/// Reads a job and runs it, or says why it is none, under the text's own job id.
pub fn answer(text: &str, emit: &mut dyn FnMut(&str), run: impl FnOnce(&Job, &mut Reporter)) {
    match Job::read(text) {
        Ok(job) => run(&job, &mut Reporter::new(job.job_id(), emit)),
        Err(refused) => Reporter::new(&refused.job_id.clone(), emit).error(&refused.into()),
    }
}

/// Runs a job that was read, of any kind but a stream's, which needs the kernels.
pub fn run(job: &Job, reporter: &mut Reporter) {
    match job {
        Job::Ask(job) => reporter.tell(|_| ask::answer(job)),
        Job::FileTest(job) => reporter.tell(|reporter| file_test::run(job, reporter)),
        Job::NfsLoad(job) => reporter.tell(|reporter| nfs_load::run(job, reporter)),
        Job::SimulatedTrial(job) => reporter.tell(|_| simulated::answer(job)),
        Job::Measure(job) => reporter.tell(|reporter| measure(job, reporter)),
        Job::Stream(_) => {
            reporter.error(&EngineError::fault("a streaming job came to an engine without kernels"))
        }
    }
}

fn measure(job: &MeasureJob, reporter: &mut Reporter) -> Result<MeasureResult, EngineError> {
    match &job.target {
        Target::Directory { path } => directory::run(job, path, reporter),
        Target::Nfs { server, run } => nfs::run(job, (server, run), reporter),
        Target::Null {} => null::run(job, reporter),
        Target::Simulated { .. } => virtual_time::run(job, reporter),
    }
}
