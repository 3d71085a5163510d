//! Miss ratios: under LRU at any size at once, by stack distances, and under the kernel's
//! active/inactive LRU, size by size.

use leadline_sim::{PolicyName, Replay};
use serde::Serialize;

use crate::bins::Bins;
use crate::digest::sample::{PAGE_BYTES, Reference, is_write, place_of};
use crate::distance::distances;
use crate::hash::mix;

/// Bins of stack distances, 1.6% wide.
const BINS: Bins = Bins::per_octave(6);
/// Parts of a sample whose differences tell its error.
const GROUPS: usize = 8;
/// References that active/inactive LRU are simulated with: a third of a second for each size.
const REPLAYED_MAX: usize = 1 << 21;
/// A simulated memory of fewer pages is too coarse for its lists.
const REPLAYED_PAGES_MIN: f64 = 16.0;

/// How often a page was used at a stack distance; estimates, where pages are a sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AtDistance {
    /// Least number of other pages between two uses, of those in this bin.
    pub pages: u64,
    /// References that read.
    pub reads: f64,
    /// References that write.
    pub writes: f64,
}

/// The miss ratio of one size of cache.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Of the cache.
    pub pages: u64,
    /// Share of the references that miss under LRU.
    pub lru: f64,
    /// Its standard error from sampling; None where nothing is sampled.
    pub lru_error: Option<f64>,
    /// The same under the kernel's active/inactive LRU; None of a size that the sample is too small for.
    pub two_lists: Option<f64>,
}

/// Reuse in a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Misses {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// References to pages.
    pub references: u64,
    /// Share of the pages that were looked at.
    pub rate: f64,
    /// Share that was looked at for active/inactive LRU.
    pub two_lists_rate: f64,
    /// Different pages.
    pub unique_pages: f64,
    /// References that read a page for the first time.
    pub first_reads: f64,
    /// References that write one for the first time.
    pub first_writes: f64,
    /// All others, by stack distance.
    pub distances: Vec<AtDistance>,
    /// Miss ratios at the sizes that were asked for.
    pub points: Vec<Point>,
}

/// Returns how often pages were used again, and what misses in caches of these sizes.
///
/// # Arguments
///
/// * `kept`: the references to the pages of a sample.
/// * `rate`: which share of the pages those are.
/// * `references`: to all pages.
/// * `sizes`: of caches in pages, ascending.
pub fn misses_at(kept: &[Reference], rate: f64, references: u64, sizes: &[u64]) -> Misses {
    let mut found = Reuse::new(sizes);
    let uses: Vec<&Reference> = kept.iter().filter(|each| !each.continued).collect();
    for each in kept.iter().filter(|each| each.continued) {
        found.add(each, Some(0));
    }
    distances(uses.iter().map(|each| each.page), |place, distance| {
        let scaled = distance.map(|distance| (distance as f64 / rate) as u64);
        found.add(uses[place], scaled);
    });
    drop(uses);
    let (two_lists, two_lists_rate) = two_lists(kept, rate, references, sizes);
    let expected = references as f64 * rate;
    let points = sizes.iter().enumerate().map(|(place, &pages)| {
        let missed = found.missed_at(place);
        let lru = missed.iter().sum::<u64>() as f64 / expected;
        let lru_error = (rate < 1.0).then(|| spread(&missed, expected));
        Point { pages, lru: lru.min(1.0), lru_error, two_lists: two_lists[place] }
    });
    Misses {
        page_bytes: PAGE_BYTES,
        references,
        rate,
        two_lists_rate,
        unique_pages: (found.first[0] + found.first[1]) as f64 / rate,
        first_reads: found.first[0] as f64 / rate,
        first_writes: found.first[1] as f64 / rate,
        points: points.collect(),
        distances: found.histogram(rate),
    }
}

/// Counts of references by what they would miss.
struct Reuse<'a> {
    sizes: &'a [u64],
    /// By group: how many are missed by so many of the sizes, the smallest.
    missed_by: [Vec<u64>; GROUPS],
    first: [u64; 2],
    bins: Vec<[u64; 2]>,
}

impl<'a> Reuse<'a> {
    fn new(sizes: &'a [u64]) -> Self {
        let missed_by = std::array::from_fn(|_| vec![0; sizes.len() + 1]);
        Self { sizes, missed_by, first: [0; 2], bins: Vec::new() }
    }

