//! How sure the rate of one run is, and when to stop measuring.
//!
//! Batch means: the slices of the window are joined into at most [`BATCHES`] batches of equal
//! numbers of slices. The rate is the ratio of all counts to all time. Its variance comes from the
//! batches' deviations `e_i = count_i − rate · seconds_i` (ratio estimator; Cochran, Sampling
//! Techniques, §6.4), which allows for slices of unequal length. Batches next to each other may
//! still depend on each other, so the number of batches is replaced by the effective sample size of
//! a first-order autoregression, `n (1 − r)/(1 + r)`, with `r` the lag-one autocorrelation of the
//! `e_i`, corrected for its bias of `−(1 + 4 r)/n` (Marriott and Pope 1954) and taken as 0 when
//! negative, so that the interval never gets narrower than for independent batches. The half-width
//! is Student's t at the effective size less one.
//!
//! The interval is asked anew only when the window has grown by a tenth: asking at every slice
//! would stop at a lucky moment too often and lose coverage. For the same reason two looks in a row
//! must agree.

#![forbid(unsafe_code)]

use leadline_base::normal::student_t;
use leadline_wire::event::measure::Slice;

use crate::run::slices::joined;

/// Most batches a window is cut into.
pub const BATCHES: usize = 32;

/// Fewest batches that give an interval.
pub const BATCHES_MIN: usize = 10;

/// Least degrees of freedom: the effective size is itself uncertain, and below this Student's t
/// says more about that than about the rate.
const FREEDOM_MIN: u32 = 3;

/// Fewest slices to stop on.
const SLICES_MIN: usize = 40;

/// A rate per second with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Counts per second.
    pub value: f64,
    /// Half of the interval's width; none when there are too few batches.
    pub half_width: Option<f64>,
    /// Degrees of freedom of the half-width.
    pub freedom: Option<u32>,
    /// Batches it rests on.
    pub batches: usize,
}

impl Rate {
    /// A rate of too few batches for an interval.
    const fn alone(value: f64, batches: usize) -> Self {
        Self { value, half_width: None, freedom: None, batches }
    }

    /// Half of the interval's width as a share of the rate; none when there is no interval.
    #[must_use]
    pub fn half_width_frac(&self) -> Option<f64> {
        self.half_width.filter(|_| self.value > 0.0).map(|half| half / self.value)
    }
}

/// The rate of `count` over the slices, with its interval.
#[must_use]
pub fn rate(slices: &[Slice], count: impl Fn(&Slice) -> u64) -> Rate {
    let batches: Vec<Slice> = batched(slices);
    let seconds: f64 = batches.iter().map(|batch| batch.seconds).sum();
    let total: f64 = batches.iter().map(|batch| count(batch) as f64).sum();
    if seconds <= 0.0 {
        return Rate::alone(0.0, batches.len());
    }
    let value = total / seconds;
    if batches.len() < BATCHES_MIN || total == 0.0 {
        return Rate::alone(value, batches.len());
    }
    let errors: Vec<f64> =
        batches.iter().map(|batch| count(batch) as f64 - value * batch.seconds).collect();
    let number = errors.len() as f64;
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    let effective = effective_size(&errors);
    let deviation = (squares / (number - 1.0)).sqrt();
    let freedom = ((effective - 1.0) as u32).max(FREEDOM_MIN);
    let half = student_t(freedom, 0.95) * deviation / effective.sqrt() / (seconds / number);
    Rate { value, half_width: Some(half), freedom: Some(freedom), batches: batches.len() }
}

/// Number of independent values that know as much as these; at least 2.
fn effective_size(errors: &[f64]) -> f64 {
    let number = errors.len() as f64;
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    if squares <= 0.0 {
        return number;
    }
    let products: f64 = errors.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let raw = products / squares;
    let corrected = (raw + (1.0 + 4.0 * raw) / number).clamp(0.0, 0.95);
    (number * (1.0 - corrected) / (1.0 + corrected)).clamp(2.0, number)
}

/// Joins slices into at most [`BATCHES`] batches of equal numbers; the oldest that do not fill one
/// join the first.
fn batched(slices: &[Slice]) -> Vec<Slice> {
    let group = slices.len().div_ceil(BATCHES).max(1);
    let rest = slices.len() % group;
    let (head, tail) = slices.split_at(if slices.len() > group { rest } else { 0 });
    let mut batches: Vec<Slice> = tail.chunks(group).filter_map(joined).collect();
    if let (Some(old), Some(first)) = (joined(head), batches.first_mut()) {
        *first = joined(&[old, *first]).unwrap_or(*first);
    }
    batches
}

/// Decides when a window is long enough.
#[derive(Clone, Debug)]
pub struct StopRule {
    accuracy: f64,
    next_look: usize,
    once: bool,
}

impl StopRule {
    /// Stops when the 95% interval's half-width is within `accuracy` of the rate.
    #[must_use]
    pub fn new(accuracy: f64) -> Self {
        Self { accuracy, next_look: SLICES_MIN, once: false }
    }

    /// Neighbouring slices were joined two by two.
    pub fn slices_joined(&mut self) {
        self.next_look /= 2;
    }

