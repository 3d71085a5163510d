//! A trial of a simulated server: what the server is, and what is asked of it.

use schemars::{JsonSchema, Schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::check::{Wrong, begins_well, require, within};
use crate::job::measure::check_limits;
use crate::ranges;
use crate::schema::{bounded, bounded_items, counted, version};

/// One trial of one simulated server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialJob {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// Chosen by the caller; every event repeats it.
    #[schemars(length(min = 1))]
    pub job_id: String,
    /// The server.
    pub server: Server,
    /// What it is offered.
    pub order: TrialOrder,
}

impl TrialJob {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        begins_well(self.version, &self.job_id)?;
        if let Server::Law(server) = &self.server {
            server.validate()?;
        }
        self.order.validate()
    }
}

/// A server whose truth is known, of either family.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Server {
    /// Made of parts.
    Parts(PartsServer),
    /// A law of service times behind a queue.
    Law(Box<SimulatedServer>),
}

/// A server made of parts (docs/reference/server.md). The crate that has the parts reads and checks
/// their fields.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartsServer {
    /// What tells it from a law.
    #[schemars(transform = parts)]
    family: String,
    /// All other fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// The field that says which family a server is of; a law has none.
const FAMILY: &str = "family";
const PARTS: &str = "parts";

fn parts(schema: &mut Schema) {
    schema.insert("const".to_owned(), PARTS.into());
}

impl<'de> Deserialize<'de> for Server {
    // Not derived: a wrong field of either is named, where an untagged enum says that none fits.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(from)?;
        let Some(family) = fields.remove(FAMILY) else {
            let law = serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)?;
            return Ok(Self::Law(law));
        };
        if family == PARTS {
            return Ok(Self::Parts(PartsServer { family: PARTS.to_owned(), fields }));
        }
        Err(D::Error::custom(format!(
            "family is {family}; it must be \"{PARTS}\" (leave it out for a law of service times)"
        )))
    }
}

/// How long a worker is busy with a request, relative to its mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Service {
    /// Always the mean.
    Fixed {},
    /// Exponential: coefficient of variation 1.
    Exponential {},
    /// Log-normal.
    Lognormal {
        /// Coefficient of variation.
        #[schemars(transform = bounded(ranges::SERVICE_CV))]
        cv: f64,
    },
    /// A Pareto tail that is cut: `P(S > x)` falls as `x^-shape` up to `end`.
    Pareto {
        /// Exponent of the tail, above 1; below 2 the uncut variance has no bound.
        #[schemars(transform = bounded(ranges::TAIL_SHAPE))]
        shape: f64,
        /// Nothing takes longer than this many times the mean: servers time out and retry.
        #[serde(default = "thousand")]
        #[schemars(transform = bounded(ranges::TAIL_END))]
        end: f64,
    },
    /// Exponential around either of two means: a hit and a miss, a small and a large file.
    TwoModes {
        /// Share of the slow requests.
        #[schemars(transform = bounded(ranges::SHARE))]
        slow_share: f64,
        /// How much longer these take than the fast ones.
        #[schemars(transform = bounded(ranges::SLOW_FACTOR))]
        slow_factor: f64,
    },
}

