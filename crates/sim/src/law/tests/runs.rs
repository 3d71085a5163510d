//! Long runs agree with the closed form; the same seed gives the same run.

use super::super::truth::{
    boundaries, expected_throughput_mb_s, service_means_ns, waiting_throughput_mb_s,
};
use super::*;

/// Bytes over time of one worker, with its standard error as a share of it.
fn long_run(system: &SimulatedSystem, workload: &Workload, seed: u64, count: u32) -> (f64, f64) {
    long_waiting_run(system, workload, WriteSync::None {}, seed, count)
}

fn long_waiting_run(
    system: &SimulatedSystem,
    workload: &Workload,
    sync: WriteSync,
    seed: u64,
    count: u32,
) -> (f64, f64) {
    let mut requests = Requests::new(workload, seed);
    let mut run = SimulatedRun::new(system, workload, seed, 0).waiting(sync);
    let (mut bytes, mut total_ns, mut squares, mut now_ns) = (0.0, 0.0, 0.0, 0);
    for _ in 0..count {
        let request = requests.draw();
        let taken_ns = run.service_ns(now_ns, &request);
        now_ns += taken_ns;
        bytes += request.length_bytes as f64;
        total_ns += taken_ns as f64;
        squares += (taken_ns as f64).powi(2);
    }
    let mean_ns = total_ns / f64::from(count);
    let spread = (squares / f64::from(count) - mean_ns * mean_ns).max(0.0).sqrt() / mean_ns;
    let slots = f64::from(workload.process_num * workload.queue_depth);
    let error = (spread + 0.3) / f64::from(count).sqrt();
    (slots * 1e3 * bytes / total_ns, error)
}

/// A system in which every section that touches service times is drawn at random.
fn random_system(rng: &mut Xoshiro256PlusPlus) -> Value {
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.random::<f64>());
    let near = between(1e6, 1e8) as u64;
    let far = near * between(3.0, 20.0) as u64 + 1;
    let shapes = ["uniform", "step", "smeared"];
    let policies = ["write_back", "write_back", "write_through"];
    let level = |capacity: u64, shape: f64, policy: f64, cost: f64, write_share: f64| {
        let shape = shapes[shape as usize];
        let mut level = json!({
            "name": "level", "read_capacity_bytes": capacity,
            "write_capacity_bytes": (capacity as f64 * write_share) as u64,
            "shape": shape, "write_policy": policies[policy as usize],
            "write_overhead_us": cost * 50.0, "read_mb_s": 400.0 / cost, "channels": 3,
        });
        if shape == "smeared" {
            level["smear_width"] = json!(0.1 * cost);
        }
        level
    };
    let mut pick = || between(1.0, 4.0) - 1.0;
    let choices: Vec<f64> = (0..6).map(|_| pick()).collect();
    json!({
        "meta": {"name": "random"},
        "copy": {"read_overhead_us": between(20.0, 200.0), "write_overhead_us": 90.0,
                 "read_mb_s": between(50.0, 500.0), "write_mb_s": 120.0, "processors": 2},
        "cache": [level(near, choices[0], choices[1], between(0.5, 2.0), between(0.2, 1.0)),
                  level(far, choices[2], choices[3], between(0.5, 2.0), between(0.2, 1.0))],
        "network": {"latency_us": between(10.0, 300.0), "mb_s": 150.0,
                    "after_level": choices[4] as u32 % 3},
        "device": {"disks": 1 + choices[5] as u32 * 2, "capacity_bytes": far * 10,
                   "seek_min_ms": between(0.05, 0.5), "seek_span_ms": between(0.1, 2.0),
                   "rotation_ms": between(0.1, 2.0), "read_mb_s": between(20.0, 100.0),
                   "write_mb_s": 30.0, "read_overhead_us": 50.0, "sequential_penalty_us": 100.0,
                   "stripe_unit_bytes": 65536, "log_structured": choices[0] < 0.5,
                   "write_penalty": between(1.0, 2.0)},
        "growth": {"reference_bytes": 1_000_000, "exponent": between(0.001, 0.1)},
        "noise": {"service_cv": between(0.01, 0.5)},
    })
}

