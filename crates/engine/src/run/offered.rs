//! What an open loop offered, what became of it, and who fell short.
//!
//! The rate is missed when the backlog grew: of the `D` requests due in the window `C` completed in
//! it, whenever those were due, so `D − C` is how many more were unfinished at its end than at its
//! beginning. `D` is what the schedule really held, so the noise of a Poisson process is no
//! shortfall. A run whose window began before its pipeline was full is not short by being
//! mid-flight: as many requests as the rate keeps in flight by Little's law, but no more than were
//! in flight at the end, are allowed for, less those in flight at the beginning.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::{FellShort, LatencyUs, Offered};
use leadline_wire::finding::{Code, Finding};

use crate::run::recorder::{OpenTally, Tally};
use crate::run::summary::latency_us;

/// Largest share of the requests due that a valid run may leave undone.
pub const SHORTFALL_FRAC_MAX: f64 = 0.03;

/// What a window of `window_s` seconds offered at `rate_per_s`, `due` being the requests its
/// schedule held; none of a closed loop.
#[must_use]
pub fn offered(rate_per_s: f64, due: u64, window_s: f64, tally: &Tally) -> Option<Offered> {
    let open = tally.open.as_ref()?;
    let completed = tally.operations() as f64;
    let short = due as f64 - completed - newly_in_flight(open, due, window_s);
    let shortfall_frac = if due > 0 { (short / due as f64).max(0.0) } else { 0.0 };
    Some(Offered {
        rate_per_s,
        due,
        late_target: open.late_target,
        late_generator: open.late_generator,
        missed: open.missed,
        completed_per_s: if window_s > 0.0 { completed / window_s } else { 0.0 },
        shortfall_frac,
        fell_short: (shortfall_frac > SHORTFALL_FRAC_MAX).then(|| blamed(open)),
    })
}

/// Requests by which those in flight may have grown while the pipeline filled.
fn newly_in_flight(open: &OpenTally, due: u64, window_s: f64) -> f64 {
    let due_per_s = if window_s > 0.0 { due as f64 / window_s } else { 0.0 };
    let kept = due_per_s * open.submitted_to_completed.mean_ns() * 1e-9;
    (kept.min(open.in_flight_closed as f64) - open.in_flight_opened as f64).max(0.0)
}

/// Requests nobody took count with whoever kept most of the slots when the window closed.
fn blamed(open: &OpenTally) -> FellShort {
    let (mut target, mut generator) = (open.late_target, open.late_generator);
    if open.kept_by_generator > open.kept_by_target {
        generator += open.missed;
    } else {
        target += open.missed;
    }
    if generator > target { FellShort::Generator } else { FellShort::Target }
}

/// Why a run that missed its rate is not valid; none when it kept it.
#[must_use]
pub fn missed_rate(offered: &Offered, window_s: f64) -> Option<Finding> {
    let found = Finding::new(Code::MissedRate)
        .with("completed_per_s", offered.completed_per_s)
        .with("due_per_s", offered.due as f64 / window_s)
        .with("short_frac", offered.shortfall_frac);
    Some(match offered.fell_short? {
        FellShort::Target => found.with("waiting_requests", offered.late_target + offered.missed),
        FellShort::Generator => found
            .with("late_requests", offered.late_generator)
            .with("unsent_requests", offered.missed),
    })
}

/// The spans of an open loop: due to submitted, and due to completed.
#[must_use]
pub fn due_spans(tally: &Tally) -> Option<(LatencyUs, LatencyUs)> {
    let open = tally.open.as_ref()?;
    Some((latency_us(&open.due_to_submitted), latency_us(&open.due_to_completed)))
}
