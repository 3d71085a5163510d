//! Tiles through memory: read by pieces, placed, written by pieces.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_wire::event::stream::PhaseResult;
use leadline_wire::job::stream::Io;

use super::BLOCK_BYTES;
use super::plan::{Plan, Tile};
use super::reader::{BUFFERS_MIN, Reader, cut};
use super::shape::Shape;
use super::slots::Slots;
use crate::chunks::CHUNK_BYTES;
use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::lane::WriteLane;
use crate::memory::{Memory, Region};
use crate::output::Output;
use crate::phases::{JobWatch, Moved};
use crate::thread_group::{self, Answers, Watch};

/// One in so many bytes of the memory, at most, reads ahead; the others are tiles.
const STAGING_SHARE: usize = 4;

/// Most blocks of a tile of a matrix that does not fit: segments of 1 MiB, which disks move about
/// as fast as longer ones. Memory that is used for the first time has to be found and zeroed by the
/// kernel, which costs as much as reading it from a fast disk does.
const TILE_BLOCKS_MAX: u64 = 256 * 256;

/// How the matrix goes through the memory.
pub struct Tiles<'a> {
    plan: Plan,
    threads: usize,
    memory: &'a Memory,
    /// To read ahead.
    staging_bytes: usize,
    io: Io,
    deadline: Deadline,
}

/// A piece of a tile's memory on its way to the output.
struct Write {
    number: usize,
    offset: u64,
    memory: Region,
}

