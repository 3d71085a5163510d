//! What an open-loop load generator measured at one rate: a trial of the workbench (SH08 §3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WIRE_VERSION;
use crate::job::trial::TrialJob;
use crate::schema::version;

/// Parts of the window: enough to see a warm-up and to know how runs of slow requests hang
/// together, few enough to keep with every trial.
pub const BATCHES: usize = 60;

/// Limits on the response time that are counted apart, at most.
pub const LIMITS_MAX: usize = 4;

/// Response times of the window in milliseconds, from when requests were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Of those due in it slower than each further limit, in the order asked; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = LIMITS_MAX - 1))]
    pub also_over: Vec<u64>,
}

/// What the generator measured at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(length(max = BATCHES))]
    pub batches: Vec<Batch>,
    /// The generator gave up: the mean response time had passed the bound of the request.
    pub aborted: bool,
    /// How late the generator itself sent requests, 99th percentile; none when it cannot be late.
    pub sent_late_ms_p99: Option<f64>,
}

/// The answer to a simulated trial.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrialResult {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// The job's.
    pub job_id: String,
    /// What was measured.
    pub load: LoadResult,
}

impl TrialResult {
    /// The answer to `job`.
    #[must_use]
    pub fn new(job: &TrialJob, load: LoadResult) -> Self {
        Self { version: WIRE_VERSION, job_id: job.job_id.clone(), load }
    }
}
