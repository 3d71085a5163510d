//! A sort that is handed its records, as a rank is by the others: the same batches, runs and merge.
//!
//! While one batch takes records in, the one before it is sorted and written as a run by threads of
//! its own. Where all records fit the memory there is no run, and the end is the `write` of one
//! pass.

#![forbid(unsafe_code)]

use std::thread::JoinHandle;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::batch::{Batch, Drain, Fill, Worker, step};
use super::data_set::sync;
use super::entries::RECORD_BYTES;
use super::merge::{Merged, merge};
use super::plan::Plan;
use super::runs::{Run, Runs};
use super::sample::splitters_of;
use super::split::Outline;
use super::workshop::Workshop;
use crate::data_set::Writable;
use crate::deadline::Deadline;
use crate::lane::WriteLane;
use crate::memory::Memory;
use crate::phases::Moved;

/// Takes records in any order, in pieces of any size, and hands them out sorted.
pub struct RecordSink {
    plan: Plan,
    memory: Memory,
    io: Io,
    deadline: Deadline,
    /// The batch that takes records in; none while all are being sorted.
    filling: Option<Batch>,
    /// Bytes in it.
    filled: usize,
    idle: Vec<Batch>,
    /// None while it works.
    spiller: Option<Spiller>,
    spilling: Option<JoinHandle<Result<(Batch, Spiller), EngineError>>>,
    bytes: u64,
}

/// What makes a batch a run.
struct Spiller {
    plan: Plan,
    deadline: Deadline,
    io: Io,
    workers: Vec<Worker>,
    runs: Runs,
}

impl RecordSink {
    /// A sink for about `expected_bytes` within `memory_bytes` of the memory. With more it needs
    /// more runs than planned, no more memory.
    ///
    /// # Errors
    /// `BadJob` when two passes do not do in this memory.
    pub fn new(
        (memory, memory_bytes): (&Memory, usize),
        expected_bytes: u64,
        threads: u32,
        (temporary, io): (&[String], &Io),
        deadline: Deadline,
    ) -> Result<Self, EngineError> {
        let expected = usize::try_from(expected_bytes).unwrap_or(usize::MAX);
        let plan = Plan::for_sink(expected.div_ceil(RECORD_BYTES), memory_bytes, threads)?;
        let Workshop { batches, workers, .. } = Workshop::lease(&plan, memory)?;
        let runs = Runs::new(temporary, io);
        Ok(Self {
            plan,
            memory: memory.clone(),
            io: *io,
            deadline,
            filling: None,
            filled: 0,
            idle: batches,
            spiller: Some(Spiller { plan, deadline, io: *io, workers, runs }),
            spilling: None,
            bytes: 0,
        })
    }

    /// Where the next bytes go. Empty while every batch is being sorted and written: ask again a
    /// little later, or [`Self::wait`].
    ///
    /// # Errors
    /// As writing a run.
    pub fn space(&mut self) -> Result<&mut [u8], EngineError> {
        if self.filling.is_none() {
            if self.idle.is_empty() && self.spilling.as_ref().is_some_and(JoinHandle::is_finished) {
                self.wait()?;
            }
            self.filling = self.idle.pop();
        }
        let filled = self.filled;
        Ok(self.filling.as_mut().map_or(&mut [], |batch| &mut batch.records[filled..]))
    }

    /// The first `bytes` of [`Self::space`] are there.
    ///
    /// # Errors
    /// As writing a run.
    pub fn filled(&mut self, bytes: usize) -> Result<(), EngineError> {
        self.filled += bytes;
        self.bytes += bytes as u64;
        if self.filled == self.plan.batch_bytes() { self.spill() } else { Ok(()) }
    }

    /// Bytes taken in.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Waits until no run is being written.
    ///
    /// # Errors
    /// As writing a run.
    pub fn wait(&mut self) -> Result<(), EngineError> {
        if let Some(thread) = self.spilling.take() {
            let defect = |_| Err(EngineError::fault("the thread of a run ended in a panic"));
            let (batch, spiller) = thread.join().unwrap_or_else(defect)?;
            self.idle.push(batch);
            self.spiller = Some(spiller);
        }
        Ok(())
    }

    /// Begins to make a run of the batch that was filled.
    fn spill(&mut self) -> Result<(), EngineError> {
        self.wait()?;
        let (Some(mut batch), Some(mut spiller)) = (self.filling.take(), self.spiller.take())
        else {
            return Ok(());
        };
        batch.count = std::mem::take(&mut self.filled) / RECORD_BYTES;
        let thread = std::thread::Builder::new().name("leadline-runs".to_owned());
        let made = thread.spawn(move || Ok((spiller.make_run(batch)?, spiller)));
        self.spilling = Some(made.map_err(|error| {
            EngineError::target(format!("no thread for a run: {error}; look at ulimit -u"))
        })?);
        Ok(())
    }

