//! Memory in which the blocks of a tile come together, and from which they are written.

use std::collections::VecDeque;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::exchange::Sink;
use super::grid::Grid;
use crate::chunks::CHUNK_BYTES;
use crate::lane::WriteLane;
use crate::memory::{Memory, Region};
use crate::output::Output;
use crate::transpose::BLOCK_BYTES;

/// One buffer and what is done with it.
enum Buffer {
    Free(Region),
    /// Of this tile, this many blocks are still to come.
    Filling(u64, Region, u64),
    /// In pieces, of which this many are still being written.
    Writing(Vec<Region>, usize),
    /// Between two of the above, or lost to a disk that failed.
    Gone,
}

/// Where the next block of a reader goes.
#[derive(Clone, Copy, Default)]
struct Place {
    tile: u64,
    /// Number within what the reader sends for that tile.
    index: u64,
}

/// The tiles of one owner.
pub struct Tiles {
    grid: Grid,
    rank: usize,
    ranks: usize,
    buffers: Vec<Buffer>,
    /// Buffers that are being written, in order.
    writing: VecDeque<usize>,
    places: Vec<Place>,
    lane: WriteLane,
    /// Bytes handed to the disks.
    pub written_bytes: u64,
}

impl Tiles {
    /// Buffers for one tile, or for two when there are more.
    ///
    /// # Errors
    /// No memory, or no `io_uring`.
    pub fn new(
        grid: Grid,
        (rank, ranks): (usize, usize),
        memory: &Memory,
        output: &Output,
        io: &Io,
    ) -> Result<Self, EngineError> {
        let bytes = grid.tile_blocks_max() as usize * BLOCK_BYTES;
        let count = grid.tiles().min(2) as usize;
        let buffers = memory.take_many(count, bytes)?.into_iter().map(Buffer::Free).collect();
        let mut tiles = Self {
            grid,
            rank,
            ranks,
            buffers,
            writing: VecDeque::new(),
            places: vec![Place::default(); ranks],
            lane: WriteLane::open(output, io)?,
            written_bytes: 0,
        };
        for from in 0..ranks {
            tiles.places[from] = tiles.first_place(from, 0);
        }
        Ok(tiles)
    }

    /// Hands all tiles to the disks and waits until they have them.
    ///
    /// # Errors
    /// The disk refuses, or a block never came.
    pub fn finish(mut self) -> Result<u64, EngineError> {
        for index in 0..self.buffers.len() {
            match self.buffers[index] {
                Buffer::Filling(_, _, 0) => self.write(index)?,
                Buffer::Filling(tile, _, blocks) => {
                    return Err(EngineError::fault(format!(
                        "{blocks} blocks of tile {tile} never came"
                    )));
                }
                _ => {}
            }
        }
        self.lane.finish()?;
        Ok(self.written_bytes)
    }

    /// The tile at or after `tile` of which `from` has anything for this rank.
    fn first_place(&self, from: usize, tile: u64) -> Place {
        let has = |tile: &u64| self.blocks_from(from, *tile) > 0;
        let tile = (tile..self.grid.tiles()).find(has).unwrap_or(self.grid.tiles());
        Place { tile, index: 0 }
    }

    fn columns(&self, tile: u64) -> u64 {
        let columns = self.grid.columns_in(self.rank, tile);
        columns.end - columns.start
    }

    fn rows(&self, from: usize, tile: u64) -> u64 {
        let rows = self.grid.rows_in(from, tile);
        rows.end - rows.start
    }

    fn blocks_from(&self, from: usize, tile: u64) -> u64 {
        self.rows(from, tile) * self.columns(tile)
    }

    /// Rows of a tile that come from readers before `from`.
    fn rows_before(&self, from: usize, tile: u64) -> u64 {
        (0..from).map(|reader| self.rows(reader, tile)).sum()
    }

    /// Makes the buffer of `tile` ready to be filled; false while it is needed otherwise.
    fn open(&mut self, tile: u64) -> Result<bool, EngineError> {
        self.collect_written()?;
        let blocks = self.rows_before(self.ranks, tile) * self.columns(tile);
        let count = self.buffers.len() as u64;
        let buffer = &mut self.buffers[(tile % count) as usize];
        match std::mem::replace(buffer, Buffer::Gone) {
            Buffer::Free(region) => *buffer = Buffer::Filling(tile, region, blocks),
            other => *buffer = other,
        }
        Ok(matches!(buffer, Buffer::Filling(present, ..) if *present == tile))
    }

