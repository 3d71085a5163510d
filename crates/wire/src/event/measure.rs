//! What a measurement found, field by field as `python/leadline/record/result.py` reads it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::event::load::LoadResult;
use crate::finding::Finding;
use crate::ranges;
use crate::schema::{bounded, version};

/// Most slices a result carries per phase.
pub const SLICES_MAX: usize = 200;

/// One slice of a run's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Slice {
    /// Seconds from the start of the phase.
    pub start_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Requests completed in it.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

/// A number with its 95% interval, the batches it rests on and the degrees of freedom they have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Interval {
    /// The number.
    pub value: f64,
    /// Low end of the interval; null when the count allows none.
    pub low: Option<f64>,
    /// High end likewise.
    pub high: Option<f64>,
    /// Batches that it rests on.
    pub n: usize,
    /// Degrees of freedom of the interval; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub df: Option<u32>,
}

/// Response times in microseconds; percentiles within 0.4%, mean and longest exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LatencyUs {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Longest.
    pub max: f64,
}

/// Reads or writes of the window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OperationSummary {
    /// How many.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their response times; null without any.
    pub latency_us: Option<LatencyUs>,
    /// The same as pairs of a bucket's number and how many are in it; empty buckets are left out.
    pub histogram: Vec<(u32, u64)>,
}

/// Bytes read and written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MovedBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub write: u64,
}

/// What the drawn requests really were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Realised {
    /// Mean length in bytes.
    pub size_mean: f64,
    /// Coefficient of variation of the lengths.
    pub size_cv: f64,
    /// Read fraction.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub read_frac: f64,
    /// Sequential fraction.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub seq_frac: f64,
}

/// How the run became steady.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WarmUp {
    /// Seconds until the window opened.
    pub seconds: f64,
    /// Whether the rate was steady at its end; null where too few requests ended to say.
    pub steady: Option<bool>,
    /// Its slices, joined to a few hundred at most.
    #[schemars(length(max = SLICES_MAX))]
    pub intervals: Vec<Slice>,
}

/// What only a simulated system can tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SimulatedFacts {
    /// Expected throughput over this window under the model, in MB/s; none for a machine made of
    /// parts, whose truth is a long run of it.
    pub truth_mb_s: Option<f64>,
    /// Virtual time when the run ended, in seconds.
    pub clock_s: f64,
}

/// Response times by span. A closed loop has no due time, hence only the middle one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SpansUs {
    /// From when the request was due to when it was sent.
    pub due_to_submitted: Option<LatencyUs>,
    /// From when it was sent to when it was done: the target's own time.
    pub submitted_to_completed: LatencyUs,
    /// From when it was due to when it was done: what a user waits.
    pub due_to_completed: Option<LatencyUs>,
}

/// Who kept an open-loop run from its rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FellShort {
    /// Every worker was still waiting for the target when requests became due.
    Target,
    /// A worker was free and did not send in time.
    Generator,
}

/// What an open-loop run offered and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Offered {
    /// Requests due per second, as asked.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate_per_s: f64,
    /// Requests that became due within the window.
    pub due: u64,
    /// Of those, sent more than a millisecond late because every worker was waiting for the target.
    pub late_target: u64,
    /// Of those, sent more than a millisecond late although a worker was free.
    pub late_generator: u64,
    /// Of those, not sent when the window closed.
    pub missed: u64,
    /// Requests completed per second of the window.
    pub completed_per_s: f64,
    /// Share of the requests due that were not completed in time to keep the rate, 0 or more.
    pub shortfall_frac: f64,
    /// Who fell short, when more than 3% are missing.
    pub fell_short: Option<FellShort>,
}

/// What the share from cache rests on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CachedShareFrom {
    /// Requests looked up in the page cache just before they were made.
    Residency,
    /// The block device's counters alone.
    Device,
}

/// Where the bytes came from, and what could not be checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Provenance {
    /// Bytes this process made the block layer move (`/proc/self/io`).
    pub process_bytes: Option<MovedBytes>,
    /// Reads whose bytes were looked up in the page cache just before they were made.
    pub probed: u64,
    /// Share of those bytes found there, read-ahead's work included.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub found_share: Option<f64>,
    /// Requests at places drawn at random that were looked up, writes too.
    pub probed_random: u64,
    /// Share of their bytes found there. Nothing fetches ahead of such a request, so where places
    /// are drawn uniformly this is the share of the data that the page cache held.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub found_random_share: Option<f64>,
    /// What `cached_share` rests on.
    pub cached_share_from: Option<CachedShareFrom>,
    /// Page-cache events.
    pub cache_events: Option<CacheEvents>,
    /// What could not be checked here, in words.
    pub unchecked: Vec<String>,
}

/// A stretch of the window with one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Level {
    /// Seconds from the start of the window.
    pub start_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Rate over the stretch, in MB/s.
    pub throughput_mb_s: f64,
}

/// A stretch of the window in which no request completed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stall {
    /// Seconds from the start of the window.
    pub start_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// True when the generator itself did not run.
    pub generator: bool,
}

/// One round of preconditioning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Round {
    /// Bytes written in it.
    pub bytes: u64,
    /// Rate, in MB/s.
    pub throughput_mb_s: f64,
}

/// What preconditioning did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WrittenBytes {
    /// Laying out the data file.
    pub layout: u64,
    /// Preconditioning.
    pub precondition: u64,
    /// Writes of the workload, warm-up included.
    pub workload: u64,
}

/// Where the workers ran.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Placed {
    /// Whether every worker had a processor of its own.
    pub pinned: bool,
    /// The processors, in the order of the workers; empty when they were free.
    pub cpus: Vec<usize>,
}