    /// All records are there: what is to be a run is written. Ends the first phase; says what it
    /// moved.
    ///
    /// # Errors
    /// As writing a run, and when the last record is not whole.
    pub fn seal(&mut self) -> Result<Moved, EngineError> {
        if !self.filled.is_multiple_of(RECORD_BYTES) {
            return Err(EngineError::fault("a sort was handed a part of a record"));
        }
        self.wait()?;
        if !self.has_runs() {
            return Ok(Moved::default());
        }
        if self.filled > 0 {
            self.spill()?;
            self.wait()?;
        }
        let bytes = self.bytes;
        Ok(Moved { bytes_written: bytes, copied_bytes: bytes, ..Moved::default() })
    }

    fn has_runs(&self) -> bool {
        self.spiller.as_ref().is_some_and(|spiller| !spiller.runs.made.is_empty())
    }

    /// 2 when there are runs.
    #[must_use]
    pub fn passes(&self) -> u32 {
        if self.has_runs() { 2 } else { 1 }
    }

    /// Writes everything in order: the second phase, after [`Self::seal`].
    ///
    /// # Errors
    /// As reading and writing; `BadJob` when there are more runs than the memory can merge.
    pub fn write(mut self, to: &impl Writable) -> Result<Written, EngineError> {
        self.wait()?;
        let Some(mut spiller) = self.spiller.take() else {
            return Err(EngineError::fault("a sort has lost its workers"));
        };
        let bytes = self.bytes;
        if spiller.runs.made.is_empty() {
            if let Some(mut batch) = self.filling.take() {
                batch.count = self.filled / RECORD_BYTES;
                spiller.write(batch, to, 0)?;
            }
            let moved = Moved { bytes_written: bytes, copied_bytes: bytes, ..Moved::default() };
            return Ok(Written { moved, merged: None });
        }
        let Spiller { workers, runs, plan, .. } = spiller;
        drop((workers, self.filling.take(), std::mem::take(&mut self.idle)));
        let plan = plan.for_runs(runs.made.len()).ok_or_else(|| too_many(runs.made.len()))?;
        let merged = merge(&plan, (&runs, to), (&self.memory, &self.io), &self.deadline)?;
        let moved = Moved {
            bytes_read: merged.bytes_read,
            bytes_written: bytes,
            copied_bytes: bytes,
            ..Moved::default()
        };
        Ok(Written { moved, merged: Some(merged) })
    }
}

/// What the second phase moved.
pub struct Written {
    /// Bytes.
    pub moved: Moved,
    /// Of a merge also when its threads were done.
    pub merged: Option<Merged>,
}

impl Spiller {
    fn make_run(&mut self, batch: Batch) -> Result<Batch, EngineError> {
        let bytes = batch.bytes();
        self.runs.make_room(bytes)?;
        let offset = self.runs.begin(bytes);
        let room = self.runs.clone();
        let (batch, outline) = self.write(batch, &room, offset)?;
        self.runs.made.push(Run { offset, outline });
        Ok(batch)
    }

    /// Sorts a batch into bytes from `offset` on.
    fn write(
        &mut self,
        batch: Batch,
        to: &impl Writable,
        offset: u64,
    ) -> Result<(Batch, Outline), EngineError> {
        let plan = &self.plan;
        let splitters = splitters_of(&batch.records[..batch.count * RECORD_BYTES], plan.buckets);
        let fill = Fill { batch, pieces: None, splitters: &splitters };
        let scattered = step(plan, &self.deadline, &mut self.workers, Some(fill), None)?;
        let lost = || EngineError::fault("a sort lost its batch");
        let mut batch = scattered.filled.ok_or_else(lost)?;
        for worker in &mut self.workers {
            worker.write = Some(WriteLane::open(to, &self.io)?);
        }
        let run = self.runs.made.len();
        let drain = Drain { batch: &mut batch, offset, run, settle: true };
        let drained = step(plan, &self.deadline, &mut self.workers, None, Some(drain))?;
        sync(&mut self.workers)?;
        let (records, chunk_records) = (batch.count, plan.chunk_records);
        Ok((batch, Outline { records, lasts: drained.lasts, chunk_records }))
    }
}

fn too_many(runs: usize) -> EngineError {
    EngineError::bad_job(format!(
        "{runs} runs, more than were expected, cannot be merged in this memory; give more memory"
    ))
}
