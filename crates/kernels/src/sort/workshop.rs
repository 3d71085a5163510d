//! What a sort works with, leased from the job's memory as the plan says.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;

use super::batch::{Batch, Worker};
use super::entries::Entry;
use super::plan::Plan;
use super::sample;
use crate::memory::{Memory, Region};

/// Batches, workers, and room for a sample.
pub struct Workshop {
    /// Empty batches.
    pub batches: Vec<Batch>,
    /// One for each thread.
    pub workers: Vec<Worker>,
    /// Room for a sample.
    pub sample: Region,
}

impl Workshop {
    /// Leases it all, in one piece: pieces aligned by themselves would leave gaps.
    ///
    /// # Errors
    /// `BadJob` when the memory does not allow it.
    pub fn lease(plan: &Plan, memory: &Memory) -> Result<Self, EngineError> {
        let mut left = memory.take(plan.bytes())?;
        let mut cut = |bytes: usize| {
            let whole = std::mem::replace(&mut left, memory.take(0)?);
            let (piece, rest) = whole.split_at(bytes)?;
            left = rest;
            Ok::<Region, EngineError>(piece)
        };
        let mut batches = Vec::new();
        for _ in 0..plan.batches {
            let records = cut(plan.batch_bytes())?;
            let pools = (0..plan.threads).map(|_| cut(plan.pool_bytes()));
            batches.push(Batch::new(records, pools.collect::<Result<_, _>>()?));
        }
        let mut workers = Vec::new();
        for _ in 0..plan.threads {
            let free = cut(plan.write_buffers * plan.chunk_bytes())?.split(plan.chunk_bytes());
            workers.push(Worker::new(cut(plan.scratch_entries * size_of::<Entry>())?, free));
        }
        Ok(Self { batches, workers, sample: cut(sample::bytes(plan.buckets))? })
    }
}
