//! Small parts against their closed cases.

use crate::document::{
    Bucket, Document, Flash, Neighbour, Network, PolicyName, Server, ServiceShape, Tier,
    TierWrites, Tokens, Volume,
};
use crate::machine::Machine;
use crate::sample::{MIB, anywhere, cached, closed, machine, request, station};

/// So many servers that each take so long.
fn servers(count: u32, us: f64) -> Document {
    let mut document = station(ServiceShape::Constant);
    if let Some(station) = &mut document.station {
        (station.servers, station.read_us, station.write_us) = (count, us, us);
    }
    document
}

fn per_s(machine: &mut Machine, slots: u64, ends: u64, bytes: u64, read_frac: f64) -> f64 {
    ends as f64 * 1e9 / closed(machine, slots, ends, anywhere(64 * MIB, bytes, read_frac)) as f64
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.03, "{found}, {expected}");
}

fn network() -> Network {
    Network { latency_us: 200.0, mb_s: 100.0, window: 64, loss_frac: 0.0, retransmit_ms: 200.0 }
}

#[test]
fn a_network_takes_its_latency_its_bytes_and_no_more_than_its_window() {
    let over = |network| Document { network: Some(network), ..servers(64, 0.0) };
    let lone = per_s(&mut machine(&over(network()), 64 * MIB), 1, 1000, 8192, 1.0);
    near(1e6 / lone, 200.0 + (8192.0 + 256.0) / 100.0);
    let full = per_s(&mut machine(&over(network()), 64 * MIB), 64, 4000, 8192, 0.0);
    near(full * (8192.0 + 128.0) / 1e6, 100.0);
    let narrow = Network { window: 2, latency_us: 10_000.0, ..network() };
    near(per_s(&mut machine(&over(narrow), 64 * MIB), 32, 1000, 512, 1.0), 200.0);
}

#[test]
fn a_lost_request_is_sent_again() {
    let lossy = Network { loss_frac: 0.01, ..network() };
    let document = Document { network: Some(lossy), ..servers(64, 0.0) };
    let lone = per_s(&mut machine(&document, 64 * MIB), 1, 20_000, 512, 1.0);
    // A hundredth waits 200 ms, a hundredth of these 400 ms more.
    let expected = 200.0 + 768.0 / 100.0 + 0.01 * 200e3 + 0.0001 * 400e3;
    assert!((1e6 / lone / expected - 1.0).abs() < 0.15, "{}, {expected}", 1e6 / lone);
}

#[test]
fn a_servers_threads_bound_what_its_disks_do_at_once() {
    let server = Server { threads: 4, overhead_us: 0.0, cache: None };
    let free = Network { latency_us: 0.0, mb_s: 1e6, ..network() };
    let document = Document { network: Some(free), server: Some(server), ..servers(64, 1000.0) };
    near(per_s(&mut machine(&document, 64 * MIB), 32, 4000, 512, 1.0), 4000.0);
}

#[test]
fn a_servers_memory_serves_what_it_holds() {
    let cache = cached(servers(1, 1000.0)).cache;
    let server = Server { threads: 64, overhead_us: 0.0, cache };
    let free = Network { latency_us: 0.0, mb_s: 1e6, ..network() };
    let document = Document { network: Some(free), server: Some(server), ..servers(1, 1000.0) };
    let mut machine = machine(&document, 16 * MIB);
    let mut draw = anywhere(16 * MIB, 4096, 1.0);
    machine.warm(4096, || draw(0));
    let ns = closed(&mut machine, 8, 4000, anywhere(16 * MIB, 4096, 1.0));
    // Three quarters are missed, a millisecond each.
    assert!((4000.0 * 1e9 / ns as f64 / (1000.0 / 0.75) - 1.0).abs() < 0.05, "{ns}");
}

fn bucket(tokens: Tokens, per_s: f64, depth: f64) -> Bucket {
    Bucket { tokens, per_s, depth, begin_frac: 1.0, unit_bytes: 16 << 10 }
}

fn limited(buckets: Vec<Bucket>) -> Document {
    let volume = Volume { latency_us: 0.0, latency_cv: 0.0, buckets };
    Document { volume: Some(volume), ..servers(4096, 0.0) }
}

#[test]
fn a_bucket_lets_through_its_depth_at_once_and_its_rate_in_the_long_run() {
    let document = limited(vec![bucket(Tokens::Requests, 1000.0, 500.0)]);
    let mut machine = machine(&document, 64 * MIB);
    assert!(per_s(&mut machine, 4, 490, 4096, 0.5) > 1e5);
    per_s(&mut machine, 4, 100, 4096, 0.5);
    near(per_s(&mut machine, 4, 5000, 4096, 0.5), 1000.0);
    // 64 KiB are four tokens of 16 KiB.
    near(per_s(&mut machine, 4, 2000, 65_536, 0.5), 250.0);
}

