//! What changes with virtual time: drift, bursts, writeback, run-to-run noise, think time.

use super::super::speed::MeanOne;
use super::super::truth::expected_throughput_mb_s;
use super::*;

fn mean_over_seeds(
    system: &SimulatedSystem,
    workload: &Workload,
    seeds: u64,
    from_s: u64,
    to_s: u64,
) -> f64 {
    let total: f64 = (0..seeds)
        .map(|seed| throughput(system, workload, seed, from_s * NS_PER_S, to_s * NS_PER_S))
        .sum();
    total / seeds as f64
}

fn with(section: &str, value: Value) -> SimulatedSystem {
    let mut document = plain_system();
    document[section] = value;
    read(&document)
}

fn assert_near(found: f64, truth: f64, slack: f64) {
    assert!((found / truth - 1.0).abs() < slack, "{found}, expected {truth}");
}

#[test]
fn a_drift_is_averaged_over_the_window() {
    let workload = workload(5e6, 32_768);
    let still = expected_throughput_mb_s(&read(&plain_system()), &workload, 0, 0);
    // From 1 h to 1.9 h the line falls from 0.5 to the floor of 0.05, then stays there.
    let bent = (0.9 * f64::midpoint(0.5, 0.05) + 1.1 * 0.05) / 2.0;
    for (shape, from_h, to_h, factor) in [
        ("exponential", 1, 1, 0.5),
        ("linear", 1, 1, 0.5),
        ("linear", 0, 1, 0.75),
        ("exponential", 0, 1, 0.5 / std::f64::consts::LN_2),
        ("linear", 1, 3, bent),
    ] {
        let system = with("drift", json!({"shape": shape, "rate_per_hour": -0.5}));
        let (from_ns, to_ns) = (from_h * 3600 * NS_PER_S, to_h * 3600 * NS_PER_S);
        let truth = expected_throughput_mb_s(&system, &workload, from_ns, to_ns);
        assert_near(truth, still * factor, 1e-9);
    }
}

#[test]
fn a_step_is_one_speed_before_and_another_after() {
    let workload = workload(5e6, 32_768);
    let still = expected_throughput_mb_s(&read(&plain_system()), &workload, 0, 0);
    let system = with("drift", json!({"shape": "step", "at_s": 100.0, "factor": 0.4}));
    for (from_s, to_s, factor) in [
        (0, 0, 1.0),
        (99, 99, 1.0),
        (100, 100, 0.4),
        (0, 100, 1.0),
        (0, 400, 0.55),
        (200, 300, 0.4),
    ] {
        let (from_ns, to_ns) = (from_s * NS_PER_S, to_s * NS_PER_S);
        let truth = expected_throughput_mb_s(&system, &workload, from_ns, to_ns);
        assert_near(truth, still * factor, 1e-9);
    }
    let truth = expected_throughput_mb_s(&system, &workload, 80 * NS_PER_S, 120 * NS_PER_S);
    assert_near(mean_over_seeds(&system, &workload, 4, 80, 120), truth, 0.01);
}

#[test]
fn a_drifting_run_makes_the_mean_of_its_window() {
    let workload = workload(5e6, 32_768);
    let system = with("drift", json!({"rate_per_hour": -0.9}));
    let truth = expected_throughput_mb_s(&system, &workload, 600 * NS_PER_S, 700 * NS_PER_S);
    assert_near(mean_over_seeds(&system, &workload, 2, 600, 700), truth, 0.003);
}

#[test]
fn bursts_slow_a_run_by_their_share_of_time() {
    let system =
        with("bursts", json!({"mean_slow_s": 0.05, "mean_normal_s": 0.15, "slow_factor": 5.0}));
    let workload = workload(2e7, 32_768);
    let truth = expected_throughput_mb_s(&system, &workload, 0, 0);
    let still = expected_throughput_mb_s(&read(&plain_system()), &workload, 0, 0);
    assert_near(truth, still * (0.75 + 0.25 / 5.0), 1e-9);
    // 1600 s hold 8000 cycles: a standard error near 0.4%.
    assert_near(mean_over_seeds(&system, &workload, 8, 0, 200), truth, 0.012);
    for seed in 0..8 {
        assert_near(throughput(&system, &workload, seed, 0, 100 * NS_PER_S), truth, 0.08);
    }
}

/// The stationary start: a window shorter than an episode is typical too.
#[test]
fn short_windows_see_bursts_as_often_as_long_ones() {
    let system =
        with("bursts", json!({"mean_slow_s": 4.0, "mean_normal_s": 4.0, "slow_factor": 4.0}));
    let workload = workload(5e6, 32_768);
    let truth = expected_throughput_mb_s(&system, &workload, 0, 0);
    let total: f64 =
        (0..4000).map(|seed| throughput(&system, &workload, seed, 0, NS_PER_S / 20)).sum();
    assert_near(total / 4000.0, truth, 0.03);
}

