//! A job on the run directory: lay out, fill the cache, run.

use std::fs::File;
use std::os::fd::AsRawFd;

use leadline_base::buffer;
use leadline_base::clock::{now_ns, ns_from_s, s_from_ns};
use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_base::host::{self, BlockDevice};
use leadline_wire::event::measure::{MeasureResult, WrittenBytes};
use leadline_wire::job::backend::{BackendName, WriteSync};
use leadline_wire::job::measure::MeasureJob;
use leadline_wire::ranges::SMALLEST_TRANSFER_BYTES;

use crate::access::stream::Draw;
use crate::backend::data_file::DataFile;
use crate::backend::mmap::{Mapping, MmapBackend};
use crate::backend::pread::PreadBackend;
use crate::backend::uring::UringBackend;
use crate::evidence::extents::check_written;
use crate::evidence::provenance::Site;
use crate::evidence::residency::Residency;
use crate::run::phases::{self, Run, Setting};
use crate::run::worker::{Demand, OwnCost, Probe};
use crate::target::assemble::Evidence;
use crate::target::precondition::precondition;
use crate::target::session::{Session, blocking, mixed_streams, queued, streams, usual_most_bytes};

/// Share of the longest warm-up that the pass over the file may take.
const PASS_SHARE: f64 = 1.0 / 3.0;

/// Bytes of one read of that pass: large enough for the device, small enough to stop in time.
const PASS_READ_BYTES: usize = 256 << 10;

/// Runs the job in `path`.
pub(crate) fn run(
    job: &MeasureJob,
    path: &str,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    if job.streams.is_empty() {
        run_by(job, path, streams, reporter)
    } else {
        run_by(job, path, mixed_streams, reporter)
    }
}

/// The same with addresses from one source or another.
fn run_by<S: Draw>(
    job: &MeasureJob,
    path: &str,
    streams: impl FnOnce(&MeasureJob, u64) -> Result<Vec<S>, EngineError>,
    reporter: &mut Reporter,
) -> Result<MeasureResult, EngineError> {
    let session = Session::begin(job);
    reporter.phase(Phase::Prepare, 0);
    allow_many_files();
    let data = DataFile::open(path)?;
    let granule_bytes =
        if job.backend.direct { data.direct_block_bytes() } else { SMALLEST_TRANSFER_BYTES };
    let request_bytes = usual_most_bytes(job, granule_bytes)?;
    let deadline_ns = session.deadline_ns();
    let layout =
        data.extend(job.workload.unique_bytes, deadline_ns, &mut |share| reporter.progress(share))?;
    settle(&data)?;
    let done = precondition(job, &data, granule_bytes, deadline_ns, &mut |share| {
        reporter.progress(share);
    })?;
    let device = BlockDevice::of(data.file());
    let mut site = Site::of(data.file(), job.backend.direct, device.as_ref());
    site.unchecked.extend(check_written(data.file(), job.workload.unique_bytes)?);
    let issuers = Issuers::new(job, &data, request_bytes)?;
    let streams = streams(job, granule_bytes)?;
    let mut prepared = session.prepared(&streams, Some(data.file()), device);

    reporter.phase(Phase::WarmUp, prepared.spent_ns);
    if job.limits.operations_max.is_some() && job.limits.warm_up_s_max == 0.0 {
        data.drop_cached()?;
    } else if !job.backend.direct {
        prepared.setting.warm_up_spent_s = fill_cache(job, data.file(), deadline_ns);
    }
    let demands = demands(job, streams, prepared.cost, &data, &mut site);
    let run = issuers.run(demands, job, &prepared.setting, reporter)?;
    let evidence = Evidence {
        site: Some(site),
        written_bytes: WrittenBytes {
            layout,
            precondition: done.as_ref().map_or(0, |done| done.bytes),
            workload: 0, // the run's own counts tell
        },
        precondition: done,
        ..Evidence::none(session.clock.source())
    };
    session.finish(&prepared, &run, evidence)
}

/// The issuers' open files and buffers, ready to run.
enum Issuers {
    Pread(Vec<PreadBackend>),
    Uring(Vec<UringBackend>),
    Mmap(Vec<MmapBackend>),
}

impl Issuers {
    /// One per process, with buffers for requests of `request_bytes`; longer ones go in pieces.
    fn new(job: &MeasureJob, data: &DataFile, request_bytes: u64) -> Result<Self, EngineError> {
        let processes = job.workload.process_num as usize;
        let slots = job.workload.queue_depth as usize;
        let length = buffer::slice_bytes(request_bytes, processes * slots);
        let mut buffers = buffer::allocate(processes * slots, length, job.seed)?;
        let sync = job.backend.sync;
        let pieces = job.streams.iter().any(|stream| stream.places.pieces().is_some());
        let file = || data.reopen(job.backend.direct, sync == WriteSync::Dsync {});
        Ok(match job.backend.name {
            BackendName::Uring => Self::Uring(
                (0..processes)
                    .map(|_| {
                        Ok(UringBackend::new(
                            file()?,
                            buffers.drain(..slots).collect(),
                            job.backend.direct,
                            sync,
                        ))
                    })
                    .collect::<Result<_, EngineError>>()?,
            ),
            BackendName::Mmap => {
                let issuer = |buffer| {
                    Ok(MmapBackend::new(Mapping::new(data.file(), &job.workload)?, buffer, sync))
                };
                let issuers = buffers.into_iter().map(issuer);
                Self::Mmap(issuers.collect::<Result<_, EngineError>>()?)
            }
            _ => Self::Pread(
                buffers
                    .into_iter()
                    .map(|buffer| {
                        let issuer = PreadBackend::new(file()?, buffer, sync);
                        if job.backend.direct || !pieces {
                            return Ok(issuer);
                        }
                        issuer.reading_pieces(file()?)
                    })
                    .collect::<Result<_, EngineError>>()?,
            ),
        })
    }

    fn run<S: Draw>(
        self,
        demands: Vec<Demand<S>>,
        job: &MeasureJob,
        setting: &Setting,
        reporter: &mut Reporter,
    ) -> Result<Run, EngineError> {
        let depth = job.workload.queue_depth as usize;
        match self {
            Self::Pread(backends) => phases::run(blocking(backends, demands), setting, reporter),
            Self::Mmap(backends) => phases::run(blocking(backends, demands), setting, reporter),
            Self::Uring(backends) => {
                phases::run(queued(backends, demands, depth), setting, reporter)
            }
        }
    }
}

/// The issuers' demands. Buffered reads are looked up in the file cache; where they cannot be, the
/// reason goes to what could not be checked.
fn demands<S: Draw>(
    job: &MeasureJob,
    streams: Vec<S>,
    cost: OwnCost,
    data: &DataFile,
    site: &mut Site,
) -> Vec<Demand<S>> {
    let mut probe = || {
        if job.backend.direct || job.workload.read_frac <= 0.0 {
            return Probe::default();
        }
        match Residency::new(data.file()) {
            Ok(residency) => Probe::new(residency, job.workload.size_mean as f64),
            Err(reason) => {
                if site.unchecked.last() != Some(&reason) {
                    site.unchecked.push(reason);
                }
                Probe::default()
            }
        }
    };
    streams.into_iter().map(|stream| Demand::new(job, stream, probe(), cost)).collect()
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

/// Raises the limit of open files as far as it may go: every issuer has its own.
fn allow_many_files() {
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
