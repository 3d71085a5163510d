//! One rank of a transpose (AD98 §4.3): blocks go to the rank that owns their column.

use leadline_base::buffer::HUGE_PAGE_BYTES;
use leadline_base::clock::{now_ns, s_from_ns};
use leadline_base::error::EngineError;
use leadline_wire::event::stream::PhaseResult;

use super::ahead::{Now, Pieces, ReadAhead};
use super::answer::{Answer, Proof};
use super::exchange::{Exchange, Source, Step};
use super::grid::{Deal, Grid};
use super::kernel::{Ends, RankKernel, Share};
use super::mailbox::Outbox;
use super::tiles::Tiles;
use crate::chunks::{CHUNK_BYTES, Chunks};
use crate::data_set::Input;
use crate::output::Output;
use crate::phases::Moved;
use crate::transpose::BLOCK_BYTES;
use crate::transpose::fingerprint::Fingerprint;
use crate::transpose::shape::Shape;

/// Blocks that are read and sent.
struct Blocks {
    ahead: ReadAhead,
    deals: Box<dyn Iterator<Item = Deal> + Send>,
    present: Option<Deal>,
    shape: Shape,
    seen: Fingerprint,
}

impl Source for Blocks {
    fn step(&mut self, outbox: &mut Outbox) -> Result<Step, EngineError> {
        let bytes = match self.ahead.now()? {
            Now::Bytes(_, bytes) => bytes,
            Now::Waits => return Ok(Step::Waits),
            Now::Done => return Ok(Step::Done),
        };
        let mut used = 0;
        while used < bytes.len() {
            let Some(deal) = &mut self.present else { return Err(no_deal()) };
            let most = (deal.blocks as usize * BLOCK_BYTES).min(bytes.len() - used);
            let put = outbox.put(deal.to, &bytes[used..used + most], BLOCK_BYTES);
            if put == 0 {
                break;
            }
            for block in bytes[used..used + put].as_chunks().0 {
                self.seen.add(block, self.shape.transposed(deal.first));
                deal.first += 1;
                deal.blocks -= 1;
            }
            used += put;
            if deal.blocks == 0 {
                let tile = deal.tile;
                self.present = self.deals.next();
                if self.present.is_none_or(|next| next.tile != tile) {
                    // Their owners wait for the last blocks of a tile before they take another's.
                    outbox.dispatch_all();
                }
            }
        }
        self.ahead.used(used);
        Ok(if used > 0 { Step::Worked } else { Step::Waits })
    }
}

fn no_deal() -> EngineError {
    EngineError::fault("more blocks were read than are to be sent")
}

/// One rank.
pub struct TransposeKernel {
    share: Share,
    exchange: Exchange,
    source: Blocks,
    tiles: Option<Tiles>,
    output: Option<Output>,
    /// Number of the first block of this rank's part.
    first: u64,
    in_one: bool,
    bytes_in: u64,
    bytes_out: u64,
    phases: Vec<PhaseResult>,
    made: Fingerprint,
    verify_s: f64,
}

impl TransposeKernel {
    /// Opens the rank's share of the input and makes room for its part of the output.
    ///
    /// # Errors
    /// The input has another shape, or there is no room.
    pub fn new(share: Share, shape: Shape) -> Result<Self, EngineError> {
        let input = Input::open(share.input()?, share.io())?;
        shape.must_be_of(input.bytes())?;
        let exchange = Exchange::new(&share.memory, share.memory.left(), share.rank, share.ranks)?;
        let ahead_bytes = (share.memory.left() / 8).max(2 * CHUNK_BYTES);
        // Each of the two leases begins on a huge page.
        let left = share.memory.largest().saturating_sub(ahead_bytes + 2 * HUGE_PAGE_BYTES);
        let grid = Grid::new(shape, share.ranks, (left / BLOCK_BYTES) as u64);
        let source = Blocks {
            ahead: read_ahead(&share, &input, grid, ahead_bytes)?,
            deals: Box::new(grid.deals(share.rank)),
            present: None,
            shape,
            seen: Fingerprint::default(),
        };
        let columns = grid.columns_of(share.rank);
        let bytes = (columns.end - columns.start) * shape.rows * BLOCK_BYTES as u64;
        let output = share.create_output(&[bytes])?;
        let parties = (share.rank, share.ranks);
        let tiles = Tiles::new(grid, parties, &share.memory, &output, share.io())?;
        let mut kernel = Self {
            exchange,
            source,
            tiles: Some(tiles),
            output: Some(output),
            first: columns.start * shape.rows,
            in_one: grid.tiles() == 1,
            bytes_in: input.bytes(),
            bytes_out: bytes,
            phases: Vec::new(),
            made: Fingerprint::default(),
            verify_s: 0.0,
            share,
        };
        kernel.source.present = kernel.source.deals.next();
        Ok(kernel)
    }

