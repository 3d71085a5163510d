//! The second pass: sorted runs into one, every thread its own part of the output.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::batch::{buffer, share_of};
use super::entries::{Entry, RECORD_BYTES, entry_of};
use super::loser_tree::{LoserTree, merge_into};
use super::plan::Plan;
use super::runs::{Run, Runs};
use super::split::{cut, narrow};
use crate::data_set::Writable;
use crate::deadline::Deadline;
use crate::lane::{ReadLane, WriteLane};
use crate::memory::{Memory, PAGE_BYTES, Region};
use crate::phases::PhaseWatch;
use crate::thread_group::{self, Answers, Watch};

/// What a merge moved and when its threads were done.
pub struct Merged {
    /// Bytes of runs that were read.
    pub bytes_read: u64,
    parts: Answers<u64>,
}

impl Merged {
    /// When each thread was done, in seconds from the phase's beginning.
    #[must_use]
    pub fn dones(&self, phase: &PhaseWatch) -> Vec<f64> {
        self.parts.dones(phase)
    }
}

/// Where each part of the merge begins in every run, and its last part ends.
type Cuts = Vec<Vec<usize>>;

/// Merges all runs into `to`.
///
/// # Errors
/// As reading and writing, and when the time is over.
pub fn merge(
    plan: &Plan,
    (runs, to): (&Runs, &impl Writable),
    (memory, io): (&Memory, &Io),
    deadline: &Deadline,
) -> Result<Merged, EngineError> {
    let records: usize = runs.made.iter().map(|run| run.outline.records).sum();
    let chunks = records.div_ceil(plan.chunk_records);
    let ranks = (0..plan.merge_threads)
        .map(|number| share_of(chunks, number, plan.merge_threads).start * plan.chunk_records);
    let ranks: Vec<usize> = ranks.chain([records]).collect();
    let (ranks, cuts) = cut_runs(runs, ranks, (memory, io))?;
    // All in one piece: pieces aligned by themselves would leave gaps.
    let count = ranks.len() - 1;
    let mut buffers = memory.take(count * plan.merge_bytes())?.split(plan.chunk_bytes());
    let mut parts = Vec::new();
    for (number, rank) in ranks.windows(2).enumerate() {
        let (read, write) = (ReadLane::open(runs, io)?, WriteLane::open(to, io)?);
        let free = buffers.split_off(buffers.len() - plan.write_buffers);
        let held = buffers.split_off(buffers.len() - plan.merge_buffers);
        let ends = cuts[number].iter().zip(&cuts[number + 1]).map(|(from, to)| *from..*to);
        let feed = Feed::new(read, held, &runs.made, ends.collect());
        parts.push(Part { feed, write, free, at: rank[0], chunk_bytes: plan.chunk_bytes() });
    }
    let parts = thread_group::work(parts, deadline, |part: Part, watch| part.run(watch))?;
    Ok(Merged { bytes_read: parts.of.iter().sum(), parts })
}

/// Cuts the runs at the ranks; at the ends alone where memory has no room for the keys to look at.
fn cut_runs(
    runs: &Runs,
    mut ranks: Vec<usize>,
    (memory, io): (&Memory, &Io),
) -> Result<(Vec<usize>, Cuts), EngineError> {
    let outlines = runs.outlines();
    let last = ranks.len() - 1;
    let mut cuts = vec![vec![0; outlines.len()]];
    let inner = if last > 1 { ranks[1..last].to_vec() } else { Vec::new() };
    for rank in inner {
        let ranges = narrow(&outlines, rank);
        match Keys::read(&runs.made, runs, &ranges, (memory, io))? {
            Some(keys) => cuts.push(cut(ranges, rank, |run, place| keys.entry(run, place))),
            None => {
                ranks = vec![0, ranks[last]];
                cuts.truncate(1);
                break;
            }
        }
    }
    cuts.push(outlines.iter().map(|run| run.records).collect());
    Ok((ranks, cuts))
}

/// Records of some ranges of the runs.
struct Keys {
    /// For each run the bytes and the number of the record they begin in, with the bytes before it.
    parts: Vec<(Region, usize)>,
}

impl Keys {
    /// Reads the ranges; none when they do not fit the memory.
    fn read(
        made: &[Run],
        runs: &Runs,
        ranges: &[Range<usize>],
        (memory, io): (&Memory, &Io),
    ) -> Result<Option<Self>, EngineError> {
        let spans: Vec<Range<usize>> = ranges
            .iter()
            .map(|range| {
                let start = range.start * RECORD_BYTES / PAGE_BYTES * PAGE_BYTES;
                start..(range.end * RECORD_BYTES).next_multiple_of(PAGE_BYTES).max(start)
            })
            .collect();
        if spans.iter().map(Range::len).sum::<usize>() > memory.left() {
            return Ok(None);
        }
        let mut lane = ReadLane::open(runs, io)?;
        for (run, span) in made.iter().zip(&spans) {
            // Never empty: a lane moves at least something.
            let bytes = span.len().min(run.bytes() - span.start);
            lane.submit(run.offset + span.start as u64, bytes, memory.take(span.len())?);
        }
        let mut parts = Vec::with_capacity(spans.len());
        for span in spans {
            parts.push((lane.take()?.2, span.start));
        }
        Ok(Some(Self { parts }))
    }

    fn entry(&self, run: usize, place: usize) -> Entry {
        let (bytes, start) = &self.parts[run];
        entry_of(&bytes[place * RECORD_BYTES - start..], run as u64)
    }
}

/// A chunk of a run in memory: the records of it that are to be merged.
struct Held {
    region: Region,
    bytes: Range<usize>,
}

