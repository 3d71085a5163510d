//! Level shifts within a window, on series whose truth is known.
#![allow(clippy::unwrap_used, missing_docs)]

use leadline_engine::levels::{levels, shift_warning};
use leadline_engine::recorder::Slice;
use leadline_engine::result::Level;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Poisson, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

const RUNS: u32 = 500;

type Random = Xoshiro256PlusPlus;

fn normal(random: &mut Random) -> f64 {
    StandardNormal.sample(random)
}

/// Slices of 10 ms, some longer as when the controlling thread wakes late, with these rates in
/// bytes per second.
fn slices(random: &mut Random, rates: &[f64]) -> Vec<Slice> {
    let mut start_s = 0.0;
    rates
        .iter()
        .map(|rate| {
            let late: f64 = Exp1.sample(random);
            let seconds = 0.01 + 0.001 * late;
            let bytes = (rate.max(0.0) * seconds) as u64;
            let slice = Slice { start_s, seconds, operations: bytes / 4096, bytes };
            start_s += seconds;
            slice
        })
        .collect()
}

/// What noise does to a series of true rates.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// First-order autoregression with this correlation and coefficient of variation.
    Correlated { phi: f64, cv: f64 },
    /// As many requests of 1 MiB as a Poisson process completes at this mean number per slice.
    Counts { per_slice: f64 },
    /// Log-normal slices of this coefficient of variation.
    HeavyTailed { cv: f64 },
}

fn noisy(random: &mut Random, noise: Noise, truth: &[f64]) -> Vec<f64> {
    let mut state = normal(random);
    let top = truth.iter().copied().fold(0.0, f64::max);
    truth
        .iter()
        .map(|rate| match noise {
            Noise::Correlated { phi, cv } => {
                let now = rate * (1.0 + cv * state);
                state = phi * state + (1.0 - phi * phi).sqrt() * normal(random);
                now
            }
            Noise::Counts { per_slice } => {
                let mean = per_slice * rate / top;
                let count = Poisson::new(mean).map_or(0.0, |law| law.sample(random));
                count * 104_857_600.0
            }
            Noise::HeavyTailed { cv } => {
                let sigma = (1.0 + cv * cv).ln().sqrt();
                rate * (sigma * normal(random) - sigma * sigma / 2.0).exp()
            }
        })
        .collect()
}

/// Windows of `number` slices whose rate is multiplied by `factor` from a random place in the
/// middle 80 % on; how many show exactly two levels, and how many show more than one.
fn shifts(noise: Noise, number: usize, factor: f64) -> (u32, u32) {
    let mut random = Random::seed_from_u64(23);
    let (mut two, mut several) = (0, 0);
    for _ in 0..RUNS {
        let at = (number as f64 * random.random_range(0.1..=0.9)) as usize;
        let truth: Vec<f64> =
            (0..number).map(|index| if index < at { 1e8 } else { 1e8 * factor }).collect();
        let rates = noisy(&mut random, noise, &truth);
        let found = levels(&slices(&mut random, &rates)).len();
        two += u32::from(found == 2);
        several += u32::from(found > 1);
    }
    (two, several)
}

const LEVEL: [(Noise, usize); 15] = [
    (Noise::Correlated { phi: 0.0, cv: 0.1 }, 40),
    (Noise::Correlated { phi: 0.0, cv: 0.5 }, 300),
    (Noise::Correlated { phi: 0.5, cv: 0.3 }, 40),
    (Noise::Correlated { phi: 0.5, cv: 0.3 }, 150),
    (Noise::Correlated { phi: 0.8, cv: 0.3 }, 40),
    (Noise::Correlated { phi: 0.8, cv: 0.3 }, 80),
    (Noise::Correlated { phi: 0.8, cv: 0.3 }, 150),
    (Noise::Correlated { phi: 0.8, cv: 0.3 }, 400),
    (Noise::Correlated { phi: 0.8, cv: 0.3 }, 1200),
    (Noise::Counts { per_slice: 0.2 }, 300),
    (Noise::Counts { per_slice: 1.0 }, 150),
    (Noise::Counts { per_slice: 20.0 }, 300),
    (Noise::HeavyTailed { cv: 1.0 }, 150),
    (Noise::HeavyTailed { cv: 3.0 }, 300),
    (Noise::HeavyTailed { cv: 10.0 }, 300),
];

#[test]
fn a_level_window_shows_one_level() {
    for (noise, number) in LEVEL {
        let (_, alarms) = shifts(noise, number, 1.0);
        println!("{noise:?} {number} {alarms}");
    }
    for (noise, number) in [
        (Noise::Correlated { phi: 0.0, cv: 0.3 }, 150),
        (Noise::Correlated { phi: 0.5, cv: 0.3 }, 150),
        (Noise::Correlated { phi: 0.8, cv: 0.1 }, 150),
        (Noise::Correlated { phi: 0.8, cv: 0.1 }, 300),
        (Noise::Correlated { phi: 0.8, cv: 0.2 }, 400),
        (Noise::Counts { per_slice: 2.0 }, 300),
        (Noise::Counts { per_slice: 5.0 }, 300),
        (Noise::HeavyTailed { cv: 0.5 }, 300),
        (Noise::HeavyTailed { cv: 1.0 }, 400),
    ] {
        println!("{noise:?} {number} {:?} {:?}", shifts(noise, number, 0.5), shifts(noise,number,2.0));
    }
    for (noise, number) in [
        (Noise::Correlated { phi: 0.0, cv: 0.05 }, 150),
        (Noise::Correlated { phi: 0.5, cv: 0.05 }, 300),
        (Noise::Correlated { phi: 0.8, cv: 0.03 }, 300),
    ] {
        println!("10% {noise:?} {number} {:?}", shifts(noise, number, 0.9));
    }
}
