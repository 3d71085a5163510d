//! The answer of a load generator (`python/leadline/record/workbench.py`, `Measured`).

use serde::{Deserialize, Serialize};

/// Response times of the window in milliseconds, from when requests were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseMs {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Longest.
    pub max: f64,
}

/// Requests due in one part of the window; all parts are equally long.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Requests due in it.
    pub due: u64,
    /// Their mean response time in milliseconds; 0 without any.
    pub mean_ms: f64,
    /// Of them slower than the threshold's limit; 0 without a limit.
    pub over: u64,
    /// Requests that ended in it, whenever they were due.
    pub completed: u64,
}

/// What the generator measured at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadResult {
    /// Length of the measured window; shorter than asked when it was aborted.
    pub seconds: f64,
    /// Load before the window that was not counted.
    pub warm_up_s: f64,
    /// Requests due in the window.
    pub due: u64,
    /// Of these not answered when the generator stopped waiting; they count with their age then.
    pub unanswered: u64,
    /// Of these answered with an error; they count in nothing else but `due`.
    pub failed: u64,
    /// Requests that ended in the window, per second.
    pub completed_per_s: f64,
    /// None when nothing was due.
    pub response_ms: Option<ResponseMs>,
    /// The window in equal parts.
    pub batches: Vec<Batch>,
    /// The generator gave up: the mean response time had passed the bound of the request.
    pub aborted: bool,
    /// How late the generator itself sent requests, 99th percentile; none when it cannot be late.
    pub sent_late_ms_p99: Option<f64>,
}