/// The load generator against its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Generator {
    /// Requests per second it reached with the null backend.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub ceiling_iops: f64,
    /// Whether this run is within 20% of that.
    pub bound: bool,
}

/// What went over the network for the requests counted, and what the connections were like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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
    #[schemars(transform = bounded(ranges::SHARE))]
    pub stable_share: Option<f64>,
    /// Seconds the server took after the window to put on stable storage what was written; none
    /// without writes.
    pub commit_s: Option<f64>,
}

/// The answer to a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasureResult {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// The job's.
    pub job_id: String,
    /// Throughput in MB (10^6 bytes) per second; its interval is from batches within this one run.
    pub throughput_mb_s: Interval,
    /// Requests per second, likewise.
    pub iops: Interval,
    /// Response times of all requests, from when they were due.
    pub latency_us: LatencyUs,
    /// Reads of the window.
    pub read: OperationSummary,
    /// Writes of the window.
    pub write: OperationSummary,
    /// Waits of a replay until what was written is on the device; null without any.
    pub syncs: Option<OperationSummary>,
    /// Length of the measured window.
    pub wall_s: f64,
    /// Prepare, warm up, measure and drain together.
    pub total_s: f64,
    /// Seconds of preparation: laying out the file, preconditioning.
    pub prepare_s: f64,
    /// CPU seconds in user mode per second of window; 2.0 is two processors busy.
    pub cpu_user: f64,
    /// CPU seconds in the kernel per second of window.
    pub cpu_system: f64,
    /// Share of the workers' wall time spent inside I/O calls (CP94 Fig. 1).
    #[schemars(transform = bounded(ranges::SHARE))]
    pub io_share: f64,
    /// What of process_num x queue_depth x time is not accounted for; 0 is perfect.
    pub littles_law_error_frac: f64,
    /// Bytes that the workload moved in the window.
    pub workload_bytes: MovedBytes,
    /// Bytes that the block device moved in the window; null when it cannot be told.
    pub device_bytes: Option<MovedBytes>,
    /// Share of the bytes read that did not come from the device.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub cached_share: Option<f64>,
    /// Page cache charged to the engine's cgroup at the window's end.
    pub cache_resident_bytes: Option<u64>,
    /// CPU seconds per second used by everybody else during the window.
    pub foreign_cpu: Option<f64>,
    /// What the drawn requests really were.
    pub realised: Realised,
    /// How the run became steady.
    pub warm_up: WarmUp,
    /// Slices of the window.
    #[schemars(length(max = SLICES_MAX))]
    pub intervals: Vec<Slice>,
    /// Whether the run can be believed.
    pub admissible: bool,
    /// Why it cannot be, and what else a reader must know.
    pub findings: Vec<Finding>,
    /// What only a simulated system can tell.
    pub simulated: Option<SimulatedFacts>,
    /// Response times by span.
    pub spans_us: SpansUs,
    /// What an open loop offered; null in a closed one.
    pub offered: Option<Offered>,
    /// Where the bytes came from.
    pub provenance: Provenance,
    /// More than one when the rate changed within the window.
    pub levels: Vec<Level>,
    /// Stretches in which no request completed.
    pub stalls: Vec<Stall>,
    /// What preconditioning did; null without it.
    pub precondition: Option<Preconditioned>,
    /// Bytes written, by purpose.
    pub written_bytes: WrittenBytes,
    /// What else the machine did.
    pub other_load: OtherLoad,
    /// Where the workers ran.
    pub placement: Option<Placed>,
    /// The load generator against its own limit; null when that was not measured.
    pub generator: Option<Generator>,
    /// What went over the network for the requests counted; null without one.
    pub network: Option<Network>,
    /// Each stream of a job with several, in the job's order.
    pub streams: Vec<StreamCount>,
    /// The clock that response times were read from.
    pub clock: ClockSource,
    /// What a trial of the workbench keeps of it; absent unless the job asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadResult>,
}

/// What one of several streams did in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StreamCount {
    /// Its requests.
    pub operations: u64,
    /// Those that were reads.
    pub reads: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Seconds of response times, added up.
    pub response_s: f64,
    /// Requests that began its data anew, warm-up included.
    pub rounds: u64,
}

/// The clock response times were read from.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processor's time-stamp counter, calibrated.
    Tsc,
    /// `clock_gettime` through the vDSO.
    Vdso,
    /// The simulated system's clock.
    Virtual,
}

/// Page-cache events of the own memory cgroup over the window, or of the machine without one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CacheEvents {
    /// Pages charged to the cgroup (v1 `pgpgin`).
    pub charged_pages: Option<u64>,
    /// Pages uncharged from the cgroup (v1 `pgpgout`).
    pub uncharged_pages: Option<u64>,
    /// File pages that came back after having been evicted (`workingset_refault_file`).
    pub refaulted_pages: Option<u64>,
    /// Page faults that waited for the device.
    pub major_faults: Option<u64>,
}

/// What else the machine did during the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OtherLoad {
    /// Share of the window in which some task waited for a processor (PSI).
    #[schemars(transform = bounded(ranges::SHARE))]
    pub cpu_pressure: Option<f64>,
    /// Share of the window in which some task waited for I/O (PSI; our own waits count).
    #[schemars(transform = bounded(ranges::SHARE))]
    pub io_pressure: Option<f64>,
    /// Share of the window in which some task waited for memory (PSI).
    #[schemars(transform = bounded(ranges::SHARE))]
    pub memory_pressure: Option<f64>,
    /// Processor seconds per second that the hypervisor gave to others.
    pub steal_cpu: Option<f64>,
    /// Seconds per second that threads of the engine were ready to run and had no processor, all
    /// of them together (schedstat); other engine threads may have had it.
    pub waited_cpu: Option<f64>,
    /// Runnable tasks when the window closed, the workers included.
    pub runnable: Option<u64>,
}
