//! One job from its text to its last event.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_base::line;
use leadline_wire::event::measure::MeasureResult;
use leadline_wire::job::Job;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::job::target::Target;

use crate::file_test;
use crate::load::{nfs as nfs_load, simulated};
use crate::target::directory::Directory;
use crate::target::nfs::NfsExport;
use crate::target::null::Null;
use crate::target::{ask, replay, site, virtual_time};

/// Runs one job and hands every event to `emit`, one JSON document without line end each; the last
/// is `result`, `answer` or `error`.
pub fn run_job(text: &str, emit: &mut dyn FnMut(&str)) {
    line::answer(text, emit, run);
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
        Target::Directory { path } if job.replay.is_some() => replay::run(job, path, reporter),
        Target::Directory { path } => site::measure(
            job,
            |deadline_ns, reporter| Directory::lay_out(job, path, deadline_ns, reporter),
            reporter,
        ),
        Target::Nfs { server, run } => site::measure(
            job,
            |deadline_ns, reporter| NfsExport::lay_out(job, server, run, deadline_ns, reporter),
            reporter,
        ),
        Target::Null {} => {
            let depth = job.workload.queue_depth as usize;
            site::measure(job, |_, _| Ok(Null { depth }), reporter)
        }
        Target::Simulated { .. } => virtual_time::run(job, reporter),
    }
}
