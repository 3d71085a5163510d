//! Which pages a memory keeps: replacement policies over one [`table::Table`].
//!
//! A page is *resident*, or remembered as a ghost by policies that learn from what they threw out.

mod arc;
mod clock;
mod lru;
pub(crate) mod table;
mod two_lists;
mod two_queues;

#[cfg(test)]
mod tests;

use crate::document::PolicyName;
use arc::Arc;
use table::{Page, Table};
use two_lists::TwoLists;
use two_queues::TwoQueues;

/// What had to go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Evicted {
    pub number: u64,
    pub dirty: bool,
}

#[derive(Debug)]
enum Policy {
    Lru,
    Clock,
    TwoLists(TwoLists),
    TwoQueues(TwoQueues),
    Arc(Arc),
}

/// A memory of so many pages under a policy.
#[derive(Debug)]
pub(crate) struct Cache {
    table: Table,
    policy: Policy,
    capacity: usize,
}

impl Cache {
    /// An empty one for data of so many pages.
    pub fn new(policy: PolicyName, capacity: usize, page_bytes: u64, expected: usize) -> Self {
        let policy = match policy {
            PolicyName::Lru => Policy::Lru,
            PolicyName::Clock => Policy::Clock,
            PolicyName::TwoLists => Policy::TwoLists(TwoLists::new(capacity, page_bytes)),
            PolicyName::TwoQueues => Policy::TwoQueues(TwoQueues::new(capacity)),
            PolicyName::Arc => Policy::Arc(Arc::new(capacity)),
        };
        Self { table: Table::new(expected.min(2 * capacity)), policy, capacity }
    }

    /// Pages held.
    pub fn resident(&self) -> usize {
        match &self.policy {
            Policy::Lru | Policy::Clock => self.table.length(0),
            Policy::TwoLists(_) | Policy::TwoQueues(_) | Policy::Arc(_) => {
                self.table.length(0) + self.table.length(1)
            }
        }
    }

    /// The slot of a resident page, which is not thereby used.
    #[inline]
    pub fn find(&self, number: u64) -> Option<u32> {
        self.table.find(number).filter(|&slot| !self.is_ghost(slot))
    }

    /// Lists 0 and 1 hold pages, the others what is remembered of them.
    #[inline]
    fn is_ghost(&self, slot: u32) -> bool {
        self.table.page(slot).list > 1
    }

    /// Uses a page; its slot if it is resident.
    #[inline]
    pub fn touch(&mut self, number: u64) -> Option<u32> {
        let slot = self.find(number)?;
        match &mut self.policy {
            Policy::Lru => lru::touch(&mut self.table, slot),
            Policy::Clock => clock::touch(&mut self.table, slot),
            Policy::TwoLists(lists) => lists.touch(&mut self.table, slot),
            Policy::TwoQueues(_) => TwoQueues::touch(&mut self.table, slot),
            Policy::Arc(_) => Arc::touch(&mut self.table, slot),
        }
        Some(slot)
    }

    /// Brings a page in that is not resident; the slot it has now, and what went for it.
    ///
    /// `demanded` says that somebody uses it, and not only may.
    pub fn insert(&mut self, number: u64, demanded: bool) -> (u32, Option<Evicted>) {
        let full = self.resident() >= self.capacity;
        let (table, capacity) = (&mut self.table, self.capacity);
        match &mut self.policy {
            Policy::Lru => lru::insert(table, number, full),
            Policy::Clock => clock::insert(table, number, full),
            Policy::TwoLists(lists) => lists.insert(table, number, full, demanded),
            Policy::TwoQueues(queues) => queues.insert(table, number, full),
            Policy::Arc(arc) => arc.insert(table, number, capacity),
        }
    }

    /// Drops a page, whatever it is worth.
    pub fn forget(&mut self, number: u64) {
        if let Some(slot) = self.find(number) {
            self.table.remove(slot);
        }
    }

    #[inline]
    pub fn page(&self, slot: u32) -> &Page {
        self.table.page(slot)
    }

    #[inline]
    pub fn page_mut(&mut self, slot: u32) -> &mut Page {
        self.table.page_mut(slot)
    }
}

/// Throws a page out for good.
fn evict(table: &mut Table, slot: u32) -> Evicted {
    let page = table.page(slot);
    let evicted = Evicted { number: page.number, dirty: page.dirty };
    table.remove(slot);
    evicted
}

/// Throws a page out and remembers it at the front of a list of ghosts.
fn remember(table: &mut Table, slot: u32, ghosts: u8) -> Evicted {
    let page = table.page_mut(slot);
    let evicted = Evicted { number: page.number, dirty: page.dirty };
    (page.dirty, page.referenced, page.filling) = (false, false, table::NONE);
    table.move_to_front(slot, ghosts);
    evicted
}
