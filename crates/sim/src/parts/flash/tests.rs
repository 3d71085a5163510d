//! A flash drive against its closed cases.

use crate::document::{Document, Flash, ServiceShape, Slc};
use crate::machine::{Machine, Request, Safety};
use crate::sample::{MIB, anywhere, closed, in_a_row, machine, request, station};

const GIB: u64 = 1 << 30;

/// Sixteen chips of two planes of 16 KiB: 400 MB/s of programs, 10 GB/s of reads of the cells.
fn drive() -> Flash {
    Flash {
        capacity_bytes: 64 * GIB,
        channels: 4,
        dies_per_channel: 4,
        planes: 2,
        page_bytes: 16 << 10,
        read_us: 50.0,
        program_us: 1310.72,
        channel_mb_s: 1000.0,
        interface_mb_s: 3000.0,
        overhead_us: 10.0,
        write_buffer_bytes: 0,
        power_safe: false,
        slc: None,
        spare_frac: 0.28,
        aged_frac: 0.0,
    }
}

fn with(flash: Flash) -> Machine {
    let document =
        Document { station: None, flash: Some(flash), ..station(ServiceShape::Constant) };
    machine(&document, 32 * GIB)
}

#[test]
fn a_lone_read_takes_its_cells_its_channel_and_the_controller() {
    let ns = closed(&mut with(drive()), 1, 1000, anywhere(32 * GIB, 4096, 1.0)) / 1000;
    let expected = 50_000.0 + 4096.0 + 10_000.0;
    assert!((ns as f64 / expected - 1.0).abs() < 0.01, "{ns}, {expected}");
}

#[test]
fn deep_queues_reach_the_chips_rate_and_long_reads_the_links() {
    let iops = 40_000.0 * 1e9
        / closed(&mut with(drive()), 512, 40_000, anywhere(32 * GIB, 4096, 1.0)) as f64;
    assert!((0.9 * 320_000.0..320_001.0).contains(&iops), "{iops}");
    let ns = closed(&mut with(drive()), 8, 2000, in_a_row(MIB, false));
    let mb_s = 2000.0 * MIB as f64 * 1e3 / ns as f64;
    assert!((mb_s / 3000.0 - 1.0).abs() < 0.05, "{mb_s}");
}

/// MB/s of each 64 MiB written one after the other.
fn rates(drive: &mut Machine, pieces: u64) -> Vec<f64> {
    let mut draw = in_a_row(MIB, true);
    let mut rate = |_| 64.0 * MIB as f64 * 1e3 / closed(drive, 16, 64, &mut draw) as f64;
    (0..pieces).map(&mut rate).collect()
}

#[test]
fn the_cliff_is_where_the_one_bit_cells_are_full() {
    let slc = Slc { capacity_bytes: GIB, program_us: 327.68, fold_mb_s: 0.0, begin_frac: 0.0 };
    let found = rates(&mut with(Flash { slc: Some(slc.clone()), ..drive() }), 32);
    let fast = found.iter().take_while(|&&rate| rate > 800.0).count();
    assert!((14..=16).contains(&fast), "{fast} times 64 MiB of 1 GiB: {found:?}");
    assert!((found[5] / 1600.0 - 1.0).abs() < 0.1 && (found[25] / 400.0 - 1.0).abs() < 0.1);
    let half = Slc { begin_frac: 0.5, ..slc };
    let found = rates(&mut with(Flash { slc: Some(half), ..drive() }), 32);
    let fast = found.iter().take_while(|&&rate| rate > 800.0).count();
    assert!((6..=8).contains(&fast), "{fast}");
}

#[test]
fn an_idle_drive_empties_its_one_bit_cells() {
    let slc = Slc { capacity_bytes: GIB, program_us: 327.68, fold_mb_s: 100.0, begin_frac: 1.0 };
    let mut drive = with(Flash { slc: Some(slc), ..drive() });
    let before = rates(&mut drive, 1);
    let later_ns = drive.now_ns() + 20_000_000_000;
    while drive.next_end(later_ns).is_some() {}
    drive.submit(later_ns, 0, &request(0, 4096, true));
    while drive.next_end(u64::MAX).is_some() {}
    let after = rates(&mut drive, 1);
    assert!(before[0] < 500.0 && after[0] > 1200.0, "{before:?} {after:?}");
}

#[test]
fn a_buffer_takes_writes_at_the_links_rate_until_it_is_full() {
    let mut drive = with(Flash { write_buffer_bytes: 256 * MIB, ..drive() });
    let found = rates(&mut drive, 12);
    assert!(found[0] > 1500.0 && found[1] > 1500.0, "{found:?}");
    assert!((found[11] / 400.0 - 1.0).abs() < 0.15, "{found:?}");
}

#[test]
fn a_safe_write_waits_for_the_cells_unless_capacitors_hold_it() {
    let took = |power_safe| {
        let mut drive = with(Flash { write_buffer_bytes: MIB, power_safe, ..drive() });
        drive.submit(0, 0, &Request { safety: Safety::Through, ..request(0, 4096, true) });
        drive.next_end(u64::MAX).map_or(0, |end| end.at_ns)
    };
    assert!(took(false) > 1_310_000, "{}", took(false));
    assert!(took(true) < 20_000, "{}", took(true));
}

#[test]
fn a_drive_that_was_overwritten_at_random_writes_more_slowly() {
    let rate = |aged_frac| {
        let mut drive =
            with(Flash { capacity_bytes: 32 * GIB, spare_frac: 0.1, aged_frac, ..drive() });
        let ns = closed(&mut drive, 64, 60_000, anywhere(32 * GIB, 32 << 10, 0.0));
        60_000.0 * 32.768e3 * 1e3 / ns as f64
    };
    let (fresh, aged) = (rate(0.0), rate(2.0));
    assert!((fresh / 400.0 - 1.0).abs() < 0.1, "{fresh}");
    // Four to five times as much is written: see what greedy collection copies.
    assert!((0.15..0.35).contains(&(aged / fresh)), "{fresh} {aged}");
}
