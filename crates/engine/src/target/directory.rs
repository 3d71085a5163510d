//! A job on a run directory: what is laid out, how its cache is filled, who issues its requests.

use std::fs::File;
use std::os::fd::AsRawFd;

use leadline_base::clock::{now_ns, ns_from_s, s_from_ns};
use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_base::host::{self, BlockDevice};
use leadline_wire::event::measure::{Preconditioned, WrittenBytes};
use leadline_wire::job::backend::{BackendName, WriteSync};
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::ranges::SMALLEST_TRANSFER_BYTES;

use crate::access::stream::Draw;
use crate::backend::asynchronous::{AsyncBackend, Instead, Way};
use crate::backend::data_file::DataFile;
use crate::backend::mmap::{Mapping, MmapBackend};
use crate::backend::pread::PreadBackend;
use crate::evidence::extents::check_written;
use crate::evidence::provenance::DataPlace;
use crate::evidence::residency::Residency;
use crate::run::phases::{self, Run, Setting};
use crate::run::worker::{Demand, Probe};
use crate::target::assemble::Evidence;
use crate::target::precondition::precondition;
use crate::target::session::{blocking, queued, usual_most_bytes};
use crate::target::site::{PASS_SHARE, Site};

/// Bytes of one read of the pass over the file: large enough for the device, small enough to stop in
/// time.
const PASS_READ_BYTES: usize = 256 << 10;

/// A run directory with its data file.
pub(crate) struct Directory<'a> {
    job: &'a MeasureJob,
    data: DataFile,
    device: Option<BlockDevice>,
    place: DataPlace,
    granule_bytes: u64,
    workers: Workers,
    layout_bytes: u64,
    precondition: Option<Preconditioned>,
}

impl<'a> Directory<'a> {
    /// Lays out the data file in `path`, and preconditions it where that is asked for.
    pub fn lay_out(
        job: &'a MeasureJob,
        path: &str,
        deadline_ns: u64,
        reporter: &mut Reporter,
    ) -> Result<Self, EngineError> {
        allow_many_files();
        let data = DataFile::open(path)?.of_content(job.backend.content);
        let granule_bytes =
            if job.backend.direct { data.direct_block_bytes() } else { SMALLEST_TRANSFER_BYTES };
        let request_bytes = usual_most_bytes(job, granule_bytes)?;
        let unique_bytes = job.workload.unique_bytes;
        let layout_bytes =
            data.extend(unique_bytes, deadline_ns, &mut |share| reporter.progress(share))?;
        settle(&data)?;
        let precondition = precondition(job, &data, granule_bytes, deadline_ns, &mut |share| {
            reporter.progress(share);
        })?;
        let device = BlockDevice::of(data.file());
        let mut place = DataPlace::of(data.file(), job.backend.direct, device.as_ref());
        let may_compress = job.backend.content.is_some_and(|content| content.compress > 1.0);
        let written = check_written(data.file(), unique_bytes, may_compress)?;
        place.unchecked.extend(written.unchecked);
        place.compressed = written.compressed_bytes > 0;
        let workers = Workers::new(job, &data, request_bytes)?;
        Ok(Self { job, data, device, place, granule_bytes, workers, layout_bytes, precondition })
    }
}

impl Site for Directory<'_> {
    fn granule_bytes(&self) -> u64 {
        self.granule_bytes
    }

    fn file(&self) -> Option<&File> {
        Some(self.data.file())
    }

    fn device(&self) -> Option<BlockDevice> {
        self.device.clone()
    }

    fn warm_up(&mut self, deadline_ns: u64) -> Result<f64, EngineError> {
        let limits = &self.job.limits;
        if limits.operations_max.is_some() && limits.warm_up_s_max == 0.0 {
            self.data.drop_cached()?;
        } else if !self.job.backend.direct {
            return Ok(fill_cache(self.job, self.data.file(), deadline_ns));
        }
        Ok(0.0)
    }

    /// Buffered reads are looked up in the page cache; where they cannot be, the reason goes to what
    /// could not be checked.
    fn probe(&mut self) -> Probe {
        if self.job.backend.direct || self.job.workload.read_frac <= 0.0 {
            return Probe::default();
        }
        match Residency::new(self.data.file()) {
            Ok(residency) => Probe::new(residency, self.job.workload.size_mean as f64),
            Err(reason) => {
                if self.place.unchecked.last() != Some(&reason) {
                    self.place.unchecked.push(reason);
                }
                Probe::default()
            }
        }
    }

    fn run<S: Draw>(
        self,
        demands: Vec<Demand<S>>,
        setting: &Setting,
        evidence: Evidence,
        reporter: &mut Reporter,
    ) -> Result<(Run, Evidence), EngineError> {
        let depth = self.job.workload.queue_depth as usize;
        let mut instead = None;
        let run = match self.workers {
            Workers::Pread(backends) => phases::run(blocking(backends, demands), setting, reporter),
            Workers::Mmap(backends) => phases::run(blocking(backends, demands), setting, reporter),
            Workers::Async(backends, used) => {
                instead = used;
                phases::run(queued(backends, demands, depth), setting, reporter)
            }
        }?;
        let evidence = Evidence {
            place: Some(self.place),
            instead,
            written_bytes: WrittenBytes {
                layout: self.layout_bytes,
                precondition: self.precondition.as_ref().map_or(0, |done| done.bytes),
                workload: 0, // the run's own counts tell
            },
            precondition: self.precondition,
            ..evidence
        };
        Ok((run, evidence))
    }
}

