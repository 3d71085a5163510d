//! What is going to happen, in the order of virtual time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::io::{IoId, PartId};

/// Something that happens at its time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A request reaches a part.
    Submit(PartId, IoId),
    /// A request is served.
    Done(IoId),
    /// A part asked to be woken, and for what.
    Wake(PartId, u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at_ns: u64,
    /// Events of one instant happen in the order in which they were put here.
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (u64, u64) {
        (self.at_ns, self.order)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// All events to come, of a machine or of a server.
#[derive(Debug)]
pub(crate) struct Calendar<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    order: u64,
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), order: 0 }
    }
}

impl<E> Calendar<E> {
    /// Enters an event.
    pub fn at(&mut self, at_ns: u64, event: E) {
        self.order += 1;
        self.entries.push(Reverse(Entry { at_ns, order: self.order, event }));
    }

    /// When the next event is.
    pub fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|first| first.0.at_ns)
    }

    /// The next event if it is before `until_ns`, and when it is.
    pub fn pop_before(&mut self, until_ns: u64) -> Option<(u64, E)> {
        if self.next_ns()? >= until_ns {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_those_of_one_instant_as_they_were_entered() {
        let mut calendar = Calendar::default();
        for (at_ns, what) in [(5, 1), (3, 2), (5, 3), (9, 4)] {
            calendar.at(at_ns, Event::Wake(PartId(0), what));
        }
        let mut seen = Vec::new();
        while let Some((at_ns, Event::Wake(_, what))) = calendar.pop_before(9) {
            seen.push((at_ns, what));
        }
        assert_eq!(seen, [(3, 2), (5, 1), (5, 3)]);
    }
}
