//! What the engine is asked to do: the wire's `job` document (`protocol/job.schema.json`).

use serde::{Deserialize, Serialize};

/// How request sizes are drawn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeDist {
    /// Normal with coefficient of variation 1, cut at the smallest transfer (CP94 §5).
    #[default]
    Normal,
    /// Every request has exactly `size_mean` bytes.
    Fixed,
}

/// The five parameters of CP94 §5, CP93's think time, and the queue depth of one issuer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Bytes of distinct data touched.
    pub unique_bytes: u64,
    /// Mean request size in bytes.
    pub size_mean: u64,
    /// Probability that a request is a read, 0 to 1.
    pub read_frac: f64,
    /// Probability that a request starts where this process's previous one ended, 0 to 1.
    pub seq_frac: f64,
    /// Issuers at once.
    pub process_num: u32,
    /// Distribution of request sizes.
    #[serde(default)]
    pub size_dist: SizeDist,
    /// Requests outstanding per issuer.
    #[serde(default = "one")]
    pub queue_depth: u32,
    /// Pause of an issuer between a completion and its next request, in seconds.
    #[serde(default)]
    pub think_time_s: f64,
}

fn one() -> u32 {
    1
}

/// A read or a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Bytes flow to the issuer.
    Read,
    /// Bytes flow to the target.
    Write,
}

/// One request of one issuer, as the access pattern draws it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// First byte touched, below `unique_bytes`.
    pub offset_bytes: u64,
    /// Length; `offset_bytes + length_bytes <= unique_bytes` always holds.
    pub length_bytes: u64,
    /// Read or write.
    pub kind: Kind,
    /// True when it starts where this issuer's previous request ended.
    pub sequential: bool,
}
