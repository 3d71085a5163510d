//! The document of a simulated system, as a profile (TOML) writes it.
//!
//! Field by field with ranges and formulas: `docs/reference/profile.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A storage system stated as a model. Made by [`SimulatedSystem::from_value`], so always valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedSystem {
    /// What it is and where its numbers come from.
    pub meta: Meta,
    /// What a survey must find; checked against the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<StatedTruth>,
    /// How far a survey may go.
    #[serde(default)]
    pub survey: SurveyHints,
    /// What every request pays in the host: system call and memory copy.
    pub copy: Copy,
    /// Cache levels, nearest the worker first; each holds what the one before it holds.
    #[serde(default)]
    pub cache: Vec<CacheLevel>,
    /// The daemon that writes dirty cache blocks out now and then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flusher: Option<Flusher>,
    /// A hop between client and server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What serves the requests that no cache serves.
    pub device: Device,
    /// Gradual slow-down with the working set, without any boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Randomness of service times.
    #[serde(default)]
    pub noise: Noise,
    /// Slow change of the whole system's speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// Episodes in which the whole system is slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
}

/// `[meta]`: text for people; the model ignores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Short name, as in `sim:NAME`: lower-case letters, digits and hyphens.
    pub name: String,
    /// One line for charts and reports.
    #[serde(default)]
    pub title: String,
    /// Paper and figure the numbers come from.
    #[serde(default)]
    pub source: String,
    /// What was assumed because the source gives no figure, one sentence each.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// Facts of the machine, for the report.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

/// `[truth]`: what a survey must find. Optional; rejected when the model contradicts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedTruth {
    /// Performance regions in `unique_bytes` (CP94 §8): one more than there are boundaries.
    pub regions: u32,
    /// The boundaries between them, ascending.
    pub boundaries_bytes: Vec<u64>,
}

/// `[survey]`: how far a survey of this system may go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyHints {
    /// Most bytes a workload may touch: the free space of the system's disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_bytes_max: Option<u64>,
    /// Largest mean request size worth asking for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_mean_max: Option<u64>,
    /// Most processes worth starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_num_max: Option<u32>,
    /// Virtual seconds one reading may take; slow old disks need minutes (CP94 §6: ten).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure_s_max: Option<f64>,
}

/// `[copy]`: paid by every request, wherever it is served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// Fixed cost of a read.
    pub read_overhead_us: f64,
    /// Fixed cost of a write; the read's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_overhead_us: Option<f64>,
    /// Copy rate of reads.
    pub read_mb_s: f64,
    /// Copy rate of writes; the read's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_mb_s: Option<f64>,
    /// Processors that copy at the same time.
    #[serde(default = "one")]
    pub processors: u32,
}

/// How the share of hits falls once the working set outgrow the capacity.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HitShape {
    /// `min(1, C/U)`: LRU under uniform random access.
    #[default]
    Uniform,
    /// All or nothing at C.
    Step,
    /// `1 / (1 + (U/C)^(1/smear_width))`: a logistic curve in ln U, one half at C.
    Smeared,
}

/// What a cache level does with writes (CP93 §4.2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// Write-back: a write that hits ends here.
    #[default]
    WriteBack,
    /// Every write goes on to the next level.
    WriteThrough,
}

/// `[[cache]]`: one level. A hit is all or nothing: the whole request, at this level's cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheLevel {
    /// Name in messages and boundaries.
    pub name: String,
    /// Bytes of data this and all nearer levels hold for reads.
    pub read_capacity_bytes: u64,
    /// Bytes that may be dirty here; the read capacity when absent (Sprite: less, CP94 §8.1.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_capacity_bytes: Option<u64>,
    /// How hits fall off.
    #[serde(default)]
    pub shape: HitShape,
    /// Width of the smeared shape in ln U.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smear_width: Option<f64>,
    /// What happens to writes.
    #[serde(default)]
    pub write_policy: WritePolicy,
    /// Fixed cost of a read served here, beyond the copy.
    #[serde(default)]
    pub read_overhead_us: f64,
    /// Fixed cost of a write served here, beyond the copy: metadata updates (CP94 §8.1.1).
    #[serde(default)]
    pub write_overhead_us: f64,
    /// Rate of reads served here; absent: no time beyond the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_mb_s: Option<f64>,
    /// Rate of writes served here; absent: the read's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_mb_s: Option<f64>,
    /// Requests this level serves at the same time.
    #[serde(default = "one")]
    pub channels: u32,
}

