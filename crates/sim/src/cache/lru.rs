//! Least recently used: one list in the order of use.

use super::table::Table;
use super::{Evicted, evict};

const USED: u8 = 0;

pub(super) fn touch(table: &mut Table, slot: u32) {
    table.move_to_front(slot, USED);
}

pub(super) fn insert(table: &mut Table, number: u64, full: bool) -> (u32, Option<Evicted>) {
    let oldest = table.last(USED).filter(|_| full);
    let evicted = oldest.map(|slot| evict(table, slot));
    (table.add(number, USED), evicted)
}
