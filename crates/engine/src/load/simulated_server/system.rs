//! What a simulated server is, and what is asked of it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::wire::limits;

/// How long a worker is busy with a request, relative to its mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Service {
    /// Always the mean.
    Fixed {},
    /// Exponential: coefficient of variation 1.
    Exponential {},
    /// Log-normal.
    Lognormal {
        /// Coefficient of variation.
        cv: f64,
    },
    /// A Pareto tail that is cut: `P(S > x)` falls as `x^-shape` up to `end`.
    Pareto {
        /// Exponent of the tail, above 1; below 2 the uncut variance has no bound.
        shape: f64,
        /// Nothing takes longer than this many times the mean: servers time out and retry.
        #[serde(default = "thousand")]
        end: f64,
    },
    /// Exponential around either of two means: a hit and a miss, a small and a large file.
    TwoModes {
        /// Share of the slow requests.
        slow_share: f64,
        /// How much longer these take than the fast ones.
        slow_factor: f64,
    },
}

/// A server whose truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedServer {
    /// Threads, each with one request at a time.
    pub workers: u32,
    /// Mean time a worker itself is busy with a request, in milliseconds.
    pub service_ms: f64,
    /// Its distribution.
    pub service: Service,
    /// Mean time on the one shared processor before, in milliseconds; the worker waits for it.
    #[serde(default)]
    pub cpu_ms: f64,
    /// Each worker more makes the processor slower by this fraction.
    #[serde(default)]
    pub cpu_contention_frac: f64,
    /// Disks; the request's own is drawn. The worker waits for it.
    #[serde(default)]
    pub disks: u32,
    /// Share of the requests that need a disk.
    #[serde(default)]
    pub disk_share: f64,
    /// Mean time of these on the disk, in milliseconds, exponential.
    #[serde(default)]
    pub disk_ms: f64,
    /// Standard deviation of the logarithm of the speed, as it drifts.
    #[serde(default)]
    pub drift_sd: f64,
    /// How long it remembers, in seconds (Ornstein-Uhlenbeck).
    #[serde(default = "twenty")]
    pub drift_memory_s: f64,
    /// Standard deviation of the logarithm of the speed from trial to trial.
    #[serde(default)]
    pub between_trials_sd: f64,
    /// Share of the trials in which the whole server is in its slow mode.
    #[serde(default)]
    pub slow_mode_share: f64,
    /// How much longer all service takes in that mode.
    #[serde(default = "one")]
    pub slow_mode_factor: f64,
    /// More load, less done: service takes up to `1 + retrograde` as long when requests have waited.
    #[serde(default)]
    pub retrograde: f64,
    /// Wait at which it is two thirds of the way there, in milliseconds.
    #[serde(default = "hundred")]
    pub retrograde_ms: f64,
    /// How much longer service takes at the very beginning, as a fraction: cold caches.
    #[serde(default)]
    pub cold_frac: f64,
    /// The cold wears off with this time constant, in seconds.
    #[serde(default = "two")]
    pub cold_s: f64,
    /// Stalls of the whole server per second: a garbage collector, a flush.
    #[serde(default)]
    pub stalls_per_s: f64,
    /// How long each lasts in the mean, in milliseconds, exponential.
    #[serde(default)]
    pub stall_ms: f64,
    /// Load before the window, not counted, in seconds.
    #[serde(default = "five")]
    pub warm_up_s: f64,
    /// What a trial costs beside warm-up and window: configure, start, stop; in seconds.
    #[serde(default = "ten")]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialOrder {
    /// Requests due per second in the mean (Poisson).
    pub rate_per_s: f64,
    /// Length of the measured window.
    pub seconds: f64,
    /// Of every random number of the trial.
    pub seed: u64,
    /// Requests slower than this are counted per part of the window.
    #[serde(default)]
    pub limit_ms: Option<f64>,
    /// Give up when the mean response time is above this.
    #[serde(default)]
    pub abort_above_ms: Option<f64>,
}

impl SimulatedServer {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// `BadJob` naming the field, its value and its range.
    pub fn validate(&self) -> Result<(), EngineError> {
        within("workers", f64::from(self.workers), 1.0, 4096.0)?;
        within("service_ms", self.service_ms, 0.0, 1e6)?;
        within("cpu_ms", self.cpu_ms, 0.0, 1e6)?;
        within("cpu_contention_frac", self.cpu_contention_frac, 0.0, 10.0)?;
        within("disks", f64::from(self.disks), 0.0, 1024.0)?;
        within("disk_share", self.disk_share, 0.0, 1.0)?;
        within("disk_ms", self.disk_ms, 0.0, 1e6)?;
        within("drift_sd", self.drift_sd, 0.0, 2.0)?;
        within("drift_memory_s", self.drift_memory_s, 0.01, 1e6)?;
        within("between_trials_sd", self.between_trials_sd, 0.0, 2.0)?;
        within("slow_mode_share", self.slow_mode_share, 0.0, 1.0)?;
        within("slow_mode_factor", self.slow_mode_factor, 0.01, 100.0)?;
        within("retrograde", self.retrograde, 0.0, 100.0)?;
        within("retrograde_ms", self.retrograde_ms, 1e-3, 1e6)?;
        within("cold_frac", self.cold_frac, 0.0, 100.0)?;
        within("cold_s", self.cold_s, 1e-3, 1e6)?;
        within("stalls_per_s", self.stalls_per_s, 0.0, 100.0)?;
        within("stall_ms", self.stall_ms, 0.0, 1e6)?;
        within("warm_up_s", self.warm_up_s, 0.0, 1e5)?;
        within("set_up_s", self.set_up_s, 0.0, 1e5)?;
        self.service.validate()?;
        let disk_ms = if self.disks > 0 { self.disk_share * self.disk_ms } else { 0.0 };
        if self.service_ms + self.cpu_ms + disk_ms <= 0.0 {
            return Err(EngineError::bad_job(
                "a request takes no time at all; give service_ms, cpu_ms or disk_ms",
            ));
        }
        Ok(())
    }
}

impl Service {
    fn validate(&self) -> Result<(), EngineError> {
        match *self {
            Self::Fixed {} | Self::Exponential {} => Ok(()),
            Self::Lognormal { cv } => within("service.cv", cv, 1e-3, 20.0),
            Self::Pareto { shape, end } => {
                within("service.shape", shape, 1.05, 20.0)?;
                within("service.end", end, 2.0, 1e6)
            }
            Self::TwoModes { slow_share, slow_factor } => {
                within("service.slow_share", slow_share, 0.0, 1.0)?;
                within("service.slow_factor", slow_factor, 1.0, 1e4)
            }
        }
    }
}

impl TrialOrder {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// `BadJob` naming the field, its value and its range.
    pub fn validate(&self) -> Result<(), EngineError> {
        within_range("rate_per_s", self.rate_per_s, &limits::TRIAL_RATE_PER_S)?;
        within_range("seconds", self.seconds, &limits::TRIAL_S)
    }
}

fn within_range(field: &str, value: f64, range: &RangeInclusive<f64>) -> Result<(), EngineError> {
    within(field, value, *range.start(), *range.end())
}

fn within(field: &str, value: f64, low: f64, high: f64) -> Result<(), EngineError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(EngineError::bad_job(format!("{field} is {value}; it must be between {low} and {high}")))
}
