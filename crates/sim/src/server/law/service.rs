//! How long requests take: draws with a mean of one.

use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use leadline_wire::job::trial::Service;

/// A draw of the exponential distribution with mean 1.
#[inline]
pub fn exponential(random: &mut Xoshiro256PlusPlus) -> f64 {
    Exp1.sample(random)
}

/// A draw of the standard normal distribution.
#[inline]
pub fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    StandardNormal.sample(random)
}

/// A uniform draw from [0, 1).
#[inline]
pub fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A service distribution with what its draws need, worked out once.
#[derive(Clone, Copy, Debug)]
pub enum Draws {
    Fixed,
    Exponential,
    Lognormal { shift: f64, sd: f64 },
    Pareto { shape: f64, least: f64, cut: f64 },
    TwoModes { slow_share: f64, fast: f64, slow: f64 },
}

impl Draws {
    pub fn new(service: &Service) -> Self {
        match *service {
            Service::Fixed {} => Self::Fixed,
            Service::Exponential {} => Self::Exponential,
            Service::Lognormal { cv } => {
                let variance = (1.0 + cv * cv).ln();
                Self::Lognormal { shift: -variance / 2.0, sd: variance.sqrt() }
            }
            Service::Pareto { shape, end } => pareto(shape, end),
            Service::TwoModes { slow_share, slow_factor } => {
                let fast = 1.0 / (1.0 - slow_share + slow_share * slow_factor);
                Self::TwoModes { slow_share, fast, slow: fast * slow_factor }
            }
        }
    }

    /// A draw; the mean of all is 1.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> f64 {
        match *self {
            Self::Fixed => 1.0,
            Self::Exponential => exponential(random),
            Self::Lognormal { shift, sd } => (shift + sd * normal(random)).exp(),
            Self::Pareto { shape, least, cut } => {
                least * (1.0 - cut * uniform(random)).powf(-1.0 / shape)
            }
            Self::TwoModes { slow_share, fast, slow } => {
                let mean = if uniform(random) < slow_share { slow } else { fast };
                mean * exponential(random)
            }
        }
    }
}

/// The cut Pareto distribution: with `ratio` its end over its least value, the mean is
/// `least · shape/(shape−1) · (1 − ratio^(1−shape)) / (1 − ratio^−shape)`, which is 1 where the end
/// is `end`; found by halving.
fn pareto(shape: f64, end: f64) -> Draws {
    let mean = |least: f64| {
        let ratio = end / least;
        least * shape / (shape - 1.0) * (1.0 - ratio.powf(1.0 - shape)) / (1.0 - ratio.powf(-shape))
    };
    let (mut low, mut high) = (1e-6, 1.0);
    for _ in 0..60 {
        let middle: f64 = 0.5 * (low + high);
        if mean(middle) < 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Draws::Pareto { shape, least: low, cut: 1.0 - (end / low).powf(-shape) }
}
