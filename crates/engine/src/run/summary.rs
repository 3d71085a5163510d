//! Counts as the wire writes them.

#![forbid(unsafe_code)]

use leadline_base::histogram::Histogram;
use leadline_wire::event::measure::{Interval, LatencyUs, OperationSummary};

use crate::run::stop::Rate;

/// The rate over the window, from exact counts, as wide as `rate` is known by its batches; `scale`
/// turns it into the unit wanted.
#[must_use]
pub fn interval(value_per_s: f64, rate: &Rate, scale: f64) -> Interval {
    let half = rate.half_width_frac().map(|share| share * value_per_s);
    Interval {
        value: value_per_s * scale,
        low: half.map(|half| (value_per_s - half).max(0.0) * scale),
        high: half.map(|half| (value_per_s + half) * scale),
        n: rate.batches,
        df: half.and(rate.freedom),
    }
}

/// The response times of a histogram.
#[must_use]
pub fn latency_us(histogram: &Histogram) -> LatencyUs {
    let at = |quantile| histogram.quantile_ns(quantile) / 1e3;
    LatencyUs {
        mean: histogram.mean_ns() / 1e3,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        max: histogram.max_ns() as f64 / 1e3,
    }
}

/// The summary of one kind's bytes and response times.
#[must_use]
pub fn operations(bytes: u64, latency: &Histogram) -> OperationSummary {
    let operations = latency.count();
    OperationSummary {
        operations,
        bytes,
        latency_us: (operations > 0).then(|| latency_us(latency)),
        histogram: latency.sparse(),
    }
}
