//! How much longer everything takes than it should: the trial's own luck, drift, a cold beginning.

use super::document::Speed as Document;
use crate::random::Random;

/// The drift takes a step this often.
pub(super) const STEP_NS: u64 = 250_000_000;

/// The factor of all times as a trial goes on.
#[derive(Debug)]
pub(super) struct Speed {
    trial: f64,
    drift: f64,
    drift_sd: f64,
    keeps: f64,
    cold_frac: f64,
    cold_ns: f64,
}

impl Speed {
    /// Of one trial.
    pub fn new(document: &Document, random: &mut Random) -> Self {
        let trial = document.between_trials_sd * random.normal();
        Self {
            trial: trial.exp(),
            drift: document.drift_sd * random.normal(),
            drift_sd: document.drift_sd,
            keeps: (-(STEP_NS as f64) / 1e9 / document.drift_memory_s).exp(),
            cold_frac: document.cold_frac,
            cold_ns: document.cold_s * 1e9,
        }
    }

    /// Whether it changes at all while a trial goes on.
    pub fn changes(&self) -> bool {
        self.drift_sd > 0.0 || self.cold_frac > 0.0
    }

    /// How much longer things take at this moment.
    pub fn factor(&self, now_ns: u64) -> f64 {
        let cold = self.cold_frac * (-(now_ns as f64) / self.cold_ns).exp();
        self.trial * self.drift.exp() * (1.0 + cold)
    }

    /// A step of the drift.
    pub fn step(&mut self, random: &mut Random) {
        let kick = self.drift_sd * (1.0 - self.keeps * self.keeps).sqrt();
        self.drift = self.keeps * self.drift + kick * random.normal();
    }
}
