//! A log-linear latency histogram with a derived error bound.
//!
//! Values below 128 ns have a bucket each. Above, every octave `[2^e, 2^(e+1))` is split into 128
//! buckets of equal width `2^(e−7)`. A bucket that begins at `b ≥ 2^e` is therefore at most `b/128`
//! wide, and a value reported as the middle of its bucket is off by at most half of that:
//! **relative error ≤ 1/256 (0.39%)** up to 2^45 ns (9.8 hours), which is also the largest value
//! told apart. The mean, the count and the maximum are exact. Memory is fixed and recording
//! allocates nothing.

#![forbid(unsafe_code)]

use std::fmt;

const SUB_BITS: u32 = 7;
const SUB_BUCKETS: usize = 1 << SUB_BITS;
const OCTAVE_MAX: u32 = 44;
const BUCKETS: usize = SUB_BUCKETS * (OCTAVE_MAX - SUB_BITS + 2) as usize;
const VALUE_MAX: u64 = (1 << (OCTAVE_MAX + 1)) - 1;

/// Largest relative error of a percentile, by the derivation above.
pub const RELATIVE_ERROR_MAX: f64 = 1.0 / (2 * SUB_BUCKETS) as f64;

/// Counts of response times in nanoseconds.
#[derive(Clone, Eq, PartialEq)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

/// Without the thousands of buckets.
impl fmt::Debug for Histogram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, sum_ns, max_ns, .. } = self;
        write!(formatter, "Histogram {{ count: {count}, sum_ns: {sum_ns}, max_ns: {max_ns} }}")
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS].into_boxed_slice(), count: 0, sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Records one response time.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.buckets[bucket_of(value_ns)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds everything another histogram recorded.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values in nanoseconds, exact.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Largest value in nanoseconds, exact; 0 when nothing was recorded.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Mean in nanoseconds, exact; 0 when nothing was recorded.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// The value at or below which a share `quantile` (0 to 1) of the values lies, in nanoseconds:
    /// the middle of the bucket of the value of rank `ceil(quantile · count)`, never above the
    /// maximum.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let (low, width) = bucket_bounds(bucket);
                let middle = low as f64 + (width - 1) as f64 / 2.0;
                return middle.min(self.max_ns as f64);
            }
        }
        self.max_ns as f64
    }

    /// The buckets that hold anything, as `(bucket, count)`.
    #[must_use]
    pub fn sparse(&self) -> Vec<(u32, u64)> {
        (0u32..)
            .zip(&self.buckets)
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, count)| (bucket, *count))
            .collect()
    }
}

/// The bucket of a value; values above 2^45 ns share the last one.
#[inline]
fn bucket_of(value_ns: u64) -> usize {
    let value = value_ns.min(VALUE_MAX);
    if value < SUB_BUCKETS as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    (shift as usize) * SUB_BUCKETS + (value >> shift) as usize
}

/// First value and width of a bucket, in nanoseconds.
#[must_use]
pub fn bucket_bounds(bucket: usize) -> (u64, u64) {
    if bucket < 2 * SUB_BUCKETS {
        return (bucket as u64, 1);
    }
    let shift = (bucket / SUB_BUCKETS - 1) as u32;
    let within = (bucket % SUB_BUCKETS + SUB_BUCKETS) as u64;
    (within << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(values: &[u64], quantile: f64) -> u64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank = ((quantile * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        sorted[rank - 1]
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    fn fixed_seed(cases: u32) -> ProptestConfig {
        let rng_seed = proptest::test_runner::RngSeed::Fixed(20);
        ProptestConfig { cases, rng_seed, ..ProptestConfig::default() }
    }

    fn any_latency() -> impl Strategy<Value = u64> {
        (0u32..45).prop_flat_map(|octave| (1u64 << octave)..(1u64 << (octave + 1)))
    }

    #[test]
    fn buckets_join_without_gap_or_overlap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (low, width) = bucket_bounds(bucket);
            assert_eq!(low, next);
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(low + width - 1), bucket);
            next = low + width;
        }
        assert_eq!(next, VALUE_MAX + 1);
        assert_eq!(RELATIVE_ERROR_MAX, 1.0 / 256.0, "half of a width by the bucket's beginning");
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_sums_are_exact_and_a_quantile_is_the_middle_of_its_bucket() {
        let some = of(&[1000, 2000, 2000, 131]);
        assert_eq!((some.count(), some.sum_ns(), some.max_ns()), (4, 5131, 2000));
        assert_eq!(some.mean_ns(), 1282.75);
        // Buckets from 512 ns on are 4 ns wide.
        assert_eq!([0.0, 0.26, 0.5].map(|q| some.quantile_ns(q)), [131.0, 1001.5, 1001.5]);
        assert_eq!(some.quantile_ns(1.0), 2000.0, "never above the maximum");
        assert_eq!(some.sparse(), [(131, 1), (506, 1), (634, 2)]);
        assert_eq!(format!("{some:?}"), "Histogram { count: 4, sum_ns: 5131, max_ns: 2000 }");
        let none = Histogram::default();
        assert_eq!((none.mean_ns(), none.quantile_ns(0.5), none.max_ns()), (0.0, 0.0, 0));
        assert!(none.sparse().is_empty());
    }

    proptest! {
        #![proptest_config(fixed_seed(64))]

        #[test]
        fn every_percentile_is_within_the_derived_bound(
            values in prop::collection::vec(any_latency(), 1..400),
            quantile in 0.0f64..=1.0,
        ) {
            let truth = exact(&values, quantile) as f64;
            let told = of(&values).quantile_ns(quantile);
            prop_assert!((told - truth).abs() <= truth * RELATIVE_ERROR_MAX, "{told} for {truth}");
        }

        #[test]
        fn merging_parts_equals_the_whole(
            left in prop::collection::vec(any_latency(), 0..100),
            right in prop::collection::vec(any_latency(), 0..100),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let whole = of(&[left, right].concat());
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(whole.sparse().iter().map(|pair| pair.1).sum::<u64>(), whole.count());
        }
    }
}
