//! Bytes between a data set and memory, asynchronously and in order.
//!
//! A lane has a thread and an `io_uring` of its own, or threads where that is forbidden. What is
//! submitted is cut into transfers, one for each disk and chunk, of which each disk has up to `depth`
//! at once; what is done is handed back in the order in which it was submitted.

mod queue;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::VecDeque;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use crate::data_set::{Readable, Writable};
use crate::mapped::MappedReads;
use crate::memory::Region;
use worker::{Lane, Verb};

/// Reads a data set into regions.
pub struct ReadLane {
    by: ReadBy,
}

enum ReadBy {
    Queued(Lane),
    Mapped(MappedReads),
}

impl ReadLane {
    /// A lane from a data set, by the interface that it was opened for.
    ///
    /// # Errors
    /// `Target` when the kernel refuses `io_uring` by a limit, or threads in its place.
    pub fn open(source: &impl Readable, io: &Io) -> Result<Self, EngineError> {
        let by = match source.mapped() {
            Some(maps) => ReadBy::Mapped(MappedReads::new(maps)),
            None => ReadBy::Queued(Lane::open(
                source.extents(),
                Verb::Read { direct: io.read_direct },
                io.depth,
            )?),
        };
        Ok(Self { by })
    }

    /// Reads `length` bytes from `offset` on into the beginning of `into`, some time later.
    pub fn submit(&mut self, offset: u64, length: usize, into: Region) {
        match &mut self.by {
            ReadBy::Queued(lane) => lane.submit(offset, length, into),
            ReadBy::Mapped(reads) => reads.submit(offset, length, into),
        }
    }

    /// The oldest submitted read: its offset, length and memory. Waits for it.
    ///
    /// # Errors
    /// `Io` with the file and the byte where reading failed or the file ended too early.
    pub fn take(&mut self) -> Result<(u64, usize, Region), EngineError> {
        match &mut self.by {
            ReadBy::Queued(lane) => lane.take().map(|done| (done.offset, done.length, done.region)),
            ReadBy::Mapped(reads) => reads.take(),
        }
    }

    /// As [`Self::take`], when the oldest submitted read is done already.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn try_take(&mut self) -> Result<Option<(u64, usize, Region)>, EngineError> {
        match &mut self.by {
            ReadBy::Queued(lane) => {
                let done = lane.try_take().transpose()?;
                Ok(done.map(|done| (done.offset, done.length, done.region)))
            }
            // A mapping is read by the caller.
            ReadBy::Mapped(reads) if reads.pending() > 0 => reads.take().map(Some),
            ReadBy::Mapped(_) => Ok(None),
        }
    }

    /// Reads submitted and not taken.
    #[must_use]
    pub fn pending(&self) -> usize {
        match &self.by {
            ReadBy::Queued(lane) => lane.pending(),
            ReadBy::Mapped(reads) => reads.pending(),
        }
    }

    /// Bytes that taking has copied in memory: all of a mapping's, none otherwise.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        match &self.by {
            ReadBy::Queued(_) => 0,
            ReadBy::Mapped(reads) => reads.copied_bytes(),
        }
    }
}

/// Writes regions to a data set.
pub struct WriteLane {
    lane: Lane,
    taken: VecDeque<Region>,
}

impl WriteLane {
    /// A lane to a data set in the making, or to scratch.
    ///
    /// # Errors
    /// `Target` when the kernel refuses `io_uring` by a limit, or threads in its place.
    pub fn open(sink: &impl Writable, io: &Io) -> Result<Self, EngineError> {
        let verb = Verb::Write { direct: io.write_direct };
        Ok(Self { lane: Lane::open(sink.extents(), verb, io.depth)?, taken: VecDeque::new() })
    }

    /// Writes the first `length` bytes of `from` to `offset` and on, some time later.
    ///
    /// Offsets and lengths in whole blocks of 4096 bytes pass the cache; the fragment of a block at
    /// an end goes through it, and what begins within a block goes through it whole.
    pub fn submit(&mut self, offset: u64, length: usize, from: Region) {
        self.lane.submit(offset, length, from);
    }

    /// The memory of the oldest submitted write. Waits for it.
    ///
    /// # Errors
    /// `Target` when the disk is full, with what is missing; `Io` with the file and the byte.
    pub fn take(&mut self) -> Result<Region, EngineError> {
        match self.taken.pop_front() {
            Some(region) => Ok(region),
            None => self.lane.take().map(|done| done.region),
        }
    }

    /// The memory of the oldest submitted write if that is done already.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn try_take(&mut self) -> Result<Option<Region>, EngineError> {
        match self.taken.pop_front() {
            Some(region) => Ok(Some(region)),
            None => Ok(self.lane.try_take().transpose()?.map(|done| done.region)),
        }
    }

    /// Writes submitted and not taken.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.taken.len() + self.lane.pending()
    }

    /// Waits until everything submitted is on the disks (`fdatasync`); the lane can go on.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn sync(&mut self) -> Result<(), EngineError> {
        while self.lane.pending() > 0 {
            self.taken.push_back(self.lane.take()?.region);
        }
        self.lane.sync()
    }

    /// Waits until everything submitted is on the disks; the memory of all that was not taken.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn finish(mut self) -> Result<Vec<Region>, EngineError> {
        self.sync()?;
        Ok(self.taken.into())
    }
}
