//! The kernel `check`, and the look at a data set with which every kernel verifies its output.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::stream::{PhaseResult, StreamResult};
use leadline_wire::job::stream::{Io, StreamJob};

use super::{Summary, whole_records};
use crate::chunks::{CHUNK_BYTES, Chunks};
use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::phases::{JobWatch, Moved, PhaseWatch};
use crate::thread_group;

/// Fewest chunks of memory that a thread reads into.
const CHUNKS_MIN: usize = 2;

/// What moves a data set past the processors.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Where buffers come from.
    pub memory: &'a Memory,
    /// How bytes are moved.
    pub io: &'a Io,
    /// Threads, each on its own part of the data.
    pub threads: u32,
    /// When everything must have ended.
    pub deadline: &'a Deadline,
}

impl Means<'_> {
    /// How bytes are moved by one thread of several: the depth of all together is what was asked
    /// for, as far as the memory left gives every thread as many chunks and one.
    #[must_use]
    pub fn io_of_one(&self) -> Io {
        let threads = self.threads.max(1) as usize;
        let chunks = self.memory.left() / CHUNK_BYTES / threads;
        let depth = (self.io.depth as usize).div_ceil(threads).min(chunks.saturating_sub(1));
        Io { depth: depth.max(1) as u32, ..*self.io }
    }
}

/// What was found in a data set, and what finding it took.
pub struct Looked {
    /// In all records, in their order.
    pub summary: Summary,
    /// What was moved.
    pub moved: Moved,
    /// When each thread was done, in seconds from the phase's beginning.
    pub dones: Vec<f64>,
}

/// Looks at every record of a data set.
///
/// # Errors
/// `Io` when it cannot be read or does not hold whole records, `Target` when time is up.
pub fn look_at(
    input: &Input,
    means: &Means<'_>,
    phase: &PhaseWatch<'_>,
) -> Result<Looked, EngineError> {
    whole_records(input.bytes())?;
    let io = means.io_of_one();
    let portions = input.portions(means.threads as usize).into_iter();
    let readers: Vec<Chunks> = portions
        .map(|portion| Chunks::new(input, portion, means.memory, &io))
        .collect::<Result<_, EngineError>>()?;
    let answers = thread_group::work(readers, means.deadline, |mut chunks, watch| {
        let mut summary = Summary::default();
        while let Some((_, bytes)) = chunks.next()? {
            summary.add(bytes)?;
            watch.check()?;
        }
        Ok((summary, chunks.copied_bytes()))
    })?;
    let mut summary = Summary::default();
    let mut moved = Moved { bytes_read: input.bytes(), ..Moved::default() };
    for (part, copied_bytes) in &answers.of {
        summary.append(part);
        moved.copied_bytes += copied_bytes;
    }
    Ok(Looked { summary, moved, dones: answers.dones(phase) })
}

/// Counts, sums and says whether they are in order; records that are not are an answer, no error.
///
/// # Errors
/// As [`look_at`].
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    let (memory, deadline) = (Memory::of(job)?, Deadline::of(job));
    require_memory(&memory, job.threads)?;
    let means = Means { memory: &memory, io: &job.io, threads: job.threads, deadline: &deadline };
    let path = job.input.as_deref().unwrap_or_default();
    let input = Input::open(path, &job.io)?;
    let watch = JobWatch::open();
    reporter.phase(Phase::Measure, watch.elapsed_ns());
    let phase = watch.start("read");
    let looked = look_at(&input, &means, &phase)?;
    let phase: PhaseResult = phase.finish(looked.moved, &looked.dones);
    let mut result = StreamResult::new(job);
    result.bytes_in = input.bytes();
    result.verified = looked.summary.in_order();
    result.check = Some(looked.summary.to_result());
    watch.settle(vec![phase], &mut result);
    Ok(result)
}

/// Says before anything is begun that so many threads have too little memory.
///
/// # Errors
/// `BadJob` with what they need.
pub fn require_memory(memory: &Memory, threads: u32) -> Result<(), EngineError> {
    let needed = threads as usize * CHUNKS_MIN * CHUNK_BYTES;
    let left = memory.left();
    if needed <= left {
        return Ok(());
    }
    Err(EngineError::bad_job(format!(
        "{threads} threads need {needed} bytes of buffers and {left} are within the memory limit; \
         give more memory or fewer threads"
    )))
}
