//! The sort of a data set on one machine: `read` and `write`, or `runs` and `merge`.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::stream::{PhaseResult, StreamResult};
use leadline_wire::job::stream::StreamJob;

use super::batch::{Batch, Drain, Fill, Piece, Stepped, Worker, step};
use super::entries::RECORD_BYTES;
use super::merge::merge;
use super::plan::Plan;
use super::runs::{Run, Runs};
use super::sample::Sampler;
use super::split::Outline;
use super::verify::verify;
use super::workshop::Workshop;
use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::lane::{ReadLane, WriteLane};
use crate::memory::Memory;
use crate::output::{Output, OutputPart};
use crate::phases::{JobWatch, Moved};

/// Sorts the job's input into its output.
///
/// # Errors
/// What is wrong with the job, its files or its disks; then there is no output.
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    let (Some(path), Some(spec)) = (&job.input, &job.output) else {
        return Err(EngineError::fault("a sort without input or output"));
    };
    let watch = JobWatch::open();
    let deadline = Deadline::of(job);
    let input = Input::open(path, &job.io)?;
    let memory = Memory::of(job)?;
    let output = Output::create(spec, input.bytes(), &job.io)?;
    reporter.phase(Phase::Measure, watch.elapsed_ns());
    let sort = Sort::new(job, &input, &memory, deadline)?;
    let (plan, to) = (sort.plan, output.part(0)?);
    let phases = if plan.runs > 1 {
        sort.in_two_passes(&to, &watch)?
    } else {
        sort.in_one_pass(&to, &watch)?
    };
    drop(to);
    reporter.phase(Phase::Drain, watch.elapsed_ns());
    let mut result = StreamResult::new(job);
    (result.bytes_in, result.bytes_out) = (input.bytes(), output.bytes());
    result.passes = if plan.runs > 1 { 2 } else { 1 };
    watch.settle(phases, &mut result);
    let began_ns = watch.elapsed_ns();
    let summary = verify(&input, &output.as_input()?, (&memory, &deadline), job)?;
    result.verify_s = leadline_base::clock::s_from_ns(watch.elapsed_ns() - began_ns);
    result.check = Some(summary.to_result());
    result.verified = true;
    output.publish()?;
    Ok(result)
}

/// A sort about to begin.
struct Sort<'a> {
    job: &'a StreamJob,
    input: &'a Input,
    memory: &'a Memory,
    deadline: Deadline,
    pieces: Vec<Piece>,
    plan: Plan,
}

impl<'a> Sort<'a> {
    fn new(
        job: &'a StreamJob,
        input: &'a Input,
        memory: &'a Memory,
        deadline: Deadline,
    ) -> Result<Self, EngineError> {
        let whole = usize::try_from(input.bytes()).unwrap_or(usize::MAX);
        let rough = Plan::new(whole.div_ceil(RECORD_BYTES), memory.left(), job.threads)?;
        let pieces = input.pieces(0..input.bytes(), rough.chunk_bytes());
        // Every part's last piece has a chunk's room, whole or not.
        let records = pieces.len() * rough.chunk_records;
        let plan = Plan::new(records, memory.left(), job.threads)?;
        let pieces = input.pieces(0..input.bytes(), plan.chunk_bytes());
        if let Some(odd) = pieces.iter().find(|piece| !piece.1.is_multiple_of(RECORD_BYTES)) {
            return Err(EngineError::bad_job(format!(
                "the input has no whole records of {RECORD_BYTES} bytes: one begins at byte {} and \
                does not end; is it a file of the sort benchmark's records?",
                odd.0 + (odd.1 / RECORD_BYTES * RECORD_BYTES) as u64
            )));
        }
        Ok(Self { job, input, memory, deadline, pieces, plan })
    }

    /// Workers with lanes from the input, and the sampler.
    fn begin(&self) -> Result<(Vec<Batch>, Vec<Worker>, Sampler), EngineError> {
        let Workshop { batches, mut workers, sample } = Workshop::lease(&self.plan, self.memory)?;
        for worker in &mut workers {
            worker.read = Some(ReadLane::open(self.input, &self.job.io)?);
        }
        let lane = ReadLane::open(self.input, &self.job.io)?;
        Ok((batches, workers, Sampler::new(lane, sample, self.plan.buckets)))
    }

    fn in_one_pass(
        self,
        to: &OutputPart,
        job_watch: &JobWatch,
    ) -> Result<Vec<PhaseResult>, EngineError> {
        let (plan, bytes) = (&self.plan, self.input.bytes());
        let watch = job_watch.start("read");
        let (mut batches, mut workers, mut sampler) = self.begin()?;
        sampler.ask(&self.pieces, plan.chunk_records);
        let splitters = sampler.splitters()?;
        let batch = batches.pop().ok_or_else(no_batch)?;
        let fill = Fill { batch, pieces: Some(&self.pieces), splitters: &splitters };
        let filled = step(plan, &self.deadline, &mut workers, Some(fill), None)?;
        let moved =
            Moved { bytes_read: bytes, copied_bytes: copied_by(&workers), ..Moved::default() };
        let dones = filled.dones(&watch);
        let read = watch.finish(moved, &dones);
        let watch = job_watch.start("write");
        for worker in &mut workers {
            worker.write = Some(WriteLane::open(to, &self.job.io)?);
        }
        let mut batch = filled.filled.ok_or_else(no_batch)?;
        let drain = Drain { batch: &mut batch, offset: 0, run: 0, settle: true };
        let drained = step(plan, &self.deadline, &mut workers, None, Some(drain))?;
        sync(&mut workers)?;
        let moved = Moved { bytes_written: bytes, copied_bytes: bytes, ..Moved::default() };
        let dones = drained.dones(&watch);
        Ok(vec![read, watch.finish(moved, &dones)])
    }

