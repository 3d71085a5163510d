//! A disk against its closed cases.

use super::*;
use crate::document::DiskQueue;
use crate::sample::{MIB, anywhere, closed, disk, in_a_row, machine};

const TIB: u64 = 1 << 40;

fn geometry(document: &crate::document::Document) -> Geometry {
    document.disk.as_ref().map(Geometry::new).unwrap_or_else(|| unreachable!())
}

#[test]
fn the_seek_curve_goes_from_the_next_track_over_all_of_them() {
    let mut document = disk(DiskQueue::Fifo);
    let root = geometry(&document);
    assert_eq!(root.seek_ns(7.0, 7.0), 0.0);
    assert!((root.seek_ns(7.0, 8.0) - 0.8e6).abs() < 1.0);
    assert!((root.seek_ns(0.0, 99_999.0) - 17.0e6).abs() < 1.0);
    let quarter = root.seek_ns(0.0, 25_000.0);
    assert!((quarter - (0.8e6 + 16.2e6 / 2.0)).abs() < 1e4, "half of it at a quarter: {quarter}");
    if let Some(disk) = &mut document.disk {
        disk.seek_linear_frac = 1.0;
    }
    let linear = geometry(&document).seek_ns(0.0, 25_000.0);
    assert!((linear - (0.8e6 + 16.2e6 / 4.0)).abs() < 1e4, "{linear}");
}

#[test]
fn cylinders_hold_more_outside_and_all_bytes_lie_somewhere() {
    let mut document = disk(DiskQueue::Fifo);
    if let Some(disk) = &mut document.disk {
        (disk.outer_mb_s, disk.inner_mb_s) = (200.0, 100.0);
    }
    let geometry = geometry(&document);
    assert_eq!(geometry.cylinder(0), 0.0);
    assert!(geometry.cylinder(TIB - 1) > 99_990.0);
    // Half of the bytes: 200 c - 50 c^2 = 75 at c = 2 - sqrt(2.5).
    let half = geometry.cylinder(TIB / 2) / 1e5;
    assert!((half - (2.0 - 2.5f64.sqrt())).abs() < 1e-3, "{half}");
    assert!((geometry.rate(0.0) - 0.2).abs() < 1e-9);
}

/// Overhead, a seek over the mean root of a distance (8/15), half a turn, and the transfer.
#[test]
fn a_random_read_takes_what_the_parts_take_on_average() {
    let mut machine = machine(&disk(DiskQueue::Fifo), TIB);
    let number = 20_000;
    let mean_ms =
        closed(&mut machine, 1, number, anywhere(TIB, 4096, 1.0)) as f64 / 1e6 / number as f64;
    let turn_ms = 60e3 / 7200.0;
    let expected_ms = 0.1 + 0.8 + 16.2 * 8.0 / 15.0 + turn_ms / 2.0 + 4096.0 / 150e3;
    assert!((mean_ms / expected_ms - 1.0).abs() < 0.01, "{mean_ms}, {expected_ms}");
}

#[test]
fn a_sequential_reader_gets_the_platters_rate_with_a_buffer_and_a_turn_each_time_without() {
    let rate = |buffer: u64| {
        let mut document = disk(DiskQueue::Native);
        if let Some(disk) = &mut document.disk {
            disk.read_buffer_bytes = buffer;
        }
        let mut machine = machine(&document, TIB);
        let ns = closed(&mut machine, 1, 4000, in_a_row(65_536, false));
        4000.0 * 65_536.0 * 1e3 / ns as f64
    };
    let with = rate(16 * MIB);
    assert!((with / 150.0 - 1.0).abs() < 0.02, "{with}");
    let without = rate(0);
    let expected = 65.536 / (60e3 / 7200.0);
    assert!((without / expected - 1.0).abs() < 0.06, "{without}, {expected}");
}

#[test]
fn queues_that_look_around_beat_the_one_that_does_not() {
    let rate = |queue: DiskQueue| {
        let mut machine = machine(&disk(queue), TIB);
        2000.0 * 1e9 / closed(&mut machine, 32, 2000, anywhere(TIB, 4096, 1.0)) as f64
    };
    let (fifo, elevator, native) =
        (rate(DiskQueue::Fifo), rate(DiskQueue::Elevator), rate(DiskQueue::Native));
    assert!(elevator > 1.4 * fifo, "{fifo} {elevator}");
    assert!(native > 2.0 * fifo, "{fifo} {native}");
}

#[test]
fn a_write_buffer_takes_writes_at_once_until_it_is_full() {
    let mut document = disk(DiskQueue::Native);
    if let Some(disk) = &mut document.disk {
        disk.write_buffer_bytes = MIB;
    }
    let mut machine = machine(&document, TIB);
    let first = closed(&mut machine, 1, 200, anywhere(TIB, 4096, 0.0)) / 200;
    assert!(first < 300_000, "{first} ns each");
    let later = closed(&mut machine, 1, 2000, anywhere(TIB, 4096, 0.0)) / 2000;
    assert!(later > 2_000_000, "the platter's rate in the end: {later} ns each");
}

/// Ends of writes to `turn` places in turn, eight at once, once the buffer is full.
fn gaps_ns(turn: u64) -> Vec<u64> {
    let mut document = disk(DiskQueue::Elevator);
    if let Some(disk) = &mut document.disk {
        disk.write_buffer_bytes = MIB;
    }
    let mut machine = machine(&document, TIB);
    let place = |number: u64| (number * 7919 % turn) * (TIB / turn) / 4096 * 4096;
    let write = |number: u64| crate::Request {
        from_bytes: place(number),
        bytes: 4096,
        write: true,
        worker: 0,
        safety: crate::Safety::None,
    };
    for slot in 0..8 {
        machine.submit(0, slot, &write(slot));
    }
    let mut ends = vec![0];
    for number in 8..4000 {
        let end = machine.next_end(u64::MAX >> 1).unwrap_or_else(|| unreachable!());
        ends.push(end.at_ns);
        machine.submit(end.at_ns, end.token, &write(number));
    }
    ends.windows(2).skip(2000).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn a_full_write_buffer_takes_the_next_as_soon_as_one_has_left() {
    let gaps = gaps_ns(100_000);
    let longest = gaps.iter().max().copied().unwrap_or(0);
    assert!(longest < 60_000_000, "no write waits for a whole round of the arm: {longest} ns");
}

#[test]
fn what_is_written_again_while_it_waits_in_the_buffer_takes_no_room() {
    let mean = |gaps: Vec<u64>| gaps.iter().sum::<u64>() / gaps.len() as u64;
    let (few, many) = (mean(gaps_ns(200)), mean(gaps_ns(100_000)));
    assert!(few * 10 < many, "{few} and {many} ns");
}
