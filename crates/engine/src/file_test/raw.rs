//! The drive itself, past the file system and the page cache: what a program could have had.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Error;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use leadline_base::beneath::{self, Directory, Way};
use leadline_base::buffer::{self, BufferSlice};
use leadline_base::clock::now_ns;
use leadline_base::error::EngineError;
use leadline_wire::event::file_test::RawRun;

use crate::file_test::programs::time_is_up;

/// Long enough that a drive is at its bandwidth, short enough to be one request everywhere.
const REQUEST_BYTES: usize = 1 << 20;

/// Requests outstanding at a drive: it must not wait for us between two.
const OUTSTANDING: usize = 4;

/// One drive's raw device, with a buffer for every request outstanding.
#[derive(Debug)]
pub struct RawDevice {
    file: File,
    path: String,
    buffers: Vec<BufferSlice>,
}

impl RawDevice {
    /// Opens a device or a written file for direct I/O.
    ///
    /// # Errors
    /// `Target` when that cannot be had.
    pub fn open(path: &str, seed: u64) -> Result<Self, EngineError> {
        let file = open(Path::new(path)).map_err(|error| {
            let advice = beneath::advice(&error);
            EngineError::target(format!(
                "{path} cannot be opened for direct I/O: {error}; {advice}"
            ))
        })?;
        let buffers = buffer::allocate(OUTSTANDING, REQUEST_BYTES, seed)?;
        Ok(Self { file, path: path.to_owned(), buffers })
    }
}

/// A device by its name in /dev itself, which is nobody's to write but root's; a file beneath its
/// directory, which may be in /dev/shm.
fn open(path: &Path) -> Result<File, Error> {
    if path.parent() == Some(Path::new("/dev")) {
        return beneath::open_device(path);
    }
    let directory = Directory::own(path.parent().unwrap_or(Path::new("/")))?;
    directory.open(beneath::name_of(path)?, Way { direct: true, ..Way::WRITE })
}

/// Moves `bytes` of every device at once, from its beginning on; writes end when the device has
/// them.
pub fn run(
    devices: &mut [&mut RawDevice],
    bytes: u64,
    reads: bool,
    deadline_ns: u64,
) -> Result<RawRun, EngineError> {
    let count = devices.len() as u64;
    let start = Barrier::new(devices.len() * OUTSTANDING);
    let nexts: Vec<AtomicU64> = devices.iter().map(|_| AtomicU64::new(0)).collect();
    let spans = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for (device, next) in devices.iter_mut().zip(&nexts) {
            let RawDevice { file, path, buffers } = &mut **device;
            let (file, path, start) = (&*file, &*path, &start);
            for buffer in buffers {
                workers.push(scope.spawn(move || {
                    start.wait();
                    let began_ns = now_ns();
                    let mut worker = Worker { file, path, buffer, reads, deadline_ns };
                    worker.share(next, bytes)?;
                    Ok((began_ns, now_ns()))
                }));
            }
        }
        workers.into_iter().map(joined).collect::<Result<Vec<_>, EngineError>>()
    })?;
    let began_ns = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let ended_ns = spans.iter().map(|span| span.1).max().unwrap_or(0);
    let seconds = leadline_base::clock::s_from_ns(ended_ns.saturating_sub(began_ns));
    Ok(RawRun { bytes: bytes * count, seconds })
}

/// What a thread returned; one that panicked is a defect.
pub fn joined<T>(
    thread: std::thread::ScopedJoinHandle<'_, Result<T, EngineError>>,
) -> Result<T, EngineError> {
    thread.join().unwrap_or_else(|_| Err(EngineError::fault("a thread of the file test panicked")))
}

struct Worker<'a> {
    file: &'a File,
    path: &'a str,
    buffer: &'a mut BufferSlice,
    reads: bool,
    deadline_ns: u64,
}

impl Worker<'_> {
    /// Takes the next piece of the device until none is left.
    fn share(&mut self, next: &AtomicU64, end: u64) -> Result<(), EngineError> {
        loop {
            let at = next.fetch_add(REQUEST_BYTES as u64, Ordering::Relaxed);
            if at >= end {
                break;
            }
            if now_ns() > self.deadline_ns {
                return Err(time_is_up());
            }
            self.transfer(at, (end - at).min(REQUEST_BYTES as u64) as usize)?;
        }
        if self.reads { Ok(()) } else { self.file.sync_data().map_err(|e| self.failed(&e)) }
    }

    fn transfer(&mut self, at: u64, length: usize) -> Result<(), EngineError> {
        let mut moved = 0;
        while moved < length {
            let bytes = &mut self.buffer.as_mut_slice()[moved..length];
            let offset = at + moved as u64;
            let count = if self.reads {
                rustix::io::pread(self.file, bytes, offset)
            } else {
                rustix::io::pwrite(self.file, bytes, offset)
            };
            match count {
                Ok(0) => return Err(self.failed(&Error::other("it ended early"))),
                Ok(count) => moved += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(self.failed(&error.into())),
            }
        }
        Ok(())
    }

    fn failed(&self, error: &Error) -> EngineError {
        let doing = if self.reads { "reading" } else { "writing" };
        EngineError::io(format!("{doing} {} by direct I/O failed: {error}", self.path))
    }
}
