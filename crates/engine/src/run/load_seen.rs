//! What a trial of the workbench keeps of an open loop: the parts of its window, and how late the
//! generator itself was.
//!
//! A request counts where it was due, which for one that was due before the window is nowhere; in
//! [`super::recorder::OpenTally`] one counts where it completed. Times are shifted so that the
//! window opens at one known moment, for workers are asked to count before it does.

#![forbid(unsafe_code)]

use leadline_base::clock::ns_from_s;
use leadline_base::histogram::Histogram;
use leadline_wire::event::load::LoadResult;
use leadline_wire::job::measure::LoadAsked;

use crate::load::{Limits, LoadTally, Window as LoadWindow};
use crate::run::recorder::{Passage, Window};

/// When the window opens: 36 years after the clock began, so that nothing was due before it.
const OPENED_NS: u64 = 1 << 60;

/// The load of one worker, or of all together.
#[derive(Clone, Debug)]
pub struct LoadSeen {
    tally: LoadTally,
    /// How late requests due in the window were sent because of the generator.
    sent_late: Histogram,
}

impl LoadSeen {
    /// Nothing seen yet of a window that is to be `seconds` long.
    #[must_use]
    pub fn new(asked: &LoadAsked, seconds: f64) -> Self {
        let limits = Limits::of(asked.limits_ms.iter().copied());
        let to_ns = OPENED_NS + ns_from_s(seconds);
        let window = LoadWindow { from_ns: OPENED_NS, to_ns, limits };
        Self { tally: LoadTally::new(window), sent_late: Histogram::default() }
    }

    /// Counts a request that was done within the window.
    #[inline]
    pub fn done(&mut self, passage: &Passage, completed_ns: u64, opened_ns: u64) {
        let response_ns = completed_ns.saturating_sub(passage.due_ns);
        self.tally.answered(moment(passage.due_ns, opened_ns), response_ns);
        if passage.due_ns >= opened_ns {
            self.sent_late.record(passage.generator_ns());
        }
    }

    /// Counts a request that was due then and not done when the window closed.
    #[cold]
    pub fn waiting(&mut self, due_ns: u64, window: Window) {
        let Window { opened_ns, closed_ns } = window;
        self.tally.unanswered(moment(due_ns, opened_ns), closed_ns.saturating_sub(due_ns));
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        self.tally.merge(&other.tally);
        self.sent_late.merge(&other.sent_late);
    }

    /// What was found over a window that was `window_s` long after so much warm-up.
    #[must_use]
    pub fn result(&self, warm_up_s: f64, window_s: f64, given_up: bool) -> LoadResult {
        let late_ms = self.sent_late.quantile_ns(0.99) / 1e6;
        LoadResult {
            warm_up_s,
            sent_late_ms_p99: (self.sent_late.count() > 0).then_some(late_ms),
            ..self.tally.finish(OPENED_NS + ns_from_s(window_s), given_up)
        }
    }
}

/// A moment of the run's clock as the counts have it.
fn moment(at_ns: u64, opened_ns: u64) -> u64 {
    (OPENED_NS + at_ns).saturating_sub(opened_ns)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MS: u64 = 1_000_000;
    const WINDOW: Window = Window { opened_ns: 5_000 * MS, closed_ns: 11_010 * MS };

    fn passage(due_ms: u64, submitted_ms: u64) -> Passage {
        Passage { due_ns: due_ms * MS, free_ns: 0, behind_ns: 0, submitted_ns: submitted_ms * MS }
    }

    fn six_seconds() -> LoadSeen {
        let asked = LoadAsked { limits_ms: vec![20.0, 200.0], abort_above_ms: None };
        LoadSeen::new(&asked, 6.0)
    }

    #[test]
    fn a_request_counts_where_it_was_due_from_when_it_was_due() {
        let mut seen = six_seconds();
        let done = |seen: &mut LoadSeen, due_ms, done_ms| {
            seen.done(&passage(due_ms, due_ms), done_ms * MS, WINDOW.opened_ns);
        };
        done(&mut seen, 4_990, 5_010); // due before the window
        done(&mut seen, 5_050, 5_060);
        done(&mut seen, 5_060, 5_400);
        done(&mut seen, 11_005, 11_008); // due after the time asked, while the window closed
        seen.waiting(10_950 * MS, WINDOW);
        let result = seen.result(1.0, 6.01, false);
        assert_eq!((result.due, result.unanswered, result.batches.len()), (3, 1, 60));
        assert_eq!((result.batches[0].due, result.batches[0].over), (2, 1));
        assert_eq!(result.batches[0].also_over, [1]);
        assert!((result.response_ms.unwrap().mean - (10.0 + 340.0 + 60.0) / 3.0).abs() < 1e-9);
        assert_eq!((result.warm_up_s, result.seconds, result.aborted), (1.0, 6.0, false));
    }

    #[test]
    fn the_generators_own_lateness_is_told_apart_from_the_targets() {
        let mut seen = six_seconds();
        let busy = Passage { free_ns: 6_030 * MS, ..passage(6_000, 6_030) };
        seen.done(&busy, 6_031 * MS, WINDOW.opened_ns);
        let late = |seen: &LoadSeen| seen.result(0.0, 6.0, false).sent_late_ms_p99.unwrap();
        assert!(late(&seen) < 0.001, "the target kept the slot");
        seen.done(&passage(6_100, 6_130), 6_131 * MS, WINDOW.opened_ns);
        assert!((late(&seen) / 30.0 - 1.0).abs() < 0.01, "{}", late(&seen));
        assert!(six_seconds().result(0.0, 6.0, false).sent_late_ms_p99.is_none());
    }
}
