//! ARC (Megiddo & Modha, FAST 2003, Fig. 4): pages used once and pages used again, each with those
//! that went; which of these are missed decides how the memory is shared.

use super::table::Table;
use super::{Evicted, evict, remember};

const ONCE: u8 = 0;
const AGAIN: u8 = 1;
const ONCE_GONE: u8 = 2;
const AGAIN_GONE: u8 = 3;

#[derive(Debug)]
pub(super) struct Arc {
    capacity: usize,
    /// Pages that those used once should have; the paper's `p`.
    once_wanted: f64,
}

impl Arc {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, once_wanted: 0.0 }
    }

    pub fn touch(table: &mut Table, slot: u32) {
        table.move_to_front(slot, AGAIN);
    }

    pub fn insert(
        &mut self,
        table: &mut Table,
        number: u64,
        capacity: usize,
    ) -> (u32, Option<Evicted>) {
        let Some(ghost) = table.find(number) else {
            let evicted = self.make_room(table, capacity);
            return (table.add(number, ONCE), evicted);
        };
        let (once, again) = (table.length(ONCE_GONE) as f64, table.length(AGAIN_GONE) as f64);
        let was_once = table.page(ghost).list == ONCE_GONE;
        self.once_wanted = if was_once {
            (self.once_wanted + (again / once).max(1.0)).min(self.capacity as f64)
        } else {
            (self.once_wanted - (once / again).max(1.0)).max(0.0)
        };
        let evicted = self.replace(table, !was_once);
        table.move_to_front(ghost, AGAIN);
        (ghost, evicted)
    }

    /// Case IV: a page that nobody remembers.
    fn make_room(&mut self, table: &mut Table, capacity: usize) -> Option<Evicted> {
        let once = table.length(ONCE) + table.length(ONCE_GONE);
        let all = once + table.length(AGAIN) + table.length(AGAIN_GONE);
        if once >= capacity {
            if table.length(ONCE) < capacity {
                forget(table, ONCE_GONE);
                return self.replace(table, false);
            }
            let slot = table.last(ONCE)?;
            return Some(evict(table, slot));
        }
        if all < capacity {
            return None;
        }
        if all >= 2 * capacity {
            forget(table, AGAIN_GONE);
        }
        self.replace(table, false)
    }

    fn replace(&mut self, table: &mut Table, asked_again: bool) -> Option<Evicted> {
        if table.length(ONCE) + table.length(AGAIN) < self.capacity {
            return None;
        }
        let once = table.length(ONCE) as f64;
        let too_many = once > self.once_wanted || (asked_again && once == self.once_wanted);
        let from_once = (once > 0.0 && too_many) || table.length(AGAIN) == 0;
        let (from, ghosts) = if from_once { (ONCE, ONCE_GONE) } else { (AGAIN, AGAIN_GONE) };
        let slot = table.last(from)?;
        Some(remember(table, slot, ghosts))
    }
}

fn forget(table: &mut Table, ghosts: u8) {
    if let Some(slot) = table.last(ghosts) {
        table.remove(slot);
    }
}
