//! One job from its text to its last event.

use crate::error::EngineError;
use crate::events::Reporter;
use crate::file_test::{self, FileTestJob};
use crate::load;
use crate::load::nfs::NfsLoadJob;
use crate::target::ask::Ask;
use crate::target::{directory, nfs, null, virtual_time};
use crate::wire::job::{Job, Target};
use crate::wire::result::EngineResult;

/// Runs one job and hands every event to `emit`, one JSON document without line end each; the last
/// is `result` or `error`.
pub fn run_job(job_json: &str, emit: &mut dyn FnMut(&str)) {
    if let Some(ask) = Ask::parse(job_json) {
        let id = job_id_of(job_json);
        let mut reporter = Reporter::new(&id, emit);
        return match ask.and_then(|ask| ask.answer()) {
            Ok(reply) => reporter.document(&reply),
            Err(error) => reporter.error(&error),
        };
    }
    if FileTestJob::is_one(job_json) {
        run_file_test(job_json, emit);
        return;
    }
    if NfsLoadJob::is_one(job_json) {
        run_nfs_load(job_json, emit);
        return;
    }
    match Job::parse(job_json) {
        Ok(job) => {
            let mut reporter = Reporter::new(&job.job_id, emit);
            match run(&job, &mut reporter) {
                Ok(result) => reporter.document(&result),
                Err(error) => reporter.error(&error),
            }
        }
        Err(error) => Reporter::new(&job_id_of(job_json), emit).error(&error),
    }
}

fn run_file_test(job_json: &str, emit: &mut dyn FnMut(&str)) {
    match FileTestJob::parse(job_json) {
        Ok(job) => {
            let mut reporter = Reporter::new(&job.job_id, emit);
            match file_test::run(&job, &mut reporter) {
                Ok(result) => reporter.document(&result),
                Err(error) => reporter.error(&error),
            }
        }
        Err(error) => Reporter::new(&job_id_of(job_json), emit).error(&error),
    }
}

fn run_nfs_load(job_json: &str, emit: &mut dyn FnMut(&str)) {
    match NfsLoadJob::parse(job_json) {
        Ok(job) => {
            let mut reporter = Reporter::new(&job.job_id, emit);
            match load::nfs::run(&job, &mut reporter) {
                Ok(result) => reporter.document(&result),
                Err(error) => reporter.error(&error),
            }
        }
        Err(error) => Reporter::new(&job_id_of(job_json), emit).error(&error),
    }
}

/// The job's id if the text has one, so that even a refused job's error says whose it is.
#[must_use]
pub fn job_id_of(job_json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(job_json).unwrap_or_default();
    value.get("job_id").and_then(|id| id.as_str()).unwrap_or_default().to_owned()
}

fn run(job: &Job, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    match &job.target {
        Target::Directory { path } => directory::run(job, path, reporter),
        Target::Nfs { server, run } => nfs::run(job, (server, run), reporter),
        Target::Null {} => null::run(job, reporter),
        Target::Simulated { .. } => virtual_time::run(job, reporter),
    }
}
