//! Stretches of the measured window in which nothing completed.
//!
//! The *target* stalled when no request completed for at least a tenth of a second, and for at least
//! twenty times the mean time between completions, and for at least three times the usual turn of
//! a slot (median response time plus think time). The first bound is what a person or a time-out
//! notices. The second keeps slow disks with few requests out: were completions a Poisson process,
//! a gap that long would come up once in `e^20` gaps. The third keeps out requests that are answered
//! all together, as by a busy device with many requests outstanding, or thinkers in step. Fewer than
//! twenty completions beside the gap say too little about a usual gap to call one unusual.
//!
//! The *generator* stalled when a slice is at least a tenth of a second longer than usual: the
//! controlling thread sleeps to absolute times, so it was kept from running. If requests went on
//! completing at half the usual rate or more, only that thread was late, and nothing is said.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::{Slice, Stall};
use leadline_wire::finding::{Code, Finding};

/// Shortest stall, in seconds.
pub const STALL_S_MIN: f64 = 0.1;

/// A stall lasts at least this many mean times between completions.
const GAPS_MIN: f64 = 20.0;

/// A stall lasts at least this many usual turns of a slot.
const TURNS_MIN: f64 = 3.0;

/// Fewest completions beside a gap that tell what a usual gap is.
const OPERATIONS_MIN: f64 = 20.0;

/// Share of the usual rate below which a long slice means that the workers stood still as well.
const RUNNING_FRAC: f64 = 0.5;

/// The stalls of a window, in order.
///
/// `turn_s` is the usual time from one request of a slot to its next, in seconds.
#[must_use]
pub fn stalls(slices: &[Slice], turn_s: f64) -> Vec<Stall> {
    let own = generator_stalls(slices);
    let mut found = target_stalls(slices, turn_s);
    found.retain(|stall| !own.iter().any(|own| overlap(own, stall)));
    found.extend(own);
    found.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
    found
}

/// The slices that no stall touches.
#[must_use]
pub fn running(slices: &[Slice], stalls: &[Stall]) -> Vec<Slice> {
    let runs = |slice: &&Slice| {
        let stretch = Stall { start_s: slice.start_s, seconds: slice.seconds, generator: false };
        !stalls.iter().any(|stall| overlap(stall, &stretch))
    };
    slices.iter().filter(runs).copied().collect()
}

/// What a reader is told of a stall.
#[must_use]
pub fn stalled(stall: &Stall) -> Finding {
    let found = Finding::new(Code::Stall).with("start_s", stall.start_s);
    found.with(if stall.generator { "own_s" } else { "target_s" }, stall.seconds)
}

fn overlap(one: &Stall, other: &Stall) -> bool {
    // Neighbours may share an edge but for rounding.
    let slack_s = 1e-9;
    one.start_s + one.seconds > other.start_s + slack_s
        && other.start_s + other.seconds > one.start_s + slack_s
}

fn generator_stalls(slices: &[Slice]) -> Vec<Stall> {
    let usual_s = usual_length_s(slices);
    let late = |slice: &&Slice| slice.seconds >= usual_s + STALL_S_MIN;
    let (operations, seconds) = slices
        .iter()
        .filter(|slice| !late(slice))
        .fold((0.0, 0.0), |sum, slice| (sum.0 + slice.operations as f64, sum.1 + slice.seconds));
    let per_s = if seconds > 0.0 { operations / seconds } else { 0.0 };
    let stood = |slice: &&Slice| {
        // Completions in the part of the slice that went as planned do not count.
        let beyond_s = slice.seconds - usual_s;
        let beyond = slice.operations as f64 - per_s * usual_s;
        per_s == 0.0 || beyond < RUNNING_FRAC * per_s * beyond_s
    };
    slices
        .iter()
        .filter(late)
        .filter(stood)
        .map(|slice| Stall { start_s: slice.start_s, seconds: slice.seconds, generator: true })
        .collect()
}

/// Median length of a slice in seconds.
fn usual_length_s(slices: &[Slice]) -> f64 {
    let mut lengths_s: Vec<f64> = slices.iter().map(|slice| slice.seconds).collect();
    lengths_s.sort_by(f64::total_cmp);
    lengths_s.get(lengths_s.len() / 2).copied().unwrap_or(0.0)
}

fn target_stalls(slices: &[Slice], turn_s: f64) -> Vec<Stall> {
    let gaps = gaps(slices);
    let operations: f64 = slices.iter().map(|slice| slice.operations as f64).sum();
    let seconds: f64 = slices.iter().map(|slice| slice.seconds).sum();
    let longest_s = gaps.iter().map(|gap| gap.seconds).fold(0.0, f64::max);
    if operations < OPERATIONS_MIN {
        return Vec::new();
    }
    // The longest gap is the suspect; it must not make itself usual.
    let usual_gap_s = (seconds - longest_s) / operations;
    let least_s = STALL_S_MIN.max(GAPS_MIN * usual_gap_s).max(TURNS_MIN * turn_s);
    gaps.into_iter().filter(|gap| gap.seconds >= least_s).collect()
}

/// Runs of slices in which nothing completed.
fn gaps(slices: &[Slice]) -> Vec<Stall> {
    slices
        .chunk_by(|one, other| (one.operations == 0) == (other.operations == 0))
        .filter(|run| run[0].operations == 0)
        .map(|run| Stall {
            start_s: run[0].start_s,
            seconds: run.iter().map(|slice| slice.seconds).sum(),
            generator: false,
        })
        .collect()
}
