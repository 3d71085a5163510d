//! Which bucket an entry belongs to: boundaries between buckets, drawn from a sample of the keys.
//!
//! The range of the sample is cut into equal cells. A boundary inside a cell with few keys moves to
//! the cell's edge, so nearly every entry finds its bucket by one look into a table that stays in
//! the first-level cache; a cell with many keys (skewed, printable, nearly equal ones) keeps its
//! boundaries, and its entries are compared with those. Boundaries are whole entries, positions
//! included: a key that fills many buckets by itself is divided by where its records lie.

#![forbid(unsafe_code)]

use super::entries::Entry;

/// Cells of the table: 32 KiB of it.
const CELLS: usize = 1 << 14;
/// Set in a cell that has boundaries of its own.
const DIVIDED: u16 = 1 << 15;
/// Most buckets: their write positions are to stay in the second-level cache while scattering.
pub const BUCKETS_MAX: usize = 1 << 12;

/// Boundaries between buckets.
#[derive(Debug)]
pub struct Splitters {
    least: Entry,
    shift: u32,
    /// The bucket of a cell's first entry; with [`DIVIDED`], later ones may belong to the next.
    cells: Box<[u16; CELLS]>,
    /// The first entry of every bucket but the first.
    bounds: Vec<Entry>,
}

impl Splitters {
    /// Boundaries of at most `buckets` buckets of about equal size, if the rest is like `sample`.
    #[must_use]
    pub fn from_sample(mut sample: Vec<Entry>, buckets: usize) -> Self {
        sample.sort_unstable();
        sample.dedup();
        let least = sample.first().copied().unwrap_or(0);
        let range = sample.last().copied().unwrap_or(0) - least;
        let bits = Entry::BITS - range.leading_zeros();
        let shift = bits.saturating_sub(CELLS.trailing_zeros());
        let mut splitters = Self { least, shift, cells: Box::new([0; CELLS]), bounds: Vec::new() };
        splitters.bounds = splitters.draw(&sample, buckets.clamp(1, BUCKETS_MAX));
        splitters.fill_cells();
        splitters
    }

    /// Buckets there are.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.bounds.len() + 1
    }

    /// The bucket of an entry.
    #[inline]
    #[must_use]
    pub fn bucket_of(&self, entry: Entry) -> usize {
        let cell = self.cell_of(entry);
        let bucket = self.cells[cell];
        if bucket & DIVIDED == 0 { usize::from(bucket) } else { self.search(cell, entry) }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn cell_of(&self, entry: Entry) -> usize {
        (entry.saturating_sub(self.least) >> self.shift).min(CELLS as Entry - 1) as usize
    }

    #[cold]
    fn search(&self, cell: usize, entry: Entry) -> usize {
        let first = usize::from(self.cells[cell] & !DIVIDED);
        let next = self.cells.get(cell + 1).map(|bucket| usize::from(bucket & !DIVIDED));
        let candidates = &self.bounds[first..next.unwrap_or(self.bounds.len())];
        first + candidates.partition_point(|bound| *bound <= entry)
    }

    fn draw(&self, sample: &[Entry], buckets: usize) -> Vec<Entry> {
        let few = sample.len() / buckets / 8;
        let mut bounds: Vec<Entry> = Vec::with_capacity(buckets);
        for number in 1..buckets {
            let Some(bound) = sample.get(number * sample.len() / buckets) else { continue };
            let cell = self.cell_of(*bound);
            let inside = sample.partition_point(|entry| self.cell_of(*entry) <= cell)
                - sample.partition_point(|entry| self.cell_of(*entry) < cell);
            let bound = if inside <= few { self.edge_of(cell) } else { *bound };
            if bound > bounds.last().copied().unwrap_or(self.least) {
                bounds.push(bound);
            }
        }
        bounds
    }

    #[allow(clippy::cast_possible_truncation)]
    fn fill_cells(&mut self) {
        for cell in 0..CELLS {
            let first = self.edge_of(cell);
            let last = first.saturating_add((1 << self.shift) - 1);
            let bucket = self.bounds.partition_point(|bound| *bound <= first);
            let next = self.bounds.get(bucket);
            let divided = next.is_some_and(|bound| *bound <= last || cell == CELLS - 1);
            self.cells[cell] = bucket as u16 | if divided { DIVIDED } else { 0 };
        }
    }

    fn edge_of(&self, cell: usize) -> Entry {
        self.least.saturating_add((cell as Entry) << self.shift)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sort::keys_for_tests as keys;

    #[test]
    fn buckets_are_in_order_and_of_about_equal_size_for_any_keys() {
        for (name, entries) in keys::all(100_000) {
            let sample = entries.iter().copied().step_by(16).collect();
            let splitters = Splitters::from_sample(sample, 64);
            let mut counts = vec![0usize; splitters.buckets()];
            let mut sorted = entries.clone();
            sorted.sort_unstable();
            let mut before = 0;
            for entry in sorted {
                let bucket = splitters.bucket_of(entry);
                assert!(bucket >= before, "{name}: buckets out of order");
                before = bucket;
                counts[bucket] += 1;
            }
            let most = *counts.iter().max().unwrap();
            assert!(most < 2 * 100_000 / 64, "{name}: {most} in one of {} buckets", counts.len());
        }
    }

    #[test]
    fn entries_outside_the_sample_belong_to_the_ends() {
        let sample: Vec<Entry> = (1000..2000).map(|key| key << 48).collect();
        let splitters = Splitters::from_sample(sample, 8);
        assert_eq!(splitters.bucket_of(0), 0);
        assert_eq!(splitters.bucket_of(Entry::MAX), splitters.buckets() - 1);
        assert!(splitters.buckets() > 4);
    }

    #[test]
    fn no_sample_is_one_bucket() {
        let splitters = Splitters::from_sample(Vec::new(), 8);
        assert_eq!((splitters.buckets(), splitters.bucket_of(5)), (1, 0));
    }
}
