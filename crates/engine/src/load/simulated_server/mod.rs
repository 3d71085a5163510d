//! A simulated server under an open loop: the known truth of the workbench (SH08).
//!
//! Requests arrive in a Poisson stream and are taken first come, first served by `workers` threads;
//! a thread works on a request itself (M/G/k), or takes it through a shared processor and, for a
//! share of the requests, one of `disks` disks. The server drifts, is faster or slower from one trial
//! to the next, begins cold, stalls, has modes, and gets less done under more load, as told.
//!
//! One request costs a few random numbers and a heap of `workers`: a trial of a million requests
//! takes a tenth of a second.

#![forbid(unsafe_code)]

mod queue;
mod service;
mod speed;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_base::clock::{ns_from_s, s_from_ns};
use leadline_wire::event::load::{LoadResult, TrialResult};
use leadline_wire::job::trial::{SimulatedServer, TrialJob, TrialOrder};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::load::{LoadTally, Window};
use queue::Queue;

/// Arrivals stop with the window; answers are waited for this much longer.
const DRAIN_S: f64 = 2.0;

/// A trial is given up no sooner than after this much of its window.
pub const ABORT_AFTER_S: f64 = 10.0;

/// Runs a job's trial.
#[must_use]
pub fn answer(job: &TrialJob) -> TrialResult {
    TrialResult::new(job, run(&job.server, &job.order))
}

/// Runs one trial in virtual time.
///
/// One that is given up is the trial of the time until then: the same arrivals, a shorter window.
#[must_use]
pub fn run(server: &SimulatedServer, order: &TrialOrder) -> LoadResult {
    match run_until(server, order) {
        Ended::Whole(result) => result,
        Ended::GivenUp { seconds } => {
            let shorter = TrialOrder { seconds, abort_above_ms: None, ..*order };
            match run_until(server, &shorter) {
                Ended::Whole(result) => LoadResult { aborted: true, ..result },
                Ended::GivenUp { .. } => unreachable!("nothing to give up for"),
            }
        }
    }
}

enum Ended {
    Whole(LoadResult),
    GivenUp { seconds: f64 },
}

fn run_until(server: &SimulatedServer, order: &TrialOrder) -> Ended {
    let from_ns = ns_from_s(server.warm_up_s);
    let to_ns = from_ns + ns_from_s(order.seconds);
    let window = Window { from_ns, to_ns, limit_ns: order.limit_ms.map(|ms| (ms * 1e6) as u64) };
    let mut tally = LoadTally::new(window);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(order.seed);
    let mut queue = Queue::new(server, &mut random);
    let mut giving_up = GivingUp::new(order, from_ns);
    let mut now_ns = 0.0_f64;
    let mean_gap_ns = 1e9 / order.rate_per_s;
    loop {
        now_ns += service::exponential(&mut random) * mean_gap_ns;
        let due_ns = now_ns as u64;
        if due_ns >= to_ns {
            return Ended::Whole(tally.finish(to_ns, false));
        }
        let done_ns = queue.serve(due_ns, &mut random);
        let last_ns = to_ns + ns_from_s(DRAIN_S);
        if done_ns > last_ns {
            tally.unanswered(due_ns, last_ns - due_ns);
        } else {
            tally.answered(due_ns, done_ns - due_ns);
        }
        if giving_up.now(due_ns, done_ns) {
            return Ended::GivenUp { seconds: s_from_ns(due_ns - from_ns) };
        }
    }
}

/// Decides when a trial is hopeless: the mean response time passed the bound, where a request
/// without an answer counts with its age. That is what a real generator knows at that moment.
struct GivingUp {
    bound_ns: Option<f64>,
    from_ns: u64,
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    /// Of the waiting: when they were due, added up.
    due_sum_ns: f64,
    answered: u64,
    answered_sum_ns: f64,
}

impl GivingUp {
    fn new(order: &TrialOrder, from_ns: u64) -> Self {
        Self {
            bound_ns: order.abort_above_ms.map(|ms| ms * 1e6),
            from_ns,
            waiting: BinaryHeap::new(),
            due_sum_ns: 0.0,
            answered: 0,
            answered_sum_ns: 0.0,
        }
    }

    /// Learns of a request, due now, and decides.
    fn now(&mut self, now_ns: u64, done_ns: u64) -> bool {
        let Some(bound_ns) = self.bound_ns else { return false };
        if now_ns < self.from_ns {
            return false;
        }
        self.waiting.push(Reverse((done_ns, now_ns)));
        self.due_sum_ns += now_ns as f64;
        while let Some(&Reverse((done_ns, due_ns))) = self.waiting.peek() {
            if done_ns > now_ns {
                break;
            }
            self.waiting.pop();
            self.due_sum_ns -= due_ns as f64;
            self.answered += 1;
            self.answered_sum_ns += (done_ns - due_ns) as f64;
        }
        let waiting = self.waiting.len() as f64;
        let ages_ns = waiting * now_ns as f64 - self.due_sum_ns;
        let mean_ns = (self.answered_sum_ns + ages_ns) / (self.answered as f64 + waiting);
        now_ns >= self.from_ns + ns_from_s(ABORT_AFTER_S) && mean_ns > bound_ns
    }
}

#[cfg(test)]
mod tests;