    fn moved(&self) -> Moved {
        Moved {
            bytes_read: self.source.ahead.bytes_read,
            copied_bytes: self.source.ahead.copied_bytes() + self.exchange.copied_bytes,
            network_sent_bytes: self.exchange.sent_bytes,
            network_received_bytes: self.exchange.received_bytes,
            ..Moved::default()
        }
    }
}

impl RankKernel for TransposeKernel {
    fn begin(&mut self) {
        self.share.start(if self.in_one { "read" } else { "tiles" });
    }

    fn ends(&mut self) -> Option<Ends<'_>> {
        let sink = self.tiles.as_mut()?;
        Some(Ends { exchange: &mut self.exchange, source: &mut self.source, sink })
    }

    fn end_exchange(&mut self) -> Result<(), EngineError> {
        let mut moved = self.moved();
        if !self.in_one {
            moved.bytes_written = self.tiles.take().map_or(Ok(0), Tiles::finish)?;
        }
        self.phases.push(self.share.finish(moved)?);
        Ok(())
    }

    fn write(&mut self) -> Result<(), EngineError> {
        let Some(tiles) = self.tiles.take() else { return Ok(()) };
        self.share.start("write");
        let bytes_written = tiles.finish()?;
        let moved = Moved { bytes_written, ..Moved::default() };
        self.phases.push(self.share.finish(moved)?);
        Ok(())
    }

    fn verify(&mut self) -> Result<(), EngineError> {
        let Some(output) = &self.output else { return Ok(()) };
        let began_ns = now_ns();
        let written = output.as_input()?;
        let mut chunks =
            Chunks::new(&written, 0..written.bytes(), &self.share.memory, self.share.io())?;
        let mut position = self.first;
        while let Some((_, bytes)) = chunks.next()? {
            self.share.deadline.check()?;
            for block in bytes.as_chunks().0 {
                self.made.add(block, position);
                position += 1;
            }
        }
        self.verify_s = s_from_ns(now_ns() - began_ns);
        Ok(())
    }

    fn answer(&self) -> Option<Answer> {
        let proof = Proof::Blocks { input: self.source.seen, output: self.made };
        let bytes = (self.bytes_in, self.bytes_out);
        Some(Answer::of(&self.share, bytes, (1, &self.phases), (proof, self.verify_s)))
    }

    fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }
}

fn read_ahead(
    share: &Share,
    input: &Input,
    grid: Grid,
    memory_bytes: usize,
) -> Result<ReadAhead, EngineError> {
    let block = BLOCK_BYTES as u64;
    let longest = usize::try_from(grid.segment_blocks_max()).unwrap_or(usize::MAX);
    let piece_bytes = longest.saturating_mul(BLOCK_BYTES).min(CHUNK_BYTES);
    let whole = input.clone();
    let cut = move |(first, blocks): (u64, u64)| {
        let range = first * block..(first + blocks) * block;
        whole.pieces(range, piece_bytes)
    };
    let pieces: Pieces = Box::new(grid.reads(share.rank).flat_map(cut));
    let deadline = share.deadline;
    ReadAhead::new(
        input,
        pieces,
        piece_bytes,
        (&share.memory, memory_bytes),
        (share.io(), deadline),
    )
}
