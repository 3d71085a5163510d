//! A job on an NFS server: what is laid out there, how its cache is filled, what went over the wire.

#![forbid(unsafe_code)]

use std::time::Duration;

use leadline_base::error::{EngineError, ErrorKind};
use leadline_base::events::Reporter;
use leadline_wire::event::measure::{Network, WrittenBytes};
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::job::target::NfsAddress;
use leadline_wire::ranges::SMALLEST_TRANSFER_BYTES;

use crate::access::stream::Draw;
use crate::backend::nfs::SILENCE_S_MAX;
use crate::backend::nfs::claim::run_directory;
use crate::backend::nfs::data::ServerFile;
use crate::backend::nfs::queue::{Durability, NfsQueue};
use crate::backend::nfs::volume::Volume;
use crate::evidence::provenance::DataPlace;
use crate::run::phases::{self, Run, Setting};
use crate::run::recorder::{Lost, Tally};
use crate::run::worker::Demand;
use crate::target::assemble::Evidence;
use crate::target::session::{queued, usual_most_bytes};
use crate::target::site::{PASS_SHARE, Site};

/// A run directory of a server with its data file.
pub(crate) struct NfsExport<'a> {
    job: &'a MeasureJob,
    volume: Volume,
    file: ServerFile,
    queues: Vec<NfsQueue>,
    layout_bytes: u64,
    round_trip_us: f64,
}

impl<'a> NfsExport<'a> {
    /// Lays out the data file in the run directory `run` of a server.
    pub fn lay_out(
        job: &'a MeasureJob,
        server: &NfsAddress,
        run: &str,
        deadline_ns: u64,
        reporter: &mut Reporter,
    ) -> Result<Self, EngineError> {
        let mut volume = Volume::open(server, Duration::from_secs_f64(SILENCE_S_MAX))?;
        let directory = run_directory(&mut volume, run)?;
        let mut file = ServerFile::open(&mut volume, &directory)?.of_content(job.backend.content);
        let request_bytes = usual_most_bytes(job, SMALLEST_TRANSFER_BYTES)?;
        let unique_bytes = job.workload.unique_bytes;
        let layout_bytes = file.extend(&mut volume, unique_bytes, deadline_ns, &mut |share| {
            reporter.progress(share);
        })?;
        file.settle(&mut volume, None)?; // what earlier jobs left unwritten, this one does not pay for
        let round_trip_us = volume.round_trip_ns()? as f64 * 1e-3;
        let queues = connections(job, &mut volume, &file, request_bytes)?;
        Ok(Self { job, volume, file, queues, layout_bytes, round_trip_us })
    }
}

impl Site for NfsExport<'_> {
    fn warm_up(&mut self, _deadline_ns: u64) -> Result<f64, EngineError> {
        let pass_s = self.job.limits.warm_up_s_max * PASS_SHARE;
        self.file.fill_cache(&mut self.volume, self.job.workload.unique_bytes, pass_s)
    }

    fn run<S: Draw>(
        mut self,
        demands: Vec<Demand<S>>,
        setting: &Setting,
        evidence: Evidence,
        reporter: &mut Reporter,
    ) -> Result<(Run, Evidence), EngineError> {
        let depth = self.job.workload.queue_depth as usize;
        let mut run = phases::run(queued(self.queues, demands, depth), setting, reporter)?;
        let commit_s = settled(&mut self.volume, &self.file, &mut run.tally)?;
        let evidence = Evidence {
            place: Some(DataPlace { remote: true, ..DataPlace::default() }),
            written_bytes: WrittenBytes { layout: self.layout_bytes, ..WrittenBytes::default() },
            network: Some(network(&run.tally, commit_s, self.round_trip_us)),
            ..evidence
        };
        Ok((run, evidence))
    }
}

/// A connection per process, with buffers for requests of `request_bytes`; longer ones go in pieces.
fn connections(
    job: &MeasureJob,
    volume: &mut Volume,
    file: &ServerFile,
    request_bytes: u64,
) -> Result<Vec<NfsQueue>, EngineError> {
    let (processes, depth) = (job.workload.process_num as usize, job.workload.queue_depth as usize);
    let mut buffers = file.buffers(processes * depth, request_bytes, job.seed)?;
    let remote = file.remote(volume)?;
    let durability = Durability::from(job.backend.sync);
    (0..processes)
        .map(|_| NfsQueue::connect(&remote, buffers.drain(..depth).collect(), durability))
        .collect()
}

/// After the window the server puts on stable storage what it still holds: the next run starts
/// clean, and a server that began anew meanwhile shows by its verifier. Returns the seconds it took;
/// none when nothing was written, or nobody is there to ask.
fn settled(
    volume: &mut Volume,
    file: &ServerFile,
    tally: &mut Tally,
) -> Result<Option<f64>, EngineError> {
    if tally.lost.is_some() {
        return Ok(None);
    }
    let verifier = tally.connection.as_ref().and_then(|connection| connection.verifier);
    let began_anew = tally.connection.as_ref().is_some_and(|connection| connection.restarted);
    let settled = if began_anew {
        Err(crate::backend::nfs::data::restarted(volume.peer()))
    } else {
        file.settle(volume, verifier)
    };
    match settled {
        Ok(seconds) => Ok((tally.write.bytes > 0).then_some(seconds)),
        Err(error) if error.kind == ErrorKind::Lost => {
            tally.lost = Some(Lost { why: error.message, requests: 0 });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn network(tally: &Tally, commit_s: Option<f64>, round_trip_us: f64) -> Network {
    Network {
        sent_bytes: tally.wire.sent,
        received_bytes: tally.wire.received,
        payload_sent_bytes: tally.write.bytes,
        payload_received_bytes: tally.read.bytes,
        lost_requests: tally.lost.as_ref().map_or(0, |lost| lost.requests),
        retransmitted_segments: tally
            .connection
            .as_ref()
            .map(|connection| connection.retransmitted_segments),
        round_trip_us,
        stable_share: tally
            .connection
            .filter(|connection| connection.writes > 0)
            .map(|connection| connection.stable_writes as f64 / connection.writes as f64),
        commit_s,
    }
}
