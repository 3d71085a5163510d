//! Batches: records in memory with the buckets of their entries, filled and drained by threads.
//!
//! A step of a sort fills one batch and drains another. Every thread takes turns between the two,
//! a chunk each, so that its reads, its computing and its writes overlap; whatever it waits for,
//! the others' requests are outstanding.

#![forbid(unsafe_code)]

use std::ops::Range;

use leadline_base::error::EngineError;

use super::buckets::Buckets;
use super::entries::{Entry, RECORD_BYTES, at_position};
use super::gather::gather;
use super::order::{Order, Share};
use super::plan::Plan;
use super::splitters::Splitters;
use crate::deadline::Deadline;
use crate::lane::{ReadLane, WriteLane};
use crate::memory::Region;
use crate::phases::PhaseWatch;
use crate::thread_group::{self, Answers, Watch};

/// Where a chunk of the input lies: offset and length, at most a chunk of whole records.
pub type Piece = (u64, usize);

/// Records in memory.
pub struct Batch {
    pub(super) records: Region,
    pools: Vec<Region>,
    buckets: Vec<Buckets>,
    /// Records in it.
    pub count: usize,
}

/// What a thread works with from step to step.
pub struct Worker {
    /// From the input; a thread that scatters what lies in memory has none.
    pub read: Option<ReadLane>,
    /// To the runs or to the output.
    pub write: Option<WriteLane>,
    scratch: Region,
    free: Vec<Region>,
}

/// A batch to be filled.
pub struct Fill<'a> {
    /// The batch; handed back by the step.
    pub batch: Batch,
    /// What is read into it, a slot of a chunk each. None: the records are there already.
    pub pieces: Option<&'a [Piece]>,
    /// The boundaries of its buckets.
    pub splitters: &'a Splitters,
}

/// A batch to be drained.
pub struct Drain<'a> {
    /// The batch, scattered.
    pub batch: &'a mut Batch,
    /// Where its first record goes.
    pub offset: u64,
    /// The position of the entries in the answer: the number of the run.
    pub run: usize,
    /// Whether a thread is done only when its writes are.
    pub settle: bool,
}

impl Batch {
    /// An empty batch in leased memory.
    #[must_use]
    pub fn new(records: Region, pools: Vec<Region>) -> Self {
        Self { records, pools, buckets: Vec::new(), count: 0 }
    }

    /// Bytes of its records.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.count * RECORD_BYTES) as u64
    }

    fn chunks(&self, plan: &Plan) -> usize {
        self.count.div_ceil(plan.chunk_records)
    }
}

impl Worker {
    /// A worker without lanes.
    #[must_use]
    pub fn new(scratch: Region, free: Vec<Region>) -> Self {
        Self { read: None, write: None, scratch, free }
    }
}

/// What a step made.
pub struct Stepped {
    /// The batch that was filled.
    pub filled: Option<Batch>,
    /// The last entry of every chunk that was drained, in order.
    pub lasts: Vec<Entry>,
    turns: Answers<Turns>,
}

impl Stepped {
    /// When each thread was done, in seconds from the phase's beginning.
    #[must_use]
    pub fn dones(&self, phase: &PhaseWatch) -> Vec<f64> {
        self.turns.dones(phase)
    }
}

/// Fills a batch and drains another, with all workers.
///
/// # Errors
/// The first that a thread met.
pub fn step(
    plan: &Plan,
    deadline: &Deadline,
    workers: &mut [Worker],
    fill: Option<Fill>,
    drain: Option<Drain>,
) -> Result<Stepped, EngineError> {
    let split = fill.map(|fill| fill.split(plan, workers.len()));
    let (filling, batch) = split.map_or((Vec::new(), None), |(parts, rest)| (parts, Some(rest)));
    let filling = filling.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
    let draining = drain.map(|drain| Draining::new(plan, drain));
    let count = workers.len();
    let parts = workers.iter_mut().zip(filling).enumerate();
    let mut turns = thread_group::work(parts, deadline, |(number, (worker, filling)), watch| {
        let writing = draining.as_ref().map(|draining| draining.part(number, count));
        take_turns(plan, watch, worker, filling, writing)
    })?;
    let lasts = turns.of.iter_mut().flat_map(|turns| turns.lasts.drain(..)).collect();
    let filled = turns.of.iter_mut().filter_map(|turns| turns.filled.take()).collect();
    let filled = batch.map(|rest| rest.join(filled)).transpose()?;
    Ok(Stepped { filled, lasts, turns })
}

