//! Whole machines against closed cases.

use super::*;
use crate::document::{DiskQueue, ServiceShape};
use crate::io::End;
use crate::random::Random;
use crate::sample::{MIB, anywhere, cached, closed, disk, machine, request, station};

/// Mean time in an open queue in milliseconds, at so many arrivals a second.
fn mean_ms(shape: ServiceShape, rate_per_s: f64) -> f64 {
    let (mut machine, mut random) = (machine(&station(shape), MIB), Random::new(4));
    let (mut due_ns, mut total_ns, mut ended) = (0.0, 0.0, 0);
    for _ in 0..200_000 {
        due_ns += random.exponential() * 1e9 / rate_per_s;
        while let Some(End { at_ns: end_ns, token, .. }) = machine.next_end(due_ns as u64) {
            total_ns += (end_ns - token) as f64;
            ended += 1;
        }
        machine.submit(due_ns as u64, due_ns as u64, &request(0, 512, false));
    }
    total_ns / 1e6 / f64::from(ended)
}

#[test]
fn a_queue_is_as_long_as_m_m_1_and_m_d_1_say() {
    let service_ms = 1.000_512;
    for rate_per_s in [300.0, 700.0] {
        let load = rate_per_s * service_ms / 1e3;
        let exponential = mean_ms(ServiceShape::Exponential, rate_per_s);
        let expected = service_ms / (1.0 - load);
        assert!((exponential / expected - 1.0).abs() < 0.04, "{exponential}, {expected}");
        let constant = mean_ms(ServiceShape::Constant, rate_per_s);
        let expected = service_ms * (1.0 + load / (2.0 * (1.0 - load)));
        assert!((constant / expected - 1.0).abs() < 0.02, "{constant}, {expected}");
    }
}

#[test]
fn processors_are_shared_by_those_who_ask() {
    let mut document = station(ServiceShape::Constant);
    document.processors.count = 2;
    document.processors.read_overhead_us = 100.0;
    if let Some(station) = &mut document.station {
        (station.servers, station.read_us) = (64, 0.0);
    }
    let rate = |slots| {
        let mut machine = machine(&document, MIB);
        1e9 * 10_000.0 / closed(&mut machine, slots, 10_000, anywhere(MIB, 512, 1.0)) as f64
    };
    assert!((rate(1) / 10_000.0 - 1.0).abs() < 0.01);
    assert!((rate(8) / 20_000.0 - 1.0).abs() < 0.01);
}

#[test]
fn a_warm_cache_finds_what_fits_from_the_first_request_on() {
    let document = cached(station(ServiceShape::Constant));
    for (data, share) in [(4 * MIB, 1.0), (16 * MIB, 0.25)] {
        let mut machine = machine(&document, data);
        let mut draw = anywhere(data, 4096, 1.0);
        machine.warm(4096, || draw(0));
        assert_eq!(machine.resident_bytes(), 4 * MIB);
        closed(&mut machine, 4, 8000, draw);
        let read = machine.device_bytes().0 as f64 / (8000.0 * 4096.0);
        assert!((1.0 - read - share).abs() < 0.02, "{data}: {read} from below");
    }
}

#[test]
fn a_cold_machine_reads_everything_once() {
    let mut machine = machine(&cached(station(ServiceShape::Constant)), 2 * MIB);
    closed(&mut machine, 4, 20_000, anywhere(2 * MIB, 4096, 1.0));
    assert_eq!(machine.device_bytes(), (2 * MIB, 0));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let run = |seed| {
        let setting = Setting { data_bytes: 64 * MIB, seed, start_ns: 5 };
        let document = cached(station(ServiceShape::Exponential));
        let Ok(mut machine) = Machine::new(&document, setting) else { unreachable!() };
        closed(&mut machine, 8, 3000, anywhere(64 * MIB, 4096, 0.7))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn data_that_do_not_fit_are_refused() {
    let document = disk(DiskQueue::Fifo);
    let setting = Setting { data_bytes: (1 << 40) + 1, seed: 0, start_ns: 0 };
    let Err(told) = Machine::new(&document, setting) else { unreachable!() };
    assert!(told.0.contains("between 1 and the machine's 1099511627776"), "{told}");
}

#[test]
fn nothing_is_left_open_when_everybody_has_gone() {
    let mut machine = machine(&cached(disk(DiskQueue::Native)), 64 * MIB);
    let mut draw = anywhere(64 * MIB, 10_000, 0.5);
    for token in 0..3000 {
        machine.submit(token * 1000, token, &draw(token % 4));
    }
    let mut ended = 0;
    while machine.next_end(u64::MAX).is_some() {
        ended += 1;
    }
    assert_eq!((ended, machine.hub.open_ios()), (3000, 0));
}
