//! One job from its text to its last event.

use crate::access::{AccessStream, sizes_of};
use crate::assemble::{Evidence, Finished, assemble};
use crate::backend::null::NullBackend;
use crate::clock::{now_ns, s_from_ns};
use crate::directory;
use crate::error::EngineError;
use crate::events::{Phase, Reporter};
use crate::host;
use crate::job::{Job, SMALLEST_TRANSFER_BYTES, Target};
use crate::phases::{self, Run, Setting};
use crate::result::{ClockSource, EngineResult};
use crate::worker::own_cost_ns;

/// Own work may cost half more than in the calibration before Little's law counts it as
/// unexplained.
const OWN_COST_MARGIN: f64 = 1.5;

/// Runs one job and hands every event to `emit`, one JSON document without line end each; the last
/// is `result` or `error`.
pub fn run_job(job_json: &str, emit: &mut dyn FnMut(&str)) {
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

/// The job's id if the text has one, so that even a refused job's error says whose it is.
fn job_id_of(job_json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(job_json).unwrap_or_default();
    value.get("job_id").and_then(|id| id.as_str()).unwrap_or_default().to_owned()
}

fn run(job: &Job, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    match &job.target {
        Target::Directory { path } => directory::run(job, path, reporter),
        Target::Null {} => run_null(job, reporter),
        Target::Simulated { .. } => crate::virtual_time::run(job, reporter),
    }
}

fn run_null(job: &Job, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    let began_ns = now_ns();
    reporter.phase(Phase::Prepare, 0);
    let streams = streams(job, SMALLEST_TRANSFER_BYTES)?;
    let backends = streams.iter().map(|_| NullBackend).collect();
    let own_cost_s = own_allowance_s(job, &streams);
    let setting = Setting {
        workload: &job.workload,
        limits: job.limits,
        job_began_ns: began_ns,
        warm_up_spent_s: 0.0,
        device: None,
    };
    let prepared_ns = now_ns() - began_ns;
    reporter.phase(Phase::WarmUp, prepared_ns);
    let run = phases::run(backends, streams, setting, reporter)?;
    let evidence = Evidence::none(ClockSource::Vdso);
    finish(job, &run, began_ns, prepared_ns, own_cost_s, Vec::new(), evidence)
}

/// The result of a run on this machine.
pub(crate) fn finish(
    job: &Job,
    run: &Run,
    began_ns: u64,
    prepared_ns: u64,
    own_allowance_s: f64,
    warnings: Vec<String>,
    evidence: Evidence,
) -> Result<EngineResult, EngineError> {
    assemble(Finished {
        job,
        tally: &run.tally,
        controller: &run.controller,
        wall_s: s_from_ns(run.window_ns),
        total_s: s_from_ns(now_ns() - began_ns),
        prepare_s: s_from_ns(prepared_ns),
        host: run.host,
        own_allowance_s,
        simulated: None,
        warnings,
        evidence,
    })
}

/// One address stream per process.
pub(crate) fn streams(job: &Job, granule_bytes: u64) -> Result<Vec<AccessStream>, EngineError> {
    sizes_of(&job.workload, granule_bytes)?;
    (0..job.workload.process_num)
        .map(|process| AccessStream::new(&job.workload, granule_bytes, job.seed, process))
        .collect()
}

/// Own seconds per request that Little's law allows for: as calibrated, times the issuers that
/// share a processor.
pub(crate) fn own_allowance_s(job: &Job, streams: &[AccessStream]) -> f64 {
    let sharing = (f64::from(job.workload.process_num) / host::processors() as f64).max(1.0);
    streams.first().map_or(0.0, own_cost_ns) * 1e-9 * sharing * OWN_COST_MARGIN
}