/// What is left of a batch while its threads have the rest.
struct Rest {
    unused: Vec<Region>,
    count: usize,
}

/// One thread's part of a batch that is filled.
struct Filling<'a> {
    chunks: Vec<Region>,
    pieces: &'a [Piece],
    /// Number of the first record.
    position: usize,
    /// Records in memory already: of this part.
    present: usize,
    pool: Region,
    buckets: Buckets,
    splitters: &'a Splitters,
}

impl<'a> Fill<'a> {
    fn split(self, plan: &Plan, threads: usize) -> (Vec<Filling<'a>>, Rest) {
        let Self { batch, pieces, splitters } = self;
        let read = |pieces: &[Piece]| pieces.iter().map(|piece| piece.1 / RECORD_BYTES).sum();
        let count = pieces.map_or(batch.count, read);
        let slots = pieces.map_or_else(|| batch.chunks(plan), <[Piece]>::len);
        let mut chunks = batch.records.split(plan.chunk_bytes()).into_iter();
        let parts = batch.pools.into_iter().enumerate().map(|(number, pool)| {
            let range = share_of(slots, number, threads);
            let position = range.start * plan.chunk_records;
            Filling {
                chunks: chunks.by_ref().take(range.len()).collect(),
                pieces: pieces.map_or(&[], |pieces| &pieces[range.clone()]),
                position,
                present: count.min(range.end * plan.chunk_records).saturating_sub(position),
                pool,
                buckets: Buckets::new(splitters.buckets()),
                splitters,
            }
        });
        let parts = parts.collect();
        (parts, Rest { unused: chunks.collect(), count })
    }
}

impl Rest {
    fn join(self, parts: Vec<(Vec<Region>, Region, Buckets)>) -> Result<Batch, EngineError> {
        let (mut chunks, mut pools, mut buckets) = (Vec::new(), Vec::new(), Vec::new());
        for (part, pool, lists) in parts {
            chunks.extend(part);
            pools.push(pool);
            buckets.push(lists);
        }
        chunks.extend(self.unused);
        Ok(Batch { records: Region::join(chunks)?, pools, buckets, count: self.count })
    }
}

/// A consecutive share of `count` things for one of several threads.
#[must_use]
pub fn share_of(count: usize, number: usize, threads: usize) -> Range<usize> {
    count * number / threads..count * (number + 1) / threads
}

/// A batch that is drained, as all threads see it.
struct Draining<'a> {
    records: &'a [u8],
    shares: Vec<Share<'a>>,
    count: usize,
    chunks: usize,
    offset: u64,
    run: usize,
    settle: bool,
}

impl<'a> Draining<'a> {
    fn new(plan: &Plan, drain: Drain<'a>) -> Self {
        let Drain { batch, offset, run, settle } = drain;
        let chunks = batch.chunks(plan);
        let pools = batch.pools.iter_mut().map(|pool| &*pool.as_slice_of::<Entry>());
        let lists = batch.buckets.iter();
        let shares = lists.zip(pools).map(|(buckets, pool)| Share { buckets, pool }).collect();
        Self { records: &batch.records, shares, count: batch.count, chunks, offset, run, settle }
    }

    fn part(&self, number: usize, threads: usize) -> (&Self, Range<usize>) {
        (self, share_of(self.chunks, number, threads))
    }
}

/// What a thread hands back after a step.
struct Turns {
    filled: Option<(Vec<Region>, Region, Buckets)>,
    lasts: Vec<Entry>,
}

fn take_turns(
    plan: &Plan,
    watch: &Watch,
    worker: &mut Worker,
    filling: Option<Filling>,
    draining: Option<(&Draining, Range<usize>)>,
) -> Result<Turns, EngineError> {
    let Worker { read, write, scratch, free } = worker;
    let mut filler = filling.map(|filling| Filler::new(plan, filling, read.as_mut()));
    let mut drainer = match (draining, write.as_mut()) {
        (Some((draining, chunks)), Some(lane)) => {
            let from = chunks.start * plan.chunk_records;
            let to = (chunks.end * plan.chunk_records).min(draining.count);
            let scratch = scratch.as_slice_of::<Entry>();
            let order = Order::new(draining.shares.clone(), scratch, from, to.max(from));
            Some(Drainer { plan, draining, order, next: from, lane, free, lasts: Vec::new() })
        }
        (None, _) => None,
        (Some(_), None) => return Err(EngineError::fault("a thread has no lane to write to")),
    };
    loop {
        watch.check()?;
        let wrote = drainer.as_mut().map_or(Ok(false), Drainer::turn)?;
        let read = filler.as_mut().map_or(Ok(false), Filler::turn)?;
        if !wrote && !read {
            break;
        }
    }
    let lasts = drainer.map_or_else(|| Ok(Vec::new()), Drainer::finish)?;
    Ok(Turns { filled: filler.map(Filler::finish), lasts })
}

