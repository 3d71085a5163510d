//! Pieces of an input, read ahead in the order in which they are wanted.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::BLOCK_BYTES;
use super::plan::{Plan, Segment};
use super::slots::Block;
use crate::chunks::CHUNK_BYTES;
use crate::data_set::Input;
use crate::lane::ReadLane;
use crate::mapped::Maps;
use crate::memory::{Memory, Region};

/// Most blocks of a piece.
pub const PIECE_BLOCKS_MAX: u64 = (CHUNK_BYTES / BLOCK_BYTES) as u64;

/// Fewest buffers that read ahead: one being looked at and one on its way.
pub const BUFFERS_MIN: usize = 2;

/// Consecutive blocks that are read in one go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// Number of the tile they belong to.
    pub tile: u64,
    /// The blocks.
    pub blocks: Segment,
}

impl Piece {
    fn offset(self) -> u64 {
        self.blocks.first * BLOCK_BYTES as u64
    }

    fn bytes(self) -> usize {
        self.blocks.blocks as usize * BLOCK_BYTES
    }
}

/// Cuts a segment into parts that are read or written in one go.
pub fn cut(segment: Segment) -> impl Iterator<Item = Segment> + Send {
    let end = segment.first + segment.blocks;
    (segment.first..end)
        .step_by(PIECE_BLOCKS_MAX as usize)
        .map(move |first| Segment { first, blocks: PIECE_BLOCKS_MAX.min(end - first) })
}

/// Every piece of every tile, of which thread `number` of `threads` reads its share.
fn share(plan: Plan, number: usize, threads: usize) -> impl Iterator<Item = Piece> + Send {
    (0..plan.count()).flat_map(move |tile| {
        let pieces = plan.reads(plan.tile(tile)).flat_map(cut);
        pieces.skip(number).step_by(threads).map(move |blocks| Piece { tile, blocks })
    })
}

/// What one thread reads.
pub struct Reader {
    later: Box<dyn Iterator<Item = Piece> + Send>,
    /// Asked for and not taken.
    asked: VecDeque<Piece>,
    way: Way,
    bytes_copied: u64,
}

enum Way {
    Lane {
        lane: ReadLane,
        spare: Vec<Region>,
    },
    /// The mapping itself where a piece lies in one piece there, else copied to the buffer.
    Mapped {
        maps: Arc<Maps>,
        ahead: usize,
        buffer: Option<Region>,
    },
}

impl Reader {
    /// One reader for each of `threads`, with a share of all reads of `plan`, in at most
    /// `memory_bytes` of the memory, but in room for two buffers each.
    ///
    /// # Errors
    /// `BadJob` when there is no such room, `Target` when the kernel refuses `io_uring`.
    pub fn open_all(
        input: &Input,
        plan: Plan,
        threads: usize,
        (memory, memory_bytes): (&Memory, usize),
        io: &Io,
    ) -> Result<Vec<Self>, EngineError> {
        let longest = plan.longest_read().min(PIECE_BLOCKS_MAX) as usize * BLOCK_BYTES;
        let room = memory_bytes / longest / threads.max(1);
        let each = match input.maps() {
            Some(_) => usize::from(input.disks() > 1),
            None => (io.depth as usize + 1).min(room).max(BUFFERS_MIN),
        };
        // All at once: apart, they would leave gaps for the sake of their alignment.
        let mut buffers = memory.take_many(each * threads, longest)?.into_iter();
        let open = |number| {
            let spare: Vec<Region> = buffers.by_ref().take(each).collect();
            let way = match input.maps() {
                Some(maps) => {
                    let (maps, ahead) = (Arc::clone(maps), io.depth as usize);
                    Way::Mapped { maps, ahead, buffer: spare.into_iter().next() }
                }
                None => Way::Lane { lane: ReadLane::open(input, io)?, spare },
            };
            let later = Box::new(share(plan, number, threads));
            let mut reader = Self { later, asked: VecDeque::new(), way, bytes_copied: 0 };
            reader.ask();
            Ok(reader)
        };
        (0..threads).map(open).collect()
    }

    /// Asks for as many pieces as there is room for.
    fn ask(&mut self) {
        loop {
            match &mut self.way {
                Way::Lane { lane, spare } => {
                    let Some(buffer) = spare.pop() else { return };
                    let Some(piece) = self.later.next() else { return };
                    lane.submit(piece.offset(), piece.bytes(), buffer);
                    self.asked.push_back(piece);
                }
                Way::Mapped { maps, ahead, .. } => {
                    if self.asked.len() > *ahead {
                        return;
                    }
                    let Some(piece) = self.later.next() else { return };
                    maps.will_need(piece.offset(), piece.bytes());
                    self.asked.push_back(piece);
                }
            }
        }
    }

    /// Shows the next piece, if it belongs to `tile`; whether it did.
    ///
    /// # Errors
    /// `Io` when reading fails; what `look` says.
    pub fn next(
        &mut self,
        tile: u64,
        look: impl FnOnce(Segment, &[Block]) -> Result<(), EngineError>,
    ) -> Result<bool, EngineError> {
        let Some(piece) = self.asked.front().copied().filter(|piece| piece.tile == tile) else {
            return Ok(false);
        };
        self.asked.pop_front();
        match &mut self.way {
            Way::Lane { lane, spare } => {
                let (_, bytes, buffer) = lane.take()?;
                look(piece.blocks, blocks_of(&buffer, bytes)?)?;
                spare.push(buffer);
            }
            Way::Mapped { maps, buffer, .. } => {
                let (at, bytes) = (piece.offset(), piece.bytes());
                match (maps.slice(at, bytes)?, buffer) {
                    (Some(found), _) => look(piece.blocks, blocks_of(found, bytes)?)?,
                    (None, Some(buffer)) => {
                        maps.copy(at, bytes, buffer)?;
                        self.bytes_copied += bytes as u64;
                        look(piece.blocks, blocks_of(buffer, bytes)?)?;
                    }
                    (None, None) => return Err(EngineError::fault("a mapping in pieces")),
                }
            }
        }
        self.ask();
        Ok(true)
    }

    /// Bytes copied in memory on the way: those of stripes that are mapped.
    pub fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }
}

fn blocks_of(memory: &[u8], bytes: usize) -> Result<&[Block], EngineError> {
    match memory.get(..bytes).map(|memory| memory.as_chunks()) {
        Some((blocks, [])) => Ok(blocks),
        _ => Err(EngineError::fault("a piece of a tile was read that is no whole blocks")),
    }
}