/// One thread of a step.
enum Member<'a> {
    Reads(&'a mut Reader),
    Writes(&'a mut WriteLane, Vec<Write>),
}

impl<'a> Tiles<'a> {
    /// Chooses the tiles: the whole matrix if it fits beside the buffers that read ahead, else two
    /// at a time.
    ///
    /// # Errors
    /// `BadJob` when the memory is too little for the threads.
    pub fn plan(
        shape: Shape,
        threads: usize,
        memory: &'a Memory,
        io: &Io,
        deadline: Deadline,
    ) -> Result<Self, EngineError> {
        let left = memory.left();
        let least = threads * BUFFERS_MIN * CHUNK_BYTES;
        if left < least + 2 * BLOCK_BYTES {
            return Err(EngineError::bad_job(format!(
                "{threads} threads of a transpose need {} bytes of memory, but {left} bytes are \
                 all there is beside the program's own; give more memory or fewer threads",
                least + 2 * BLOCK_BYTES
            )));
        }
        let wanted = threads * (io.depth as usize + 1) * CHUNK_BYTES;
        let all = shape.blocks() * BLOCK_BYTES as u64;
        let (plan, staging) = if all <= (left - least) as u64 {
            (Plan::new(shape, shape.blocks()), wanted.min(left - all as usize))
        } else {
            let staging = wanted.min((left / STAGING_SHARE).max(least));
            let fit = ((left - staging) / 2 / BLOCK_BYTES) as u64;
            (Plan::new(shape, fit.min(TILE_BLOCKS_MAX)), staging)
        };
        Ok(Self { plan, threads, memory, staging_bytes: staging, io: *io, deadline })
    }

    /// Transposes; the phases in their order.
    ///
    /// # Errors
    /// `Target` when the disk is full, `Io` when moving bytes fails, and when time is up.
    pub fn run(
        &mut self,
        input: &Input,
        output: &Output,
        watch: &JobWatch,
        reporter: &mut Reporter,
    ) -> Result<Vec<PhaseResult>, EngineError> {
        if self.plan.count() == 1 {
            self.in_memory(input, output, watch)
        } else {
            Ok(vec![self.out_of_core(input, output, watch, reporter)?])
        }
    }

    fn in_memory(
        &self,
        input: &Input,
        output: &Output,
        watch: &JobWatch,
    ) -> Result<Vec<PhaseResult>, EngineError> {
        let bytes = input.bytes();
        let phase = watch.start("read");
        let mut tile = self.memory.take(self.tile_bytes(self.plan.tile(0)))?;
        let mut readers = self.readers(input)?;
        let placed = self.step(&mut readers, Some((0, &mut tile)), &mut [], None)?.0;
        let copied_bytes = bytes + readers.iter().map(Reader::bytes_copied).sum::<u64>();
        let dones = placed.dones(&phase);
        let moved = Moved { bytes_read: bytes, copied_bytes, ..Moved::default() };
        let read = phase.finish(moved, &dones);

        let phase = watch.start("write");
        let mut writers = self.writers(output)?;
        let written = self.step(&mut [], None, &mut writers, Some((0, tile)))?.0;
        writers.into_iter().try_for_each(|lane| lane.finish().map(|_| ()))?;
        let dones = written.dones(&phase);
        let moved = Moved { bytes_written: bytes, ..Moved::default() };
        Ok(vec![read, phase.finish(moved, &dones)])
    }

    fn out_of_core(
        &self,
        input: &Input,
        output: &Output,
        watch: &JobWatch,
        reporter: &mut Reporter,
    ) -> Result<PhaseResult, EngineError> {
        let phase = watch.start("tiles");
        let largest = self.plan.blocks_max() as usize * BLOCK_BYTES;
        let mut buffers = self.memory.take_many(2, largest)?;
        let mut readers = self.readers(input)?;
        let mut writers = self.writers(output)?;
        let (mut placed, mut dones) = (None, Vec::new());
        for index in 0..=self.plan.count() {
            let mut next = if index < self.plan.count() { buffers.pop() } else { None };
            let read = next.as_mut().map(|memory| (index, memory));
            let (answers, free) = self.step(&mut readers, read, &mut writers, placed.take())?;
            buffers.extend(free);
            placed = next.map(|memory| (index, memory));
            dones = answers.dones(&phase);
            reporter.progress(index as f64 / self.plan.count() as f64);
        }
        writers.into_iter().try_for_each(|lane| lane.finish().map(|_| ()))?;
        let bytes = input.bytes();
        let copied_bytes = bytes + readers.iter().map(Reader::bytes_copied).sum::<u64>();
        let moved =
            Moved { bytes_read: bytes, bytes_written: bytes, copied_bytes, ..Moved::default() };
        Ok(phase.finish(moved, &dones))
    }

    /// Reads one tile and writes another, both at once; the memory of the one that was written.
    fn step(
        &self,
        readers: &mut [Reader],
        read: Option<(u64, &mut Region)>,
        writers: &mut [WriteLane],
        write: Option<(u64, Region)>,
    ) -> Result<(Answers<Vec<Write>>, Option<Region>), EngineError> {
        let (mut shares, rest) = match write {
            Some((index, memory)) => self.deal(self.plan.tile(index), memory)?,
            None => (Vec::new(), None),
        };
        let writing = writers.iter_mut().zip(shares.drain(..)).map(|(w, s)| Member::Writes(w, s));
        let mut answers = match read {
            None => thread_group::work(writing, &self.deadline, |member, watch| {
                self.take_part(member, None, watch)
            })?,
            Some((index, memory)) => {
                let bytes = self.tile_bytes(self.plan.tile(index));
                let (blocks, _) = memory[..bytes].as_chunks_mut();
                let slots = Slots::new(blocks);
                let members = writing.chain(readers.iter_mut().map(Member::Reads));
                let answers = thread_group::work(members, &self.deadline, |member, watch| {
                    self.take_part(member, Some((index, &slots)), watch)
                })?;
                slots.must_be_full()?;
                answers
            }
        };
        let mut pieces: Vec<Write> = answers.of.drain(..).flatten().collect();
        pieces.sort_by_key(|piece| piece.number);
        let memory = pieces.into_iter().map(|piece| piece.memory).chain(rest);
        let memory: Vec<Region> = memory.collect();
        let memory = if memory.is_empty() { None } else { Some(Region::join(memory)?) };
        Ok((answers, memory))
    }

    fn take_part(
        &self,
        member: Member<'_>,
        tile: Option<(u64, &Slots<'_>)>,
        watch: &Watch<'_>,
    ) -> Result<Vec<Write>, EngineError> {
        match (member, tile) {
            (Member::Writes(lane, share), _) => write(lane, share, watch),
            (Member::Reads(reader), Some((index, slots))) => {
                let tile = self.plan.tile(index);
                let mut more = true;
                while more {
                    watch.check()?;
                    more = reader.next(index, |segment, blocks| {
                        (segment.first..).zip(blocks).try_for_each(|(position, block)| {
                            slots.fill(self.plan.slot(tile, position), block)
                        })
                    })?;
                }
                Ok(Vec::new())
            }
            (Member::Reads(_), None) => Ok(Vec::new()),
        }
    }

    /// Cuts a tile's memory into the pieces of its writes and deals them to the threads; and the
    /// memory that a smaller tile leaves.
    fn deal(
        &self,
        tile: Tile,
        memory: Region,
    ) -> Result<(Vec<Vec<Write>>, Option<Region>), EngineError> {
        let mut shares: Vec<Vec<Write>> = (0..self.threads).map(|_| Vec::new()).collect();
        let mut rest = memory;
        for (number, segment) in self.plan.writes(tile).flat_map(cut).enumerate() {
            let (memory, behind) = rest.split_at(segment.blocks as usize * BLOCK_BYTES)?;
            rest = behind;
            let offset = segment.first * BLOCK_BYTES as u64;
            shares[number % self.threads].push(Write { number, offset, memory });
        }
        Ok((shares, Some(rest)))
    }

    fn tile_bytes(&self, tile: Tile) -> usize {
        (tile.rows * tile.columns) as usize * BLOCK_BYTES
    }

    fn readers(&self, input: &Input) -> Result<Vec<Reader>, EngineError> {
        let memory = (self.memory, self.staging_bytes);
        Reader::open_all(input, self.plan, self.threads, memory, &self.io)
    }

    fn writers(&self, output: &Output) -> Result<Vec<WriteLane>, EngineError> {
        (0..self.threads).map(|_| WriteLane::open(output, &self.io)).collect()
    }
}

/// Writes a share; its pieces again when they are written.
fn write(
    lane: &mut WriteLane,
    share: Vec<Write>,
    watch: &Watch<'_>,
) -> Result<Vec<Write>, EngineError> {
    let mut written = Vec::with_capacity(share.len());
    let mut places = Vec::with_capacity(share.len());
    for Write { number, offset, memory } in share {
        places.push((number, offset));
        lane.submit(offset, memory.len(), memory);
    }
    for (number, offset) in places {
        watch.check()?;
        written.push(Write { number, offset, memory: lane.take()? });
    }
    Ok(written)
}
