//! Random numbers of a machine, all from its one seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform below `limit`, which is above 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// Exponential with mean one.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Log-normal with mean one and this coefficient of variation.
    pub fn around_one(&mut self, cv: f64) -> f64 {
        if cv == 0.0 {
            return 1.0;
        }
        let sigma = (cv * cv).ln_1p().sqrt();
        (sigma * (self.normal() - 0.5 * sigma)).exp()
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_around_one_have_that_mean_and_the_stated_variation() {
        let mut random = Random::new(7);
        let drawn: Vec<f64> = (0..200_000).map(|_| random.around_one(0.5)).collect();
        let mean = drawn.iter().sum::<f64>() / 2e5;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e5;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() / mean - 0.5).abs() < 0.02, "{variance}");
    }
}
