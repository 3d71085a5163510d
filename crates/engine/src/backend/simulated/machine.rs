//! A machine made of parts (`crates/machine`), as a target of jobs.

use leadline_base::error::EngineError;
use leadline_machine::{Document, End, Machine, Refused, Request as Asked, Safety, Setting};
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::job::workload::SizeDist;
use leadline_wire::ranges::{OUTSTANDING_MAX, SMALLEST_TRANSFER_BYTES};
use serde::{Deserialize, Serialize};

use crate::access::mixture::{MixedStream, longest_bytes};
use crate::access::request::{Kind, Request};
use crate::access::stream::{AccessStream, Draw, sizes_of};

use super::system::{Meta, SurveyHints, read};
use super::validate::{check_meta, check_survey, refuse};

/// Warming draws from streams of its own: the job's seed xor this.
const WARM_STREAM: u64 = 0x57_41_52_4d;

/// The profile of a machine. Made by [`MachineSystem::from_value`], so always valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSystem {
    /// What it is and where its numbers come from.
    pub meta: Meta,
    /// How far a survey may go.
    pub survey: SurveyHints,
    /// Its parts.
    pub machine: Document,
}

impl MachineSystem {
    /// Reads a profile's document and checks every value.
    ///
    /// # Errors
    /// `BadJob`; the message names the field, its value and its range.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, EngineError> {
        let system: Self = read(value, "machine.md")?;
        check_meta(&system.meta)?;
        check_survey(&system.survey)?;
        system.machine.validate().map_err(refused)?;
        let (capacity, longest) = (system.machine.capacity_bytes(), system.machine.size_mean_max());
        let hints = &system.survey;
        let room = hints.unique_bytes_max;
        if room.is_none_or(|bytes| bytes > capacity) {
            return Err(refuse(format!(
                "survey.unique_bytes_max is {}, it must be given, and at most the machine's \
                 {capacity} bytes",
                room.map_or("missing".to_owned(), |bytes| bytes.to_string())
            )));
        }
        if hints.size_mean_max.is_some_and(|bytes| bytes > longest) {
            return Err(refuse(format!(
                "survey.size_mean_max is above {longest} bytes, the longest mean request that \
                 this machine simulates"
            )));
        }
        Ok(system)
    }
}

fn refused(refused: Refused) -> EngineError {
    refuse(refused)
}

/// A machine under one job.
#[derive(Debug)]
pub struct MachineRun {
    machine: Machine,
    sync: WriteSync,
    /// Writes of each worker since its last `fsync`.
    writes: Vec<u32>,
}

impl MachineRun {
    /// The machine as a job finds it at `start_ns`: its memories warm from this very workload.
    ///
    /// # Errors
    /// `BadJob` when the workload is more than the machine holds, or than it simulates.
    pub fn new(
        system: &MachineSystem,
        job: &MeasureJob,
        run_seed: u64,
        start_ns: u64,
    ) -> Result<Self, EngineError> {
        let workload = &job.workload;
        let outstanding = u64::from(workload.process_num) * u64::from(workload.queue_depth);
        let longest = system.machine.size_mean_max();
        for (what, value, most) in [
            ("workload.size_mean", workload.size_mean, longest),
            ("the longest of streams' sizes", longest_bytes(&job.streams), longest),
            ("the longest of size_dist's sizes", longest_of(&workload.size_dist), longest),
            ("process_num times queue_depth", outstanding, OUTSTANDING_MAX),
        ] {
            if value > most {
                return Err(EngineError::bad_job(format!(
                    "{what} is {value}; it must be at most {most} on a simulated machine"
                )));
            }
        }
        let data_bytes = workload.unique_bytes;
        let setting = Setting { data_bytes, seed: run_seed, start_ns };
        let mut machine = Machine::new(&system.machine, setting).map_err(refused)?;
        warm(&mut machine, job)?;
        let writes = vec![0; workload.process_num as usize];
        Ok(Self { machine, sync: job.backend.sync, writes })
    }

    /// Takes a request of `slot`, which belongs to `worker`, at `now_ns`.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, slot: usize, worker: usize, request: &Request) {
        let write = request.kind == Kind::Write;
        let safety = if write { self.safety(worker) } else { Safety::None };
        self.machine.submit(now_ns, slot as u64, &asked(request, worker, safety));
    }

    /// The next request that ends before `until_ns`; its token is its slot.
    #[inline]
    pub fn next_end(&mut self, until_ns: u64) -> Option<End> {
        self.machine.next_end(until_ns)
    }

    fn safety(&mut self, worker: usize) -> Safety {
        match self.sync {
            WriteSync::None {} => Safety::None,
            WriteSync::Dsync {} => Safety::Through,
            WriteSync::Fsync { each, .. } => {
                let writes = &mut self.writes[worker];
                *writes += 1;
                if *writes < each {
                    return Safety::None;
                }
                *writes = 0;
                Safety::Flush
            }
        }
    }

    /// Bytes of the data in the host's memory.
    pub fn cache_resident_bytes(&self) -> u64 {
        self.machine.resident_bytes()
    }

    /// Bytes read and written below it so far.
    pub fn device_bytes(&self) -> (u64, u64) {
        self.machine.device_bytes()
    }

    /// Steps that the machine has taken: what the run costs the host.
    pub fn effort(&self) -> u64 {
        self.machine.effort()
    }
}

fn longest_of(sizes: &SizeDist) -> u64 {
    let SizeDist::Histogram(sizes) = sizes else { return 0 };
    sizes.iter().map(|size| size.bytes).max().unwrap_or(0)
}

fn asked(request: &Request, worker: usize, safety: Safety) -> Asked {
    Asked {
        from_bytes: request.offset_bytes,
        bytes: request.length_bytes,
        write: request.kind == Kind::Write,
        worker: worker as u32,
        safety,
    }
}

fn warm(machine: &mut Machine, job: &MeasureJob) -> Result<(), EngineError> {
    let (workload, seed) = (&job.workload, job.seed ^ WARM_STREAM);
    if !job.streams.is_empty() {
        let stream = |process| MixedStream::new(job, SMALLEST_TRANSFER_BYTES, seed, process);
        let streams = (0..workload.process_num).map(stream).collect::<Result<Vec<_>, _>>()?;
        warm_by(machine, workload.size_mean.min(workload.unique_bytes), streams);
        return Ok(());
    }
    let sizes = sizes_of(workload, SMALLEST_TRANSFER_BYTES)?;
    let stream = |process| {
        AccessStream::with_sizes(workload, &sizes, SMALLEST_TRANSFER_BYTES, seed, process)
    };
    let streams = (0..workload.process_num).map(stream).collect();
    warm_by(machine, workload.size_mean.min(workload.unique_bytes), streams);
    Ok(())
}

fn warm_by<S: Draw>(machine: &mut Machine, size_mean: u64, mut streams: Vec<S>) {
    let mut turn = 0;
    machine.warm(size_mean, || {
        turn = (turn + 1) % streams.len();
        asked(&streams[turn].draw(), turn, Safety::None)
    });
}