fn random_workload(rng: &mut Xoshiro256PlusPlus) -> Workload {
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.random::<f64>());
    let mut workload = workload(between(5e5, 5e9), between(2e3, 5e5) as u64);
    workload.process_num = between(1.0, 9.0) as u32;
    workload.queue_depth = between(1.0, 3.0) as u32;
    workload.read_frac = rng.random();
    workload.seq_frac = rng.random();
    workload
}

#[test]
fn random_systems_run_as_fast_as_the_truth_says() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20_260_730);
    for case in 0..40 {
        let document = random_system(&mut rng);
        let (system, workload) = (read(&document), random_workload(&mut rng));
        let truth = expected_throughput_mb_s(&system, &workload, 0, 0);
        let (found, error) = long_run(&system, &workload, case, 60_000);
        let off = (found / truth - 1.0).abs();
        assert!(
            off < 4.0 * error,
            "case {case}: {found} MB/s, expected {truth}, off by {off}, error {error}\n\
             {document}\n{workload:?}"
        );
    }
}

#[test]
fn a_long_run_comes_within_three_thousandths() {
    let mut document = plain_system();
    document["noise"] = json!({"service_cv": 0.3});
    let system = read(&document);
    for (seed, unique_bytes) in [(1, 5e6), (2, 2e7), (3, 5e8)] {
        let workload = workload(unique_bytes, 32_768);
        let truth = expected_throughput_mb_s(&system, &workload, 0, 0);
        let (found, _) = long_run(&system, &workload, seed, 1_000_000);
        assert!((found / truth - 1.0).abs() < 0.003, "{unique_bytes}: {found}, expected {truth}");
    }
}

/// Every term by hand: 10 000 bytes, 20 MB touched, capacity 10 MB, 1 GB of disk.
#[test]
fn the_closed_form_agrees_with_a_calculation_by_hand() {
    let system = read(&plain_system());
    let mut workload = workload(2e7, 10_000);
    workload.read_frac = 1.0;
    let copy_us = 100.0 + 10_000.0 / 100.0;
    let seek_us = 200.0 + 1000.0 * (8.0 / 15.0) * (0.02_f64).sqrt();
    let device_us = 10_000.0 / 20.0 + 0.5 * (seek_us + 500.0);
    let by_hand_us = copy_us + 0.5 * device_us;
    let (read_ns, _) = service_means_ns(&system, &workload);
    assert!((read_ns / (by_hand_us * 1e3) - 1.0).abs() < 1e-12, "{read_ns}, {by_hand_us}");
    let rate = expected_throughput_mb_s(&system, &workload, 0, 0);
    assert!((rate * by_hand_us / 10_000.0 - 1.0).abs() < 1e-12);
}

/// 10 000 bytes and 40 MB touched: of the writes, a quarter hit the second level, none the first.
#[test]
fn writes_pay_what_each_section_says() {
    let mut document = plain_system();
    document["copy"]["write_overhead_us"] = json!(30.0);
    document["copy"]["write_mb_s"] = json!(50.0);
    document["cache"][0]["write_policy"] = json!("write_through");
    document["cache"].as_array_mut().unwrap().push(json!({
        "name": "controller", "read_capacity_bytes": 30_000_000,
        "write_capacity_bytes": 10_000_000, "write_overhead_us": 7.0, "write_mb_s": 250.0,
    }));
    document["network"] = json!({"latency_us": 11.0, "mb_s": 125.0, "after_level": 1});
    document["device"]["write_overhead_us"] = json!(70.0);
    document["device"]["write_penalty"] = json!(1.5);
    document["growth"] = json!({"reference_bytes": 10_000_000, "exponent": 0.5});
    let mut workload = workload(4e7, 10_000);
    workload.seq_frac = 1.0;
    document["device"]["sequential_penalty_us"] = json!(5.0);
    let always_us = 30.0 + 200.0 + 11.0 + 80.0;
    let hit_us = 7.0 + 40.0;
    let miss_us = 1.5 * (70.0 + 500.0 + 5.0);
    let (_, scan_ns) = service_means_ns(&read(&document), &workload);
    assert!((scan_ns / (2e3 * (always_us + miss_us)) - 1.0).abs() < 1e-12, "{scan_ns}");
    document["device"]["log_structured"] = json!(true);
    workload.seq_frac = 0.5;
    let (_, mixed_ns) = service_means_ns(&read(&document), &workload);
    let by_hand_us = always_us + 0.25 * hit_us + 0.75 * 1.5 * (70.0 + 500.0);
    assert!((mixed_ns / (2e3 * by_hand_us) - 1.0).abs() < 1e-12, "{mixed_ns}");
}

