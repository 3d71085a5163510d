//! All drives of a job, each with its file; a program runs on all of them in step.

#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Barrier;

use leadline_base::beneath::{self, Directory};
use leadline_base::buffer::{self, BufferSlice};
use leadline_base::clock::s_from_ns;
use leadline_base::error::EngineError;
use leadline_base::host::process_moved_bytes;
use leadline_wire::event::file_test::{DriveRun, RawRun, Run};
use leadline_wire::job::file_test::{self, FileTestJob, Test, Timing};

use crate::file_test::mounting::Mounted;
use crate::file_test::programs::{self, Order, Ran};
use crate::file_test::raw::{self, RawDevice};

/// Bytes of different content that a program writes before it begins again.
const CONTENT_BYTES: usize = 1 << 20;

struct Drive {
    directory: Directory,
    content: BufferSlice,
    raw: Option<RawDevice>,
    mounted: Option<Mounted>,
}

/// The opened drives of a job.
pub struct Drives {
    drives: Vec<Drive>,
    file_bytes: u64,
    timing: Timing,
}

impl Drives {
    /// Mounts and opens what the job names.
    pub fn open(job: &FileTestJob) -> Result<Self, EngineError> {
        let contents = buffer::allocate(job.drives.len(), CONTENT_BYTES, job.seed)?;
        let pairs = job.drives.iter().zip(contents);
        let drives = pairs.map(|(drive, content)| {
            let (directory, mounted) = place(drive)?;
            let raw = drive.raw.as_ref().map(|path| RawDevice::open(path, job.seed)).transpose()?;
            Ok(Drive { directory, content, raw, mounted })
        });
        let drives = drives.collect::<Result<_, EngineError>>()?;
        Ok(Self { drives, file_bytes: job.file_bytes, timing: job.timing })
    }

    /// Block of each drive's file system; 0 when the kernel does not say.
    pub fn block_bytes(&self) -> Vec<u64> {
        let found = self.drives.iter().map(|drive| rustix::fs::fstatvfs(&drive.directory));
        found.map(|found| found.map_or(0, |found| found.f_bsize)).collect()
    }

    /// Runs a program on every drive at once.
    pub fn run(&mut self, test: Test, deadline_ns: u64) -> Result<Run, EngineError> {
        let (file_bytes, timing) = (self.file_bytes, self.timing);
        let mut cached = Vec::new();
        for drive in &mut self.drives {
            let directory = &drive.directory;
            let order = Order { test, directory, file_bytes, timing, deadline_ns };
            cached.push(programs::prepare(&order, drive.content.as_mut_slice())?);
        }
        let start = Barrier::new(self.drives.len());
        let read_before = process_moved_bytes().map(|moved| moved.0);
        let ran: Vec<Ran> = std::thread::scope(|scope| {
            let start = &start;
            let threads: Vec<_> = self
                .drives
                .iter_mut()
                .map(|Drive { directory, content, .. }| {
                    scope.spawn(move || {
                        let order = Order { test, directory, file_bytes, timing, deadline_ns };
                        start.wait();
                        programs::run(&order, content.as_mut_slice())
                    })
                })
                .collect();
            threads.into_iter().map(raw::joined).collect::<Result<_, EngineError>>()
        })?;
        let read_after = process_moved_bytes().map(|moved| moved.0);
        let device_read_bytes =
            read_before.zip(read_after).map(|(before, after)| after.saturating_sub(before));
        Ok(measured(&ran, &cached, device_read_bytes))
    }

    /// Moves the same bytes on the raw devices, all at once; none when a drive has no raw device.
    pub fn run_raw(&mut self, test: Test, deadline_ns: u64) -> Result<Option<RawRun>, EngineError> {
        let count = self.drives.len();
        let mut devices: Vec<&mut RawDevice> =
            self.drives.iter_mut().filter_map(|drive| drive.raw.as_mut()).collect();
        if devices.len() < count {
            return Ok(None);
        }
        raw::run(&mut devices, self.file_bytes, test.reads(), deadline_ns).map(Some)
    }

    /// Removes the files and unmounts what was mounted.
    pub fn close(self) -> Result<(), EngineError> {
        for drive in self.drives {
            programs::remove(&drive.directory)?;
            drop(drive.directory); // a handle keeps a file system busy
            drop(drive.raw);
            drive.mounted.map_or(Ok(()), Mounted::close)?;
        }
        Ok(())
    }
}

/// Where a drive's file lies: in its directory, or on what is mounted there for this job.
fn place(drive: &file_test::Drive) -> Result<(Directory, Option<Mounted>), EngineError> {
    let path = Path::new(&drive.directory);
    let refused = |error: &std::io::Error| {
        let advice = beneath::advice(error);
        EngineError::target(format!("{} cannot be used: {error}; {advice}", path.display()))
    };
    match &drive.mount {
        None => Ok((Directory::own(path).map_err(|error| refused(&error))?, None)),
        Some(mount) => Mounted::new(mount, path).map(|(root, mounted)| (root, Some(mounted))),
    }
}

fn measured(ran: &[Ran], cached: &[Option<f64>], device_read_bytes: Option<u64>) -> Run {
    let began_ns = ran.iter().map(|one| one.began_ns).min().unwrap_or(0);
    let ended_ns = ran.iter().map(|one| one.ended_ns).max().unwrap_or(0);
    let drives = ran.iter().zip(cached).map(|(one, cached)| DriveRun {
        seconds: s_from_ns(one.ended_ns - one.began_ns),
        sync_s: one.sync_s,
        cpu_s: one.cpu_s,
        cached_share: *cached,
    });
    Run {
        seconds: s_from_ns(ended_ns.saturating_sub(began_ns)),
        device_read_bytes,
        drives: drives.collect(),
        raw: None,
    }
}
