//! When a trial is hopeless: the mean response time has passed a bound, where a request without an
//! answer counts with its age. That is what a real generator knows at that moment.

#![forbid(unsafe_code)]

use leadline_base::clock::ns_from_s;

/// A trial is given up no sooner than after this much of its window.
pub const ABORT_AFTER_S: f64 = 10.0;

/// What is known of the requests of a window so far.
#[derive(Debug)]
pub(super) struct EarlyAbort {
    bound_ns: Option<f64>,
    from_ns: u64,
    waiting: f64,
    /// Of the waiting: when they were due, added up.
    due_sum_ns: f64,
    answered: f64,
    answered_sum_ns: f64,
}

impl EarlyAbort {
    /// With the window that begins then; without a bound it has no end.
    pub fn new(abort_above_ms: Option<f64>, from_ns: u64) -> Self {
        Self {
            bound_ns: abort_above_ms.map(|ms| ms * 1e6),
            from_ns,
            waiting: 0.0,
            due_sum_ns: 0.0,
            answered: 0.0,
            answered_sum_ns: 0.0,
        }
    }

    /// Whether it can end at all.
    pub fn is_bounded(&self) -> bool {
        self.bound_ns.is_some()
    }

    /// A request is due.
    pub fn due(&mut self, due_ns: u64) {
        if due_ns >= self.from_ns {
            self.waiting += 1.0;
            self.due_sum_ns += due_ns as f64;
        }
    }

    /// A request that was due then has its answer.
    pub fn answered(&mut self, due_ns: u64, done_ns: u64) {
        if due_ns >= self.from_ns {
            self.waiting -= 1.0;
            self.due_sum_ns -= due_ns as f64;
            self.answered += 1.0;
            self.answered_sum_ns += (done_ns - due_ns) as f64;
        }
    }

    /// Whether it has an end now.
    pub fn ends(&self, now_ns: u64) -> bool {
        let Some(bound_ns) = self.bound_ns else { return false };
        let ages_ns = self.waiting * now_ns as f64 - self.due_sum_ns;
        let mean_ns = (self.answered_sum_ns + ages_ns) / (self.answered + self.waiting);
        now_ns >= self.from_ns + ns_from_s(ABORT_AFTER_S) && mean_ns > bound_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_waiting_count_with_their_age_and_warm_up_counts_not_at_all() {
        let mut early_abort = EarlyAbort::new(Some(2000.0), 5 * S);
        early_abort.due(4 * S);
        for due_s in [6, 7, 8, 9] {
            early_abort.due(due_s * S);
        }
        early_abort.answered(4 * S, 14 * S);
        early_abort.answered(6 * S, 7 * S);
        early_abort.answered(7 * S, 8 * S);
        // Answers of a second each, and ages of 2 to 6 s: above 2 s from 10 s on.
        assert!(!early_abort.ends(14 * S), "no sooner than 10 s into the window");
        assert!(early_abort.ends(15 * S));
        early_abort.answered(8 * S, 8 * S + 1);
        early_abort.answered(9 * S, 9 * S + 1);
        assert!(!early_abort.ends(15 * S));
        assert!(!EarlyAbort::new(None, 0).ends(100 * S));
    }
}