/// Reads chunks and scatters the entries of their records.
struct Filler<'a> {
    filling: Filling<'a>,
    lane: Option<&'a mut ReadLane>,
    chunk_records: usize,
    /// Chunks done.
    done: usize,
}

impl<'a> Filler<'a> {
    fn new(plan: &Plan, mut filling: Filling<'a>, mut lane: Option<&'a mut ReadLane>) -> Self {
        if let Some(lane) = &mut lane {
            // Everything has its place already, so the lane may have all of it at once.
            for ((offset, bytes), chunk) in filling.pieces.iter().zip(filling.chunks.drain(..)) {
                lane.submit(*offset, *bytes, chunk);
            }
        }
        Self { filling, lane, chunk_records: plan.chunk_records, done: 0 }
    }

    fn turn(&mut self) -> Result<bool, EngineError> {
        let filling = &mut self.filling;
        let first = self.done * self.chunk_records;
        let bytes = match &mut self.lane {
            Some(lane) if lane.pending() > 0 => {
                let (_, bytes, chunk) = lane.take()?;
                filling.chunks.push(chunk);
                bytes
            }
            None if first < filling.present => {
                (filling.present - first).min(self.chunk_records) * RECORD_BYTES
            }
            _ => return Ok(false),
        };
        let Some(chunk) = filling.chunks.get(self.done) else { return Ok(false) };
        let pool = filling.pool.as_slice_of::<Entry>();
        let position = filling.position + first;
        filling.buckets.add(pool, filling.splitters, &chunk[..bytes], position);
        self.done += 1;
        Ok(true)
    }

    fn finish(self) -> (Vec<Region>, Region, Buckets) {
        (self.filling.chunks, self.filling.pool, self.filling.buckets)
    }
}

/// Sorts buckets, gathers their records and writes them.
struct Drainer<'a> {
    plan: &'a Plan,
    draining: &'a Draining<'a>,
    order: Order<'a>,
    /// Number of the next record.
    next: usize,
    lane: &'a mut WriteLane,
    free: &'a mut Vec<Region>,
    lasts: Vec<Entry>,
}

impl Drainer<'_> {
    fn turn(&mut self) -> Result<bool, EngineError> {
        let mut filled = 0;
        let mut last = None;
        let mut chunk: Option<Region> = None;
        while filled < self.plan.chunk_bytes() {
            let room = (self.plan.chunk_bytes() - filled) / RECORD_BYTES;
            let entries = self.order.next(room);
            let Some(greatest) = entries.last() else { break };
            last = Some(*greatest);
            let into = match &mut chunk {
                Some(chunk) => chunk,
                empty => empty.insert(buffer(self.free, self.lane)?),
            };
            gather(self.draining.records, entries, &mut into[filled..]);
            filled += entries.len() * RECORD_BYTES;
        }
        let (Some(chunk), Some(last)) = (chunk, last) else { return Ok(false) };
        let offset = self.draining.offset + (self.next * RECORD_BYTES) as u64;
        self.lane.submit(offset, filled, chunk);
        self.next += filled / RECORD_BYTES;
        self.lasts.push(at_position(last, self.draining.run as u64));
        Ok(true)
    }

    fn finish(self) -> Result<Vec<Entry>, EngineError> {
        while self.draining.settle && self.lane.pending() > 0 {
            self.free.push(self.lane.take()?);
        }
        Ok(self.lasts)
    }
}

/// Memory to write from: unused, or that of the oldest write.
///
/// # Errors
/// As writing.
pub fn buffer(free: &mut Vec<Region>, lane: &mut WriteLane) -> Result<Region, EngineError> {
    match free.pop() {
        Some(region) => Ok(region),
        None => lane.take(),
    }
}
