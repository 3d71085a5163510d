//! Processors: shared by all who are on them, or taken in turns.
//!
//! Everybody on them is served at one rate, so what each has got since the beginning of time is one
//! number for all, and a job ends when that has grown by its work. A change of speed changes the
//! rate and nothing else.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::document::{Cores as Document, Discipline};
use super::slab::Id;

/// What is left of the processors, at the least, however much others take.
const LEFT_MIN: f64 = 0.01;

/// So many processors, and who is on them.
#[derive(Debug)]
pub(super) struct Cores {
    count: f64,
    at_once: usize,
    /// By when they end on `clock`, whose bits are in the order of its value.
    running: BinaryHeap<Reverse<(u64, u64, Id)>>,
    waiting: VecDeque<(Id, f64)>,
    /// Nanoseconds of work that each of those running has got since the beginning.
    clock: f64,
    at_ns: u64,
    speed: f64,
    left: f64,
    entered: u64,
}

impl Cores {
    /// All idle.
    pub fn new(document: &Document) -> Self {
        let at_once = match document.discipline {
            Discipline::Shared => usize::MAX,
            Discipline::Turns => document.count as usize,
        };
        Self {
            count: f64::from(document.count),
            at_once,
            running: BinaryHeap::new(),
            waiting: VecDeque::new(),
            clock: 0.0,
            at_ns: 0,
            speed: 1.0,
            left: 1.0,
            entered: 0,
        }
    }

    /// Work of so many nanoseconds comes.
    pub fn enter(&mut self, now_ns: u64, job: Id, work_ns: f64) {
        self.go_on(now_ns);
        if self.running.len() < self.at_once {
            self.start(job, work_ns);
        } else {
            self.waiting.push_back((job, work_ns));
        }
    }

    /// When the first of those running ends, if nothing changes.
    pub fn next_ns(&self) -> Option<u64> {
        let rate = self.rate();
        let Reverse((ends, _, _)) = self.running.peek()?;
        let work = (f64::from_bits(*ends) - self.clock).max(0.0);
        (rate > 0.0).then(|| self.at_ns + (work / rate).ceil() as u64)
    }

    /// The first of those running ends now.
    pub fn end_first(&mut self, now_ns: u64) -> Option<Id> {
        self.go_on(now_ns);
        let Reverse((_, _, job)) = self.running.pop()?;
        if let Some((next, work_ns)) = self.waiting.pop_front() {
            self.start(next, work_ns);
        }
        Some(job)
    }

    /// From now on work goes this fast, 0 while all stand still, on this part of the processors.
    pub fn change(&mut self, now_ns: u64, speed: f64, left: f64) {
        self.go_on(now_ns);
        (self.speed, self.left) = (speed, left.max(LEFT_MIN));
    }

    fn start(&mut self, job: Id, work_ns: f64) {
        self.entered += 1;
        let ends = (self.clock + work_ns).to_bits();
        self.running.push(Reverse((ends, self.entered, job)));
    }

    /// Nanoseconds of work that each of those running gets in one.
    fn rate(&self) -> f64 {
        let running = self.running.len().max(1) as f64;
        self.speed * (self.count * self.left / running).min(1.0)
    }

    fn go_on(&mut self, now_ns: u64) {
        self.clock += (now_ns - self.at_ns) as f64 * self.rate();
        self.at_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(count: u32, discipline: Discipline) -> Cores {
        let work = super::super::document::Law::Constant {};
        Cores::new(&Document { count, discipline, work_ms: 1.0, work })
    }

    fn ends(cores: &mut Cores) -> Vec<(u64, Id)> {
        std::iter::from_fn(|| {
            let at_ns = cores.next_ns()?;
            Some((at_ns, cores.end_first(at_ns)?))
        })
        .collect()
    }

    #[test]
    fn two_who_share_one_take_twice_as_long_until_one_is_gone() {
        let mut shared = cores(1, Discipline::Shared);
        shared.enter(0, 1, 100.0);
        shared.enter(50, 2, 100.0);
        // The first has 50 left, which take 100 beside the second; that one has 50 left then.
        assert_eq!(ends(&mut shared), [(150, 1), (200, 2)]);
        let mut turns = cores(1, Discipline::Turns);
        turns.enter(0, 1, 100.0);
        turns.enter(50, 2, 100.0);
        assert_eq!(ends(&mut turns), [(100, 1), (200, 2)]);
    }

    #[test]
    fn nobody_is_on_two_processors_at_once() {
        let mut shared = cores(4, Discipline::Shared);
        shared.enter(0, 1, 100.0);
        shared.enter(0, 2, 30.0);
        assert_eq!(ends(&mut shared), [(30, 2), (100, 1)]);
    }

    #[test]
    fn work_stands_still_and_goes_on_slower() {
        let mut shared = cores(2, Discipline::Shared);
        shared.enter(0, 1, 100.0);
        shared.change(40, 0.0, 1.0);
        assert_eq!(shared.next_ns(), None);
        shared.change(500, 0.5, 1.0);
        assert_eq!(shared.next_ns(), Some(620));
        // Beside another, on a quarter of two processors.
        shared.enter(520, 2, 1000.0);
        shared.change(520, 1.0, 0.25);
        assert_eq!(shared.next_ns(), Some(720));
    }
}