    /// Puts blocks of one reader where they belong, as many as are of its present tile.
    fn place(&mut self, from: usize, blocks: &[[u8; BLOCK_BYTES]]) -> Result<usize, EngineError> {
        let Place { tile, index } = self.places[from];
        let (columns, rows_before) = (self.columns(tile), self.rows_before(from, tile));
        let rows = self.rows_before(self.ranks, tile);
        let all = self.blocks_from(from, tile);
        let buffers = self.buffers.len() as u64;
        let number = (tile % buffers) as usize;
        let Buffer::Filling(_, region, missing) = &mut self.buffers[number] else {
            return Err(EngineError::fault("a tile was filled before it was open"));
        };
        let slots = region.as_chunks_mut().0;
        let placed = blocks.len().min((all - index) as usize);
        for (index, block) in (index..).zip(&blocks[..placed]) {
            let slot = (index % columns) * rows + rows_before + index / columns;
            slots[slot as usize] = *block;
        }
        *missing -= placed as u64;
        let full = *missing == 0;
        self.places[from].index += placed as u64;
        if self.places[from].index == all {
            self.places[from] = self.first_place(from, tile + 1);
        }
        if full && self.grid.tiles() > 1 {
            self.write(number)?;
        }
        Ok(placed)
    }

    /// Hands a full buffer to the disks.
    fn write(&mut self, number: usize) -> Result<(), EngineError> {
        let Buffer::Filling(tile, region, _) =
            std::mem::replace(&mut self.buffers[number], Buffer::Gone)
        else {
            return Err(EngineError::fault("a tile was written before it was full"));
        };
        let mut rest = Some(region);
        let mut outstanding = 0;
        for (block, blocks) in self.segments(tile) {
            let bytes = blocks as usize * BLOCK_BYTES;
            let region = rest.take().ok_or_else(|| EngineError::fault("a tile is too large"))?;
            let (piece, behind) = region.split_at(bytes)?;
            rest = Some(behind);
            let mut offset = block * BLOCK_BYTES as u64;
            for piece in piece.split(CHUNK_BYTES) {
                let length = piece.len();
                self.lane.submit(offset, length, piece);
                offset += length as u64;
                self.written_bytes += length as u64;
                outstanding += 1;
            }
        }
        // The piece that was not needed waits for the others to come back.
        self.buffers[number] = Buffer::Writing(rest.into_iter().collect(), outstanding);
        self.writing.push_back(number);
        Ok(())
    }

    /// Where a tile goes in this rank's part, as first block and number, in the buffer's order.
    fn segments(&self, tile: u64) -> Vec<(u64, u64)> {
        let own = self.grid.columns_of(self.rank).start;
        let columns = self.grid.columns_in(self.rank, tile);
        let height = self.grid.height();
        if self.grid.has_whole_columns() {
            let (first, end) = (columns.start - own, columns.end - own);
            return vec![(first * height, (end - first) * height)];
        }
        let readers = (0..self.ranks).map(|from| self.grid.rows_in(from, tile));
        let readers: Vec<_> = readers.filter(|rows| !rows.is_empty()).collect();
        let of_column = |column: u64| {
            let begin = (column - own) * height;
            readers.iter().map(move |rows| (begin + rows.start, rows.end - rows.start))
        };
        columns.flat_map(of_column).collect()
    }

    /// Takes back what has been written meanwhile.
    fn collect_written(&mut self) -> Result<(), EngineError> {
        while let Some(number) = self.writing.front().copied() {
            let Buffer::Writing(pieces, outstanding) = &mut self.buffers[number] else {
                return Err(EngineError::fault("a tile that is written has no buffer"));
            };
            if *outstanding > 0 {
                let Some(region) = self.lane.try_take()? else { return Ok(()) };
                let behind = pieces.len() - 1;
                pieces.insert(behind, region);
                *outstanding -= 1;
                continue;
            }
            let whole = Region::join(std::mem::take(pieces))?;
            self.buffers[number] = Buffer::Free(whole);
            self.writing.pop_front();
        }
        Ok(())
    }
}

impl Sink for Tiles {
    fn take(&mut self, from: usize, bytes: &[u8]) -> Result<usize, EngineError> {
        let blocks = bytes.as_chunks().0;
        let mut taken = 0;
        while taken < blocks.len() {
            if !self.open(self.places[from].tile)? {
                break;
            }
            taken += self.place(from, &blocks[taken..])?;
        }
        Ok(taken * BLOCK_BYTES)
    }
}
