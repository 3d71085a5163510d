//! Two rates between which a window changes again and again, as when writers are throttled by turns.
//!
//! [`levels`](super::levels) tells of a few long stretches. Here the slices are joined into batches of
//! [`OPERATIONS_MIN`] requests or more, and the logarithms of their rates are split in two where that
//! explains most of their variance, each weighted by its time (Otsu, IEEE Transactions on Systems,
//! Man, and Cybernetics 9, 1979). Half a normal distribution from the other half explains 64% of it,
//! half a uniform one 75%; two rates explain [`EXPLAINED_MIN`], have hardly any time between them,
//! differ by [`APART`] and take turns [`TURNS_MIN`] times.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::Slice;
use leadline_wire::finding::{Code, Finding};

/// Fewest requests of a batch: of fewer their number alone makes the rate jump.
pub const OPERATIONS_MIN: u64 = 30;
/// Fewest batches of a rate.
const BATCHES_MIN: usize = 5;
/// Smallest factor between the two.
const APART: f64 = 1.5;
/// Smallest share of the time that either has.
const SHARE_MIN: f64 = 0.1;
/// Share of the variance of the logarithms that the split has to explain.
const EXPLAINED_MIN: f64 = 0.85;
/// Largest share of the time in the middle third between the two.
const BETWEEN_MAX: f64 = 0.05;
/// Fewest changes from one to the other.
const TURNS_MIN: usize = 5;

/// Two rates of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// The lower one, in MB/s.
    pub slow_mb_s: f64,
    /// The higher one, in MB/s.
    pub fast_mb_s: f64,
    /// Share of the time in which it was the lower one.
    pub slow_frac: f64,
}

impl Modes {
    /// What a reader is told.
    #[must_use]
    pub fn finding(&self) -> Finding {
        Finding::new(Code::TwoRates)
            .with("slow_mb_s", self.slow_mb_s)
            .with("fast_mb_s", self.fast_mb_s)
            .with("slow_frac", self.slow_frac)
    }
}

/// Some slices next to each other.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    seconds: f64,
    bytes: f64,
    operations: u64,
}

impl Batch {
    fn ln_rate(&self) -> f64 {
        (self.bytes / self.seconds).ln()
    }
}

/// The two rates of a window; none where one describes it, or a few levels do.
#[must_use]
pub fn modes(slices: &[Slice]) -> Option<Modes> {
    let batches = batches(slices);
    let split = split(&batches)?;
    let slow = |batch: &&Batch| batch.ln_rate() < split;
    let fast = |batch: &&Batch| !slow(batch);
    let turns = batches.windows(2).filter(|pair| slow(&&pair[0]) != slow(&&pair[1])).count();
    let (low, low_s, lows) = mean(batches.iter().filter(slow))?;
    let (high, high_s, highs) = mean(batches.iter().filter(fast))?;
    let third = (high.ln() - low.ln()) / 3.0;
    let between = |batch: &&Batch| {
        let above = batch.ln_rate() - low.ln();
        above > third && above < 2.0 * third
    };
    let between_s: f64 = batches.iter().filter(between).map(|batch| batch.seconds).sum();
    let slow_frac = low_s / (low_s + high_s);
    let told = lows.min(highs) >= BATCHES_MIN
        && high / low >= APART
        && slow_frac.min(1.0 - slow_frac) >= SHARE_MIN
        && between_s / (low_s + high_s) <= BETWEEN_MAX
        && turns >= TURNS_MIN;
    told.then_some(Modes { slow_mb_s: low * 1e-6, fast_mb_s: high * 1e-6, slow_frac })
}

fn batches(slices: &[Slice]) -> Vec<Batch> {
    let (mut found, mut open) = (Vec::new(), Batch::default());
    for slice in slices {
        open.seconds += slice.seconds;
        open.bytes += slice.bytes as f64;
        open.operations += slice.operations;
        if open.operations >= OPERATIONS_MIN && open.bytes > 0.0 && open.seconds > 0.0 {
            found.push(open);
            open = Batch::default();
        }
    }
    found
}

/// Where the logarithms part best; none where no split explains enough.
fn split(batches: &[Batch]) -> Option<f64> {
    let mut sorted: Vec<(f64, f64)> =
        batches.iter().map(|batch| (batch.ln_rate(), batch.seconds)).collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let whole_s: f64 = sorted.iter().map(|(_, seconds)| seconds).sum();
    let whole: f64 = sorted.iter().map(|(ln, seconds)| ln * seconds).sum();
    let mean = whole / whole_s;
    let variance: f64 = sorted.iter().map(|(ln, s)| s * (ln - mean).powi(2)).sum();
    let (mut below_s, mut below, mut best) = (0.0, 0.0, (0.0, 0.0));
    for pair in sorted.windows(2) {
        let (ln, seconds) = pair[0];
        below_s += seconds;
        below += ln * seconds;
        let apart = (whole - below) / (whole_s - below_s) - below / below_s;
        let explained = below_s * (whole_s - below_s) / whole_s * apart * apart;
        if explained > best.0 {
            best = (explained, pair[1].0);
        }
    }
    (best.0 >= EXPLAINED_MIN * variance && variance > 0.0).then_some(best.1)
}

/// Bytes per second, seconds and number of some batches.
fn mean<'a>(batches: impl Iterator<Item = &'a Batch>) -> Option<(f64, f64, usize)> {
    let (mut bytes, mut seconds, mut number) = (0.0, 0.0, 0);
    for batch in batches {
        bytes += batch.bytes;
        seconds += batch.seconds;
        number += 1;
    }
    (number > 0).then(|| (bytes / seconds, seconds, number))
}
