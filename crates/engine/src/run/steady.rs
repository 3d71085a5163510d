//! When the warm-up is over.
//!
//! MSER-5 (White 1997; the one of 44 rules that Hoad, Robinson and Davies, "Automating warm-up
//! length estimation", J. Oper. Res. Soc. 61, 2010, found sound enough for unattended use): slices
//! are joined by five; for each number `d` of batches left out from the first half, the squared
//! standard error of the rest is `Σ (y_i − mean)² / (n − d)²`; the `d` with the smallest is where
//! the transient ends. The run counts as steady when the two halves of what is kept agree: their
//! means differ by less than 5% of the mean or by less than 2.5 times the standard error of the
//! difference. That catches the slow, even climb that MSER alone accepts, and a transient that ends
//! later than half-way.
//!
//! Of stationary rates with independent noise at most one in twenty is called unsteady (tests).
//! Where requests are so slow that a warm-up has fewer slices, batches hold fewer; with less than
//! ten slices nothing is said.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::Slice;

use crate::run::slices::joined;

/// Slices in one batch (the 5 of MSER-5).
pub const SLICES_PER_BATCH: usize = 5;

/// Fewest batches to judge by.
pub const BATCHES_MIN: usize = 10;

/// Batches that few slices are joined to.
const BATCHES_FEW: usize = 20;

const LEVEL_FRAC: f64 = 0.05;
const ERRORS: f64 = 2.5;

/// Whether these warm-up slices are enough to open a window, and their rate steady.
#[must_use]
pub fn is_steady(slices: &[Slice]) -> bool {
    slices.len() >= SLICES_PER_BATCH * BATCHES_MIN && judge(slices) == Some(true)
}

/// Whether the rate in bytes per second has become steady over these warm-up slices; none where
/// there are too few to say.
#[must_use]
pub fn judge(slices: &[Slice]) -> Option<bool> {
    let per_batch = (slices.len() / BATCHES_FEW).clamp(1, SLICES_PER_BATCH);
    let rates: Vec<f64> = slices
        .rchunks_exact(per_batch)
        .filter_map(joined)
        .filter(|batch| batch.seconds > 0.0)
        .map(|batch| batch.bytes as f64 / batch.seconds)
        .collect();
    if rates.len() < BATCHES_MIN {
        return None;
    }
    if rates.iter().sum::<f64>() <= 0.0 {
        return Some(false);
    }
    // rchunks gives the newest first; the transient is at the old end.
    let rates: Vec<f64> = rates.into_iter().rev().collect();
    Some(halves_agree(&rates[transient_end(&rates)..]))
}

/// Batches to leave out from the front, by MSER; at least half are kept.
fn transient_end(rates: &[f64]) -> usize {
    let score = |cut: usize| {
        let kept = &rates[cut..];
        let mean = mean(kept);
        kept.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (kept.len() as f64).powi(2)
    };
    let mut best = (0, score(0));
    for cut in 1..=rates.len() / 2 {
        let candidate = score(cut);
        if candidate < best.1 {
            best = (cut, candidate);
        }
    }
    best.0
}

