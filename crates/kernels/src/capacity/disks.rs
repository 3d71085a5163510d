//! How fast disks are read and written in sequence, through the lanes of the kernels and in files
//! like theirs: without a name, allocated for each reading anew.

use std::os::fd::AsRawFd;
use std::time::Instant;

use leadline_base::error::EngineError;
use leadline_base::host::BlockDevice;
use leadline_wire::job::stream::{Format, Io};

use crate::chunks::CHUNK_BYTES;
use crate::data_set::{Readable, files_of};
use crate::deadline::Deadline;
use crate::lane::{ReadLane, WriteLane};
use crate::memory::{Memory, Region};
use crate::records::Generator;
use crate::scratch::Scratch;

/// One or several directories that are read and written at once.
pub struct Disks<'a> {
    /// One on each disk.
    pub directories: &'a [String],
    /// Whole chunks on each.
    pub chunks_each: u64,
    /// How bytes are moved.
    pub io: &'a Io,
    /// Where the buffers come from.
    pub memory: &'a Memory,
    /// When everything must have ended.
    pub deadline: &'a Deadline,
}

impl Disks<'_> {
    /// A file on every disk, and the bytes per second with which it was written.
    ///
    /// # Errors
    /// `Target` when there is no room or no time, `Io` when a disk fails.
    pub fn write(&self) -> Result<(Scratch, f64), EngineError> {
        let mut free = self.buffers()?;
        let scratch = self.scratch()?;
        let begun = Instant::now();
        let mut lane = WriteLane::open(&scratch, self.io)?;
        for at in self.offsets() {
            let buffer = match free.pop() {
                Some(buffer) => buffer,
                None => lane.take()?,
            };
            lane.submit(at, CHUNK_BYTES, buffer);
            self.deadline.check()?;
        }
        lane.finish()?;
        Ok((scratch, self.rate(1, begun)))
    }

    /// The bytes per second with which the files are read.
    ///
    /// # Errors
    /// `Target` when there is no time, `Io` when a disk fails.
    pub fn read(&self, from: &Scratch) -> Result<f64, EngineError> {
        let free = self.buffers()?;
        self.forget(from)?;
        let begun = Instant::now();
        let mut lane = ReadLane::open(from, self.io)?;
        let mut offsets = self.offsets();
        for (buffer, at) in free.into_iter().zip(&mut offsets) {
            lane.submit(at, CHUNK_BYTES, buffer);
        }
        while lane.pending() > 0 {
            let (_, _, buffer) = lane.take()?;
            if let Some(at) = offsets.next() {
                lane.submit(at, CHUNK_BYTES, buffer);
            }
            self.deadline.check()?;
        }
        Ok(self.rate(1, begun))
    }

    /// The bytes per second, read and written together, with which the files are copied to others
    /// on the same disks: half of the buffers are on their way in, the others outstanding out.
    ///
    /// # Errors
    /// `Target` when there is no room or no time, `Io` when a disk fails.
    pub fn copy(&self, from: &Scratch) -> Result<f64, EngineError> {
        let mut free = self.buffers()?;
        let to = self.scratch()?;
        self.forget(from)?;
        let begun = Instant::now();
        let mut reads = ReadLane::open(from, self.io)?;
        let mut writes = WriteLane::open(&to, self.io)?;
        let mut offsets = self.offsets();
        for (buffer, at) in free.split_off(free.len() / 2).into_iter().zip(&mut offsets) {
            reads.submit(at, CHUNK_BYTES, buffer);
        }
        while reads.pending() > 0 {
            let (at, _, full) = reads.take()?;
            writes.submit(at, CHUNK_BYTES, full);
            if let Some(at) = offsets.next() {
                let empty = match free.pop() {
                    Some(empty) => empty,
                    None => writes.take()?,
                };
                reads.submit(at, CHUNK_BYTES, empty);
            }
            self.deadline.check()?;
        }
        writes.finish()?;
        Ok(self.rate(2, begun))
    }

    /// The devices at the bottom of the first directory, by name; none in memory or on a network.
    ///
    /// # Errors
    /// `Io` when the process has too many open files.
    pub fn devices(&self, scratch: &Scratch) -> Result<Vec<String>, EngineError> {
        let files = files_of(&scratch.extents())?;
        let device = files.first().and_then(|(_, file)| BlockDevice::of(file));
        Ok(device.map_or_else(Vec::new, |device| device.names()))
    }

    fn chunks(&self) -> u64 {
        self.chunks_each * self.directories.len() as u64
    }

    fn offsets(&self) -> impl Iterator<Item = u64> {
        (0..self.chunks()).map(|chunk| chunk * CHUNK_BYTES as u64)
    }

    fn scratch(&self) -> Result<Scratch, EngineError> {
        Scratch::create(self.directories, self.chunks() * CHUNK_BYTES as u64, self.io)
    }

    /// As many as the disks can have outstanding, and as many again; full of records, because
    /// zeros may be no work for a disk.
    fn buffers(&self) -> Result<Vec<Region>, EngineError> {
        let wanted = 2 * self.io.depth as usize * self.directories.len();
        let count = wanted.min(self.memory.left() / CHUNK_BYTES - 1).max(2);
        let mut buffers = self.memory.take_many(count, CHUNK_BYTES)?;
        let records = Generator::new(Format::Binary, 0, 0.0)?;
        for (buffer, number) in buffers.iter_mut().zip(0..) {
            records.fill(number * (1 << 20), buffer)?;
        }
        Ok(buffers)
    }

    /// Lets go of what the page cache holds of them, so that a disk is read and not the cache.
    fn forget(&self, scratch: &Scratch) -> Result<(), EngineError> {
        for (_, file) in files_of(&scratch.extents())? {
            // SAFETY: a valid descriptor; advice only.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
        Ok(())
    }

    /// Bytes per second when all chunks moved `times` times.
    fn rate(&self, times: u64, begun: Instant) -> f64 {
        (times * self.chunks() * CHUNK_BYTES as u64) as f64 / begun.elapsed().as_secs_f64()
    }
}
