//! When an open loop is hopeless: the mean response time has passed a bound.
//!
//! Nobody asks the workers. By Little's law the requests that are due and not done, added up over
//! the time since the window opened, are the time that requests have waited in it; over the requests
//! that became due it is their mean response time, where one without an answer counts with its age.

#![forbid(unsafe_code)]

use leadline_base::clock::ns_from_s;

use crate::access::arrival::ArrivalStream;
use crate::load::ABORT_AFTER_S;

/// The requests due and not done, from one look to the next.
#[derive(Clone, Debug)]
pub struct Backlog {
    schedule: ArrivalStream,
    start_ns: u64,
    bound_ns: f64,
    /// When the first request that is not counted is due.
    next_due_ns: u64,
    due: u64,
    /// Since the window opened.
    since: Option<Since>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    opened_ns: u64,
    due_before: u64,
    looked_ns: u64,
    waiting: f64,
    waited_ns: f64,
}

impl Backlog {
    /// Of a schedule that starts at `start_ns` and of which nothing was given out.
    #[must_use]
    pub fn new(mut schedule: ArrivalStream, start_ns: u64, bound_ms: f64) -> Self {
        let next_due_ns = start_ns.saturating_add(schedule.next_due_ns());
        let bound_ns = bound_ms * 1e6;
        Self { schedule, start_ns, bound_ns, next_due_ns, due: 0, since: None }
    }

    /// The window opened, with so many requests done since the run began.
    pub fn open(&mut self, opened_ns: u64, done: u64) {
        let waiting = self.waiting(opened_ns, done);
        let due_before = self.due;
        self.since =
            Some(Since { opened_ns, due_before, looked_ns: opened_ns, waiting, waited_ns: 0.0 });
    }

    /// Whether to give up now, with so many requests done since the run began.
    pub fn hopeless(&mut self, now_ns: u64, done: u64) -> bool {
        let waiting = self.waiting(now_ns, done);
        let Some(since) = &mut self.since else { return false };
        let passed_ns = now_ns.saturating_sub(since.looked_ns) as f64;
        since.waited_ns += passed_ns * (since.waiting + waiting) / 2.0;
        (since.looked_ns, since.waiting) = (now_ns, waiting);
        let due = (self.due - since.due_before) as f64;
        let late_enough = now_ns >= since.opened_ns + ns_from_s(ABORT_AFTER_S);
        late_enough && due > 0.0 && since.waited_ns / due > self.bound_ns
    }

    fn waiting(&mut self, now_ns: u64, done: u64) -> f64 {
        while self.next_due_ns <= now_ns {
            self.due += 1;
            self.next_due_ns = self.start_ns.saturating_add(self.schedule.next_due_ns());
        }
        self.due.saturating_sub(done) as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use leadline_wire::job::measure::Arrivals;

    const S: u64 = 1_000_000_000;

    /// 100 requests per second from second 3 on, of which the window sees those from 5 on.
    fn backlog(bound_ms: f64) -> Backlog {
        let arrivals = Arrivals::Constant { rate_per_s: 100.0 };
        let mut backlog = Backlog::new(ArrivalStream::new(&arrivals, 1).unwrap(), 3 * S, bound_ms);
        backlog.open(5 * S, 200);
        backlog
    }

    /// Looks ten times a second until the end; when it gave up, in seconds since it opened.
    fn gave_up(bound_ms: f64, done_per_s: f64) -> Option<f64> {
        let mut backlog = backlog(bound_ms);
        (1..=600).map(|tenth| f64::from(tenth) / 10.0).find(|&after_s| {
            let done = 200 + (after_s * done_per_s) as u64;
            backlog.hopeless(5 * S + ns_from_s(after_s), done)
        })
    }

    #[test]
    fn requests_nobody_answers_count_with_their_age() {
        // Half is done: after t seconds 50 t wait, 25 t² request-seconds over 100 t: t / 4.
        assert!((gave_up(5_000.0, 50.0).unwrap() - 20.0).abs() < 0.3);
        assert!((gave_up(100.0, 50.0).unwrap() - ABORT_AFTER_S).abs() < 0.01, "no sooner");
        assert_eq!(gave_up(100.0, 100.0), None);
    }
}
