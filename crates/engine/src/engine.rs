//! One job from its text to its last event.

use crate::error::EngineError;
use crate::events::Reporter;
use crate::file_test;
use crate::job::Job;
use crate::load;
use crate::target::{directory, nfs, null, virtual_time};
use crate::wire::job::{MeasureJob, Target};
use crate::wire::result::EngineResult;
use crate::wire::text::Text;

/// Runs one job and hands every event to `emit`, one JSON document without line end each; the last
/// is `result` or `error`.
pub fn run_job(job_json: &str, emit: &mut dyn FnMut(&str)) {
    let text = Text::new(job_json);
    answer(&text, Job::read(&text), emit, run);
}

/// Runs what was read of a text, or says why nothing could be, under the text's own job id.
pub fn answer<J>(
    text: &Text,
    job: Result<J, EngineError>,
    emit: &mut dyn FnMut(&str),
    run: impl FnOnce(&J, &mut Reporter),
) {
    let mut reporter = Reporter::new(text.job_id(), emit);
    match job {
        Ok(job) => run(&job, &mut reporter),
        Err(error) => reporter.error(&error),
    }
}

/// Runs a job that was read.
pub fn run(job: &Job, reporter: &mut Reporter) {
    match job {
        Job::Ask(ask) => reporter.tell(|_| ask.answer()),
        Job::FileTest(job) => reporter.tell(|reporter| file_test::run(job, reporter)),
        Job::NfsLoad(job) => reporter.tell(|reporter| load::nfs::run(job, reporter)),
        Job::Measure(job) => reporter.tell(|reporter| measure(job, reporter)),
    }
}

fn measure(job: &MeasureJob, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    match &job.target {
        Target::Directory { path } => directory::run(job, path, reporter),
        Target::Nfs { server, run } => nfs::run(job, (server, run), reporter),
        Target::Null {} => null::run(job, reporter),
        Target::Simulated { .. } => virtual_time::run(job, reporter),
    }
}
