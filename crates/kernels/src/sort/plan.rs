//! How a sort lays out its memory: one pass when everything fits, else runs of half of it.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;

use super::buckets::Buckets;
use super::entries::{Entry, RECORD_BYTES};
use super::splitters::BUCKETS_MAX;

/// Records of the smallest unit that is whole pages: what runs are read back by in little memory.
pub const UNIT_RECORDS: usize = 1024;
/// Records of a chunk, the unit of reading and writing: 16 384, or 1 638 400 bytes.
const CHUNK_RECORDS_MAX: usize = 16 * UNIT_RECORDS;
/// Entries of a bucket that a second-level cache holds beside the records being gathered.
const BUCKET_ENTRIES: usize = 32 << 10;
const BUCKET_ENTRIES_MIN: usize = 1 << 10;
/// How much larger than the mean a bucket may be before it is divided.
const SCRATCH_BUCKETS: usize = 4;
const WRITE_BUFFERS_MAX: usize = 8;
/// Runs worth having: with more of the memory in each there would be fewer, but memory that is
/// touched for the first time costs more than a run more in the merge (in a virtual machine up to
/// 2.8 s a GiB, measured where the host had to find the pages).
const RUNS_WANTED: usize = 24;
/// Least records of a batch that is smaller than it could be.
const BATCH_RECORDS_MIN: usize = 1 << 20;
/// Chunks that a thread of the merge reads ahead.
const MERGE_AHEAD: usize = 16;
/// Least memory worth a thread of its own.
const THREAD_BYTES: usize = 4 << 20;

/// The layout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Threads that compute.
    pub threads: usize,
    /// Runs the data makes; 1: a single pass.
    pub runs: usize,
    /// Records that a batch has memory for: whole chunks.
    pub batch_records: usize,
    /// Batches in memory at once: two, so that one is read while the other is sorted and written.
    pub batches: usize,
    /// Records of a chunk.
    pub chunk_records: usize,
    /// Buckets a batch is scattered into.
    pub buckets: usize,
    /// Entries of a thread's memory for sorting a bucket.
    pub scratch_entries: usize,
    /// Chunks that a thread writes from.
    pub write_buffers: usize,
    /// Threads that merge: fewer where memory has no buffers for all.
    pub merge_threads: usize,
    /// Chunks that a thread merges from.
    pub merge_buffers: usize,
    memory: usize,
}

impl Plan {
    /// The layout for so many records in `memory` bytes.
    ///
    /// # Errors
    /// `BadJob` when two passes do not do: with how much memory they would.
    pub fn new(records: usize, memory: usize, threads: u32) -> Result<Self, EngineError> {
        if let Some(plan) = Self::lay_out(records, memory, threads) {
            return Ok(plan);
        }
        let more = (1..32).map(|times| memory.saturating_mul(1 << times));
        let enough = more.into_iter().find(|more| Self::lay_out(records, *more, threads).is_some());
        Err(EngineError::bad_job(format!(
            "{records} records cannot be sorted in two passes within {memory} bytes of memory; give \
            {} bytes",
            enough.unwrap_or(usize::MAX)
        )))
    }

    fn lay_out(records: usize, memory: usize, threads: u32) -> Option<Self> {
        let threads = (threads as usize).min(memory / THREAD_BYTES).max(1);
        let share = memory / (64 * UNIT_RECORDS * RECORD_BYTES * threads);
        let units = share.clamp(1, CHUNK_RECORDS_MAX / UNIT_RECORDS);
        let plan = Self {
            threads,
            runs: 1,
            batch_records: 0,
            batches: 1,
            chunk_records: units * UNIT_RECORDS,
            buckets: 1,
            scratch_entries: 0,
            write_buffers: 0,
            merge_threads: threads,
            merge_buffers: 0,
            memory,
        };
        let whole = plan.with_batch(records);
        if whole.bytes() <= memory {
            return Some(whole);
        }
        let units = std::iter::successors(Some(units), |units| (*units > 1).then_some(units / 2));
        let mut plans = units.filter_map(|units| {
            let plan = Self { chunk_records: units * UNIT_RECORDS, batches: 2, ..plan };
            let largest = plan.largest_batch();
            let enough = records.div_ceil(RUNS_WANTED).max(BATCH_RECORDS_MIN);
            let runs = records.div_ceil(largest.min(enough).max(1));
            let plan = plan.with_batch(records.div_ceil(runs));
            (largest > 0).then_some(plan)?.for_runs(runs)
        });
        plans.next()
    }

