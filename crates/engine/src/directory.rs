//! A job on the run directory: lay out, fill the cache, run, by `pread`.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::access::sizes_of;
use crate::assemble::Evidence;
use crate::backend::pread::PreadBackend;
use crate::buffer;
use crate::clock::{now_ns, ns_from_s, s_from_ns};
use crate::data_file::DataFile;
use crate::engine::{finish, own_allowance_s, streams};
use crate::error::EngineError;
use crate::events::{Phase, Reporter};
use crate::extents::check_written;
use crate::host::{self, BlockDevice};
use crate::job::{Job, SMALLEST_TRANSFER_BYTES};
use crate::phases::{self, Setting};
use crate::provenance::Site;
use crate::result::{ClockSource, EngineResult, WrittenBytes};

/// Share of the longest warm-up that the pass over the file may take.
const PASS_SHARE: f64 = 1.0 / 3.0;

/// Bytes of one read of that pass: large enough for the device, small enough to stop in time.
const PASS_READ_BYTES: usize = 256 << 10;

/// Runs the job in `path`.
pub(crate) fn run(
    job: &Job,
    path: &str,
    reporter: &mut Reporter,
) -> Result<EngineResult, EngineError> {
    let began_ns = now_ns();
    reporter.phase(Phase::Prepare, 0);
    allow_many_files();
    let data = DataFile::open(path)?;
    let granule_bytes =
        if job.backend.direct { data.direct_block_bytes() } else { SMALLEST_TRANSFER_BYTES };
    let sizes = sizes_of(&job.workload, granule_bytes)?;
    let issuers = job.workload.process_num as usize;
    let files = (0..issuers)
        .map(|_| data.reopen(job.backend.direct))
        .collect::<Result<Vec<File>, EngineError>>()?;
    let deadline_ns = began_ns.saturating_add(ns_from_s(job.limits.total_s_max));
    let layout =
        data.extend(job.workload.unique_bytes, deadline_ns, &mut |share| reporter.progress(share))?;
    settle(&data)?;
    let device = BlockDevice::of(data.file());
    let mut site = Site::of(data.file(), job.backend.direct, device.as_ref());
    site.unchecked.extend(check_written(data.file(), job.workload.unique_bytes)?);
    let length = buffer::slice_bytes(sizes.usual_most().saturating_mul(granule_bytes), issuers);
    let buffers = buffer::allocate(issuers, length, job.seed)?;
    let backends = files
        .into_iter()
        .zip(buffers)
        .map(|(file, buffer)| PreadBackend::new(file, buffer))
        .collect();
    let streams = streams(job, granule_bytes)?;
    let own_allowance_s = own_allowance_s(job, &streams);
    let prepared_ns = now_ns() - began_ns;

    reporter.phase(Phase::WarmUp, prepared_ns);
    let passed_s = if job.backend.direct { 0.0 } else { fill_cache(job, data.file(), deadline_ns) };
    let setting = Setting {
        workload: &job.workload,
        limits: job.limits,
        job_began_ns: began_ns,
        warm_up_spent_s: passed_s,
        device,
    };
    let run = phases::run(backends, streams, setting, reporter)?;
    let evidence = Evidence {
        site: Some(site),
        written_bytes: WrittenBytes { layout, ..WrittenBytes::default() },
        ..Evidence::none(ClockSource::Vdso)
    };
    finish(job, &run, began_ns, prepared_ns, own_allowance_s, Vec::new(), evidence)
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
fn fill_cache(job: &Job, file: &File, deadline_ns: u64) -> f64 {
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