/// The workers' open files and buffers, ready to run.
enum Workers {
    Pread(Vec<PreadBackend>),
    /// With what stands in for `io_uring`.
    Async(Vec<AsyncBackend>, Option<Instead>),
    Mmap(Vec<MmapBackend>),
}

impl Workers {
    /// One per process, with buffers for requests of `request_bytes`; longer ones go in pieces.
    fn new(job: &MeasureJob, data: &DataFile, request_bytes: u64) -> Result<Self, EngineError> {
        let processes = job.workload.process_num as usize;
        let slots = job.workload.queue_depth as usize;
        let mut buffers = data.buffers(processes * slots, request_bytes, job.seed)?;
        let sync = job.backend.sync;
        let pieces = job.streams.iter().any(|stream| stream.places.pieces().is_some());
        let file = || data.reopen(job.backend.direct, sync == WriteSync::Dsync {});
        Ok(match job.backend.name {
            BackendName::Uring => {
                let (way, instead) = Way::here(job.backend.direct)?;
                let worker = |_| {
                    let own = buffers.drain(..slots).collect();
                    Ok(AsyncBackend::new(way, file()?, own, job.backend.direct, sync))
                };
                let workers = (0..processes).map(worker);
                Self::Async(workers.collect::<Result<_, EngineError>>()?, instead)
            }
            BackendName::Mmap => {
                let worker = |buffer| {
                    Ok(MmapBackend::new(Mapping::new(data.file(), &job.workload)?, buffer, sync))
                };
                let workers = buffers.into_iter().map(worker);
                Self::Mmap(workers.collect::<Result<_, EngineError>>()?)
            }
            _ => Self::Pread(
                buffers
                    .into_iter()
                    .map(|buffer| {
                        let worker = PreadBackend::new(file()?, buffer, sync);
                        if job.backend.direct || !pieces {
                            return Ok(worker);
                        }
                        worker.reading_pieces(file()?)
                    })
                    .collect::<Result<_, EngineError>>()?,
            ),
        })
    }
}

/// Writes out what earlier jobs left dirty, so that this one does not pay for it.
fn settle(data: &DataFile) -> Result<(), EngineError> {
    data.file().sync_data().map_err(|error| {
        EngineError::io(format!(
            "flushing the data file failed: {error}; look at the kernel log for the device"
        ))
    })
}

/// One pass of reads over the file, no further than the cache can reach, and no longer than its
/// share of the warm-up; returns the seconds it took. An LRU cache is then full, and for places
/// drawn uniformly as likely to hit as it ever will be, whatever the previous job left behind. A
/// failed read is left for the workload to meet.
fn fill_cache(job: &MeasureJob, file: &File, deadline_ns: u64) -> f64 {
    let began_ns = now_ns();
    let until_ns =
        began_ns.saturating_add(ns_from_s(job.limits.warm_up_s_max * PASS_SHARE)).min(deadline_ns);
    let end = job.workload.unique_bytes.min(host::memory_bytes());
    let mut block = vec![0u8; PASS_READ_BYTES];
    let mut at = 0;
    while at < end && now_ns() < until_ns {
        let length = PASS_READ_BYTES.min((end - at) as usize);
        // SAFETY: the buffer is ours and at least `length` bytes long; the descriptor is open.
        let count = unsafe {
            libc::pread(file.as_raw_fd(), block.as_mut_ptr().cast(), length, at as libc::off_t)
        };
        if count <= 0 {
            break;
        }
        at += count as u64;
    }
    s_from_ns(now_ns() - began_ns)
}

/// Raises the limit of open files as far as it may go: every worker has its own.
pub(crate) fn allow_many_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid rlimit to write to, then to read from; failure leaves the limit as it was.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
