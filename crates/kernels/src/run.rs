//! One line of the wire: a streaming job here, anything else in the engine.

use std::path::{Path, PathBuf};

use leadline_engine::engine;
use leadline_engine::error::EngineError;
use leadline_engine::events::{Phase, Reporter};

use crate::capacity;
use crate::job::{Kernel, StreamJob};
use crate::records;
use crate::result::StreamResult;
use crate::{scan, sort, transpose};

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

/// One line for each kernel: its module runs it.
fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    keep_input(job)?;
    reporter.phase(Phase::Prepare, 0);
    match &job.kernel {
        Kernel::Generate { .. } => records::generate::run(job, reporter),
        Kernel::Check {} => records::check::run(job, reporter),
        Kernel::Capacity { .. } => capacity::run(job, reporter),
        Kernel::Scan { .. } => scan::run(job, reporter),
        Kernel::Sort {} => sort::run(job, reporter),
        Kernel::Transpose { .. } => transpose::run(job, reporter),
    }
}

/// Refuses an output that would take the input's place.
pub(crate) fn keep_input(job: &StreamJob) -> Result<(), EngineError> {
    let (Some(input), Some(output)) = (&job.input, &job.output) else { return Ok(()) };
    if place_of(Path::new(input)) != place_of(Path::new(&output.path)) {
        return Ok(());
    }
    Err(EngineError::bad_job(format!(
        "input and output are both {input}; the input is never changed: give another name"
    )))
}

/// A path without links and detours in its directory's name; the file need not be there.
fn place_of(path: &Path) -> PathBuf {
    let whole = path.canonicalize();
    whole.unwrap_or_else(|_| {
        let directory = path.parent().and_then(|parent| parent.canonicalize().ok());
        let name = path.file_name().unwrap_or_default();
        directory.map_or_else(|| path.to_owned(), |directory| directory.join(name))
    })
}
