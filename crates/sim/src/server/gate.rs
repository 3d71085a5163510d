//! So many inside at once, the others wait in the order in which they came: threads, connections,
//! the one who holds a lock.

use std::collections::VecDeque;

use super::slab::Id;

/// Whether somebody may go in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// At once.
    Inside,
    /// Later: [`Gate::leave`] of somebody else says when.
    Waits,
    /// Never: too many wait.
    Refused,
}

/// A bound on how many are inside, and one on how many wait.
#[derive(Debug)]
pub(super) struct Gate {
    inside: u32,
    inside_max: u32,
    waiting: VecDeque<Id>,
    waiting_max: usize,
}

impl Gate {
    /// Nobody is inside.
    pub fn new(inside_max: u32, waiting_max: u32) -> Self {
        let waiting_max = waiting_max as usize;
        Self { inside: 0, inside_max, waiting: VecDeque::new(), waiting_max }
    }

    /// Somebody comes.
    pub fn enter(&mut self, job: Id) -> Entry {
        if self.inside < self.inside_max {
            self.inside += 1;
            return Entry::Inside;
        }
        if self.waiting.len() >= self.waiting_max {
            return Entry::Refused;
        }
        self.waiting.push_back(job);
        Entry::Waits
    }

    /// Somebody leaves; who is inside instead.
    pub fn leave(&mut self) -> Option<Id> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.inside -= 1;
        }
        next
    }

    /// How many are inside.
    pub fn inside(&self) -> u32 {
        self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_of_two_waits_and_the_fifth_is_refused() {
        let mut gate = Gate::new(2, 2);
        let entries: Vec<Entry> = (1..=5).map(|job| gate.enter(job)).collect();
        let (inside, waits) = (Entry::Inside, Entry::Waits);
        assert_eq!(entries, [inside, inside, waits, waits, Entry::Refused]);
        assert_eq!((gate.leave(), gate.leave(), gate.leave()), (Some(3), Some(4), None));
        assert_eq!((gate.enter(6), gate.enter(7), gate.inside()), (Entry::Inside, Entry::Waits, 2));
    }
}