    fn add(&mut self, reference: &Reference, distance: Option<u64>) {
        let deed = usize::from(is_write(reference.class));
        let group = mix(reference.page) as usize % GROUPS;
        let too_small = match distance {
            None => {
                self.first[deed] += 1;
                self.sizes.len()
            }
            Some(distance) => {
                let bin = BINS.of(distance);
                if self.bins.len() <= bin {
                    self.bins.resize(bin + 1, [0; 2]);
                }
                self.bins[bin][deed] += 1;
                self.sizes.partition_point(|&pages| pages <= distance)
            }
        };
        self.missed_by[group][too_small] += 1;
    }

    /// By group: how many miss in a cache of the size at this place.
    fn missed_at(&self, place: usize) -> [u64; GROUPS] {
        std::array::from_fn(|group| self.missed_by[group][place + 1..].iter().sum())
    }

    fn histogram(&self, rate: f64) -> Vec<AtDistance> {
        let filled = self.bins.iter().enumerate().filter(|(_, counts)| **counts != [0; 2]);
        let told = filled.map(|(bin, counts)| AtDistance {
            pages: BINS.least(bin),
            reads: counts[0] as f64 / rate,
            writes: counts[1] as f64 / rate,
        });
        told.collect()
    }
}

/// Standard error of the sum of groups of which each is as good a sample.
fn spread(missed: &[u64; GROUPS], expected: f64) -> f64 {
    let each = missed.map(|count| count as f64 * GROUPS as f64 / expected);
    let mean = each.iter().sum::<f64>() / GROUPS as f64;
    let squares: f64 = each.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    (squares / (GROUPS * (GROUPS - 1)) as f64).sqrt()
}

/// Simulates the lists with a sample of the pages in a memory that is smaller by as much
/// (miniature simulation, Waldspurger et al., ATC 2017). Where that sample is smaller than the one
/// of LRU, only how much the lists differ from LRU is taken from it: what it has too many or too
/// few of hot pages shifts both alike.
fn two_lists(
    kept: &[Reference],
    rate: f64,
    references: u64,
    sizes: &[u64],
) -> (Vec<Option<f64>>, f64) {
    let (mut own_rate, mut count) = (rate, kept.len());
    let bound = |rate: f64| (rate * (1_u64 << 32) as f64) as u64;
    while count > REPLAYED_MAX {
        own_rate /= 2.0;
        count = kept.iter().filter(|each| place_of(each.page) < bound(own_rate)).count();
    }
    let own = |each: &&Reference| place_of(each.page) < bound(own_rate) && !each.continued;
    let pages: Vec<u64> = kept.iter().filter(own).map(|each| each.page).collect();
    let beside = (own_rate < rate).then(|| shifts(kept, rate, &pages, own_rate, sizes));
    let ratio = |(place, &size): (usize, &u64)| {
        let held = size as f64 * own_rate;
        if own_rate < 1.0 && held < REPLAYED_PAGES_MIN {
            return None;
        }
        let page_bytes = (PAGE_BYTES as f64 / own_rate) as u64;
        let held = held.round().max(1.0) as usize;
        let mut memory = Replay::new(PolicyName::TwoLists, held, page_bytes);
        let missed = pages.iter().filter(|page| !memory.touch(**page)).count() as f64;
        let shift = beside.as_ref().map_or(0.0, |shifts| shifts[place]);
        let missed = missed / own_rate + shift;
        Some((missed / references as f64).clamp(0.0, 1.0))
    };
    (sizes.iter().enumerate().map(ratio).collect(), own_rate)
}

/// By how many misses under LRU the larger sample has more than the smaller, for each size.
fn shifts(kept: &[Reference], rate: f64, pages: &[u64], own_rate: f64, sizes: &[u64]) -> Vec<f64> {
    let all = kept.iter().filter(|each| !each.continued).map(|each| each.page).collect::<Vec<_>>();
    let (large, small) = (missed_by_lru(&all, rate, sizes), missed_by_lru(pages, own_rate, sizes));
    large.into_iter().zip(small).map(|(large, small)| large - small).collect()
}

