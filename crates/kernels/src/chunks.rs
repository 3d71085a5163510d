//! A byte range, chunk by chunk in order, read ahead.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use crate::data_set::Input;
use crate::lane::ReadLane;
use crate::mapped::Maps;
use crate::memory::{Memory, Region};

/// Everything moves in chunks: the least common multiple of 64 KiB and 100 bytes, so that each is
/// whole records (16384), whole stripe units (25) and whole blocks (400).
pub const CHUNK_BYTES: usize = 1_638_400;

/// Fewest buffers that read ahead: one in the caller's hands and one on its way.
const BUFFERS_MIN: usize = 2;

/// The chunks of a range.
pub struct Chunks {
    pieces: VecDeque<(u64, usize)>,
    way: Way,
    present: Option<(u64, usize, Region)>,
}

enum Way {
    /// The mapping itself where it lies in one piece, no copy; as many pieces are advised ahead.
    Mapped { maps: Arc<Maps>, ahead: usize, copied: u64, buffer: Option<Region> },
    /// A lane that reads into the buffers.
    Lane(ReadLane),
}

impl Chunks {
    /// Reads `range` of the input ahead, with up to `depth` chunks outstanding; fewer when the
    /// memory left does not allow more.
    ///
    /// # Errors
    /// `BadJob` when there is no memory for two chunks, `Target` when the kernel refuses
    /// `io_uring`.
    pub fn new(
        input: &Input,
        range: Range<u64>,
        memory: &Memory,
        io: &Io,
    ) -> Result<Self, EngineError> {
        let mut pieces: VecDeque<_> = input.pieces(range, CHUNK_BYTES).into();
        if let Some(maps) = input.maps() {
            let maps = Arc::clone(maps);
            let ahead = io.depth as usize;
            pieces.iter().take(ahead).for_each(|(at, bytes)| maps.will_need(*at, *bytes));
            let buffer = if input.disks() > 1 { Some(memory.take(CHUNK_BYTES)?) } else { None };
            let way = Way::Mapped { maps, ahead, copied: 0, buffer };
            return Ok(Self { pieces, way, present: None });
        }
        let mut lane = ReadLane::open(input, io)?;
        let fit = memory.left() / CHUNK_BYTES;
        let wanted = (io.depth as usize + 1).min(pieces.len().max(1));
        for _ in 0..wanted.min(fit.max(BUFFERS_MIN)) {
            let buffer = memory.take(CHUNK_BYTES)?;
            let Some((at, bytes)) = pieces.pop_front() else { break };
            lane.submit(at, bytes, buffer);
        }
        Ok(Self { pieces, way: Way::Lane(lane), present: None })
    }

    /// The next chunk: where it begins in the data set, and its bytes; none at the end. The last
    /// one of a part, or of the range, is shorter than the others.
    ///
    /// # Errors
    /// `Io` with the file and the byte where reading failed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, EngineError> {
        match &mut self.way {
            Way::Lane(lane) => {
                if let Some((_, _, buffer)) = self.present.take()
                    && let Some((at, bytes)) = self.pieces.pop_front()
                {
                    lane.submit(at, bytes, buffer);
                }
                if lane.pending() == 0 {
                    return Ok(None);
                }
                let (at, bytes, buffer) = self.present.insert(lane.take()?);
                Ok(buffer.get(..*bytes).map(|found| (*at, found)))
            }
            Way::Mapped { maps, ahead, copied, buffer } => {
                let Some((at, bytes)) = self.pieces.pop_front() else { return Ok(None) };
                if let Some((at, bytes)) = self.pieces.get(*ahead) {
                    maps.will_need(*at, *bytes);
                }
                match buffer {
                    None => Ok(maps.slice(at, bytes)?.map(|found| (at, found))),
                    Some(buffer) => {
                        maps.copy(at, bytes, buffer)?;
                        *copied += bytes as u64;
                        Ok(buffer.get(..bytes).map(|found| (at, found)))
                    }
                }
            }
        }
    }

    /// Bytes copied in memory on the way: those of stripes that are mapped.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        match &self.way {
            Way::Lane(_) => 0,
            Way::Mapped { copied, .. } => *copied,
        }
    }
}