/// 10 000 bytes, all in the cache: a write that waits pays copy and disk, one that an `fsync`
/// follows pays the copy at once and the disk with its turn.
#[test]
fn writes_that_wait_cost_what_the_disk_costs() {
    let mut document = plain_system();
    document["network"] = json!({"latency_us": 11.0, "mb_s": 125.0, "after_level": 1});
    let system = read(&document);
    let mut workload = workload(5e6, 10_000);
    (workload.read_frac, workload.seq_frac) = (0.0, 0.0);
    let rate = |sync| waiting_throughput_mb_s(&system, &workload, sync, 0, 0);
    let copy_us = 100.0 + 10_000.0 / 100.0;
    let seek_us = 200.0 + 1000.0 * (8.0 / 15.0) * (0.005_f64).sqrt();
    let disk_us = 11.0 + 80.0 + 10_000.0 / 20.0 + seek_us + 500.0;
    let near = |found: f64, us: f64| (found * us / 10_000.0 - 1.0).abs() < 1e-9;
    assert!(near(rate(WriteSync::None {}), copy_us), "{}", rate(WriteSync::None {}));
    for sync in [
        WriteSync::Dsync {},
        WriteSync::Fsync { each: 1, data_only: false },
        WriteSync::Fsync { each: 64, data_only: false },
    ] {
        assert!(near(rate(sync), copy_us + disk_us), "{sync:?}: {}", rate(sync));
    }
}

#[test]
fn random_systems_run_as_fast_as_the_truth_says_when_writes_wait() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20_261_121);
    for case in 0..40 {
        let document = random_system(&mut rng);
        let (system, workload) = (read(&document), random_workload(&mut rng));
        let each = 1 << (case % 6);
        let sync = if case % 4 == 0 {
            WriteSync::Dsync {}
        } else {
            WriteSync::Fsync { each, data_only: false }
        };
        let truth = waiting_throughput_mb_s(&system, &workload, sync, 0, 0);
        let (found, error) = long_waiting_run(&system, &workload, sync, case, 60_000);
        let off = (found / truth - 1.0).abs();
        assert!(
            off < 4.0 * error,
            "case {case}, {sync:?}: {found} MB/s, expected {truth}, off by {off}, error {error}\n\
             {document}\n{workload:?}"
        );
    }
}

#[test]
fn every_byte_that_an_fsync_covers_is_counted_on_the_device() {
    let system = read(&plain_system());
    let mut workload = workload(5e6, 10_000);
    workload.read_frac = 0.0;
    for (sync, writes) in
        [(WriteSync::Dsync {}, 10), (WriteSync::Fsync { each: 4, data_only: false }, 8)]
    {
        let mut run = SimulatedRun::new(&system, &workload, 1, 0).waiting(sync);
        let request = Request {
            offset_bytes: 0,
            length_bytes: 7,
            kind: Kind::Write,
            sequential: false,
            stream: 0,
            piece_end_bytes: 0,
        };
        for _ in 0..10 {
            run.service_ns(0, &request);
        }
        assert_eq!(run.device_bytes(), (0, 7 * writes), "{sync:?}");
    }
}

#[test]
fn boundaries_are_where_capacities_end_that_matter() {
    let ends = |level: Value| -> Vec<f64> {
        let mut document = plain_system();
        document["cache"] = json!([level]);
        boundaries(&read(&document)).iter().map(|boundary| boundary.bytes).collect()
    };
    let level = |write: u64, policy: &str| {
        json!({"name": "cache", "read_capacity_bytes": 4000, "write_capacity_bytes": write,
               "write_policy": policy})
    };
    assert_eq!(ends(level(4000, "write_back")), [4000.0]);
    assert_eq!(ends(level(1000, "write_back")), [1000.0, 4000.0]);
    assert_eq!(ends(level(1000, "write_through")), [4000.0]);
    let merged = ends(level(3600, "write_back"));
    assert!(merged.len() == 1 && (merged[0] - (3600.0_f64 * 4000.0).sqrt()).abs() < 1e-6);
}

