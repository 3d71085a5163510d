//! The fields of a server made of parts.
//!
//! Field by field with ranges: `docs/reference/server.md`.

use serde::{Deserialize, Serialize};

use super::validate;
use crate::document::Refused;

/// What a server is made of. A request waits for a worker, works on the cores, reads or writes the
/// storage, asks another server over a connection, and is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Threads, each with one request from the moment it is taken in to its answer.
    pub workers: u32,
    /// Requests that wait for a worker at most; more are refused.
    #[serde(default = "backlog")]
    pub backlog: u32,
    /// The processors.
    pub cores: Cores,
    /// What keeps reads from the storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Where data lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Who writes, one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// Connections to another server, which each request asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Pool>,
    /// The collector of garbage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector: Option<Collector>,
    /// What clients do who wait too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// Other work that comes and goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    /// How fast all of it is.
    #[serde(default)]
    pub speed: Speed,
    /// Load before the window, not counted, in seconds.
    #[serde(default = "five")]
    pub warm_up_s: f64,
    /// What a trial costs beside warm-up and window: configure, start, stop; in seconds.
    #[serde(default = "ten")]
    pub set_up_s: f64,
}

/// How long something takes, relative to its mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// Always the mean.
    Constant {},
    /// Exponential: coefficient of variation 1.
    Exponential {},
    /// Log-normal.
    Lognormal {
        /// Coefficient of variation.
        cv: f64,
    },
}

/// How processors are given to those who want them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// All at once, each as fast as all others (an operating system's scheduler).
    #[default]
    Shared,
    /// One after the other until it is done (an event loop on each).
    Turns,
}

/// `[cores]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cores {
    /// How many.
    pub count: u32,
    /// Who is served.
    #[serde(default)]
    pub discipline: Discipline,
    /// Mean work of a request, in milliseconds of one of them.
    pub work_ms: f64,
    /// Its distribution.
    pub work: Law,
}

/// `[cache]`: a read that is found needs no storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Part of the reads that are found.
    pub hit_frac: f64,
    /// Part of the trials in which the cache stays cold: another layout, a neighbour in memory.
    #[serde(default)]
    pub cold_share: f64,
    /// Part of the reads that are found then.
    #[serde(default)]
    pub cold_hit_frac: f64,
}

/// `[storage]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Requests that it serves at once, the others wait: disks, or a volume's queue.
    pub channels: u32,
    /// Mean time of one, in milliseconds.
    pub io_ms: f64,
    /// Its distribution.
    pub io: Law,
    /// Part of the trials in which it is degraded: an array that is rebuilt.
    #[serde(default)]
    pub degraded_share: f64,
    /// How much longer it takes then.
    #[serde(default = "one")]
    pub degraded_factor: f64,
}

/// `[lock]`: a part of the requests write, holding a lock while the storage does it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// That part of all requests.
    pub write_share: f64,
    /// Locks, of which each writer needs one, drawn.
    #[serde(default = "one_lock")]
    pub stripes: u32,
}

/// `[pool]`: each request asks another server once, over a connection of its own while it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Connections.
    pub connections: u32,
    /// Mean time until the answer, in milliseconds.
    pub query_ms: f64,
    /// Its distribution.
    pub query: Law,
}

/// When the collector runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collecting {
    /// When the heap is full; all stands still meanwhile.
    Stopping,
    /// Beside the requests, on processors of its own, which are theirs else; these help it. When
    /// the heap is full before it is done, all stands still until then.
    Concurrent,
}

/// `[collector]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collector {
    /// When it runs.
    pub kind: Collecting,
    /// Size of the heap.
    pub heap_mb: f64,
    /// What always lives in it.
    pub live_mb: f64,
    /// Mean of what a request puts there; it lives as long as the request.
    pub allocates_mb: f64,
    /// How long it takes for each megabyte that lives, in milliseconds.
    pub ms_per_live_mb: f64,
    /// Concurrent: part of the heap at which it begins.
    #[serde(default = "most")]
    pub begin_frac: f64,
    /// Concurrent: part of the processors that it takes.
    #[serde(default = "quarter")]
    pub cores_frac: f64,
    /// Concurrent: how much longer requests work that begin meanwhile.
    #[serde(default)]
    pub assist_frac: f64,
}

/// `[clients]`: they give up an attempt and send the request again. The server does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// How long they wait for an attempt.
    pub timeout_ms: f64,
    /// Attempts after the first.
    pub resends: u32,
    /// How long they wait before the second, twice as long before each after it, times a number
    /// drawn from 0.5 to 1.5.
    #[serde(default)]
    pub backoff_ms: f64,
}

/// `[batch]`: jobs that come and go, at random times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Mean length of one, in seconds.
    pub mean_busy_s: f64,
    /// Mean time between two, in seconds.
    pub mean_idle_s: f64,
    /// Part of the processors that it takes.
    #[serde(default)]
    pub cores_frac: f64,
    /// Requests to the storage that it makes, per second.
    #[serde(default)]
    pub ios_per_s: f64,
}

/// `[speed]`: of the whole machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Speed {
    /// Standard deviation of its logarithm, as it drifts.
    pub drift_sd: f64,
    /// How long it remembers, in seconds (Ornstein-Uhlenbeck).
    pub drift_memory_s: f64,
    /// Standard deviation of its logarithm from trial to trial.
    pub between_trials_sd: f64,
    /// How much longer all takes at the very beginning, as a fraction.
    pub cold_frac: f64,
    /// The cold wears off with this time constant, in seconds.
    pub cold_s: f64,
}

impl Default for Speed {
    fn default() -> Self {
        Self {
            drift_sd: 0.0,
            drift_memory_s: 20.0,
            between_trials_sd: 0.0,
            cold_frac: 0.0,
            cold_s: 2.0,
        }
    }
}

fn one() -> f64 {
    1.0
}

fn one_lock() -> u32 {
    1
}

fn five() -> f64 {
    5.0
}

fn ten() -> f64 {
    10.0
}

fn most() -> f64 {
    0.7
}

fn quarter() -> f64 {
    0.25
}

fn backlog() -> u32 {
    4096
}

impl Document {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is out of range, by name.
    pub fn validate(&self) -> Result<(), Refused> {
        validate::check(self)
    }
}