#[test]
fn requests_and_bytes_are_counted_apart_and_the_stricter_holds() {
    let buckets =
        || vec![bucket(Tokens::Requests, 1000.0, 1.0), bucket(Tokens::Bytes, 10e6, 65_536.0)];
    let small = per_s(&mut machine(&limited(buckets()), 64 * MIB), 8, 3000, 4096, 1.0);
    near(small, 1000.0);
    let large = per_s(&mut machine(&limited(buckets()), 64 * MIB), 8, 1000, 65_536, 1.0);
    near(large * 65_536.0, 10e6);
}

fn tenant(requests_per_s: f64, processor_frac: f64) -> Neighbour {
    Neighbour {
        mean_busy_s: 1e6,
        mean_idle_s: 1e-3,
        requests_per_s,
        size_bytes: 4096,
        read_frac: 0.5,
        processor_frac,
    }
}

#[test]
fn a_neighbour_takes_his_part_of_a_shared_device_and_of_the_processors() {
    let document = Document { neighbour: Some(tenant(500.0, 0.0)), ..servers(1, 1000.0) };
    let rate = per_s(&mut machine(&document, 64 * MIB), 32, 4000, 512, 1.0);
    assert!((rate / 500.0 - 1.0).abs() < 0.08, "{rate}");
    let mut document = Document { neighbour: Some(tenant(0.0, 0.75)), ..servers(64, 0.0) };
    (document.processors.count, document.processors.read_overhead_us) = (1, 100.0);
    near(per_s(&mut machine(&document, 64 * MIB), 4, 4000, 512, 1.0), 2500.0);
}

#[test]
fn an_idle_neighbour_comes_back() {
    let by_turns = Neighbour { mean_busy_s: 1.0, mean_idle_s: 3.0, ..tenant(0.0, 0.9) };
    let mut document = Document { neighbour: Some(by_turns), ..servers(64, 0.0) };
    (document.processors.count, document.processors.read_overhead_us) = (1, 100.0);
    let mut machine = machine(&document, 64 * MIB);
    let rate = per_s(&mut machine, 1, 2_000_000, 512, 1.0);
    // A tenth of the speed in a quarter of the time.
    assert!((rate / (10_000.0 * (0.75 + 0.25 * 0.1)) - 1.0).abs() < 0.15, "{rate}");
}

fn tiered(writes: TierWrites) -> Document {
    let flash = Flash {
        capacity_bytes: 1 << 30,
        channels: 4,
        dies_per_channel: 4,
        planes: 1,
        page_bytes: 4096,
        read_us: 50.0,
        program_us: 200.0,
        channel_mb_s: 1000.0,
        interface_mb_s: 1000.0,
        overhead_us: 0.0,
        write_buffer_bytes: MIB,
        power_safe: true,
        slc: None,
        spare_frac: 0.1,
        aged_frac: 0.0,
    };
    let tier = Tier {
        block_bytes: 4096,
        capacity_bytes: 16 * MIB,
        policy: PolicyName::Lru,
        writes,
        sequential_cutoff_bytes: 0,
        dirty_max_frac: 0.5,
        flash,
    };
    Document { tier: Some(tier), ..servers(1, 10_000.0) }
}

#[test]
fn flash_before_a_slow_device_serves_what_it_holds() {
    let mut machine = machine(&tiered(TierWrites::Back), 64 * MIB);
    let mut draw = anywhere(64 * MIB, 4096, 1.0);
    machine.warm(4096, || draw(0));
    let rate = per_s(&mut machine, 8, 4000, 4096, 1.0);
    assert!((rate / (100.0 / 0.75) - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn writes_end_in_the_flash_until_too_much_of_it_is_dirty_or_go_through_it() {
    let mut back = machine(&tiered(TierWrites::Back), 64 * MIB);
    let mut draw = anywhere(64 * MIB, 4096, 0.0);
    assert!(closed(&mut back, 1, 1000, &mut draw) < 300_000_000);
    closed(&mut back, 1, 4000, &mut draw);
    let later_ns = closed(&mut back, 1, 1000, &mut draw);
    assert!(later_ns > 3_000_000_000, "{later_ns}");
    let mut through = machine(&tiered(TierWrites::Through), 64 * MIB);
    near(per_s(&mut through, 1, 500, 4096, 0.0), 100.0);
}

#[test]
fn a_long_run_goes_past_the_flash() {
    let mut document = tiered(TierWrites::Back);
    if let Some(tier) = &mut document.tier {
        tier.sequential_cutoff_bytes = 64 << 10;
    }
    let mut machine = machine(&document, 64 * MIB);
    let read_twice = |machine: &mut Machine| {
        let mut next = 0;
        let mut draw = |_| {
            next += 4096;
            request(next - 4096, 4096, false)
        };
        closed(machine, 1, 64, &mut draw)
    };
    let first = read_twice(&mut machine);
    let second = read_twice(&mut machine);
    // The sixteen pages before the cutoff came to stay.
    let saved = (first - second) / 10_000_000;
    assert!((15..=17).contains(&saved), "{saved}");
}
