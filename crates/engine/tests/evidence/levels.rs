//! Level shifts within a window, on series whose truth is known.

use leadline_engine::evidence::levels::{levels, shifted};
use leadline_wire::event::measure::{Level, Slice};
use leadline_wire::finding::{Code, Finding};
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Poisson, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

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

/// A window of `number` slices whose rate is multiplied by `factor` from slice `at` on.
fn window(random: &mut Random, noise: Noise, number: usize, factor: f64, at: usize) -> Vec<Slice> {
    let truth: Vec<f64> =
        (0..number).map(|index| if index < at { 1e8 } else { 1e8 * factor }).collect();
    let rates = noisy(random, noise, &truth);
    slices(random, &rates)
}

/// Share of windows in which exactly two levels are found when the rate is multiplied by `factor`
/// from a random place in the middle 80% on.
fn found(noise: Noise, number: usize, factor: f64) -> f64 {
    let mut random = Random::seed_from_u64(23);
    let runs = 500;
    let finds = |_: &u32| {
        let at = (number as f64 * random.random_range(0.1..=0.9)) as usize;
        levels(&window(&mut random, noise, number, factor, at)).len() == 2
    };
    (0..runs).filter(finds).count() as f64 / f64::from(runs)
}

#[test]
fn a_window_at_one_level_is_rarely_said_to_shift() {
    for (noise, number) in [
        (Noise::Correlated { phi: 0.0, cv: 0.1 }, 150),
        (Noise::Correlated { phi: 0.0, cv: 0.5 }, 300),
        (Noise::Correlated { phi: 0.5, cv: 0.3 }, 150),
        (Noise::Correlated { phi: 0.8, cv: 0.3 }, 150),
        (Noise::Correlated { phi: 0.8, cv: 0.1 }, 400),
        (Noise::Correlated { phi: 0.8, cv: 0.3 }, 1200),
        (Noise::Counts { per_slice: 0.2 }, 300),
        (Noise::Counts { per_slice: 1.0 }, 150),
        (Noise::Counts { per_slice: 20.0 }, 300),
        (Noise::HeavyTailed { cv: 1.0 }, 150),
        (Noise::HeavyTailed { cv: 3.0 }, 300),
        (Noise::HeavyTailed { cv: 10.0 }, 300),
    ] {
        let mut random = Random::seed_from_u64(29);
        let runs = 1000;
        let alarms = (0..runs)
            .filter(|_| levels(&window(&mut random, noise, number, 1.0, 0)).len() > 1)
            .count();
        assert!(alarms <= runs / 100, "{noise:?}, {number} slices: {alarms} of {runs}");
    }
}

#[test]
fn a_shift_by_a_factor_of_two_is_found_wherever_it_is() {
    for (noise, number) in [
        (Noise::Correlated { phi: 0.0, cv: 0.3 }, 150),
        (Noise::Correlated { phi: 0.5, cv: 0.15 }, 150),
        (Noise::Correlated { phi: 0.8, cv: 0.1 }, 400),
        (Noise::Counts { per_slice: 6.0 }, 300),
        (Noise::HeavyTailed { cv: 0.5 }, 300),
    ] {
        for factor in [0.5, 2.0] {
            let share = found(noise, number, factor);
            assert!(share >= 0.95, "{noise:?}, {number} slices, times {factor}: {share}");
        }
    }
}

#[test]
fn a_shift_by_a_tenth_is_found_when_it_is_many_standard_errors() {
    for (noise, number) in [
        (Noise::Correlated { phi: 0.0, cv: 0.05 }, 150),
        (Noise::Correlated { phi: 0.5, cv: 0.05 }, 400),
        (Noise::Correlated { phi: 0.8, cv: 0.02 }, 400),
    ] {
        let share = found(noise, number, 0.9);
        assert!(share >= 0.95, "{noise:?}, {number} slices: {share}");
    }
}

#[test]
fn a_shift_too_small_to_matter_is_not_told() {
    assert!(found(Noise::Correlated { phi: 0.0, cv: 0.001 }, 300, 0.97) == 0.0);
}

#[test]
fn a_shift_is_placed_and_both_levels_are_right() {
    let mut random = Random::seed_from_u64(31);
    let noise = Noise::Correlated { phi: 0.3, cv: 0.05 };
    let window = window(&mut random, noise, 300, 0.05, 117);
    let [before, after] = levels(&window)[..] else { panic!("not two levels") };
    assert_eq!(before.start_s, 0.0);
    assert!((before.seconds - window[117].start_s).abs() < 1e-9, "{before:?}");
    assert!((after.start_s - window[117].start_s).abs() < 1e-9, "{after:?}");
    assert!((before.throughput_mb_s / 100.0 - 1.0).abs() < 0.02, "{before:?}");
    assert!((after.throughput_mb_s / 5.0 - 1.0).abs() < 0.02, "{after:?}");
}

#[test]
fn a_burst_between_two_equal_levels_makes_three() {
    let mut random = Random::seed_from_u64(37);
    let truth: Vec<f64> =
        (0..300).map(|index| if (100..150).contains(&index) { 3e8 } else { 1e8 }).collect();
    let rates = noisy(&mut random, Noise::Correlated { phi: 0.5, cv: 0.1 }, &truth);
    let found = levels(&slices(&mut random, &rates));
    let told: Vec<u32> =
        found.iter().map(|level| (level.throughput_mb_s / 50.0).round() as u32).collect();
    assert_eq!(told, [2, 6, 2], "{found:?}");
}

#[test]
fn a_short_moment_of_silence_is_no_level() {
    for place in [0, 3, 150, 280] {
        let mut random = Random::seed_from_u64(41);
        let truth: Vec<f64> = (0..300)
            .map(|index| if (place..place + 15).contains(&index) { 0.0 } else { 1e8 })
            .collect();
        let rates = noisy(&mut random, Noise::Correlated { phi: 0.0, cv: 0.1 }, &truth);
        assert_eq!(levels(&slices(&mut random, &rates)).len(), 1, "silence at slice {place}");
    }
}

#[test]
fn without_bytes_or_with_few_slices_there_is_nothing_to_find() {
    let idle = |index: u32| Slice { start_s: f64::from(index), seconds: 1.0, ..Slice::default() };
    assert_eq!(levels(&[]), []);
    let silent: Vec<Slice> = (0..200).map(idle).collect();
    assert_eq!(levels(&silent), [Level { start_s: 0.0, seconds: 200.0, throughput_mb_s: 0.0 }]);
    let few: Vec<Slice> = (0..8).map(|index| Slice { bytes: 1_000_000, ..idle(index) }).collect();
    assert_eq!(levels(&few), [Level { start_s: 0.0, seconds: 8.0, throughput_mb_s: 1.0 }]);
}

#[test]
fn a_shift_says_the_first_level_and_the_last() {
    let level = |start_s, seconds, throughput_mb_s| Level { start_s, seconds, throughput_mb_s };
    assert_eq!(shifted(&[level(0.0, 5.0, 8100.0)]), None);
    let found = Finding::new(Code::LevelShift)
        .with("first_mb_s", 8100.0)
        .with("until_s", 2.5)
        .with("last_mb_s", 420.4);
    let two = [level(0.0, 2.5, 8100.0), level(2.5, 2.7, 420.4)];
    assert_eq!(shifted(&two), Some(found.clone()));
    let three = [two[0], level(2.5, 1.0, 4.2), level(3.5, 1.0, 420.4)];
    assert_eq!(shifted(&three), Some(found.with("levels", 3_u64)));
}