    fn in_two_passes(
        self,
        to: &OutputPart,
        job_watch: &JobWatch,
    ) -> Result<Vec<PhaseResult>, EngineError> {
        let bytes = self.input.bytes();
        let watch = job_watch.start("runs");
        let (runs, copied, dones) = self.make_runs(&watch)?;
        let moved = Moved {
            bytes_read: bytes,
            bytes_written: bytes,
            copied_bytes: bytes + copied,
            ..Moved::default()
        };
        let first = watch.finish(moved, &dones);
        let watch = job_watch.start("merge");
        let with = (self.memory, &self.job.io);
        let merged = merge(&self.plan, (&runs, to), with, &self.deadline)?;
        let moved = Moved {
            bytes_read: merged.bytes_read,
            bytes_written: bytes,
            copied_bytes: bytes,
            ..Moved::default()
        };
        let dones = merged.dones(&watch);
        Ok(vec![first, watch.finish(moved, &dones)])
    }

    /// Reads a run while the one before it is sorted and written.
    fn make_runs(
        &self,
        watch: &crate::phases::PhaseWatch,
    ) -> Result<(Runs, u64, Vec<f64>), EngineError> {
        let plan = &self.plan;
        let (mut free, mut workers, mut sampler) = self.begin()?;
        let mut runs = Runs::new(&temporary(self.job), &self.job.io);
        runs.make_room(self.input.bytes() + (plan.runs * crate::memory::PAGE_BYTES) as u64)?;
        for worker in &mut workers {
            worker.write = Some(WriteLane::open(&runs, &self.job.io)?);
        }
        let mut parts = self.pieces.chunks(plan.batch_records / plan.chunk_records).peekable();
        let mut full: Option<Batch> = None;
        let mut dones = Vec::new();
        if let Some(part) = parts.peek() {
            sampler.ask(part, plan.chunk_records);
        }
        while parts.peek().is_some() || full.is_some() {
            let splitters = sampler.splitters()?;
            let fill = match (parts.next(), free.pop()) {
                (Some(pieces), Some(batch)) => {
                    Some(Fill { batch, pieces: Some(pieces), splitters: &splitters })
                }
                (None, _) => None,
                (Some(_), None) => return Err(no_batch()),
            };
            if let Some(part) = parts.peek() {
                sampler.ask(part, plan.chunk_records);
            }
            let settle = fill.is_none();
            let place = full.as_ref().map(|batch| runs.begin(batch.bytes()));
            let run = runs.made.len();
            let drain = full.as_mut().zip(place);
            let drain = drain.map(|(batch, offset)| Drain { batch, offset, run, settle });
            let stepped = step(plan, &self.deadline, &mut workers, fill, drain)?;
            dones = stepped.dones(watch);
            let Stepped { filled, lasts, .. } = stepped;
            if let (Some(batch), Some(offset)) = (&full, place) {
                let (records, chunk_records) = (batch.count, plan.chunk_records);
                runs.made.push(Run { offset, outline: Outline { records, lasts, chunk_records } });
            }
            free.extend(std::mem::replace(&mut full, filled));
        }
        sync(&mut workers)?;
        Ok((runs, copied_by(&workers), dones))
    }
}

/// Brings everything written to the disks: all lanes go to the same files.
///
/// # Errors
/// As writing.
pub fn sync(workers: &mut [Worker]) -> Result<(), EngineError> {
    let mut lanes = workers.iter_mut().filter_map(|worker| worker.write.as_mut());
    lanes.next().map_or(Ok(()), WriteLane::sync)
}

fn copied_by(workers: &[Worker]) -> u64 {
    workers.iter().filter_map(|worker| worker.read.as_ref()).map(ReadLane::copied_bytes).sum()
}

fn no_batch() -> EngineError {
    EngineError::fault("a sort ran out of batches")
}

/// Where runs go: where the job says, or to the disks of the output.
pub(crate) fn temporary(job: &StreamJob) -> Vec<String> {
    let output = job.output.as_ref();
    let stripes = output.map_or(&[][..], |output| &output.stripes);
    if !job.temporary.is_empty() {
        return job.temporary.clone();
    }
    if !stripes.is_empty() {
        return stripes.to_vec();
    }
    let parent = output.and_then(|output| std::path::Path::new(&output.path).parent());
    vec![parent.map_or_else(|| "/".to_owned(), |parent| parent.to_string_lossy().into_owned())]
}
