//! The `result` event, field by field as `python/leadline/record/result.py` reads it.

use serde::Serialize;

use crate::clock::ClockSource;
use crate::histogram::Histogram;
use crate::host::{CacheEvents, OtherLoad};
use crate::run::stop::Rate;
use crate::wire::slice::Slice;

/// Most slices a result carries per phase.
pub const SLICES_MAX: usize = 200;

/// A number with its 95 % interval, the batches it rests on and the degrees of freedom they have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    df: Option<u32>,
}

impl Interval {
    /// The rate over the window, from exact counts, as wide as `rate` is known by its batches;
    /// `scale` turns it into the unit wanted.
    #[must_use]
    pub fn new(value_per_s: f64, rate: &Rate, scale: f64) -> Self {
        let half = rate.half_width_frac().map(|share| share * value_per_s);
        Self {
            value: value_per_s * scale,
            low: half.map(|half| (value_per_s - half).max(0.0) * scale),
            high: half.map(|half| (value_per_s + half) * scale),
            n: rate.batches,
            df: half.and(rate.freedom),
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
    /// The summary of one kind's bytes and response times.
    #[must_use]
    pub fn of(bytes: u64, latency: &Histogram) -> Self {
        let operations = latency.count();
        Self {
            operations,
            bytes,
            latency_us: (operations > 0).then(|| LatencyUs::of(latency)),
            histogram: latency.sparse(),
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
    /// Expected throughput over this window under the model, in MB/s; none for a machine made of
    /// parts, whose truth is a long run of it.
    pub truth_mb_s: Option<f64>,
    /// Virtual time when the run ended, in seconds.
    pub clock_s: f64,
}

/// Response times by span. A closed loop has no due time, hence only the middle one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SpansUs {
    /// From when the request was due to when it was sent.
    pub due_to_submitted: Option<LatencyUs>,
    /// From when it was sent to when it was done: the target's own time.
    pub submitted_to_completed: LatencyUs,
    /// From when it was due to when it was done: what a user waits.
    pub due_to_completed: Option<LatencyUs>,
}

/// Who kept an open-loop run from its rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FellShort {
    /// Every issuer was still waiting for the target when requests became due.
    Target,
    /// An issuer was free and did not send in time.
    Generator,
}

/// What an open-loop run offered and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Offered {
    /// Requests due per second, as asked.
    pub rate_per_s: f64,
    /// Requests that became due within the window.
    pub due: u64,
    /// Of those, sent more than a millisecond late because every issuer was waiting for the target.
    pub late_target: u64,
    /// Of those, sent more than a millisecond late although an issuer was free.
    pub late_generator: u64,
    /// Of those, not sent when the window closed.
    pub missed: u64,
    /// Requests completed per second of the window.
    pub completed_per_s: f64,
    /// Share of the requests due that were not completed in time to keep the rate, 0 or more.
    pub shortfall_frac: f64,
    /// Who fell short, when more than 3 % are missing.
    pub fell_short: Option<FellShort>,
}

/// What the share from cache rests on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CachedShareFrom {
    /// Requests looked up in the file cache just before they were made.
    Residency,
    /// The block device's counters alone.
    Device,
}

/// Where the bytes came from, and what could not be checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Provenance {
    /// Bytes this process made the block layer move (`/proc/self/io`).
    pub process_bytes: Option<MovedBytes>,
    /// Reads whose bytes were looked up in the file cache just before they were made.
    pub probed: u64,
    /// Share of those bytes found there, read-ahead's work included.
    pub found_share: Option<f64>,
    /// Requests at places drawn at random that were looked up, writes too.
    pub probed_random: u64,
    /// Share of their bytes found there. Nothing fetches ahead of such a request, so where places
    /// are drawn uniformly this is the share of the data that the file cache held.
    pub found_random_share: Option<f64>,
    /// What `cached_share` rests on.
    pub cached_share_from: Option<CachedShareFrom>,
    /// Page-cache events.
    pub cache_events: Option<CacheEvents>,
    /// What could not be checked here, in words.
    pub unchecked: Vec<String>,
}

/// A stretch of the window with one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Seconds from the start of the window.
    pub start_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Rate over the stretch, in MB/s.
    pub throughput_mb_s: f64,
}

/// A stretch of the window in which no request completed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// Seconds from the start of the window.
    pub start_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// True when the generator itself did not run.
    pub generator: bool,
}

/// One round of preconditioning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Bytes written in it.
    pub bytes: u64,
    /// Rate, in MB/s.
    pub throughput_mb_s: f64,
}

/// What preconditioning did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preconditioned {
    /// Bytes written: wear.
    pub bytes: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Whether the rate reached its plateau before the bytes or the time were spent.
    pub plateau: bool,
    /// Its rounds.
    pub rounds: Vec<Round>,
}

/// Bytes written by a job, by purpose: its wear.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct WrittenBytes {
    /// Laying out the data file.
    pub layout: u64,
    /// Preconditioning.
    pub precondition: u64,
    /// Writes of the workload, warm-up included.
    pub workload: u64,
}

/// Where the issuers ran.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Placed {
    /// Whether every issuer had a processor of its own.
    pub pinned: bool,
    /// The processors, in the order of the issuers; empty when they were free.
    pub cpus: Vec<usize>,
}

/// The load generator against its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Generator {
    /// Requests per second it reached against nothing.
    pub ceiling_iops: f64,
    /// Whether this run is within 20 % of that.
    pub bound: bool,
}

/// What went over the network for the requests counted, and what the connections were like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Network {
    /// Bytes of calls, their data and heads together.
    pub sent_bytes: u64,
    /// Bytes of answers likewise.
    pub received_bytes: u64,
    /// Of those sent, the data of writes.
    pub payload_sent_bytes: u64,
    /// Of those received, the data of reads.
    pub payload_received_bytes: u64,
    /// Requests that were sent and never answered, because the server went away; nothing else
    /// counts them.
    pub lost_requests: u64,
    /// Segments that TCP had to send again, warm-up included.
    pub retransmitted_segments: Option<u64>,
    /// The shortest of several empty calls before the run, in microseconds.
    pub round_trip_us: f64,
    /// Share of the WRITE calls, warm-up included, of which the server said in its answer that they
    /// are on stable storage, asked for or not; none without writes.
    pub stable_share: Option<f64>,
    /// Seconds the server took after the window to put on stable storage what was written; none
    /// without writes.
    pub commit_s: Option<f64>,
}

/// The whole event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename = "result")]
#[allow(
    missing_docs,
    reason = "each field is documented in python/leadline/record/result.py and \
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
    pub spans_us: SpansUs,
    pub offered: Option<Offered>,
    pub provenance: Provenance,
    pub levels: Vec<Level>,
    pub stalls: Vec<Stall>,
    pub precondition: Option<Preconditioned>,
    pub written_bytes: WrittenBytes,
    pub other_load: OtherLoad,
    pub placement: Option<Placed>,
    pub generator: Option<Generator>,
    pub network: Option<Network>,
    pub clock: ClockSource,
}
