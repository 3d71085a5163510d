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

pub(super) use service::exponential;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_base::clock::{ns_from_s, s_from_ns};
use leadline_wire::event::load::LoadResult;
use leadline_wire::job::trial::{SimulatedServer, TrialOrder};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::load::early_abort::EarlyAbort;
use crate::load::{Limits, LoadTally, Window};
use queue::Queue;

/// Arrivals stop with the window; answers are waited for this much longer.
pub(super) const DRAIN_S: f64 = 2.0;

/// A trial is given up no sooner than after this much of its window.
pub const ABORT_AFTER_S: f64 = 10.0;

/// Runs one trial in virtual time.
///
/// One that is given up is the trial of the time until then: the same arrivals, a shorter window.
#[must_use]
pub fn run(server: &SimulatedServer, order: &TrialOrder) -> LoadResult {
    match run_until(server, order) {
        Ended::Whole(result) => result,
        Ended::GivenUp { seconds } => {
            let shorter = TrialOrder { seconds, abort_above_ms: None, ..order.clone() };
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
    let window = Window { from_ns, to_ns, limits: Limits::of(order.limits_ms()) };
    let mut tally = LoadTally::new(window);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(order.seed);
    let mut queue = Queue::new(server, &mut random);
    let mut giving_up = GivingUp::new(order, from_ns);
    let mut now_ns = 0.0_f64;
    let mean_gap_ns = 1e9 / order.rate_per_s;
    loop {
        now_ns += exponential(&mut random) * mean_gap_ns;
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

/// Learns what a generator knows at each moment of requests whose ends are known beforehand.
struct GivingUp {
    early_abort: EarlyAbort,
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
}

impl GivingUp {
    fn new(order: &TrialOrder, from_ns: u64) -> Self {
        Self {
            early_abort: EarlyAbort::new(order.abort_above_ms, from_ns),
            waiting: BinaryHeap::new(),
        }
    }

    /// Learns of a request, due now, and decides.
    fn now(&mut self, now_ns: u64, done_ns: u64) -> bool {
        if !self.early_abort.is_bounded() {
            return false; // nor kept: under overload what waits grows with the trial
        }
        self.waiting.push(Reverse((done_ns, now_ns)));
        self.early_abort.due(now_ns);
        while let Some(&Reverse((done_ns, due_ns))) = self.waiting.peek() {
            if done_ns > now_ns {
                break;
            }
            self.waiting.pop();
            self.early_abort.answered(due_ns, done_ns);
        }
        self.early_abort.ends(now_ns)
    }
}

#[cfg(test)]
mod tests;
