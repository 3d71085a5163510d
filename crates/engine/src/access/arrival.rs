//! When requests of an open loop are due.
//!
//! All workers of a run share one schedule: a worker that waits for the target must not hold back
//! requests that another could send (one queue before `c` servers, not `c` queues). Sharing needs
//! neither a lock nor a list: a free worker takes the next ticket from an atomic counter and asks
//! its own clone of the stream when that ticket is due. A constant rate answers at once; a Poisson
//! process replays the tickets the others took, one exponential number each (some ten nanoseconds,
//! so that among `c` busy workers a request costs `c` of them). Neither allocates.
//!
//! The stream has a sub-seed of its own, so that a rate changes no address.

use leadline_wire::job::measure::Arrivals;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::access::stream::sub_seed;

/// The number of the schedule among the generators of a job, beyond every process's.
const SCHEDULE: u32 = u32::MAX;

/// The endless schedule of a run. Times are nanoseconds from its start, tickets count from 0.
#[derive(Clone, Debug)]
pub struct ArrivalStream {
    gaps: Gaps,
    rate_per_s: f64,
    /// The ticket given out next.
    next: u64,
    /// When the ticket before was due; not rounded, so that no error of rounding adds up.
    due_ns: f64,
}

#[derive(Clone, Debug)]
enum Gaps {
    Even,
    Exponential(Xoshiro256PlusPlus),
}

impl ArrivalStream {
    /// The schedule of a job under its seed; none in a closed loop.
    #[must_use]
    pub fn new(arrivals: &Arrivals, seed: u64) -> Option<Self> {
        let (gaps, rate_per_s) = match arrivals {
            Arrivals::Closed {} => return None,
            Arrivals::Constant { rate_per_s } => (Gaps::Even, *rate_per_s),
            Arrivals::Poisson { rate_per_s } => {
                let random = Xoshiro256PlusPlus::seed_from_u64(sub_seed(seed, SCHEDULE));
                (Gaps::Exponential(random), *rate_per_s)
            }
        };
        Some(Self { gaps, rate_per_s, next: 0, due_ns: 0.0 })
    }

    /// When the next ticket is due; never before the one before it. Ticket `i` of a constant rate
    /// is due at `i / rate`, to the nanosecond for the first fifty days.
    #[inline]
    pub fn next_due_ns(&mut self) -> u64 {
        self.due_ns = match &mut self.gaps {
            Gaps::Even => self.next as f64 * 1e9 / self.rate_per_s,
            Gaps::Exponential(random) => {
                let gap: f64 = Exp1.sample(random);
                self.due_ns + gap * 1e9 / self.rate_per_s
            }
        };
        self.next += 1;
        self.due_ns.round() as u64
    }

    /// When `ticket` is due. Tickets never go back: one at or before the last answered gives the
    /// last answer again.
    #[inline]
    pub fn due_of(&mut self, ticket: u64) -> u64 {
        if matches!(self.gaps, Gaps::Even) && ticket > self.next {
            self.next = ticket;
        }
        while self.next <= ticket {
            self.next_due_ns();
        }
        self.due_ns.round() as u64
    }

    /// Tickets not given out yet that are due at or after `from_ns` and before `to_ns`. A Poisson
    /// process replays a clone: some ten nanoseconds for each.
    #[must_use]
    pub fn due_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        match self.gaps {
            Gaps::Even => self.first_at(to_ns).saturating_sub(self.first_at(from_ns)),
            Gaps::Exponential(_) => self.replay_between(from_ns, to_ns),
        }
    }

    fn replay_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let mut replay = self.clone();
        let mut count = 0;
        loop {
            let due_ns = replay.next_due_ns();
            if due_ns >= to_ns {
                return count;
            }
            count += u64::from(due_ns >= from_ns);
        }
    }

    /// The first ticket of an even schedule not given out yet that is due at `from_ns` or later.
    fn first_at(&self, from_ns: u64) -> u64 {
        let near = from_ns as f64 * self.rate_per_s * 1e-9;
        // A little early, so that rounding, here and of the due time, cannot pass over it.
        let early = near - 2.0 - near * 1e-15 - self.rate_per_s * 1e-9;
        let mut replay = Self { next: (early.max(0.0) as u64).max(self.next), ..self.clone() };
        while replay.next_due_ns() < from_ns {}
        replay.next - 1
    }

    /// Requests due per second, as asked.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.rate_per_s
    }
}