    /// The layout for records that others hand over: all of the memory, because there may be more
    /// of them than was expected.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn for_sink(records: usize, memory: usize, threads: u32) -> Result<Self, EngineError> {
        let plan = Self::new(records, memory, threads)?;
        let enough = records.div_ceil(RUNS_WANTED).max(BATCH_RECORDS_MIN);
        let largest = plan.largest_batch();
        let largest = if plan.runs > 1 { largest.min(enough) } else { largest };
        let roomy = plan.with_batch(largest).for_runs(records.div_ceil(largest.max(1)));
        Ok(roomy.filter(|_| largest > 0).unwrap_or(plan))
    }

    /// The same batches when they turn out to be `runs`; none when those are too many to merge.
    #[must_use]
    pub fn for_runs(self, runs: usize) -> Option<Self> {
        if runs <= 1 {
            return Some(Self { runs, ..self });
        }
        let least = (runs + 2 + self.write_buffers) * self.chunk_bytes();
        let most = self.threads.min(self.memory / least);
        // Smaller chunks before fewer threads.
        if most == 0 || (most < self.threads && self.chunk_records > UNIT_RECORDS) {
            return None;
        }
        let room = self.memory / most / self.chunk_bytes() - self.write_buffers;
        Some(Self {
            runs,
            merge_threads: most,
            merge_buffers: room.min(runs + MERGE_AHEAD),
            ..self
        })
    }

    fn with_batch(self, records: usize) -> Self {
        let batch_records = records.max(1).next_multiple_of(self.chunk_records);
        let share = batch_records / (16 * self.threads);
        let wanted = share.clamp(BUCKET_ENTRIES_MIN, BUCKET_ENTRIES);
        let buckets = batch_records.div_ceil(wanted).min(BUCKETS_MAX);
        let mean = batch_records.div_ceil(buckets);
        let scratch_entries = (SCRATCH_BUCKETS * mean).next_multiple_of(256);
        let room = self.memory / 8 / (self.threads * self.chunk_bytes());
        let write_buffers = room.clamp(2, WRITE_BUFFERS_MAX);
        Self { batch_records, buckets, scratch_entries, write_buffers, ..self }
    }

    fn largest_batch(&self) -> usize {
        let (mut fits, mut beyond) = (0, self.memory / (RECORD_BYTES * self.chunk_records) + 1);
        while beyond - fits > 1 {
            let middle = usize::midpoint(fits, beyond);
            if self.with_batch(middle * self.chunk_records).bytes() <= self.memory {
                fits = middle;
            } else {
                beyond = middle;
            }
        }
        fits * self.chunk_records
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_records * RECORD_BYTES
    }

    /// Bytes of a batch's records.
    #[must_use]
    pub fn batch_bytes(&self) -> usize {
        self.batch_records * RECORD_BYTES
    }

    /// Chunks of a batch that a thread fills and writes, at most.
    #[must_use]
    pub fn chunks_of_thread(&self) -> usize {
        (self.batch_records / self.chunk_records).div_ceil(self.threads)
    }

    /// Bytes of the blocks that a thread scatters into.
    #[must_use]
    pub fn pool_bytes(&self) -> usize {
        let records = self.chunks_of_thread() * self.chunk_records;
        Buckets::pool_entries(records, self.buckets) * size_of::<Entry>()
    }

    /// Bytes that a thread sorts and writes in.
    #[must_use]
    pub fn worker_bytes(&self) -> usize {
        self.scratch_entries * size_of::<Entry>() + self.write_buffers * self.chunk_bytes()
    }

    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let batch = self.batch_bytes() + self.threads * self.pool_bytes();
        let sample = super::sample::bytes(self.buckets);
        self.batches * batch + self.threads * self.worker_bytes() + sample
    }

    /// Bytes that a thread merges in.
    #[must_use]
    pub fn merge_bytes(&self) -> usize {
        (self.merge_buffers + self.write_buffers) * self.chunk_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_fits_takes_one_pass_and_nearly_all_of_the_memory_is_records() {
        let plan = Plan::new(8_800_000, 1016 * MIB, 2).unwrap();
        assert_eq!((plan.runs, plan.batches, plan.threads, plan.chunk_records), (1, 1, 2, 16384));
        assert!(
            Plan::new(9_100_000, 1016 * MIB, 2).unwrap().runs > 1,
            "bounds: 116 bytes a record"
        );
    }

    #[test]
    fn no_layout_takes_more_than_the_memory() {
        for memory in [24, 56, 120, 504, 1016, 16_000].map(|memory| memory * MIB) {
            for threads in [1, 2, 3, 16, 200] {
                for records in [0, 1, 1000, 250_000, 3_000_000, 42_949_673, 500_000_000] {
                    let Ok(plan) = Plan::new(records, memory, threads) else { continue };
                    assert!(plan.bytes() <= memory, "{plan:?}");
                    assert!(plan.runs * plan.batch_records >= records, "{plan:?}");
                    assert!(plan.merge_threads * plan.merge_bytes() <= memory, "{plan:?}");
                    assert!(plan.runs == 1 || plan.merge_buffers >= plan.runs + 2, "{plan:?}");
                    let sink = Plan::for_sink(records, memory, threads).unwrap();
                    assert!(sink.bytes() <= memory, "{sink:?}");
                    assert!(sink.batch_records >= plan.batch_records, "{sink:?}");
                }
            }
        }
    }

    #[test]
    fn the_least_memory_sorts_a_gibibyte_and_more_is_asked_for_where_it_is_needed() {
        let gib = (1 << 30) / RECORD_BYTES;
        assert_eq!(Plan::new(gib, 24 * MIB, 1).unwrap().chunk_records, UNIT_RECORDS);
        let error = Plan::new(100 * gib, 24 * MIB, 1).unwrap_err();
        let enough: usize = error.message.rsplit(' ').nth(1).unwrap().parse().unwrap();
        assert!(enough < 1024 * MIB && Plan::new(100 * gib, enough, 1).is_ok(), "{error}");
    }
}
