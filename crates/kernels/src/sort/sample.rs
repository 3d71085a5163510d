//! A sample of the keys of a batch, before it is read: pages at equal distances in it.

use leadline_engine::error::EngineError;

use super::entries::{Entry, RECORD_BYTES, entry_of};
use super::plan::UNIT_RECORDS;
use super::splitters::Splitters;
use crate::lane::ReadLane;
use crate::memory::{PAGE_BYTES, Region};

/// Whole records of a page.
const PAGE_RECORDS: usize = PAGE_BYTES / RECORD_BYTES;
const UNIT_BYTES: usize = UNIT_RECORDS * RECORD_BYTES;

/// Pages for a sample for so many buckets: 80 keys for each.
fn pages(buckets: usize) -> usize {
    (2 * buckets).clamp(16, 1024)
}

/// Bytes a sample is read into.
#[must_use]
pub fn bytes(buckets: usize) -> usize {
    pages(buckets) * PAGE_BYTES
}

/// Reads samples through a lane of its own, a batch ahead.
pub struct Sampler {
    lane: ReadLane,
    pages: Vec<Region>,
    buckets: usize,
    /// Where the batch that was asked for begins.
    from: u64,
}

impl Sampler {
    /// Samples in `memory`, which has the [`bytes`] for so many buckets.
    #[must_use]
    pub fn new(lane: ReadLane, memory: Region, buckets: usize) -> Self {
        Self { lane, pages: memory.split(PAGE_BYTES), buckets, from: 0 }
    }

    /// Begins to read a sample of the batch of `bytes` from `from` on.
    pub fn ask(&mut self, from: u64, bytes: u64) {
        self.from = from;
        let units = bytes.div_ceil(UNIT_BYTES as u64);
        let count = units.min(self.pages.len() as u64);
        for page in (0..count).rev() {
            let Some(into) = self.pages.pop() else { return };
            let at = page * units / count * UNIT_BYTES as u64;
            let length = (bytes - at).min(PAGE_BYTES as u64);
            self.lane.submit(from + at, usize::try_from(length).unwrap_or(PAGE_BYTES), into);
        }
    }

    /// The borders of buckets after the sample that was asked for.
    ///
    /// # Errors
    /// As reading.
    pub fn splitters(&mut self) -> Result<Splitters, EngineError> {
        let mut sample: Vec<Entry> = Vec::new();
        while self.lane.pending() > 0 {
            let (at, length, page) = self.lane.take()?;
            let first = (at - self.from) / RECORD_BYTES as u64;
            let records = page[..length].chunks_exact(RECORD_BYTES).take(PAGE_RECORDS);
            sample.extend(records.zip(first..).map(|(record, number)| entry_of(record, number)));
            self.pages.push(page);
        }
        Ok(Splitters::from_sample(sample, self.buckets))
    }
}

/// The borders of buckets for records that are in memory.
#[must_use]
pub fn splitters_of(records: &[u8], buckets: usize) -> Splitters {
    let units = records.len().div_ceil(UNIT_BYTES);
    let step = units.div_ceil(pages(buckets)).max(1);
    let sample = records.chunks(UNIT_BYTES).enumerate().step_by(step).flat_map(|(unit, bytes)| {
        let numbers = (unit * UNIT_RECORDS) as u64..;
        let records = bytes.chunks_exact(RECORD_BYTES).take(PAGE_RECORDS);
        records.zip(numbers).map(|(record, number)| entry_of(record, number))
    });
    Splitters::from_sample(sample.collect(), buckets)
}
