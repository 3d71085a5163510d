//! A machine made of parts (`crates/sim`) under a job: warm from its own workload.

use leadline_base::error::EngineError;
use leadline_base::request::{Kind, Request};
use leadline_sim::{End, Machine, MachineSystem, Request as Asked, Safety, Setting};
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::job::workload::SizeDist;
use leadline_wire::ranges::{OUTSTANDING_MAX, SMALLEST_TRANSFER_BYTES};

use crate::access::mixture::{MixedStream, longest_bytes};
use crate::access::stream::{AccessStream, Draw, sizes_of};

/// Warming draws from streams of its own: the job's seed xor this.
const WARM_STREAM: u64 = 0x57_41_52_4d;

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
        let mut machine = Machine::new(&system.machine, setting)?;
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
