//! active/inactive LRU with refault activation (`mm/vmscan.c`, `mm/workingset.c`, without MGLRU).
//!
//! A page comes to the front of the inactive list. A use marks it, a second one activates it. What is
//! needed comes from the end of the inactive list, which takes from the end of the active one when
//! it has become too short. A page that went leaves its age; coming back, it is activated at once
//! when fewer pages went or were activated meanwhile than are active: a longer inactive list would
//! have kept it.

use super::table::Table;
use super::{Evicted, remember};

const INACTIVE: u8 = 0;
const ACTIVE: u8 = 1;
const GONE: u8 = 2;

const GIB: f64 = 1_073_741_824.0;

#[derive(Debug)]
pub(super) struct TwoLists {
    capacity: usize,
    /// Active pages to one inactive from which the active list is shortened.
    ratio: usize,
    /// Pages that went or were activated; the kernel's `nonresident_age`.
    age: u32,
}

impl TwoLists {
    /// The ratio is `inactive_is_low`'s: 1 below a gibibyte, else the root of ten times as many.
    pub fn new(capacity: usize, page_bytes: u64) -> Self {
        let gib = (capacity as f64 * page_bytes as f64 / GIB).floor();
        let ratio = if gib >= 1.0 { (10.0 * gib).sqrt() as usize } else { 1 };
        Self { capacity, ratio, age: 0 }
    }

    pub fn touch(&mut self, table: &mut Table, slot: u32) {
        let page = table.page_mut(slot);
        if page.list == ACTIVE || !page.referenced {
            page.referenced = true;
            return;
        }
        page.referenced = false;
        self.age = self.age.wrapping_add(1);
        table.move_to_front(slot, ACTIVE);
    }

    pub fn insert(
        &mut self,
        table: &mut Table,
        number: u64,
        full: bool,
        demanded: bool,
    ) -> (u32, Option<Evicted>) {
        let evicted = if full { self.reclaim(table) } else { None };
        let slot = match table.find(number) {
            Some(slot) => {
                let distance = self.age.wrapping_sub(table.page(slot).age) as usize;
                let list = if distance <= table.length(ACTIVE) { ACTIVE } else { INACTIVE };
                if list == ACTIVE {
                    self.age = self.age.wrapping_add(1);
                }
                table.move_to_front(slot, list);
                slot
            }
            None => table.add(number, INACTIVE),
        };
        table.page_mut(slot).referenced = demanded;
        (slot, evicted)
    }

    fn reclaim(&mut self, table: &mut Table) -> Option<Evicted> {
        while table.length(INACTIVE) * self.ratio < table.length(ACTIVE)
            || table.length(INACTIVE) == 0
        {
            let Some(slot) = table.last(ACTIVE) else { break };
            table.move_to_front(slot, INACTIVE);
        }
        let slot = table.last(INACTIVE)?;
        self.age = self.age.wrapping_add(1);
        let evicted = remember(table, slot, GONE);
        table.page_mut(slot).age = self.age;
        if table.length(GONE) > self.capacity
            && let Some(oldest) = table.last(GONE)
        {
            table.remove(oldest);
        }
        Some(evicted)
    }
}