/// n requests at d single disks: throughput d n / (n + d - 1) times that of one.
#[test]
fn concurrency_speeds_disks_up_by_the_balanced_network() {
    let mut document = plain_system();
    document["cache"] = json!([]);
    document["copy"] = json!({"read_overhead_us": 0.0, "read_mb_s": 1e7});
    document["device"]["disks"] = json!(4);
    let system = read(&document);
    let mut workload = workload(1e8, 10_000);
    let one = expected_throughput_mb_s(&system, &workload, 0, 0);
    for processes in [1_u32, 2, 4, 16] {
        workload.process_num = processes;
        let n = f64::from(processes);
        let ratio = expected_throughput_mb_s(&system, &workload, 0, 0) / one;
        assert!((ratio - 4.0 * n / (n + 3.0)).abs() < 1e-3, "{processes}: {ratio}");
    }
}

#[test]
fn many_processes_never_exceed_what_the_disks_can_transfer() {
    let mut document = plain_system();
    document["cache"] = json!([]);
    document["device"]["disks"] = json!(4);
    document["device"]["stripe_unit_bytes"] = json!(65536);
    document["copy"]["processors"] = json!(4096);
    let system = read(&document);
    for size_mean in [4096, 65_536, 1_000_000] {
        let mut workload = workload(5e8, size_mean);
        workload.seq_frac = 1.0;
        workload.process_num = 1024;
        let rate = expected_throughput_mb_s(&system, &workload, 0, 0);
        assert!(rate > 70.0 && rate < 80.0, "{size_mean}: {rate} of 80 MB/s");
    }
}

#[test]
fn a_whole_sequential_scan_of_more_than_the_cache_never_hits() {
    let system = read(&plain_system());
    let mut workload = workload(1.2e7, 32_768);
    workload.seq_frac = 1.0;
    let (read_ns, _) = service_means_ns(&system, &workload);
    let missed_us = 100.0 + 32_768.0 / 100.0 + 32_768.0 / 20.0;
    assert!((read_ns / (missed_us * 1e3) - 1.0).abs() < 1e-12, "{read_ns}");
    workload.unique_bytes = 9_000_000;
    assert!(service_means_ns(&system, &workload).0 < 0.3 * read_ns);
}

#[test]
fn a_seed_decides_everything() {
    let mut document = plain_system();
    document["noise"] = json!({"service_cv": 0.5, "run_to_run_cv": 0.1});
    document["bursts"] = json!({"mean_slow_s": 0.1, "mean_normal_s": 0.5, "slow_factor": 3.0});
    let system = read(&document);
    let workload = workload(5e7, 8192);
    let rate = |seed| throughput(&system, &workload, seed, 0, 2 * NS_PER_S);
    assert_eq!(rate(7).to_bits(), rate(7).to_bits());
    assert_ne!(rate(7).to_bits(), rate(8).to_bits());
}

#[test]
fn device_bytes_are_those_of_requests_that_the_cache_did_not_serve() {
    let system = read(&plain_system());
    let count = |workload: &Workload| {
        let mut run = SimulatedRun::new(&system, workload, 3, 0);
        let mut requests = Requests::new(workload, 4);
        let mut asked = 0;
        for _ in 0..50_000 {
            let request = requests.draw();
            asked += request.length_bytes;
            run.service_ns(0, &request);
        }
        let (read, written) = run.device_bytes();
        ((read + written) as f64 / asked as f64, run.cache_resident_bytes())
    };
    assert_eq!(count(&workload(9e6, 8192)), (0.0, 9_000_000));
    let (share, resident) = count(&workload(4e7, 8192));
    assert!((share - 0.75).abs() < 0.01, "{share}");
    assert_eq!(resident, 10_000_000);
}
