//! A job where requests take real time, from its preparation to its result: what all targets have
//! in common. What a directory, a server's export or nothing does of each step is its own.

#![forbid(unsafe_code)]

use std::fs::File;

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::BlockDevice;
use leadline_wire::event::measure::MeasureResult;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::ranges::SMALLEST_TRANSFER_BYTES;

use crate::access::stream::Draw;
use crate::run::phases::{Run, Setting};
use crate::run::worker::{Demand, OwnCost, Probe};
use crate::target::assemble::Evidence;
use crate::target::session::{Session, mixed_streams, streams};

/// Share of the longest warm-up that a pass over the data may take.
pub(crate) const PASS_SHARE: f64 = 1.0 / 3.0;

/// Where a job's requests go, laid out and ready for them.
pub(crate) trait Site: Sized {
    /// What sizes and places are multiples of.
    fn granule_bytes(&self) -> u64 {
        SMALLEST_TRANSFER_BYTES
    }

    /// The data file, where this machine has it.
    fn file(&self) -> Option<&File> {
        None
    }

    /// The device under it.
    fn device(&self) -> Option<BlockDevice> {
        None
    }

    /// Fills caches, until `deadline_ns` at the latest; returns the seconds it took.
    fn warm_up(&mut self, _deadline_ns: u64) -> Result<f64, EngineError> {
        Ok(0.0)
    }

    /// What looks for a worker whether its reads are answered from memory.
    fn probe(&mut self) -> Probe {
        Probe::default()
    }

    /// Runs the demands, and adds what it knows to the evidence.
    fn run<S: Draw>(
        self,
        demands: Vec<Demand<S>>,
        setting: &Setting,
        evidence: Evidence,
        reporter: &mut Reporter,
    ) -> Result<(Run, Evidence), EngineError>;
}

/// Runs the job on the site that `lay_out` prepares until so many nanoseconds of the session's clock.
pub(crate) fn measure<T: Site>(
    job: &MeasureJob,
    lay_out: impl FnOnce(u64, &mut Reporter) -> Result<T, EngineError>,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    if job.streams.is_empty() {
        by(job, lay_out, streams, reporter)
    } else {
        by(job, lay_out, mixed_streams, reporter)
    }
}

/// The same with addresses from one source or another.
fn by<T: Site, S: Draw>(
    job: &MeasureJob,
    lay_out: impl FnOnce(u64, &mut Reporter) -> Result<T, EngineError>,
    streams: impl FnOnce(&MeasureJob, u64) -> Result<Vec<S>, EngineError>,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    let session = Session::begin(job);
    reporter.phase(Phase::Prepare, 0);
    let deadline_ns = session.deadline_ns();
    let mut site = lay_out(deadline_ns, reporter)?;
    let streams = streams(job, site.granule_bytes())?;
    let measured = |stream| OwnCost::measured(stream, session.clock);
    let cost = streams.first().map(measured).unwrap_or_default();
    let mut prepared = session.prepared(streams.len(), cost, site.file(), site.device());

    reporter.phase(Phase::WarmUp, prepared.spent_ns);
    prepared.setting.warm_up_spent_s = site.warm_up(deadline_ns)?;
    let demand = |stream| Demand::new(job, stream, site.probe(), prepared.cost);
    let demands = streams.into_iter().map(demand).collect();
    let evidence = Evidence::none(session.clock.source());
    let (run, evidence) = site.run(demands, &prepared.setting, evidence, reporter)?;
    session.finish(&prepared, &run, evidence)
}
