//! Where to cut sorted runs so that the parts can be merged by themselves: exactly.
//!
//! The order is that of the merge: by key, then by run, then by place in the run. A first look at
//! the last key of every chunk of every run narrows the cut to a few chunks of each; those are
//! read, and halving finds the record.

#![forbid(unsafe_code)]

use std::ops::Range;

use super::entries::{Entry, position_of};

/// A sorted run as known without reading it; the position of its entries is its number.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Records.
    pub records: usize,
    /// The last entry of every chunk of [`Outline::chunk_records`].
    pub lasts: Vec<Entry>,
    /// Records of a chunk but the last.
    pub chunk_records: usize,
}

/// For every run the range of records within which the first `rank` records of the merge end.
#[must_use]
pub fn narrow(runs: &[Outline], rank: usize) -> Vec<Range<usize>> {
    let lasts = runs.iter().flat_map(|run| run.lasts.iter().copied().zip(0..));
    let mut pivots: Vec<(Entry, usize)> = lasts.collect();
    pivots.sort_unstable();
    let sum = |side: Side, pivot| -> usize {
        runs.iter().zip(0..).map(|(run, number)| run.below(number, pivot, side)).sum()
    };
    let low = pivots.partition_point(|pivot| sum(Side::Most, *pivot) <= rank);
    let high = pivots.partition_point(|pivot| sum(Side::Least, *pivot) < rank);
    let low = low.checked_sub(1).and_then(|low| pivots.get(low));
    let range = |(run, number): (&Outline, usize)| {
        let start = low.map_or(0, |pivot| run.below(number, *pivot, Side::Least));
        let end = pivots.get(high);
        let end = end.map_or(run.records, |pivot| run.below(number, *pivot, Side::Most));
        start..end
    };
    runs.iter().zip(0..).map(range).collect()
}

#[derive(Clone, Copy)]
enum Side {
    Least,
    Most,
}

impl Outline {
    /// Records of this run, number `run`, that come before a chunk's last, as far as is known.
    fn below(&self, run: usize, (pivot, chunk): (Entry, usize), side: Side) -> usize {
        if position_of(pivot) == run {
            return ((chunk + 1) * self.chunk_records).min(self.records) - 1;
        }
        let whole = self.lasts.partition_point(|last| *last < pivot);
        match side {
            Side::Least => whole * self.chunk_records,
            Side::Most => (whole + 1) * self.chunk_records,
        }
        .min(self.records)
    }
}

/// How many records of each run are among the first `rank` of the merge; `key(run, place)` is an
/// entry within the ranges, with the run's number as its position.
pub fn cut(
    mut ranges: Vec<Range<usize>>,
    rank: usize,
    mut key: impl FnMut(usize, usize) -> Entry,
) -> Vec<usize> {
    loop {
        let widest = (0..ranges.len()).max_by_key(|run| ranges[*run].len());
        let Some(run) = widest.filter(|run| !ranges[*run].is_empty()) else {
            return ranges.into_iter().map(|range| range.start).collect();
        };
        let middle = ranges[run].start + ranges[run].len() / 2;
        let pivot = key(run, middle);
        let below: Vec<usize> = (0..ranges.len())
            .map(|other| {
                if other == run {
                    return middle;
                }
                let (mut low, mut high) = (ranges[other].start, ranges[other].end);
                while low < high {
                    let place = usize::midpoint(low, high);
                    if key(other, place) < pivot { low = place + 1 } else { high = place }
                }
                low
            })
            .collect();
        let before: usize = below.iter().sum();
        for (range, place) in ranges.iter_mut().zip(below) {
            if before < rank { range.start = place } else { range.end = place }
        }
        if before < rank {
            ranges[run].start = middle + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::entries::at_position;
    use crate::sort::keys_for_tests as keys;

    fn runs_of(entries: &[Entry], count: usize) -> Vec<Vec<Entry>> {
        let runs = entries.chunks(entries.len().div_ceil(count)).zip(0..);
        runs.map(|(part, run)| {
            let mut part: Vec<Entry> = part.iter().map(|entry| at_position(*entry, run)).collect();
            part.sort_unstable();
            part
        })
        .collect()
    }

    #[test]
    fn every_rank_is_cut_exactly_for_any_keys() {
        for (kind, entries) in keys::all(3000) {
            let runs = runs_of(&entries, 7);
            let mut merged: Vec<Entry> = runs.concat();
            merged.sort_unstable();
            let outlines: Vec<Outline> = runs
                .iter()
                .map(|run| Outline {
                    records: run.len(),
                    lasts: run.chunks(16).map(|chunk| chunk[chunk.len() - 1]).collect(),
                    chunk_records: 16,
                })
                .collect();
            for rank in (0..=3000).step_by(131).chain([1, 2, 2999, 3000]) {
                let ranges = narrow(&outlines, rank);
                let wide: usize = ranges.iter().map(Range::len).sum();
                assert!(wide <= 4 * 7 * 16, "{kind}: {wide} records to read");
                let places = cut(ranges.clone(), rank, |run, place| {
                    assert!(ranges[run].contains(&place), "{kind}: a record that is not read");
                    runs[run][place]
                });
                assert_eq!(places.iter().sum::<usize>(), rank);
                let mut first: Vec<Entry> = Vec::new();
                for (run, place) in runs.iter().zip(places) {
                    first.extend_from_slice(&run[..place]);
                }
                first.sort_unstable();
                assert!(first == merged[..rank], "{kind} {rank}");
            }
        }
    }
}
