//! CLOCK (Corbató 1968): pages in the order in which they came, and a bit for each that was used.
//!
//! The hand is the end of the list: a page that was used goes once more to its front.

use super::table::Table;
use super::{Evicted, evict};

const RING: u8 = 0;

pub(super) fn touch(table: &mut Table, slot: u32) {
    table.page_mut(slot).referenced = true;
}

pub(super) fn insert(table: &mut Table, number: u64, full: bool) -> (u32, Option<Evicted>) {
    let evicted = if full { hand(table) } else { None };
    (table.add(number, RING), evicted)
}

/// Ends within one turn, because it takes every bit away that it meets.
fn hand(table: &mut Table) -> Option<Evicted> {
    while let Some(slot) = table.last(RING) {
        if !table.page(slot).referenced {
            return Some(evict(table, slot));
        }
        table.page_mut(slot).referenced = false;
        table.move_to_front(slot, RING);
    }
    None
}