/// Reads the runs' chunks in the order in which the merge will need them: that of the last keys of
/// the chunks before them. So it always waits for the oldest read, and no read is too early.
struct Feed {
    lane: ReadLane,
    free: Vec<Region>,
    runs: Vec<(u64, usize)>,
    ranges: Vec<Range<usize>>,
    chunk_records: usize,
    /// What is to be read, the next one last.
    schedule: Vec<(usize, usize)>,
    /// What is being read: run and chunk.
    asked: VecDeque<(usize, usize)>,
    held: Vec<VecDeque<Held>>,
    /// Chunks of each run not handed out yet.
    left: Vec<usize>,
    bytes_read: u64,
}

impl Feed {
    fn new(lane: ReadLane, free: Vec<Region>, made: &[Run], ranges: Vec<Range<usize>>) -> Self {
        let chunk_records = made.first().map_or(1, |run| run.outline.chunk_records);
        // A run's first chunk is needed before the merge begins: before any key.
        let mut needs: Vec<(Option<Entry>, usize, usize)> = Vec::new();
        for (number, (run, range)) in made.iter().zip(&ranges).enumerate() {
            let first = range.start / chunk_records;
            let chunks = first..range.end.div_ceil(chunk_records).max(first);
            needs.extend(chunks.filter(|_| !range.is_empty()).map(|chunk| {
                let before = (chunk > first).then(|| run.outline.lasts[chunk - 1]);
                (before, number, chunk)
            }));
        }
        let left = (0..made.len()).map(|run| needs.iter().filter(|need| need.1 == run).count());
        let left = left.collect();
        needs.sort_unstable_by(|one, other| other.cmp(one));
        let schedule = needs.into_iter().map(|(_, run, chunk)| (run, chunk)).collect();
        let held = made.iter().map(|_| VecDeque::new()).collect();
        let runs = made.iter().map(|run| (run.offset, run.outline.records)).collect();
        let asked = VecDeque::new();
        let mut feed = Self {
            lane,
            free,
            runs,
            ranges,
            chunk_records,
            schedule,
            asked,
            held,
            left,
            bytes_read: 0,
        };
        feed.ask();
        feed
    }

    fn ask(&mut self) {
        while let (Some(region), Some((run, chunk))) = (self.free.pop(), self.schedule.last()) {
            let (offset, records) = self.runs[*run];
            let first = chunk * self.chunk_records;
            let bytes = (records - first).min(self.chunk_records) * RECORD_BYTES;
            self.lane.submit(offset + (first * RECORD_BYTES) as u64, bytes, region);
            self.bytes_read += bytes as u64;
            self.asked.push_back((*run, *chunk));
            self.schedule.pop();
        }
    }

    /// The next records of a run; none at its end. `done` is the memory of those before.
    fn next(&mut self, run: usize, done: Option<Held>) -> Result<Option<Held>, EngineError> {
        if let Some(done) = done {
            self.free.push(done.region);
            self.ask();
        }
        if self.left[run] == 0 {
            return Ok(None);
        }
        self.left[run] -= 1;
        loop {
            if let Some(held) = self.held[run].pop_front() {
                return Ok(Some(held));
            }
            let Some((owner, chunk)) = self.asked.pop_front() else {
                return Err(EngineError::fault("a merge waits for a chunk that nobody reads"));
            };
            let (_, _, region) = self.lane.take()?;
            let first = chunk * self.chunk_records;
            let range = &self.ranges[owner];
            let from = range.start.max(first) - first;
            let to = range.end.min(first + self.chunk_records) - first;
            let bytes = from * RECORD_BYTES..to * RECORD_BYTES;
            self.held[owner].push_back(Held { region, bytes });
        }
    }
}

/// One thread's part of the output.
struct Part {
    feed: Feed,
    write: WriteLane,
    free: Vec<Region>,
    /// Number of its next record in the output.
    at: usize,
    chunk_bytes: usize,
}

impl Part {
    fn run(mut self, watch: &Watch) -> Result<u64, EngineError> {
        let mut held = Vec::with_capacity(self.feed.runs.len());
        for run in 0..self.feed.runs.len() {
            held.push(self.feed.next(run, None)?);
        }
        let mut tree = LoserTree::new(&fronts_of(&held));
        while tree.winner().is_some() {
            watch.check()?;
            let mut chunk = buffer(&mut self.free, &mut self.write)?;
            let filled = self.fill(&mut tree, &mut held, &mut chunk[..self.chunk_bytes])?;
            self.write.submit((self.at * RECORD_BYTES) as u64, filled, chunk);
            self.at += filled / RECORD_BYTES;
        }
        self.write.finish()?;
        Ok(self.feed.bytes_read)
    }

    /// Merges a chunk; how much of it.
    fn fill(
        &mut self,
        tree: &mut LoserTree,
        held: &mut [Option<Held>],
        chunk: &mut [u8],
    ) -> Result<usize, EngineError> {
        let mut filled = 0;
        while filled < chunk.len() && tree.winner().is_some() {
            let mut fronts = fronts_of(held);
            let (copied, ended) = merge_into(tree, &mut fronts, &mut chunk[filled..]);
            filled += copied;
            let left: Vec<usize> = fronts.iter().map(|records| records.len()).collect();
            for (held, left) in held.iter_mut().zip(left) {
                if let Some(held) = held {
                    held.bytes.start = held.bytes.end - left;
                }
            }
            if let Some(run) = ended {
                held[run] = self.feed.next(run, held[run].take())?;
                tree.replace(run, &fronts_of(held));
            }
        }
        Ok(filled)
    }
}

/// What is left in memory of every run.
fn fronts_of(held: &[Option<Held>]) -> Vec<&[u8]> {
    held.iter()
        .map(|held| held.as_ref().map_or(&[][..], |held| &held.region[held.bytes.clone()]))
        .collect()
}