    /// Whether the throughput over these slices is known well enough. Looks only when the window
    /// has grown by a tenth.
    pub fn reached(&mut self, slices: &[Slice]) -> bool {
        if slices.len() < self.next_look {
            return false;
        }
        self.next_look = slices.len() + slices.len().div_ceil(10).max(1);
        let rate = rate(slices, |slice| slice.bytes);
        let good = rate.half_width_frac().is_some_and(|share| share <= self.accuracy);
        std::mem::replace(&mut self.once, good) && good
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, StandardNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    const TRUTH: f64 = 1e6;

    /// Slices whose rates follow a first-order autoregression around `TRUTH` bytes per slice.
    fn autoregressive(random: &mut Xoshiro256PlusPlus, phi: f64, number: usize) -> Vec<Slice> {
        let mut state: f64 = StandardNormal.sample(random);
        (0..number)
            .map(|_| {
                let shock: f64 = StandardNormal.sample(random);
                state = phi * state + (1.0 - phi * phi).sqrt() * shock;
                let bytes = (TRUTH * (1.0 + 0.1 * state)).max(0.0) as u64;
                Slice { start_s: 0.0, seconds: 1.0, operations: 1, bytes }
            })
            .collect()
    }

    fn covers(slices: &[Slice]) -> bool {
        let rate = rate(slices, |slice| slice.bytes);
        rate.half_width.is_some_and(|half| (rate.value - TRUTH).abs() <= half)
    }

    fn coverage(phi: f64, number: usize) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let runs = 2000;
        let hits = (0..runs).filter(|_| covers(&autoregressive(&mut random, phi, number))).count();
        hits as f64 / f64::from(runs)
    }

    /// Coverage and mean length when the rule itself decides when to look away.
    fn stopped_coverage(phi: f64, accuracy: f64) -> (f64, f64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        let runs = 1000;
        let (mut hits, mut slices) = (0, 0);
        for _ in 0..runs {
            let all = autoregressive(&mut random, phi, 2000);
            let mut rule = StopRule::new(accuracy);
            let end = (1..=all.len()).find(|end| rule.reached(&all[..*end])).unwrap_or(all.len());
            hits += usize::from(covers(&all[..end]));
            slices += end;
        }
        (hits as f64 / f64::from(runs), slices as f64 / f64::from(runs))
    }

    #[test]
    fn the_interval_of_a_given_window_covers_the_truth() {
        for phi in [0.0, 0.5, 0.8, 0.9] {
            for number in [100, 200, 400] {
                let share = coverage(phi, number);
                assert!((0.92..=0.98).contains(&share), "phi {phi}, {number} slices: {share}");
            }
        }
    }

    #[test]
    fn the_interval_on_which_the_rule_stops_covers_the_truth() {
        for (phi, accuracy, least) in [(0.0, 0.02, 0.93), (0.5, 0.02, 0.92), (0.8, 0.02, 0.91)] {
            let (share, slices) = stopped_coverage(phi, accuracy);
            assert!((least..=0.98).contains(&share), "phi {phi}: {share} after {slices} slices");
            assert!((100.0..1500.0).contains(&slices), "phi {phi}: {slices} slices");
        }
    }

    #[test]
    fn batches_that_depend_on_each_other_are_less_free() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let freedom = |slices: &[Slice]| rate(slices, |slice| slice.bytes).freedom;
        let alone = freedom(&autoregressive(&mut random, 0.0, 640));
        let tied = freedom(&autoregressive(&mut random, 0.995, 640));
        assert!(alone.is_some_and(|freedom| (16..=31).contains(&freedom)), "{alone:?}");
        assert!(tied.is_some_and(|freedom| (3..10).contains(&freedom)), "{tied:?}");
        assert_eq!(freedom(&autoregressive(&mut random, 0.0, 9)), None);
    }

    #[test]
    fn slices_of_unequal_length_weigh_by_their_time() {
        let slices: Vec<Slice> = (0..60)
            .map(|index| {
                let seconds = if index % 3 == 0 { 2.0 } else { 0.5 };
                Slice { start_s: 0.0, seconds, operations: 1, bytes: (seconds * 1000.0) as u64 }
            })
            .collect();
        let rate = rate(&slices, |slice| slice.bytes);
        assert!((rate.value - 1000.0).abs() < 1e-9);
        assert!(rate.half_width.is_some_and(|half| half < 1e-6), "{rate:?}");
    }

    #[test]
    fn few_or_empty_slices_give_no_interval() {
        let one = Slice { start_s: 0.0, seconds: 1.0, operations: 0, bytes: 0 };
        assert_eq!(rate(&[], |slice| slice.bytes).half_width, None);
        assert_eq!(rate(&[one; 9], |slice| slice.bytes).half_width, None);
        let idle = rate(&[one; 50], |slice| slice.bytes);
        assert_eq!((idle.value, idle.half_width), (0.0, None));
    }

    #[test]
    fn batches_keep_every_slice() {
        for number in 1..200u32 {
            let slices: Vec<Slice> = (0..number)
                .map(|index| Slice {
                    start_s: 0.0,
                    seconds: 1.0,
                    operations: 1,
                    bytes: index.into(),
                })
                .collect();
            let batches = batched(&slices);
            assert!(batches.len() <= BATCHES, "{number}");
            let total: u64 = batches.iter().map(|batch| batch.bytes).sum();
            assert_eq!(total, slices.iter().map(|slice| slice.bytes).sum::<u64>(), "{number}");
        }
    }
}
