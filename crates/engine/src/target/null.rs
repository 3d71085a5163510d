//! A job on nothing: measures Leadline itself.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::measure::MeasureResult;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::ranges::SMALLEST_TRANSFER_BYTES;

use crate::access::stream::Draw;
use crate::backend::null::{NullBackend, NullQueue};
use crate::run::phases;
use crate::run::worker::{Demand, Probe};
use crate::target::assemble::Evidence;
use crate::target::session::{Session, blocking, mixed_streams, queued, streams};

/// Runs the job.
pub(crate) fn run(job: &MeasureJob, reporter: &mut Reporter) -> Result<MeasureResult, EngineError> {
    if job.streams.is_empty() {
        run_by(job, streams, reporter)
    } else {
        run_by(job, mixed_streams, reporter)
    }
}

fn run_by<S: Draw>(
    job: &MeasureJob,
    streams: impl FnOnce(&MeasureJob, u64) -> Result<Vec<S>, EngineError>,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    let session = Session::begin(job);
    reporter.phase(Phase::Prepare, 0);
    let streams = streams(job, SMALLEST_TRANSFER_BYTES)?;
    let depth = job.workload.queue_depth as usize;
    let prepared = session.prepared(&streams, None, None);
    reporter.phase(Phase::WarmUp, prepared.spent_ns);
    let demand = |stream| Demand::new(job, stream, Probe::default(), prepared.cost);
    let demands: Vec<Demand<S>> = streams.into_iter().map(demand).collect();
    let run = if depth == 1 {
        let backends = demands.iter().map(|_| NullBackend).collect();
        phases::run(blocking(backends, demands), &prepared.setting, reporter)
    } else {
        let backends = demands.iter().map(|_| NullQueue::new(depth)).collect();
        phases::run(queued(backends, demands, depth), &prepared.setting, reporter)
    }?;
    let evidence = Evidence::none(session.clock.source());
    session.finish(&prepared, &run, evidence)
}
