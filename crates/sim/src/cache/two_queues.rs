//! 2Q (Johnson & Shasha 1994, the full version): newcomers wait in a queue of a quarter of the
//! memory; only a page that is asked for again soon after it left that queue is kept by use.

use super::table::Table;
use super::{Evicted, evict, remember};

const NEW: u8 = 0;
const KEPT: u8 = 1;
const LEFT: u8 = 2;

#[derive(Debug)]
pub(super) struct TwoQueues {
    new_max: usize,
    left_max: usize,
}

impl TwoQueues {
    /// A quarter for newcomers, half as many remembered as are held: the paper's choice.
    pub fn new(capacity: usize) -> Self {
        Self { new_max: (capacity / 4).max(1), left_max: (capacity / 2).max(1) }
    }

    pub fn touch(table: &mut Table, slot: u32) {
        if table.page(slot).list == KEPT {
            table.move_to_front(slot, KEPT);
        }
    }

    pub fn insert(&mut self, table: &mut Table, number: u64, full: bool) -> (u32, Option<Evicted>) {
        let back = table.find(number);
        if let Some(slot) = back {
            // Before something else takes its place among those remembered.
            table.remove(slot);
        }
        let evicted = if full { self.reclaim(table) } else { None };
        (table.add(number, if back.is_some() { KEPT } else { NEW }), evicted)
    }

    fn reclaim(&mut self, table: &mut Table) -> Option<Evicted> {
        let newest_go = table.length(NEW) > self.new_max || table.length(KEPT) == 0;
        if !newest_go {
            let slot = table.last(KEPT)?;
            return Some(evict(table, slot));
        }
        let slot = table.last(NEW)?;
        let evicted = remember(table, slot, LEFT);
        if table.length(LEFT) > self.left_max
            && let Some(oldest) = table.last(LEFT)
        {
            table.remove(oldest);
        }
        Some(evicted)
    }
}