/// Misses under LRU in caches of these sizes, estimated from a sample of the pages.
fn missed_by_lru(pages: &[u64], rate: f64, sizes: &[u64]) -> Vec<f64> {
    let mut missed_by = vec![0_u64; sizes.len() + 1];
    distances(pages.iter().copied(), |_, distance| {
        let place = distance.map_or(sizes.len(), |distance| {
            let scaled = (distance as f64 / rate) as u64;
            sizes.partition_point(|&size| size <= scaled)
        });
        missed_by[place] += 1;
    });
    let beyond = |place| missed_by[place + 1..].iter().sum::<u64>() as f64 / rate;
    (0..sizes.len()).map(beyond).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::digest::sample::Sample;

    fn reference(page: u64, clock: u64) -> Reference {
        let (bytes, pages) = (4096, 1);
        Reference { page, clock, bytes, pages, class: (page % 4) as u8, continued: false }
    }

    fn references(pages: &[u64]) -> Vec<Reference> {
        pages.iter().zip(0..).map(|(page, clock)| reference(*page, clock)).collect()
    }

    /// The cache itself, page by page.
    fn simulated(pages: &[u64], size: usize) -> f64 {
        let (mut held, mut missed) = (VecDeque::new(), 0);
        for page in pages {
            match held.iter().position(|each| each == page) {
                Some(place) => drop(held.remove(place)),
                None => missed += 1,
            }
            held.push_front(*page);
            held.truncate(size);
        }
        f64::from(missed) / pages.len() as f64
    }

    proptest! {
        #[test]
        fn every_size_misses_what_a_cache_of_that_size_misses(
            pages in proptest::collection::vec(0_u64..60, 1..400)
        ) {
            let sizes: Vec<u64> = (1..70).collect();
            let found = misses_at(&references(&pages), 1.0, pages.len() as u64, &sizes);
            for point in &found.points {
                let naive = simulated(&pages, point.pages as usize);
                prop_assert!((point.lru - naive).abs() < 1e-12, "{}: {} {naive}", point.pages, point.lru);
            }
            let counted: f64 = found.distances.iter().map(|each| each.reads + each.writes).sum();
            let all = counted + found.first_reads + found.first_writes;
            prop_assert!((all - pages.len() as f64).abs() < 1e-9);
        }
    }

    /// Pages by a power of uniform numbers: some are used far more often than others.
    fn skewed(uses: u64, pages: f64) -> Vec<u64> {
        let drawn = |number| (mix(number) >> 11) as f64 / (1_u64 << 53) as f64;
        (0..uses).map(|number| (drawn(number).powi(2) * pages) as u64).collect()
    }

    #[test]
    fn a_sample_of_the_pages_tells_the_misses_within_its_own_error() {
        let pages = skewed(400_000, 60_000.0);
        let whole = references(&pages);
        let mut sample = Sample::of_at_most(60_000);
        whole.iter().for_each(|each| sample.offer(*each));
        assert!(sample.rate() < 0.3, "{}", sample.rate());
        let sizes: Vec<u64> = (9..16).map(|power| 1 << power).collect();
        let exact = misses_at(&whole, 1.0, 400_000, &sizes);
        let sampled = misses_at(&sample.references, sample.rate(), 400_000, &sizes);
        let (mut sum, mut sum_of_lists) = (0.0, 0.0);
        for (one, other) in exact.points.iter().zip(&sampled.points) {
            let (off, error) = ((one.lru - other.lru).abs(), other.lru_error.unwrap());
            assert!(off < 4.0 * error + 0.002, "{}: off {off}, said {error}", one.pages);
            sum += off;
            sum_of_lists += (one.two_lists.unwrap() - other.two_lists.unwrap()).abs();
        }
        assert!(sum / (sizes.len() as f64) < 0.01, "{sum}");
        assert!(sum_of_lists / (sizes.len() as f64) < 0.01, "{sum_of_lists}");
        assert!((exact.unique_pages / sampled.unique_pages - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_hot_set_survives_a_scan_in_the_two_lists_and_not_in_lru() {
        let scan = |number: u64| 1_000_000 + number;
        let hot = (0..200_000)
            .map(|number| if number % 2 == 0 { mix(number) % 400 } else { scan(number) });
        let pages: Vec<u64> = hot.collect();
        let found = misses_at(&references(&pages), 1.0, 200_000, &[500]);
        let (lru, lists) = (found.points[0].lru, found.points[0].two_lists.unwrap());
        assert!((lru - simulated(&pages[..20_000], 500)).abs() < 0.02, "{lru}");
        assert!(lists < lru - 0.1, "{lists} {lru}");
    }
}