fn halves_agree(kept: &[f64]) -> bool {
    let (old, new) = kept.split_at(kept.len() / 2);
    let gap = (mean(old) - mean(new)).abs();
    let error = (squared_error(old) + squared_error(new)).sqrt();
    gap <= (LEVEL_FRAC * mean(kept)).max(ERRORS * error)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Squared standard error of the mean.
fn squared_error(values: &[f64]) -> f64 {
    let centre = mean(values);
    let number = values.len() as f64;
    values.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
        / (number * (number - 1.0).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(rates: impl Iterator<Item = f64>) -> Vec<Slice> {
        rates
            .enumerate()
            .map(|(index, rate)| Slice {
                start_s: index as f64 * 0.01,
                seconds: 0.01,
                operations: 1,
                bytes: (rate * 0.01) as u64,
            })
            .collect()
    }

    /// A fixed, rough wave in place of noise.
    fn wave(index: u32) -> f64 {
        (f64::from(index) * 12.9898).sin() * 0.1
    }

    #[test]
    fn a_level_rate_is_steady_as_soon_as_it_can_be_judged() {
        let level = slices((0..50).map(|index| 1e8 * (1.0 + wave(index))));
        assert!(!is_steady(&level[..49]));
        assert!(is_steady(&level));
    }

    #[test]
    fn a_climb_is_not_steady_until_it_has_ended() {
        let rate =
            |index: u32| 1e8 * (1.0 + wave(index)) * (f64::from(index) / 100.0).clamp(0.1, 1.0);
        assert!(!is_steady(&slices((0..100).map(rate))));
        assert!(!is_steady(&slices((0..130).map(rate))));
        assert!(is_steady(&slices((0..300).map(rate))));
    }

    #[test]
    fn an_even_climb_hidden_in_noise_is_not_steady() {
        let rate =
            |index: u32| 1e8 * (1.0 + 2.0 * wave(index)) * (1.0 + 0.25 * f64::from(index) / 1000.0);
        let climb = slices((0..1000).map(rate));
        assert!(!is_steady(&climb));
    }

    #[test]
    fn a_step_is_forgotten_once_it_is_older_than_half() {
        let rate = |index: u32| if index < 60 { 9e8 } else { 1e8 * (1.0 + wave(index)) };
        assert!(!is_steady(&slices((0..90).map(rate))));
        assert!(is_steady(&slices((0..140).map(rate))));
    }

    #[test]
    fn no_bytes_at_all_are_never_steady() {
        assert!(!is_steady(&slices((0..500).map(|_| 0.0))));
    }

    #[test]
    fn a_rate_without_any_noise_is_steady() {
        assert!(is_steady(&slices((0..60).map(|_| 1e8))));
    }

    #[test]
    fn a_rate_is_bytes_over_seconds_and_slices_without_time_say_nothing() {
        let mut slices = slices((0..100).map(|index| 1e8 * (1.0 + wave(index))));
        for slice in &mut slices[60..] {
            (slice.seconds, slice.bytes) = (slice.seconds * 2.0, slice.bytes * 2);
        }
        assert!(is_steady(&slices), "twice the bytes in twice the time");
        for slice in &mut slices[60..] {
            slice.bytes /= 2;
        }
        assert!(!is_steady(&slices), "as many bytes in twice the time");
        let mut timeless = self::slices((0..100).map(|_| 1e8));
        timeless[40..55].iter_mut().for_each(|slice| slice.seconds = 0.0);
        assert!(is_steady(&timeless));
    }

    #[test]
    fn the_transient_ends_where_the_rest_has_the_least_squared_error() {
        assert_eq!(transient_end(&[9.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 2);
        assert_eq!(transient_end(&[1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0]), 5);
        assert_eq!(transient_end(&[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 1.0]), 5, "half");
        assert_eq!(transient_end(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), 0);
    }

    #[test]
    fn halves_agree_within_a_twentieth_or_two_and_a_half_times_their_error() {
        assert!(halves_agree(&[100.0, 100.0, 105.0, 105.0]));
        assert!(!halves_agree(&[100.0, 100.0, 106.0, 106.0]));
        assert!(halves_agree(&[80.0, 120.0, 140.0, 180.0]), "60 apart, give or take 28");
        assert!(!halves_agree(&[80.0, 120.0, 180.0, 220.0]), "100 apart");
    }

    /// Independent noise, about normal: the sum of four draws of a linear congruential generator.
    fn noise(state: &mut u64) -> f64 {
        let mut sum = 0.0;
        for _ in 0..4 {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            sum += (*state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        }
        sum * 3f64.sqrt()
    }

    /// How many of 400 warm-ups are called unsteady, whose rate grows by a part of itself.
    fn unsteady(number: u32, cv: f64, growth: f64) -> usize {
        let mut state = 7;
        let mut judged = || {
            let rate = |index: u32| {
                let trend = 1.0 + growth * f64::from(index) / f64::from(number);
                1e8 * trend * (1.0 + cv * noise(&mut state)).max(0.01)
            };
            judge(&slices((0..number).map(rate)))
        };
        (0..400).filter(|_| judged() == Some(false)).count()
    }

    #[test]
    fn at_most_one_stationary_warm_up_in_twenty_is_called_unsteady_and_a_doubling_is_seen() {
        for number in [10, 14, 20, 40, 100, 200] {
            for cv in [0.05, 0.2, 0.5] {
                let alarms = unsteady(number, cv, 0.0);
                assert!(alarms <= 20, "{alarms} of 400: {number} slices, {cv}");
            }
        }
        for number in [40, 100, 200] {
            let seen = unsteady(number, 0.05, 1.0);
            assert!(seen >= 360, "{seen} of 400: {number} slices");
        }
    }

    #[test]
    fn few_slices_are_judged_by_smaller_batches_and_fewer_than_ten_not_at_all() {
        let level = slices((0..49).map(|index| 1e8 * (1.0 + wave(index))));
        assert_eq!(judge(&level), Some(true));
        assert!(!is_steady(&level), "too few to open a window");
        assert_eq!(judge(&level[..10]), Some(true));
        assert_eq!(judge(&level[..9]), None);
        let climb = slices((0..12).map(|index| 1e7 * f64::from(1 + index)));
        assert_eq!(judge(&climb), Some(false));
    }

    #[test]
    fn an_error_is_that_of_the_mean() {
        assert_eq!((mean(&[1.0, 2.0, 6.0]), mean(&[])), (3.0, 0.0));
        assert_eq!(squared_error(&[1.0, 2.0, 6.0]), 14.0 / 6.0);
        assert_eq!(squared_error(&[5.0]), 0.0);
    }
}
