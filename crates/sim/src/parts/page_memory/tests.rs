//! What a page cache does for its readers and writers.

use crate::document::{DiskQueue, Document, ReadAhead, ServiceShape};
use crate::machine::{Request, Safety};
use crate::sample::{MIB, anywhere, cached, closed, disk, in_a_row, machine, request, station};

fn slow() -> Document {
    cached(station(ServiceShape::Constant))
}

#[test]
fn a_sequential_reader_does_not_wait_for_the_disk_page_by_page() {
    let rate = |ahead: Option<ReadAhead>| {
        let mut document = cached(disk(DiskQueue::Native));
        if let (Some(cache), Some(disk)) = (&mut document.cache, &mut document.disk) {
            cache.read_ahead = ahead;
            disk.read_buffer_bytes = 0;
        }
        let mut machine = machine(&document, 1 << 34);
        let ns = closed(&mut machine, 1, 8000, in_a_row(4096, false));
        8000.0 * 4096.0 * 1e3 / ns as f64
    };
    let window = ReadAhead { initial_bytes: 16 << 10, max_bytes: MIB };
    let (with, without) = (rate(Some(window)), rate(None));
    assert!(with > 50.0, "{with} MB/s");
    assert!(without < 1.0, "{without} MB/s");
}

#[test]
fn read_ahead_reads_nothing_beyond_the_data_and_nothing_for_random_readers() {
    let mut document = slow();
    if let Some(cache) = &mut document.cache {
        cache.read_ahead = Some(ReadAhead { initial_bytes: 16 << 10, max_bytes: 128 << 10 });
    }
    let mut first = machine(&document, MIB);
    closed(&mut first, 1, 255, in_a_row(4096, false));
    assert_eq!(first.device_bytes().0, MIB);
    let mut second = machine(&document, 1 << 30);
    closed(&mut second, 1, 2000, anywhere(1 << 30, 4096, 1.0));
    let read = second.device_bytes().0 / 4096;
    assert!((1980..2020).contains(&read), "{read} pages");
}

#[test]
fn two_readers_of_a_page_on_its_way_read_it_once() {
    let mut machine = machine(&slow(), MIB);
    machine.submit(0, 1, &request(0, 4096, false));
    machine.submit(1000, 2, &request(512, 512, false));
    assert_eq!(machine.next_end(u64::MAX).map(|end| end.token), Some(1));
    assert_eq!(machine.next_end(u64::MAX).map(|end| end.token), Some(2));
    assert_eq!(machine.device_bytes(), (4096, 0));
}

#[test]
fn a_write_to_part_of_an_absent_page_reads_it_first_and_to_a_whole_one_does_not() {
    let mut part = machine(&slow(), MIB);
    part.submit(0, 1, &request(512, 512, true));
    let end = part.next_end(u64::MAX).map(|end| end.at_ns).unwrap_or_default();
    assert!(end > 1_000_000, "{end}");
    assert_eq!(part.device_bytes(), (4096, 0));
    let mut whole = machine(&slow(), MIB);
    whole.submit(0, 1, &request(4096, 4096, true));
    let end = whole.next_end(u64::MAX).map(|end| end.at_ns).unwrap_or_default();
    assert!(end < 1000, "{end}");
}

/// The device writes a page in a millisecond; memory takes them in no time.
#[test]
fn writers_run_free_up_to_the_limit_and_then_at_the_devices_rate() {
    let mut machine = machine(&slow(), 1 << 30);
    let mut draw = anywhere(1 << 30, 4096, 0.0);
    let free_ns = closed(&mut machine, 1, 200, &mut draw);
    assert!(free_ns < 1_000_000, "{free_ns}");
    closed(&mut machine, 1, 400, &mut draw);
    let slow_ns = closed(&mut machine, 1, 1000, &mut draw);
    assert!((slow_ns as f64 / 1e9 - 1.0).abs() < 0.05, "{slow_ns}");
}

#[test]
fn the_flusher_leaves_what_is_below_its_threshold_until_it_is_old() {
    let mut machine = machine(&slow(), MIB);
    for page in 0..10 {
        machine.submit(page * 1000, page, &request(page * 8192, 4096, true));
    }
    while machine.next_end(29_000_000_000).is_some() {}
    assert_eq!(machine.device_bytes().1, 0);
    while machine.next_end(40_000_000_000).is_some() {}
    assert_eq!(machine.device_bytes().1, 10 * 4096);
}

#[test]
fn neighbouring_dirty_pages_are_written_in_one_request() {
    let mut machine = machine(&slow(), MIB);
    for page in 0..64 {
        machine.submit(page, page, &request(page * 4096, 4096, true));
    }
    let end_ns = (0..64).filter_map(|_| machine.next_end(u64::MAX)).map(|end| end.at_ns).max();
    let flush = Request { safety: Safety::Flush, ..request(0, 4096, true) };
    machine.submit(end_ns.unwrap_or_default(), 99, &flush);
    let took = machine.next_end(u64::MAX).map(|end| end.at_ns - end_ns.unwrap_or_default());
    assert!(took.is_some_and(|ns| (1_000_000..2_500_000).contains(&ns)), "{took:?}");
    assert_eq!(machine.device_bytes().1, 64 * 4096);
}

#[test]
fn a_write_that_must_be_safe_waits_for_the_device_and_leaves_nothing_dirty() {
    let mut machine = machine(&slow(), MIB);
    let through = Request { safety: Safety::Through, ..request(0, 4096, true) };
    machine.submit(0, 1, &through);
    let end = machine.next_end(u64::MAX).map(|end| end.at_ns).unwrap_or_default();
    assert!((1_000_000..1_100_000).contains(&end), "{end}");
    assert_eq!(machine.device_bytes().1, 4096);
}

#[test]
fn dirty_pages_that_have_to_go_are_written() {
    let mut document = slow();
    if let Some(dirty) = document.cache.as_mut().and_then(|cache| cache.dirty.as_mut()) {
        (dirty.background_bytes, dirty.limit_bytes) = (4 * MIB, 4 * MIB);
    }
    let mut machine = machine(&document, 64 * MIB);
    let mut pages = 0..;
    let mut draw = |_| request(pages.next().unwrap_or(0) * 4096, 4096, true);
    closed(&mut machine, 1, 1024, &mut draw);
    assert_eq!(machine.device_bytes().1, 0);
    closed(&mut machine, 1, 512, &mut draw);
    let written = machine.device_bytes().1;
    assert!(written > 0, "{written}");
    // In the order in which they were written, so in long requests of a millisecond each.
    assert!(machine.now_ns() < 20_000_000, "{}", machine.now_ns());
}
