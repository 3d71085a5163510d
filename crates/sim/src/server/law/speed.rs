//! How much longer service takes than it should: trial, mode, drift, cold, stalls.

use leadline_wire::job::trial::SimulatedServer;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::service::{exponential, normal, uniform};

/// The drift takes a step this often.
const STEP_NS: u64 = 250_000_000;

/// The factor of all service times as the trial goes on, and the stalls of the server.
pub struct Speed {
    trial: f64,
    drift: f64,
    drift_sd: f64,
    keeps: f64,
    factor: f64,
    next_step_ns: u64,
    cold_frac: f64,
    cold_ns: f64,
    stall_gap_ns: f64,
    stall_mean_ns: f64,
    stall_from_ns: f64,
    stall_to_ns: f64,
}

impl Speed {
    pub fn new(server: &SimulatedServer, random: &mut Xoshiro256PlusPlus) -> Self {
        let slow = uniform(random) < server.slow_mode_share;
        let mode = if slow { server.slow_mode_factor } else { 1.0 };
        let stall_gap_ns =
            if server.stalls_per_s > 0.0 { 1e9 / server.stalls_per_s } else { f64::INFINITY };
        let mut speed = Self {
            trial: mode * (server.between_trials_sd * normal(random)).exp(),
            drift: server.drift_sd * normal(random),
            drift_sd: server.drift_sd,
            keeps: (-(STEP_NS as f64) / 1e9 / server.drift_memory_s).exp(),
            factor: 1.0,
            next_step_ns: 0,
            cold_frac: server.cold_frac,
            cold_ns: server.cold_s * 1e9,
            stall_gap_ns,
            stall_mean_ns: server.stall_ms * 1e6,
            stall_from_ns: f64::INFINITY,
            stall_to_ns: f64::INFINITY,
        };
        if stall_gap_ns.is_finite() {
            speed.next_stall(0.0, random);
        }
        speed
    }

    /// How much longer service takes at this moment; moments never go back.
    #[inline]
    pub fn factor(&mut self, at_ns: u64, random: &mut Xoshiro256PlusPlus) -> f64 {
        while at_ns >= self.next_step_ns {
            self.step(random);
        }
        self.factor
    }

    /// A moment at which work can begin: the end of a stall that it falls into.
    #[inline]
    pub fn after_stall(&mut self, at_ns: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
        let at = at_ns as f64;
        while at >= self.stall_to_ns {
            self.next_stall(self.stall_to_ns, random);
        }
        if at >= self.stall_from_ns { self.stall_to_ns as u64 } else { at_ns }
    }

    fn next_stall(&mut self, after_ns: f64, random: &mut Xoshiro256PlusPlus) {
        self.stall_from_ns = after_ns + exponential(random) * self.stall_gap_ns;
        self.stall_to_ns = self.stall_from_ns + exponential(random) * self.stall_mean_ns;
    }

    fn step(&mut self, random: &mut Xoshiro256PlusPlus) {
        let cold = self.cold_frac * (-(self.next_step_ns as f64) / self.cold_ns).exp();
        self.factor = self.trial * self.drift.exp() * (1.0 + cold);
        let kick = self.drift_sd * (1.0 - self.keeps * self.keeps).sqrt();
        self.drift = self.keeps * self.drift + kick * normal(random);
        self.next_step_ns += STEP_NS;
    }
}