impl CacheLevel {
    /// Bytes of dirty data this level holds.
    pub fn write_capacity_bytes(&self) -> u64 {
        self.write_capacity_bytes.unwrap_or(self.read_capacity_bytes)
    }
}

/// `[flusher]`: while it runs, writes that the first level serves take longer (CP93 §4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flusher {
    /// It starts every so often, on the virtual clock.
    pub period_s: f64,
    /// It runs for so long each time.
    pub run_s: f64,
    /// Times longer that a cached write takes meanwhile.
    pub slow_factor: f64,
}

/// `[network]`: a hop that requests cross unless a nearer cache level serves them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Round trip, paid once per request and not shared.
    pub latency_us: f64,
    /// Rate of the wire, shared by all requests.
    pub mb_s: f64,
    /// Cache levels on the near side; their hits do not cross.
    #[serde(default)]
    pub after_level: u32,
}

/// `[device]`: disks behind all caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Disks that work at the same time.
    #[serde(default = "one")]
    pub disks: u32,
    /// Requests the disks work on at the same time; `disks` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// All disks together; a workload's bytes span this share of the seek distance.
    pub capacity_bytes: u64,
    /// Shortest seek of a random request.
    #[serde(default)]
    pub seek_min_ms: f64,
    /// Added by a full-stroke seek; grows with the square root of the distance.
    #[serde(default)]
    pub seek_span_ms: f64,
    /// One revolution; a random request waits a uniform part of it.
    #[serde(default)]
    pub rotation_ms: f64,
    /// Transfer rate of one disk, reads.
    pub read_mb_s: f64,
    /// Transfer rate of one disk, writes; the read's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_mb_s: Option<f64>,
    /// Fixed cost of a device read: controller, bus, file-system work.
    #[serde(default)]
    pub read_overhead_us: f64,
    /// Fixed cost of a device write.
    #[serde(default)]
    pub write_overhead_us: f64,
    /// What a sequential request pays instead of seek and rotation.
    #[serde(default)]
    pub sequential_penalty_us: f64,
    /// Stripe unit over the disks; absent: a request uses one disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_unit_bytes: Option<u64>,
    /// Writes are appended to a log: no seek, no rotation (Sprite LFS, CP94 §8.1.2).
    #[serde(default)]
    pub log_structured: bool,
    /// Times the device's work that a write takes (RAID 5: parity).
    #[serde(default = "unit")]
    pub write_penalty: f64,
}

/// `[growth]`: every service time is multiplied by `(U / reference_bytes) ^ exponent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// Working set at which the other sections' costs hold.
    pub reference_bytes: u64,
    /// Power of the law.
    pub exponent: f64,
}

/// `[noise]`: log-normal factors of mean one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Coefficient of variation of each service time around its law.
    #[serde(default)]
    pub service_cv: f64,
    /// Coefficient of variation of the speed from run to run (CP94 Fig. 15).
    #[serde(default)]
    pub run_to_run_cv: f64,
}

/// The law of a drift.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftShape {
    /// Speed `(1 + rate)^hours`.
    #[default]
    Exponential,
    /// Speed `1 + rate × hours`, never below 0.05.
    Linear,
    /// Speed 1 until `at_s`, then `factor`, as when burst credits are spent.
    Step,
}

/// `[drift]`: the whole system's speed changes with virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// The law.
    #[serde(default)]
    pub shape: DriftShape,
    /// Change of speed in the first hour: -0.1 is ten percent slower; not for a step.
    #[serde(default)]
    pub rate_per_hour: Option<f64>,
    /// When a step happens, in seconds.
    #[serde(default)]
    pub at_s: Option<f64>,
    /// Speed after a step.
    #[serde(default)]
    pub factor: Option<f64>,
}

/// `[bursts]`: slow and normal episodes alternate, both of exponential length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Mean length of a slow episode.
    pub mean_slow_s: f64,
    /// Mean time between two slow episodes.
    pub mean_normal_s: f64,
    /// Times slower that everything is within one.
    pub slow_factor: f64,
}

fn one() -> u32 {
    1
}

fn unit() -> f64 {
    1.0
}