/// A server whose truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedServer {
    /// Threads, each with one request at a time.
    #[schemars(transform = bounded(ranges::WORKERS))]
    pub workers: u32,
    /// Mean time a worker itself is busy with a request, in milliseconds.
    #[schemars(transform = bounded(ranges::SERVICE_MS))]
    pub service_ms: f64,
    /// Its distribution.
    pub service: Service,
    /// Mean time on the one shared processor before, in milliseconds; the worker waits for it.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SERVICE_MS))]
    pub cpu_ms: f64,
    /// Each worker more makes the processor slower by this fraction.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::CONTENTION_FRAC))]
    pub cpu_contention_frac: f64,
    /// Disks; the request's own is drawn. The worker waits for it.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::DISKS))]
    pub disks: u32,
    /// Share of the requests that need a disk.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SHARE))]
    pub disk_share: f64,
    /// Mean time of these on the disk, in milliseconds, exponential.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SERVICE_MS))]
    pub disk_ms: f64,
    /// Standard deviation of the logarithm of the speed, as it drifts.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SPEED_SD))]
    pub drift_sd: f64,
    /// How long it remembers, in seconds (Ornstein-Uhlenbeck).
    #[serde(default = "twenty")]
    #[schemars(transform = bounded(ranges::DRIFT_MEMORY_S))]
    pub drift_memory_s: f64,
    /// Standard deviation of the logarithm of the speed from trial to trial.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SPEED_SD))]
    pub between_trials_sd: f64,
    /// Share of the trials in which the whole server is in its slow mode.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SHARE))]
    pub slow_mode_share: f64,
    /// How much longer all service takes in that mode.
    #[serde(default = "one")]
    #[schemars(transform = bounded(ranges::MODE_FACTOR))]
    pub slow_mode_factor: f64,
    /// More load, less done: service takes up to `1 + retrograde` as long when requests have waited.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SLOWER_FRAC))]
    pub retrograde: f64,
    /// Wait at which it is two thirds of the way there, in milliseconds.
    #[serde(default = "hundred")]
    #[schemars(transform = bounded(ranges::RETROGRADE_MS))]
    pub retrograde_ms: f64,
    /// How much longer service takes at the very beginning, as a fraction: cold caches.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SLOWER_FRAC))]
    pub cold_frac: f64,
    /// The cold wears off with this time constant, in seconds.
    #[serde(default = "two")]
    #[schemars(transform = bounded(ranges::COLD_S))]
    pub cold_s: f64,
    /// Stalls of the whole server per second: a garbage collector, a flush.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::STALLS_PER_S))]
    pub stalls_per_s: f64,
    /// How long each lasts in the mean, in milliseconds, exponential.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::SERVICE_MS))]
    pub stall_ms: f64,
    /// Load before the window, not counted, in seconds.
    #[serde(default = "five")]
    #[schemars(transform = bounded(ranges::BESIDE_TRIAL_S))]
    pub warm_up_s: f64,
    /// What a trial costs beside warm-up and window: configure, start, stop; in seconds.
    #[serde(default = "ten")]
    #[schemars(transform = bounded(ranges::BESIDE_TRIAL_S))]
    pub set_up_s: f64,
}

fn one() -> f64 {
    1.0
}

fn two() -> f64 {
    2.0
}

fn five() -> f64 {
    5.0
}

fn ten() -> f64 {
    10.0
}

fn twenty() -> f64 {
    20.0
}

fn hundred() -> f64 {
    100.0
}

