//! One job from its text to its last event.

use std::fs::File;

use crate::access::{AccessStream, sizes_of};
use crate::arrival::ArrivalStream;
use crate::ask::Ask;
use crate::assemble::{Evidence, Finished, assemble};
use crate::backend::null::{NullBackend, NullQueue};
use crate::backend::{Backend, QueueBackend};
use crate::clock::{Clock, ns_from_s, s_from_ns};
use crate::directory;
use crate::error::EngineError;
use crate::events::{Phase, Reporter};
use crate::file_test::{self, FileTestJob};
use crate::host::{self, BlockDevice};
use crate::job::{Job, SMALLEST_TRANSFER_BYTES, Target};
use crate::nfs_load::{self, NfsLoadJob};
use crate::offered::due_spans;
use crate::phases::{self, Run, Setting};
use crate::placement::place;
use crate::remote;
use crate::result::EngineResult;
use crate::worker::{Blocking, Demand, OwnCost, Probe, Queued};

/// Own work may cost half more than in the calibration before Little's law counts it as
/// unexplained.
const OWN_COST_MARGIN: f64 = 1.5;

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
            match nfs_load::run(&job, &mut reporter) {
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
        Target::Nfs { server, run } => remote::run(job, (server, run), reporter),
        Target::Null {} => run_null(job, reporter),
        Target::Simulated { .. } => crate::virtual_time::run(job, reporter),
    }
}

fn run_null(job: &Job, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    let session = Session::begin(job);
    reporter.phase(Phase::Prepare, 0);
    let streams = streams(job, SMALLEST_TRANSFER_BYTES)?;
    let depth = job.workload.queue_depth as usize;
    let prepared = session.prepared(&streams, None, None);
    reporter.phase(Phase::WarmUp, prepared.spent_ns);
    let demand = |stream| Demand::new(job, stream, Probe::default(), prepared.cost);
    let demands: Vec<Demand> = streams.into_iter().map(demand).collect();
    let run = if depth == 1 {
        let backends = demands.iter().map(|_| NullBackend).collect();
        phases::run(blocking(backends, demands), &prepared.setting, reporter)
    } else {
        let backends = demands.iter().map(|_| NullQueue::new(depth)).collect();
        phases::run(queued(backends, demands, depth), &prepared.setting, reporter)
    }?;
    let evidence = Evidence::none(session.clock.source());
    session.finish(&prepared, &run, evidence, Vec::new())
}

/// One job on this machine.
pub(crate) struct Session<'a> {
    job: &'a Job,
    /// The clock of the job.
    pub clock: Clock,
    began_ns: u64,
}

/// What is decided when the preparation ends.
pub(crate) struct Prepared {
    /// What the run needs beside its issuers.
    pub setting: Setting,
    /// Nanoseconds the preparation took.
    pub spent_ns: u64,
    /// Leadline's own cost per request.
    pub cost: OwnCost,
}

impl<'a> Session<'a> {
    /// The job begins now.
    pub fn begin(job: &'a Job) -> Self {
        let clock = Clock::calibrated();
        Self { job, clock, began_ns: clock.now_ns() }
    }

    /// When the job's time is up, on the session's clock and the kernel's.
    pub fn deadline_ns(&self) -> u64 {
        self.began_ns.saturating_add(ns_from_s(self.job.limits.total_s_max))
    }

    /// Ends the preparation: places the issuers and allows for their own work.
    pub fn prepared(
        &self,
        streams: &[AccessStream],
        file: Option<&File>,
        device: Option<BlockDevice>,
    ) -> Prepared {
        let measured = |stream| OwnCost::measured(stream, self.clock);
        let cost = streams.first().map(measured).unwrap_or_default();
        let setting = Setting {
            clock: self.clock,
            placement: place(self.job.placement, streams.len(), file),
            limits: self.job.limits,
            job_began_ns: self.began_ns,
            warm_up_spent_s: 0.0,
            device,
            schedule: ArrivalStream::new(&self.job.arrivals, self.job.seed),
        };
        Prepared { setting, spent_ns: self.clock.now_ns() - self.began_ns, cost }
    }

    /// The result of the run.
    pub fn finish(
        &self,
        prepared: &Prepared,
        run: &Run,
        evidence: Evidence,
        warnings: Vec<String>,
    ) -> Result<EngineResult, EngineError> {
        let placement = Some(prepared.setting.placement.clone());
        assemble(Finished {
            job: self.job,
            tally: &run.tally,
            controller: &run.controller,
            wall_s: s_from_ns((run.window.closed_ns - run.window.opened_ns).max(1)),
            total_s: s_from_ns(self.clock.now_ns() - self.began_ns),
            prepare_s: s_from_ns(prepared.spent_ns),
            host: run.host,
            own_allowance_s: own_allowance_s(self.job, prepared.cost),
            simulated: None,
            warnings,
            evidence: Evidence {
                placement,
                due_spans: due_spans(&run.tally),
                offered: run.offered,
                ..evidence
            },
        })
    }
}

/// Issuers with one request outstanding each.
pub(crate) fn blocking<B: Backend>(backends: Vec<B>, demands: Vec<Demand>) -> Vec<Blocking<B>> {
    let pairs = backends.into_iter().zip(demands);
    pairs.map(|(backend, demand)| Blocking::new(backend, demand)).collect()
}

/// Issuers with `depth` requests outstanding each.
pub(crate) fn queued<Q: QueueBackend>(
    backends: Vec<Q>,
    demands: Vec<Demand>,
    depth: usize,
) -> Vec<Queued<Q>> {
    let pairs = backends.into_iter().zip(demands);
    pairs.map(|(backend, demand)| Queued::new(backend, demand, depth)).collect()
}

/// One address stream per process.
pub(crate) fn streams(job: &Job, granule_bytes: u64) -> Result<Vec<AccessStream>, EngineError> {
    sizes_of(&job.workload, granule_bytes)?;
    (0..job.workload.process_num)
        .map(|process| AccessStream::new(&job.workload, granule_bytes, job.seed, process))
        .collect()
}

/// Own seconds per request that Little's law allows for: as calibrated, times the issuers that
/// share a processor and the slots that share an issuer, because a slot may wait for the work done
/// for all of them.
fn own_allowance_s(job: &Job, cost: OwnCost) -> f64 {
    let sharing = (f64::from(job.workload.process_num) / host::processors() as f64).max(1.0);
    let slots = f64::from(job.workload.queue_depth);
    cost.turn_ns * 1e-9 * sharing * slots * OWN_COST_MARGIN
}
