//! Buckets of entries: lists of blocks in memory of fixed size, filled while records are read.
//!
//! How many entries a bucket gets is known only when all records are read, so a bucket grows by a
//! block at a time; a block's first place holds the number of the next one. One set of buckets
//! belongs to one thread while it is filled and is read by all of them afterwards.

#![forbid(unsafe_code)]

use super::entries::{Entry, RECORD_BYTES, entry_of};
use super::splitters::Splitters;

/// Entries of a block, the link to the next block among them: 4 KiB.
const BLOCK_ENTRIES: usize = 256;
/// Entries that a block keeps.
const KEPT: usize = BLOCK_ENTRIES - 1;

/// One thread's part of every bucket; the blocks themselves lie in a pool given at each call.
#[derive(Debug)]
pub struct Buckets {
    /// First block of each bucket.
    heads: Vec<u32>,
    /// Where its next entry goes; a multiple of [`BLOCK_ENTRIES`]: its last block is full.
    cursors: Vec<usize>,
    /// Entries in its full blocks.
    before: Vec<usize>,
    used: usize,
}

impl Buckets {
    /// Places a pool needs for so many records in so many buckets, however they fall.
    #[must_use]
    pub fn pool_entries(records: usize, buckets: usize) -> usize {
        (records.div_ceil(KEPT) + buckets) * BLOCK_ENTRIES
    }

    /// Empty buckets: the first blocks of a pool.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn new(buckets: usize) -> Self {
        Self {
            heads: (0..buckets as u32).collect(),
            cursors: (0..buckets).map(|block| block * BLOCK_ENTRIES + 1).collect(),
            before: vec![0; buckets],
            used: buckets,
        }
    }

    /// Adds whole records, the first of which is number `position`.
    pub fn add(
        &mut self,
        pool: &mut [Entry],
        splitters: &Splitters,
        records: &[u8],
        position: usize,
    ) {
        for (record, number) in records.chunks_exact(RECORD_BYTES).zip(position as u64..) {
            let entry = entry_of(record, number);
            let bucket = splitters.bucket_of(entry);
            let mut place = self.cursors[bucket];
            if place.is_multiple_of(BLOCK_ENTRIES) {
                place = self.next_block(pool, bucket);
            }
            pool[place] = entry;
            self.cursors[bucket] = place + 1;
        }
    }

    #[cold]
    fn next_block(&mut self, pool: &mut [Entry], bucket: usize) -> usize {
        let block = self.used;
        self.used += 1;
        self.before[bucket] += KEPT;
        pool[self.cursors[bucket] - BLOCK_ENTRIES] = block as Entry;
        block * BLOCK_ENTRIES + 1
    }

    /// How many buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.heads.len()
    }

    /// Entries of one bucket.
    #[must_use]
    pub fn count(&self, bucket: usize) -> usize {
        self.before[bucket] + self.in_last_block(bucket)
    }

    fn in_last_block(&self, bucket: usize) -> usize {
        (self.cursors[bucket] - 1) % BLOCK_ENTRIES
    }

    /// The entries of one bucket, block by block.
    pub fn blocks<'p>(
        &self,
        pool: &'p [Entry],
        bucket: usize,
    ) -> impl Iterator<Item = &'p [Entry]> + Clone + use<'p> {
        let mut left = self.count(bucket);
        let mut block = self.heads[bucket] as usize;
        std::iter::from_fn(move || {
            let count = left.min(KEPT);
            if count == 0 {
                return None;
            }
            left -= count;
            let first = block * BLOCK_ENTRIES;
            block = super::entries::position_of(pool[first]);
            Some(&pool[first + 1..=first + count])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::keys_for_tests as keys;

    #[test]
    fn every_entry_is_in_its_bucket_once() {
        for kind in keys::KINDS {
            let records = keys::records(kind, 20_000);
            let entries = keys::entries(&records);
            let sample = entries.iter().copied().step_by(50).collect();
            let splitters = Splitters::from_sample(sample, 16);
            let buckets_max = splitters.buckets();
            let mut pool = vec![0; Buckets::pool_entries(20_000, buckets_max)];
            let mut buckets = Buckets::new(buckets_max);
            for (piece, number) in records.chunks(700 * RECORD_BYTES).zip(0..) {
                buckets.add(&mut pool, &splitters, piece, number * 700);
            }
            let mut found = Vec::new();
            for bucket in 0..buckets.buckets() {
                let before = found.len();
                for block in buckets.blocks(&pool, bucket) {
                    assert!(block.iter().all(|entry| splitters.bucket_of(*entry) == bucket));
                    found.extend_from_slice(block);
                }
                assert_eq!(found.len() - before, buckets.count(bucket), "{kind}");
            }
            found.sort_unstable_by_key(|entry| super::super::entries::position_of(*entry));
            assert!(found == entries, "{kind}");
        }
    }

    #[test]
    fn a_pool_of_the_stated_size_holds_whatever_falls_in_one_bucket() {
        for count in [0, 1, 254, 255, 256, 510, 511, 5100] {
            let records = keys::records("equal", count);
            let sample = vec![1 << 100, 2 << 100, Entry::MAX];
            let splitters = Splitters::from_sample(sample, 3);
            let mut pool = vec![0; Buckets::pool_entries(count, splitters.buckets())];
            let mut buckets = Buckets::new(splitters.buckets());
            buckets.add(&mut pool, &splitters, &records, 0);
            let counts: usize = (0..buckets.buckets()).map(|bucket| buckets.count(bucket)).sum();
            assert_eq!(counts, count);
        }
    }
}
