//! The kernel `generate`: every thread makes a range of the records in memory and writes it.

#![forbid(unsafe_code)]

use std::ops::Range;

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::stream::StreamResult;
use leadline_wire::job::stream::{Kernel, StreamJob};

use super::check::{Means, look_at, require_memory};
use super::{Generator, RECORD_BYTES, Summary};
use crate::chunks::CHUNK_BYTES;
use crate::deadline::Deadline;
use crate::lane::WriteLane;
use crate::memory::{Memory, Region};
use crate::output::Output;
use crate::phases::{JobWatch, Moved};
use crate::thread_group::{self, Answers, Watch};

/// Records of a chunk.
const CHUNK_RECORDS: u64 = (CHUNK_BYTES / RECORD_BYTES) as u64;

/// Which records.
struct Wanted {
    generator: Generator,
    first: u64,
    records: u64,
}

/// One thread's share: a range of the data set, its lane and its buffers.
struct Share {
    range: Range<u64>,
    lane: WriteLane,
    free: Vec<Region>,
}

/// Makes the records, verifies them where they lie and names them.
///
/// # Errors
/// `Target` when there is no room or no time, `Io` when a disk fails or gives back other records.
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    let (memory, deadline) = (Memory::of(job)?, Deadline::of(job));
    require_memory(&memory, job.threads)?;
    let means = Means { memory: &memory, io: &job.io, threads: job.threads, deadline: &deadline };
    let wanted = wanted(job)?;
    let bytes = wanted.records * RECORD_BYTES as u64;
    let Some(spec) = &job.output else {
        return Err(EngineError::fault("records without an output"));
    };
    let output = Output::create(spec, bytes, &job.io)?;
    let watch = JobWatch::open();
    reporter.phase(Phase::Measure, watch.elapsed_ns());
    let phase = watch.start("write");
    let made = write(&wanted, &output, &means)?;
    let moved = Moved { bytes_written: bytes, ..Moved::default() };
    let dones = made.dones(&phase);
    let phase = phase.finish(moved, &dones);
    let mut summary = Summary::default();
    made.of.iter().for_each(|part| summary.append(part));

    reporter.phase(Phase::Drain, watch.elapsed_ns());
    let verify = watch.start("verify");
    let found = look_at(&output.as_input()?, &means, &verify)?.summary;
    found.must_be(&summary)?;
    let mut result = StreamResult::new(job);
    result.verify_s = verify.elapsed_s();
    result.bytes_out = bytes;
    result.verified = true;
    result.check = Some(found.to_result());
    output.publish()?;
    watch.settle(vec![phase], &mut result);
    Ok(result)
}

fn wanted(job: &StreamJob) -> Result<Wanted, EngineError> {
    let Kernel::Generate { records, first, format, skew } = job.kernel else {
        return Err(EngineError::fault("this job makes no records"));
    };
    Ok(Wanted { generator: Generator::new(format, job.seed, skew)?, first, records })
}

fn write(
    wanted: &Wanted,
    output: &Output,
    means: &Means<'_>,
) -> Result<Answers<Summary>, EngineError> {
    let io = means.io_of_one();
    let shares = (0..means.threads)
        .map(|thread| {
            Ok(Share {
                range: range_of(wanted.records, thread, means.threads),
                lane: WriteLane::open(output, &io)?,
                free: means.memory.take_many(io.depth as usize + 1, CHUNK_BYTES)?,
            })
        })
        .collect::<Result<Vec<_>, EngineError>>()?;
    thread_group::work(shares, means.deadline, |share, watch| write_share(wanted, share, watch))
}

/// The records of one thread of several: whole chunks, but for the end of the last.
fn range_of(records: u64, thread: u32, threads: u32) -> Range<u64> {
    let chunks = records.div_ceil(CHUNK_RECORDS);
    let cut = |number: u32| {
        let chunk = u128::from(chunks) * u128::from(number) / u128::from(threads);
        (chunk as u64 * CHUNK_RECORDS).min(records)
    };
    cut(thread)..cut(thread + 1)
}

fn write_share(
    wanted: &Wanted,
    mut share: Share,
    watch: &Watch<'_>,
) -> Result<Summary, EngineError> {
    let mut summary = Summary::default();
    for first in share.range.clone().step_by(CHUNK_RECORDS as usize) {
        watch.check()?;
        let records = CHUNK_RECORDS.min(share.range.end - first);
        let length = records as usize * RECORD_BYTES;
        let mut buffer = match share.free.pop() {
            Some(buffer) => buffer,
            None => share.lane.take()?,
        };
        let bytes = buffer
            .get_mut(..length)
            .ok_or_else(|| EngineError::fault("a buffer shorter than a chunk"))?;
        wanted.generator.fill(wanted.first + first, bytes)?;
        summary.add(bytes)?;
        share.lane.submit(first * RECORD_BYTES as u64, length, buffer);
    }
    share.lane.finish()?;
    Ok(summary)
}