#[test]
fn a_flusher_slows_cached_writes_while_it_runs() {
    let system = with("flusher", json!({"period_s": 30.0, "run_s": 10.0, "slow_factor": 4.0}));
    let mut workload = workload(5e6, 32_768);
    workload.read_frac = 0.0;
    let still = expected_throughput_mb_s(&read(&plain_system()), &workload, 0, 0);
    let at = |from_s: u64, to_s: u64| {
        expected_throughput_mb_s(&system, &workload, from_s * NS_PER_S, to_s * NS_PER_S)
    };
    assert_near(at(0, 0), still * (2.0 / 3.0 + 1.0 / 12.0), 1e-9);
    assert_near(at(60, 65), still / 4.0, 1e-9);
    assert_near(at(75, 85), still, 1e-9);
    assert_near(at(65, 75), still * (0.5 + 0.125), 1e-9);
    assert_near(mean_over_seeds(&system, &workload, 1, 65, 75), at(65, 75), 0.01);
    workload.unique_bytes = 20_000_000;
    let missing = expected_throughput_mb_s(&system, &workload, 60 * NS_PER_S, 70 * NS_PER_S);
    assert_near(mean_over_seeds(&system, &workload, 20, 60, 70), missing, 0.015);
    workload.read_frac = 1.0;
    let reads = |system: &SimulatedSystem| expected_throughput_mb_s(system, &workload, 0, 0);
    assert_near(reads(&system), reads(&read(&plain_system())), 1e-12);
}

#[test]
fn what_the_flusher_writes_shows_at_the_device() {
    let system = with("flusher", json!({"period_s": 30.0, "run_s": 10.0, "slow_factor": 1.0}));
    let mut run = SimulatedRun::new(&system, &workload(5e6, 32_768), 1, 0);
    let mut write = |at_s: u64, kind: Kind| {
        let request = Request {
            offset_bytes: 0,
            length_bytes: 7,
            kind,
            sequential: false,
            stream: 0,
            ..Request::NONE
        };
        run.service_ns(at_s * NS_PER_S, &request);
        run.device_bytes()
    };
    assert_eq!(write(5, Kind::Read), (0, 0), "a cached read is no affair of writeback");
    assert_eq!(write(9, Kind::Write), (0, 7));
    assert_eq!(write(11, Kind::Write), (0, 7), "it rests");
    assert_eq!(write(31, Kind::Write), (0, 14));
}

#[test]
fn run_to_run_noise_has_mean_one_and_the_stated_spread() {
    let system = with("noise", json!({"run_to_run_cv": 0.1}));
    let workload = workload(5e6, 32_768);
    let truth = expected_throughput_mb_s(&system, &workload, 0, 0);
    let ratios: Vec<f64> =
        (0..2000).map(|seed| throughput(&system, &workload, seed, 0, NS_PER_S) / truth).collect();
    let mean = ratios.iter().sum::<f64>() / 2000.0;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / 1999.0;
    assert!((mean - 1.0).abs() < 0.008, "mean {mean}");
    // 2000 runs: the spread has a standard error of 1.6%.
    assert!((variance.sqrt() - 0.1).abs() < 0.006, "spread {}", variance.sqrt());
}

#[test]
fn think_time_is_waited_at_the_speed_of_the_clock() {
    let mut document = plain_system();
    document["drift"] = json!({"rate_per_hour": -0.5});
    document["bursts"] = json!({"mean_slow_s": 0.2, "mean_normal_s": 0.2, "slow_factor": 3.0});
    document["noise"] = json!({"run_to_run_cv": 0.2});
    let system = read(&document);
    let mut workload = workload(5e6, 32_768);
    workload.think_time_s = 0.002;
    let truth = expected_throughput_mb_s(&system, &workload, 3600 * NS_PER_S, 3610 * NS_PER_S);
    // 600 runs of 10 s: run-to-run noise and bursts leave a standard error near 0.4%.
    assert_near(mean_over_seeds(&system, &workload, 600, 3600, 3610), truth, 0.014);
}

#[test]
fn think_time_takes_the_mean_over_run_to_run_noise() {
    let mut document = plain_system();
    document["noise"] = json!({"run_to_run_cv": 0.8});
    let mut workload = workload(5e6, 32_768);
    workload.think_time_s = 0.0004;
    let truth = expected_throughput_mb_s(&read(&document), &workload, 0, 0);
    let noise = MeanOne::new(0.8);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let drawn: f64 = (0..200_000).map(|_| 32_768.0 / (427.68 / noise.draw(&mut rng) + 400.0)).sum();
    assert_near(drawn / 2e5, truth, 0.005);
}
