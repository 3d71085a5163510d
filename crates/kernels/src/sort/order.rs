//! The entries of all buckets in order, a bucket at a time.
//!
//! Buckets are small enough to be sorted within the second-level cache. One that is not, because
//! the sample missed what filled it, is divided: ranges of its entries are counted and then picked
//! out of its blocks one by one, at the price of reading its entries once for each. Entries differ
//! in any case, so a division always gets smaller pieces.

#![forbid(unsafe_code)]

use super::buckets::Buckets;
use super::entries::Entry;

/// Pieces that an oversized bucket is divided into at a time.
const PIECES: usize = 64;

/// One thread's buckets and the pool their blocks lie in.
#[derive(Clone, Copy, Debug)]
pub struct Share<'a> {
    /// The lists.
    pub buckets: &'a Buckets,
    /// The blocks.
    pub pool: &'a [Entry],
}

/// A range of entries of one bucket, `least <= entry < beyond`.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bucket: usize,
    least: Entry,
    /// None: up to the greatest.
    beyond: Option<Entry>,
    count: usize,
}

/// Hands out sorted entries from one place in the order to another.
#[derive(Debug)]
pub struct Order<'a> {
    shares: Vec<Share<'a>>,
    scratch: &'a mut [Entry],
    /// What comes, the next one last.
    pieces: Vec<Piece>,
    /// Sorted entries in `scratch` not handed out yet.
    ready: std::ops::Range<usize>,
    /// Entries to skip before the first one wanted.
    skip: usize,
    left: usize,
}

impl<'a> Order<'a> {
    /// The entries number `from` to `to` (exclusive) in the order of all shares together.
    ///
    /// `scratch` should hold a bucket with ease; it must hold [`PIECES`] entries.
    #[must_use]
    pub fn new(shares: Vec<Share<'a>>, scratch: &'a mut [Entry], from: usize, to: usize) -> Self {
        let buckets = shares.first().map_or(0, |share| share.buckets.buckets());
        let pieces = (0..buckets).rev().map(|bucket| {
            let count = shares.iter().map(|share| share.buckets.count(bucket)).sum();
            Piece { bucket, least: 0, beyond: None, count }
        });
        let pieces = pieces.collect();
        Self { shares, scratch, pieces, ready: 0..0, skip: from, left: to - from }
    }

    /// The next entries in order, at most `most`; empty only at the end.
    pub fn next(&mut self, most: usize) -> &[Entry] {
        while self.ready.is_empty() && self.left > 0 && !self.pieces.is_empty() {
            self.load();
        }
        let count = most.min(self.ready.len()).min(self.left);
        let first = self.ready.start;
        self.ready.start += count;
        self.left -= count;
        &self.scratch[first..first + count]
    }

    fn load(&mut self) {
        let Some(piece) = self.pieces.pop() else { return };
        if piece.count <= self.skip {
            self.skip -= piece.count;
        } else if piece.count > self.scratch.len() {
            self.divide(piece);
        } else {
            let count = self.pick(piece);
            self.scratch[..count].sort_unstable();
            self.ready = self.skip..count;
            self.skip = 0;
        }
    }

    /// Copies a piece's entries to the front of the scratch memory.
    fn pick(&mut self, piece: Piece) -> usize {
        let mut count = 0;
        for share in &self.shares {
            for block in share.buckets.blocks(share.pool, piece.bucket) {
                if piece.least == 0 && piece.beyond.is_none() {
                    self.scratch[count..count + block.len()].copy_from_slice(block);
                    count += block.len();
                    continue;
                }
                for entry in block.iter().filter(|entry| piece.has(**entry)) {
                    self.scratch[count] = *entry;
                    count += 1;
                }
            }
        }
        count
    }

    fn divide(&mut self, piece: Piece) {
        let step = piece.count.div_ceil(self.scratch.len());
        let entries = self
            .shares
            .iter()
            .flat_map(|share| share.buckets.blocks(share.pool, piece.bucket).flatten().copied());
        let inside = entries.filter(|entry| piece.has(*entry));
        let mut drawn = 0;
        for (place, entry) in self.scratch.iter_mut().zip(inside.clone().step_by(step)) {
            *place = entry;
            drawn += 1;
        }
        let sample = &mut self.scratch[..drawn];
        sample.sort_unstable();
        let splitters: Vec<Entry> =
            (1..PIECES).map(|number| sample[number * drawn / PIECES]).collect();
        let mut counts = vec![0; PIECES];
        for entry in inside {
            counts[splitters.partition_point(|splitter| *splitter <= entry)] += 1;
        }
        for (number, count) in counts.into_iter().enumerate().rev() {
            let least = if number == 0 { piece.least } else { splitters[number - 1] };
            let beyond = splitters.get(number).copied().or(piece.beyond);
            self.pieces.push(Piece { least, beyond, count, ..piece });
        }
    }
}

impl Piece {
    fn has(&self, entry: Entry) -> bool {
        self.least <= entry && self.beyond.is_none_or(|beyond| entry < beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::entries::RECORD_BYTES;
    use crate::sort::keys_for_tests as keys;
    use crate::sort::splitters::Splitters;

    /// Buckets of two threads from a sample that may be bad.
    fn fill(records: &[u8], sample: Vec<Entry>) -> Vec<(Buckets, Vec<Entry>)> {
        let splitters = Splitters::from_sample(sample, 32);
        let half = records.len() / RECORD_BYTES / 2;
        let (first, second) = records.split_at(half * RECORD_BYTES);
        let parts = [(first, 0), (second, half)].map(|(part, position)| {
            let count = part.len() / RECORD_BYTES;
            let mut pool = vec![0; Buckets::pool_entries(count, splitters.buckets())];
            let mut buckets = Buckets::new(splitters.buckets());
            buckets.add(&mut pool, &splitters, part, position);
            (buckets, pool)
        });
        parts.into()
    }

    fn order(
        parts: &[(Buckets, Vec<Entry>)],
        scratch: usize,
        from: usize,
        to: usize,
    ) -> Vec<Entry> {
        let shares = parts.iter().map(|(buckets, pool)| Share { buckets, pool }).collect();
        let mut scratch = vec![0; scratch];
        let mut order = Order::new(shares, &mut scratch, from, to);
        let mut all = Vec::new();
        loop {
            let next = order.next(1000);
            if next.is_empty() {
                return all;
            }
            all.extend_from_slice(next);
        }
    }

    #[test]
    fn parts_of_the_order_make_the_whole_for_any_keys() {
        for (kind, mut entries) in keys::all(30_000) {
            let records = keys::records(kind, 30_000);
            let parts = fill(&records, entries.iter().copied().step_by(20).collect());
            entries.sort_unstable();
            for (from, to) in [(0, 30_000), (0, 1), (12_345, 23_456), (29_999, 30_000), (7, 7)] {
                assert!(order(&parts, 4000, from, to) == entries[from..to], "{kind} {from}");
            }
        }
    }

    #[test]
    fn a_bucket_far_larger_than_the_scratch_memory_is_divided() {
        // More than PIECES times the scratch memory: pieces are divided as well.
        for (kind, mut entries) in keys::all(6_000) {
            let records = keys::records(kind, 6_000);
            let parts = fill(&records, Vec::new());
            entries.sort_unstable();
            assert!(order(&parts, 70, 0, 6_000) == entries, "{kind}");
            assert!(order(&parts, 90, 3_401, 3_402) == entries[3_401..3_402], "{kind}");
        }
    }
}