fn thousand() -> f64 {
    1000.0
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialOrder {
    /// Requests due per second in the mean (Poisson).
    #[schemars(transform = bounded(ranges::TRIAL_RATE_PER_S))]
    pub rate_per_s: f64,
    /// Length of the measured window.
    #[schemars(transform = bounded(ranges::TRIAL_S))]
    pub seconds: f64,
    /// Of every random number of the trial.
    pub seed: u64,
    /// Requests slower than this are counted per part of the window.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::RESPONSE_MS))]
    pub limit_ms: Option<f64>,
    /// Further limits that requests are counted over, each apart; only beside a first.
    #[serde(default)]
    #[schemars(transform = counted(ranges::ALSO_LIMITS), transform = bounded_items(ranges::RESPONSE_MS))]
    pub also_limits_ms: Vec<f64>,
    /// Give up when the mean response time is above this.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::RESPONSE_MS))]
    pub abort_above_ms: Option<f64>,
}

impl TrialOrder {
    /// Every limit that requests are counted over, in order.
    pub fn limits_ms(&self) -> impl Iterator<Item = f64> {
        self.limit_ms.into_iter().chain(self.also_limits_ms.iter().copied())
    }
}

impl SimulatedServer {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    fn validate(&self) -> Result<(), Wrong> {
        within("workers", self.workers, &ranges::WORKERS, "threads")?;
        within("disks", self.disks, &ranges::DISKS, "a number of disks")?;
        let reals = [
            ("service_ms", self.service_ms, ranges::SERVICE_MS),
            ("cpu_ms", self.cpu_ms, ranges::SERVICE_MS),
            ("cpu_contention_frac", self.cpu_contention_frac, ranges::CONTENTION_FRAC),
            ("disk_share", self.disk_share, ranges::SHARE),
            ("disk_ms", self.disk_ms, ranges::SERVICE_MS),
            ("drift_sd", self.drift_sd, ranges::SPEED_SD),
            ("drift_memory_s", self.drift_memory_s, ranges::DRIFT_MEMORY_S),
            ("between_trials_sd", self.between_trials_sd, ranges::SPEED_SD),
            ("slow_mode_share", self.slow_mode_share, ranges::SHARE),
            ("slow_mode_factor", self.slow_mode_factor, ranges::MODE_FACTOR),
            ("retrograde", self.retrograde, ranges::SLOWER_FRAC),
            ("retrograde_ms", self.retrograde_ms, ranges::RETROGRADE_MS),
            ("cold_frac", self.cold_frac, ranges::SLOWER_FRAC),
            ("cold_s", self.cold_s, ranges::COLD_S),
            ("stalls_per_s", self.stalls_per_s, ranges::STALLS_PER_S),
            ("stall_ms", self.stall_ms, ranges::SERVICE_MS),
            ("warm_up_s", self.warm_up_s, ranges::BESIDE_TRIAL_S),
            ("set_up_s", self.set_up_s, ranges::BESIDE_TRIAL_S),
        ];
        for (field, value, range) in reals {
            within(field, value, &range, "of the simulated server")?;
        }
        self.service.validate()?;
        let disk_ms = if self.disks > 0 { self.disk_share * self.disk_ms } else { 0.0 };
        let request_ms = self.service_ms + self.cpu_ms + disk_ms;
        require(
            request_ms > 0.0,
            "the time of a request",
            request_ms,
            "above 0",
            "give service_ms, cpu_ms or disk_ms",
        )
    }
}

impl Service {
    fn validate(&self) -> Result<(), Wrong> {
        let of = "of the service";
        match *self {
            Self::Fixed {} | Self::Exponential {} => Ok(()),
            Self::Lognormal { cv } => within("service.cv", cv, &ranges::SERVICE_CV, of),
            Self::Pareto { shape, end } => {
                within("service.shape", shape, &ranges::TAIL_SHAPE, of)?;
                within("service.end", end, &ranges::TAIL_END, of)
            }
            Self::TwoModes { slow_share, slow_factor } => {
                within("service.slow_share", slow_share, &ranges::SHARE, of)?;
                within("service.slow_factor", slow_factor, &ranges::SLOW_FACTOR, of)
            }
        }
    }
}

impl TrialOrder {
    fn validate(&self) -> Result<(), Wrong> {
        let rates = &ranges::TRIAL_RATE_PER_S;
        within("rate_per_s", self.rate_per_s, rates, "requests due per second")?;
        within("seconds", self.seconds, &ranges::TRIAL_S, "of the window")?;
        check_limits("also_limits_ms", &self.also_limits_ms, &ranges::ALSO_LIMITS)?;
        require(
            self.limit_ms.is_some() || self.also_limits_ms.is_empty(),
            "also_limits_ms",
            "given",
            "absent without limit_ms",
            "name the first limit there",
        )?;
        let bounds = [("limit_ms", self.limit_ms), ("abort_above_ms", self.abort_above_ms)];
        bounds.into_iter().try_for_each(|(field, bound)| {
            let write = "milliseconds; leave it out for none";
            bound.map_or(Ok(()), |bound| within(field, bound, &ranges::RESPONSE_MS, write))
        })
    }
}
