//! The speed of a whole system over virtual time: run-to-run factor, drift, bursts, writeback.
//!
//! Speed modulates progress: a request of `work_ns` ends when the integral of the speed from its
//! start has reached `work_ns`. In that stretched time the system is a plain renewal process, so
//! its mean throughput is the steady one times the time average of the speed, exactly.

use std::collections::VecDeque;

use rand::{RngExt as _, SeedableRng};
use rand_distr::{Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::system::{Bursts, Drift, DriftShape, Flusher};

const NS_PER_S: f64 = 1e9;
const NS_PER_HOUR: f64 = 3.6e12;
const SLOWEST_LINEAR: f64 = 0.05;

/// Log-normal numbers of mean one and a stated coefficient of variation.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeanOne {
    sigma: f64,
}

impl MeanOne {
    pub fn new(cv: f64) -> Self {
        Self { sigma: (cv * cv).ln_1p().sqrt() }
    }

    pub fn is_constant(self) -> bool {
        self.sigma == 0.0
    }

    pub fn at(self, standard_normal: f64) -> f64 {
        (self.sigma * (standard_normal - 0.5 * self.sigma)).exp()
    }

    pub fn draw(self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        self.at(rng.sample(StandardNormal))
    }
}

impl Drift {
    fn rate(&self) -> f64 {
        self.rate_per_hour.unwrap_or(0.0)
    }

    fn step_ns(&self) -> f64 {
        self.at_s.unwrap_or(0.0) * NS_PER_S
    }

    /// Speed at an instant.
    pub(super) fn speed_at(&self, now_ns: f64) -> f64 {
        let hours = now_ns / NS_PER_HOUR;
        match self.shape {
            DriftShape::Exponential => (1.0 + self.rate()).powf(hours),
            DriftShape::Linear => (1.0 + self.rate() * hours).max(SLOWEST_LINEAR),
            DriftShape::Step if now_ns >= self.step_ns() => self.factor.unwrap_or(1.0),
            DriftShape::Step => 1.0,
        }
    }

    /// Mean speed over a window; at `from_ns` when the window is empty.
    pub(super) fn mean_speed(&self, from_ns: f64, to_ns: f64) -> f64 {
        if to_ns <= from_ns {
            return self.speed_at(from_ns);
        }
        let (from_h, to_h) = (from_ns / NS_PER_HOUR, to_ns / NS_PER_HOUR);
        match self.shape {
            DriftShape::Exponential => {
                let growth = self.rate().ln_1p();
                let rise = growth * (to_h - from_h);
                let shape = if rise == 0.0 { 1.0 } else { rise.exp_m1() / rise };
                (growth * from_h).exp() * shape
            }
            DriftShape::Linear => {
                let line = |hours: f64| 1.0 + self.rate() * hours;
                let floor_h = if self.rate() < 0.0 {
                    (SLOWEST_LINEAR - 1.0) / self.rate()
                } else {
                    f64::INFINITY
                };
                let bend_h = floor_h.clamp(from_h, to_h);
                let sloping = (bend_h - from_h) * line(f64::midpoint(from_h, bend_h));
                (sloping + (to_h - bend_h) * SLOWEST_LINEAR) / (to_h - from_h)
            }
            DriftShape::Step => {
                let before = (self.step_ns().clamp(from_ns, to_ns) - from_ns) / (to_ns - from_ns);
                before + (1.0 - before) * self.factor.unwrap_or(1.0)
            }
        }
    }
}

impl Bursts {
    /// Share of time spent in slow episodes.
    pub(super) fn slow_frac(&self) -> f64 {
        self.mean_slow_s / (self.mean_slow_s + self.mean_normal_s)
    }

    /// Time average of the speed.
    pub(super) fn mean_speed(&self) -> f64 {
        let slow = self.slow_frac();
        slow / self.slow_factor + (1.0 - slow)
    }
}

impl Flusher {
    pub(super) fn runs_at(&self, now_ns: f64) -> bool {
        now_ns.rem_euclid(self.period_s * NS_PER_S) < self.run_s * NS_PER_S
    }

    /// Share of a window in which it runs; of the long run when the window is empty.
    pub(super) fn run_frac(&self, from_ns: f64, to_ns: f64) -> f64 {
        if to_ns <= from_ns {
            return self.run_s / self.period_s;
        }
        let run_until = |at_ns: f64| {
            let periods = (at_ns / (self.period_s * NS_PER_S)).floor();
            let into_s = at_ns / NS_PER_S - periods * self.period_s;
            periods * self.run_s + into_s.min(self.run_s)
        };
        (run_until(to_ns) - run_until(from_ns)) * NS_PER_S / (to_ns - from_ns)
    }
}

/// Slow and normal episodes of one run, drawn as time goes on.
#[derive(Clone, Debug)]
pub(super) struct Episodes {
    bursts: Bursts,
    rng: Xoshiro256PlusPlus,
    /// End and slowness of each episode, oldest first; never empty.
    ahead: VecDeque<(f64, bool)>,
}

impl Episodes {
    /// The first episode is drawn from the stationary law, so every window is typical.
    pub fn new(bursts: &Bursts, seed: u64, start_ns: f64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let slow = rng.random::<f64>() < bursts.slow_frac();
        let mut episodes = Self { bursts: bursts.clone(), rng, ahead: VecDeque::new() };
        episodes.push(start_ns, slow);
        episodes
    }

    fn push(&mut self, from_ns: f64, slow: bool) {
        let mean_s = if slow { self.bursts.mean_slow_s } else { self.bursts.mean_normal_s };
        let length: f64 = self.rng.sample(Exp1);
        self.ahead.push_back((from_ns + length * mean_s * NS_PER_S, slow));
    }

    /// Nanoseconds until `work_ns` of progress is made from `now_ns` on; `now_ns` never falls.
    pub fn elapse(&mut self, now_ns: f64, work_ns: f64) -> f64 {
        while self.ahead.front().is_some_and(|&(end_ns, _)| end_ns <= now_ns) {
            if self.ahead.len() == 1 {
                self.extend();
            }
            self.ahead.pop_front();
        }
        let (mut at_ns, mut left_ns, mut index) = (now_ns, work_ns, 0);
        loop {
            if index == self.ahead.len() {
                self.extend();
            }
            let (end_ns, slow) = self.ahead[index];
            let slowness = if slow { self.bursts.slow_factor } else { 1.0 };
            let done_ns = at_ns + left_ns * slowness;
            if done_ns <= end_ns {
                return done_ns - now_ns;
            }
            left_ns -= (end_ns - at_ns) / slowness;
            at_ns = end_ns;
            index += 1;
        }
    }

    fn extend(&mut self) {
        if let Some(&(end_ns, slow)) = self.ahead.back() {
            self.push(end_ns, !slow);
        }
    }
}
