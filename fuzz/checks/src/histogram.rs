//! Any two lists of response times: merged they equal the whole, and what they say is true.

use leadline_base::histogram::{Histogram, RELATIVE_ERROR_MAX, bucket_bounds};

/// Values are told apart up to here (`histogram.rs`); the largest of them is always exact.
const TOLD_APART_MAX: u64 = (1 << 45) - 1;

/// A value and how far to shift it down, so that every octave is met.
pub type Shifted = (u64, u8);

/// Tries two lists, and a share of 65535 as a quantile.
pub fn histogram(left: &[Shifted], right: &[Shifted], of_65535: u16) {
    let (left, right) = (values_of(left), values_of(right));
    let mut merged = histogram_of(&left);
    merged.merge(&histogram_of(&right));
    let mut all = [left, right].concat();
    assert!(merged == histogram_of(&all), "the merged parts are not the whole");
    all.sort_unstable();
    assert_sums(&merged, &all);
    for quantile in [f64::from(of_65535) / f64::from(u16::MAX), 0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
        assert_quantile(&merged, &all, quantile);
    }
}

fn values_of(shifted: &[Shifted]) -> Vec<u64> {
    shifted.iter().map(|(value, by)| value >> (by % 64)).collect()
}

fn histogram_of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|value| histogram.record(*value));
    histogram
}

fn assert_sums(histogram: &Histogram, sorted: &[u64]) {
    let sum: u128 = sorted.iter().map(|value| u128::from(*value)).sum();
    assert_eq!(histogram.count(), sorted.len() as u64);
    assert_eq!(u128::from(histogram.sum_ns()), sum.min(u64::MAX.into()));
    assert_eq!(histogram.max_ns(), sorted.last().copied().unwrap_or(0));
    let sparse = histogram.sparse();
    assert_eq!(sparse.iter().map(|pair| pair.1).sum::<u64>(), histogram.count());
    assert!(sparse.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let mut rest = sorted;
    for (bucket, count) in sparse {
        let (low, width) = bucket_bounds(bucket as usize);
        let (inside, after) = rest.split_at(count as usize);
        let fits = |value: &u64| (low..low + width).contains(&(*value).min(TOLD_APART_MAX));
        assert!(inside.iter().all(fits), "bucket {bucket}: {inside:?}");
        rest = after;
    }
}

fn assert_quantile(histogram: &Histogram, sorted: &[u64], quantile: f64) {
    let told = histogram.quantile_ns(quantile);
    if sorted.is_empty() {
        assert_eq!(told, 0.0);
        return;
    }
    let rank = ((quantile * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
    let truth = sorted[rank - 1].min(TOLD_APART_MAX) as f64;
    assert!((told - truth).abs() <= truth * RELATIVE_ERROR_MAX, "{told} for {truth}");
}
