//! Documents that make no sense.

use super::*;
use crate::sample::{cached, disk, station};

fn told(document: &Document) -> String {
    document.validate().map_or_else(|refused| refused.0, |()| "nothing".to_owned())
}

#[test]
fn a_number_out_of_range_is_named_with_its_range() {
    let mut document = cached(disk(DiskQueue::Fifo));
    assert_eq!(told(&document), "nothing");
    if let Some(disk) = &mut document.disk {
        disk.rotation_ms = 0.0;
    }
    assert_eq!(
        told(&document),
        "machine.disk.rotation_ms is 0, it must be between 0.01 and 10000 milliseconds"
    );
    if let Some(cache) = &mut document.cache {
        cache.page_bytes = 5000;
    }
    assert_eq!(told(&document), "machine.cache.page_bytes is 5000, it must be a power of two");
}

#[test]
fn something_has_to_lie_at_the_bottom_and_only_one_thing() {
    let mut document = disk(DiskQueue::Fifo);
    document.station = station(ServiceShape::Constant).station;
    assert!(told(&document).contains("has 2 of the tables"), "{}", told(&document));
    (document.station, document.disk) = (None, None);
    assert!(told(&document).contains("has 0 of the tables"), "{}", told(&document));
}

#[test]
fn a_page_count_that_no_memory_holds_is_refused() {
    let mut document = cached(disk(DiskQueue::Fifo));
    if let Some(cache) = &mut document.cache {
        cache.capacity_bytes = 1 << 50;
    }
    assert!(told(&document).starts_with("machine.cache.capacity_bytes is"), "{}", told(&document));
}
