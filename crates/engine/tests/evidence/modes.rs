//! Two rates of one window, on series whose truth is known.

use leadline_engine::evidence::modes::modes;
use leadline_wire::event::measure::Slice;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

type Random = Xoshiro256PlusPlus;
const SLICES: usize = 1500;

/// A window of slices of 2 ms with these rates in bytes per second, in requests of 4 KiB.
fn window(rates: impl Iterator<Item = f64>) -> Vec<Slice> {
    let slice = |(number, rate): (usize, f64)| {
        let operations = (rate * 0.002 / 4096.0).round() as u64;
        Slice {
            start_s: number as f64 * 0.002,
            seconds: 0.002,
            operations,
            bytes: 4096 * operations,
        }
    };
    rates.enumerate().map(slice).collect()
}

fn factor(random: &mut Random, cv: f64) -> f64 {
    let normal: f64 = StandardNormal.sample(random);
    (cv * normal).exp()
}

/// Turns of random length between a rate and `1 / apart` of it, which has `slow` of the time.
fn by_turns(seed: u64, apart: f64, slow: f64, cv: f64) -> Vec<Slice> {
    let mut random = Random::seed_from_u64(seed);
    let mut left = 0;
    let mut is_slow = false;
    window((0..SLICES).map(|_| {
        if left == 0 {
            is_slow = !is_slow;
            let mean = 60.0 * if is_slow { slow } else { 1.0 - slow };
            let uniform: f64 = random.random();
            left = 1 + (-mean * (1.0 - uniform).ln()) as u32;
        }
        left -= 1;
        5e8 / if is_slow { apart } else { 1.0 } * factor(&mut random, cv)
    }))
}

#[test]
fn two_rates_are_told_with_their_shares_of_the_time() {
    for (apart, slow, cv) in [(4.0, 0.5, 0.15), (10.0, 0.3, 0.25), (3.0, 0.7, 0.1)] {
        for seed in 0..20 {
            let slices = by_turns(seed, apart, slow, cv);
            let found = modes(&slices).unwrap();
            let slow_s = slices.iter().filter(|slice| (slice.bytes as f64) < 1e6 / apart.sqrt());
            let share = slow_s.count() as f64 / SLICES as f64;
            assert!((found.slow_frac - share).abs() < 0.02, "{seed}: {found:?}, {share}");
            assert!((found.fast_mb_s / 500.0 - 1.0).abs() < 0.1, "{seed}: {found:?}");
            let ratio = found.fast_mb_s / found.slow_mb_s;
            assert!((ratio / apart - 1.0).abs() < 0.1, "{seed}: {found:?}");
        }
    }
}

#[test]
fn writers_that_pause_are_two_rates() {
    // A fifth of a second of nothing after each 60 ms of work.
    let rates = (0..SLICES).map(|number| if number % 130 < 30 { 8e8 } else { 0.0 });
    let found = modes(&window(rates)).unwrap();
    assert!((found.slow_frac - 0.77).abs() < 0.03, "{found:?}");
    assert!((found.fast_mb_s / 800.0 - 1.0).abs() < 0.05, "{found:?}");
}

#[test]
fn one_rate_with_any_noise_is_one_rate_and_so_are_a_shift_and_a_slope() {
    for seed in 0..200 {
        let random = &mut Random::seed_from_u64(seed);
        let mut state = 0.0;
        let mut memory = |random: &mut Random, phi: f64| {
            let normal: f64 = StandardNormal.sample(random);
            state = phi * state + (1.0_f64 - phi * phi).sqrt() * normal;
            state
        };
        let noisy = window((0..SLICES).map(|_| 4e8 * factor(random, 0.5)));
        let slow_noise = window((0..SLICES).map(|_| 4e8 * (0.3 * memory(random, 0.98)).exp()));
        let few = window((0..SLICES).map(|_| 4e8 * -(1.0 - random.random::<f64>()).ln()));
        let shift = window((0..SLICES).map(|n| if n < 700 { 8e8 } else { 2e8 }));
        let slope = window((0..SLICES).map(|n| 1e8 + 4e5 * n as f64 * factor(random, 0.1)));
        for (name, slices) in [
            ("noise", noisy),
            ("slow noise", slow_noise),
            ("exponential", few),
            ("shift", shift),
            ("slope", slope),
        ] {
            assert_eq!(modes(&slices), None, "{name}, {seed}");
        }
    }
    assert_eq!(modes(&[]), None);
}
