//! What the jobs on this machine's own clock have in common: when they began, what they need to run,
//! how they end.

#![forbid(unsafe_code)]

use std::fs::File;

use leadline_base::clock::{Clock, ns_from_s, s_from_ns};
use leadline_base::error::EngineError;
use leadline_base::host::{self, BlockDevice};
use leadline_wire::event::measure::MeasureResult;
use leadline_wire::job::measure::MeasureJob;

use crate::access::arrival::ArrivalStream;
use crate::access::mixture::{MixedStream, longest_bytes};
use crate::access::stream::{AccessStream, Draw, sizes_of};
use crate::backend::{Backend, QueueBackend};
use crate::run::offered::due_spans;
use crate::run::phases::{Run, Setting};
use crate::run::placement::place;
use crate::run::worker::{Blocking, Demand, OwnCost, Queued};
use crate::target::assemble::{Evidence, Finished, assemble};

/// Own work may cost half more than in the calibration before Little's law counts it as
/// unexplained.
const OWN_COST_MARGIN: f64 = 1.5;

/// One job on this machine.
pub(crate) struct Session<'a> {
    job: &'a MeasureJob,
    /// The clock of the job.
    pub clock: Clock,
    began_ns: u64,
}

/// What is decided when the preparation ends.
pub(crate) struct Prepared {
    /// What the run needs beside its workers.
    pub setting: Setting,
    /// Nanoseconds the preparation took.
    pub spent_ns: u64,
    /// Leadline's own cost per request.
    pub cost: OwnCost,
}

impl<'a> Session<'a> {
    /// The job begins now.
    pub fn begin(job: &'a MeasureJob) -> Self {
        let clock = Clock::calibrated();
        Self { job, clock, began_ns: clock.now_ns() }
    }

    /// When the job's time is up, on the session's clock and the kernel's.
    pub fn deadline_ns(&self) -> u64 {
        self.began_ns.saturating_add(ns_from_s(self.job.limits.total_s_max))
    }

    /// Ends the preparation: places the workers and allows for their own work.
    pub fn prepared(
        &self,
        workers: usize,
        cost: OwnCost,
        file: Option<&File>,
        device: Option<BlockDevice>,
    ) -> Prepared {
        let setting = Setting {
            clock: self.clock,
            placement: place(self.job.placement, workers, file),
            limits: self.job.limits,
            job_began_ns: self.began_ns,
            warm_up_spent_s: 0.0,
            device,
            schedule: ArrivalStream::new(&self.job.arrivals, self.job.seed),
            abort_above_ms: self.job.load.as_ref().and_then(|load| load.abort_above_ms),
        };
        Prepared { setting, spent_ns: self.clock.now_ns() - self.began_ns, cost }
    }

    /// The result of the run.
    pub fn finish(
        &self,
        prepared: &Prepared,
        run: &Run,
        evidence: Evidence,
    ) -> Result<MeasureResult, EngineError> {
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
            findings: Vec::new(),
            evidence: Evidence {
                placement,
                due_spans: due_spans(&run.tally),
                offered: run.offered,
                given_up: run.given_up,
                ..evidence
            },
        })
    }
}

/// Workers with one request outstanding each.
pub(crate) fn blocking<B: Backend, S: Draw>(
    backends: Vec<B>,
    demands: Vec<Demand<S>>,
) -> Vec<Blocking<B, S>> {
    let pairs = backends.into_iter().zip(demands);
    pairs.map(|(backend, demand)| Blocking::new(backend, demand)).collect()
}

/// Workers with `depth` requests outstanding each.
pub(crate) fn queued<Q: QueueBackend, S: Draw>(
    backends: Vec<Q>,
    demands: Vec<Demand<S>>,
    depth: usize,
) -> Vec<Queued<Q, S>> {
    let pairs = backends.into_iter().zip(demands);
    pairs.map(|(backend, demand)| Queued::new(backend, demand, depth)).collect()
}

/// One address stream per process.
pub(crate) fn streams(
    job: &MeasureJob,
    granule_bytes: u64,
) -> Result<Vec<AccessStream>, EngineError> {
    let workload = &job.workload;
    let sizes = sizes_of(workload, granule_bytes)?;
    Ok((0..workload.process_num)
        .map(|process| AccessStream::with_sizes(workload, &sizes, granule_bytes, job.seed, process))
        .collect())
}

/// The same of a job with several streams.
pub(crate) fn mixed_streams(
    job: &MeasureJob,
    granule_bytes: u64,
) -> Result<Vec<MixedStream>, EngineError> {
    (0..job.workload.process_num)
        .map(|process| MixedStream::new(job, granule_bytes, job.seed, process))
        .collect()
}

/// Bytes that one request in more than a hundred thousand exceeds: what a buffer needs.
pub(crate) fn usual_most_bytes(job: &MeasureJob, granule_bytes: u64) -> Result<u64, EngineError> {
    if !job.streams.is_empty() {
        return Ok(longest_bytes(&job.streams));
    }
    let sizes = sizes_of(&job.workload, granule_bytes)?;
    Ok(sizes.usual_most().saturating_mul(granule_bytes))
}

/// Own seconds per request that Little's law allows for: as calibrated, times the workers that
/// share a processor and the slots that share a worker, because a slot may wait for the work done
/// for all of them.
fn own_allowance_s(job: &MeasureJob, cost: OwnCost) -> f64 {
    let sharing = (f64::from(job.workload.process_num) / host::processors() as f64).max(1.0);
    let slots = f64::from(job.workload.queue_depth);
    cost.turn_ns * 1e-9 * sharing * slots * OWN_COST_MARGIN
}
