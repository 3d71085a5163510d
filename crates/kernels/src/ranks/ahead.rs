//! This rank's share of the input, read ahead of whoever uses it and never waited for.

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::lane::ReadLane;
use crate::memory::{Memory, Region};

const BUFFERS_MIN: usize = 2;
const BUFFERS_MAX: usize = 64;

/// Pieces of the input as offsets and lengths.
pub type Pieces = Box<dyn Iterator<Item = (u64, usize)> + Send>;

/// What there is to work on.
pub enum Now<'a> {
    /// Bytes of the input from this offset on; they stay until they are used.
    Bytes(u64, &'a [u8]),
    /// The disk has not answered.
    Waits,
    /// All pieces have been used.
    Done,
}

/// Reads pieces ahead.
pub struct ReadAhead {
    lane: ReadLane,
    pieces: Pieces,
    deadline: Deadline,
    free: Vec<Region>,
    present: Option<(u64, usize, Region)>,
    used: usize,
    /// Bytes that have been read.
    pub bytes_read: u64,
}

impl ReadAhead {
    /// Will read `pieces`, each of at most `piece_bytes`, into up to `memory_bytes` of `memory`,
    /// once somebody asks for them.
    ///
    /// # Errors
    /// No memory, or no `io_uring`.
    pub fn new(
        input: &Input,
        pieces: Pieces,
        piece_bytes: usize,
        (memory, memory_bytes): (&Memory, usize),
        (io, deadline): (&Io, Deadline),
    ) -> Result<Self, EngineError> {
        let count = (memory_bytes / piece_bytes).clamp(BUFFERS_MIN, BUFFERS_MAX);
        let lane = ReadLane::open(input, io)?;
        let free = memory.take_many(count, piece_bytes)?;
        Ok(Self { lane, pieces, deadline, free, present: None, used: 0, bytes_read: 0 })
    }

    /// What there is to work on now.
    ///
    /// # Errors
    /// The input cannot be read, or time is up.
    pub fn now(&mut self) -> Result<Now<'_>, EngineError> {
        if let Some((_, bytes, _)) = &self.present
            && self.used == *bytes
        {
            self.turn()?;
        }
        for (buffer, (at, bytes)) in self.free.drain(..).zip(&mut self.pieces) {
            self.lane.submit(at, bytes, buffer);
        }
        if self.present.is_none() {
            if self.lane.pending() == 0 {
                return Ok(Now::Done);
            }
            let Some(read) = self.lane.try_take()? else { return Ok(Now::Waits) };
            self.bytes_read += read.1 as u64;
            self.present = Some(read);
        }
        Ok(self.present.as_ref().map_or(Now::Waits, |(at, bytes, region)| {
            Now::Bytes(at + self.used as u64, &region[self.used..*bytes])
        }))
    }

    /// The first `bytes` of [`Now::Bytes`] are no longer needed.
    pub fn used(&mut self, bytes: usize) {
        self.used += bytes;
    }

    /// Bytes that reading has copied in memory.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.lane.copied_bytes()
    }

    /// Frees the memory of a piece that has been used.
    fn turn(&mut self) -> Result<(), EngineError> {
        self.deadline.check()?;
        self.used = 0;
        self.free.extend(self.present.take().map(|(_, _, region)| region));
        Ok(())
    }
}
