//! A sample of the keys of a batch, before it is read: pages at equal distances in it.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

use leadline_base::error::EngineError;

use super::batch::Piece;
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
    /// Numbers of the first records of the pages under way.
    asked: VecDeque<u64>,
}

impl Sampler {
    /// Samples in `memory`, which has the [`bytes`] for so many buckets.
    #[must_use]
    pub fn new(lane: ReadLane, memory: Region, buckets: usize) -> Self {
        Self { lane, pages: memory.split(PAGE_BYTES), buckets, asked: VecDeque::new() }
    }

    /// Begins to read a sample of a batch of these pieces, each in a slot of `chunk_records`.
    pub fn ask(&mut self, pieces: &[Piece], chunk_records: usize) {
        let units_of_slot = chunk_records / UNIT_RECORDS;
        let units = pieces.len() * units_of_slot;
        let count = units.min(self.pages.len());
        for unit in (0..count).map(|page| page * units / count) {
            let (at, bytes) = pieces[unit / units_of_slot];
            let skip = unit % units_of_slot * UNIT_BYTES;
            let length = bytes.saturating_sub(skip).min(PAGE_BYTES);
            if length < RECORD_BYTES {
                continue;
            }
            let Some(into) = self.pages.pop() else { return };
            self.asked.push_back((unit * UNIT_RECORDS) as u64);
            self.lane.submit(at + skip as u64, length, into);
        }
    }

    /// The boundaries of buckets after the sample that was asked for.
    ///
    /// # Errors
    /// As reading.
    pub fn splitters(&mut self) -> Result<Splitters, EngineError> {
        let mut sample: Vec<Entry> = Vec::new();
        while let Some(first) = self.asked.pop_front() {
            let (_, length, page) = self.lane.take()?;
            let records = page[..length].chunks_exact(RECORD_BYTES).take(PAGE_RECORDS);
            sample.extend(records.zip(first..).map(|(record, number)| entry_of(record, number)));
            self.pages.push(page);
        }
        Ok(Splitters::from_sample(sample, self.buckets))
    }
}

/// The boundaries of buckets for records that are in memory.
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
