//! What one thread scans: consecutive chunks of the input, and its own part of the output.

use std::ops::Range;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::key_range::{KeyRange, Record};
use super::matches::Matches;
use crate::chunks::{CHUNK_BYTES, Chunks};
use crate::data_set::Input;
use crate::lane::WriteLane;
use crate::memory::Memory;
use crate::output::OutputPart;
use crate::records::RECORD_BYTES;
use crate::thread_group::Watch;

/// Fewest chunks of a portion: two on their way in, and two for matches, of which one is begun
/// and one has room for all of a chunk.
const CHUNKS_MIN: usize = 4;

/// Most bytes of matches in memory, however much there is. Memory that is used for the first time
/// has to be found and zeroed by the kernel, which costs as much as reading it from a fast disk
/// does; turns of this length are still long beside the pause between them.
const TURN_BYTES: usize = 64 << 20;

/// A portion at work.
pub struct Portion {
    chunks: Chunks,
    matches: Matches,
    input_read: bool,
    bytes_read: u64,
    bytes_written: u64,
    bytes_matched: u64,
}

impl Portion {
    /// Portions that read one of `ranges` each, with all the memory shared among them.
    ///
    /// # Errors
    /// `BadJob` when there is too little of it, `Target` when the kernel refuses `io_uring`.
    pub fn open_all(
        input: &Input,
        ranges: &[Range<u64>],
        memory: &Memory,
        io: &Io,
    ) -> Result<Vec<Self>, EngineError> {
        let room = memory.left() / CHUNK_BYTES / ranges.len().max(1);
        if room < CHUNKS_MIN {
            return Err(EngineError::bad_job(format!(
                "each of {} threads of a scan needs {} bytes of memory, but {} bytes are all there \
                 is beside the program's own; give more memory or fewer threads",
                ranges.len(),
                CHUNKS_MIN * CHUNK_BYTES,
                memory.left()
            )));
        }
        // Half of little memory is for the matches: what is read ahead and cannot be kept waits.
        let depth = (io.depth as usize).min(room / 2 - 1) as u32;
        let open =
            |range: &Range<u64>| Chunks::new(input, range.clone(), memory, &Io { depth, ..*io });
        let readers = ranges.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let useful = (TURN_BYTES / CHUNK_BYTES / ranges.len().max(1)).max(CHUNKS_MIN);
        let each = (memory.left() / CHUNK_BYTES / ranges.len().max(1)).min(useful);
        let mut buffers = memory.take_many(each * ranges.len(), CHUNK_BYTES)?.into_iter();
        let portion = |chunks| Self {
            chunks,
            matches: Matches::new(buffers.by_ref().take(each).collect()),
            input_read: false,
            bytes_read: 0,
            bytes_written: 0,
            bytes_matched: 0,
        };
        Ok(readers.into_iter().map(portion).collect())
    }

    /// Reads and selects until the portion ends or its matches might not have room.
    ///
    /// # Errors
    /// `Io` when reading fails or a record is cut short; what the watch says.
    pub fn read(&mut self, keys: &KeyRange, watch: &Watch<'_>) -> Result<(), EngineError> {
        let before = self.matches.bytes();
        while self.matches.has_room_for(CHUNK_BYTES) {
            watch.check()?;
            let Some((at, bytes)) = self.chunks.next()? else {
                self.input_read = true;
                break;
            };
            self.matches.select(keys, records_of(at, bytes)?)?;
            self.bytes_read += bytes.len() as u64;
        }
        self.bytes_matched += (self.matches.bytes() - before) as u64;
        Ok(())
    }

    /// Whether nothing is left to be read.
    pub fn is_read(&self) -> bool {
        self.input_read
    }

    /// Writes the matches to its part: whole chunks, and the rest when nothing more comes. What goes
    /// through the cache is on the disks when it returns; what goes past it, after the last turn.
    ///
    /// # Errors
    /// `Target` when the disk is full, `Io` when writing fails; what the watch says.
    pub fn write(
        &mut self,
        part: &OutputPart,
        io: &Io,
        watch: &Watch<'_>,
    ) -> Result<(), EngineError> {
        let mut lane = WriteLane::open(part, io)?;
        for chunk in self.matches.take_full() {
            lane.submit(self.bytes_written, CHUNK_BYTES, chunk);
            self.bytes_written += CHUNK_BYTES as u64;
        }
        if self.input_read
            && let Some((chunk, bytes)) = self.matches.take_rest()
        {
            lane.submit(self.bytes_written, bytes, chunk);
            self.bytes_written += bytes as u64;
        }
        while lane.pending() > 0 {
            watch.check()?;
            self.matches.give_back(lane.take()?);
        }
        if self.input_read || !io.write_direct { lane.finish().map(|_| ()) } else { Ok(()) }
    }

    /// Length of its part when what it has matched is written.
    pub fn bytes_to_be(&self) -> u64 {
        self.bytes_written + self.matches.bytes() as u64
    }

    /// Bytes read up to now.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Bytes written up to now.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Bytes copied in memory up to now: the matches, and what the way in copied.
    pub fn bytes_copied(&self) -> u64 {
        self.bytes_matched + self.chunks.copied_bytes()
    }
}

/// The records of a chunk that begins at `at`.
///
/// # Errors
/// `Io` when the last one is cut short.
pub fn records_of(at: u64, bytes: &[u8]) -> Result<&[Record], EngineError> {
    match bytes.as_chunks::<RECORD_BYTES>() {
        (records, []) => Ok(records),
        (_, rest) => Err(EngineError::io(format!(
            "the record before byte {} of the data set is cut short after {} bytes; check it with \
             `leadline stream check` and make it again",
            at + bytes.len() as u64,
            rest.len()
        ))),
    }
}
