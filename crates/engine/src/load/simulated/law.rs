//! A server by a law (`leadline_sim::server::law`) under an open loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_base::clock::{ns_from_s, s_from_ns};
use leadline_sim::server::law::{Queue, exponential};
use leadline_wire::event::load::LoadResult;
use leadline_wire::job::trial::{SimulatedServer, TrialOrder};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::DRAIN_S;
use crate::load::early_abort::EarlyAbort;
use crate::load::{Limits, LoadTally, Window};

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
