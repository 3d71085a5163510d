//! The `result` event, field by field as `python/leadline/record/measurement.py` reads it.

use serde::Serialize;

use crate::histogram::Histogram;
use crate::recorder::{KindTally, Slice};
use crate::stop::Rate;

/// Most slices a result carries per phase.
pub const SLICES_MAX: usize = 200;

/// A number with its 95 % interval and the batches it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
}

impl Interval {
    /// The rate over the window with the relative width found in its slices. `value` comes from
    /// exact counts; `scale` turns it into the unit wanted.
    #[must_use]
    pub fn new(value_per_s: f64, rate: &Rate, scale: f64) -> Self {
        let half = rate.half_width_frac().map(|share| share * value_per_s);
        Self {
            value: value_per_s * scale,
            low: half.map(|half| (value_per_s - half).max(0.0) * scale),
            high: half.map(|half| (value_per_s + half) * scale),
            n: rate.batches,
        }
    }
}

/// Response times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyUs {
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    p99_9: f64,
    max: f64,
}

impl LatencyUs {
    /// The summary of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let at = |quantile| histogram.quantile_ns(quantile) / 1e3;
        Self {
            mean: histogram.mean_ns() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: histogram.max_ns() as f64 / 1e3,
        }
    }
}

/// Reads or writes of the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    operations: u64,
    bytes: u64,
    latency_us: Option<LatencyUs>,
    histogram: Vec<(u32, u64)>,
}

impl OperationSummary {
    /// The summary of one kind's counts.
    #[must_use]
    pub fn of(tally: &KindTally) -> Self {
        let operations = tally.latency.count();
        Self {
            operations,
            bytes: tally.bytes,
            latency_us: (operations > 0).then(|| LatencyUs::of(&tally.latency)),
            histogram: tally.latency.sparse(),
        }
    }
}

/// Bytes read and written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MovedBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub write: u64,
}

/// What the drawn requests really were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Realised {
    /// Mean length in bytes.
    pub size_mean: f64,
    /// Coefficient of variation of the lengths.
    pub size_cv: f64,
    /// Share of reads.
    pub read_frac: f64,
    /// Share of sequential requests.
    pub seq_frac: f64,
}

/// How the run became steady.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WarmUp {
    /// Seconds until the window opened.
    pub seconds: f64,
    /// Whether the steadiness test ended it.
    pub steady: bool,
    /// Its slices, joined to a few hundred at most.
    pub intervals: Vec<Slice>,
}

/// What only a simulated system can tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SimulatedFacts {
    /// Expected throughput over this window under the model, in MB/s.
    pub truth_mb_s: f64,
    /// Virtual time when the run ended, in seconds.
    pub clock_s: f64,
}

/// The whole event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename = "result")]
#[allow(
    missing_docs,
    reason = "each field is documented in python/leadline/record/measurement.py and \
    protocol/result.schema.json"
)]
pub struct EngineResult {
    pub version: u32,
    pub job_id: String,
    pub throughput_mb_s: Interval,
    pub iops: Interval,
    pub latency_us: LatencyUs,
    pub read: OperationSummary,
    pub write: OperationSummary,
    pub wall_s: f64,
    pub total_s: f64,
    pub prepare_s: f64,
    pub cpu_user: f64,
    pub cpu_system: f64,
    pub io_share: f64,
    pub littles_law_error_frac: f64,
    pub workload_bytes: MovedBytes,
    pub device_bytes: Option<MovedBytes>,
    pub cached_share: Option<f64>,
    pub cache_resident_bytes: Option<u64>,
    pub foreign_cpu: Option<f64>,
    pub realised: Realised,
    pub warm_up: WarmUp,
    pub intervals: Vec<Slice>,
    pub admissible: bool,
    pub reasons: Vec<String>,
    pub warnings: Vec<String>,
    pub simulated: Option<SimulatedFacts>,
}
