//! Open loops in virtual time against queueing theory, and what a closed loop does not show.

use crate::setting::measurement;
use leadline_base::events::Reporter;
use leadline_base::request::Request;
use leadline_engine::run::offered::missed_rate;
use leadline_engine::run::recorder::OpenTally;
use leadline_engine::target::virtual_time::{VirtualDevice, VirtualRun, simulate};
use leadline_wire::event::measure::FellShort;
use leadline_wire::job::measure::MeasureJob;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::{Value, json};

const MS_NS: u64 = 1_000_000;
const START_NS: u64 = 3_000_000_000;

/// How long a device takes for a request that it begins at a given moment.
enum Law {
    Fixed(u64),
    Exponential(f64, Xoshiro256PlusPlus),
    /// 100 µs, but nothing is answered within the stretch.
    Stalling(u64, u64),
}

struct Device {
    law: Law,
    last_ns: u64,
}

impl VirtualDevice for Device {
    fn service_ns(&mut self, now_ns: u64, _: &Request) -> u64 {
        assert!(now_ns >= self.last_ns, "requests come in the order of the virtual clock");
        self.last_ns = now_ns;
        match &mut self.law {
            Law::Fixed(service_ns) => *service_ns,
            Law::Exponential(mean_ns, random) => {
                let service: f64 = Exp1.sample(random);
                (service * *mean_ns).round() as u64
            }
            Law::Stalling(from_ns, to_ns) => {
                let stalled = (*from_ns..*to_ns).contains(&(now_ns + 100_000));
                if stalled { *to_ns + 100_000 - now_ns } else { 100_000 }
            }
        }
    }

    fn cache_resident_bytes(&self) -> u64 {
        0
    }

    fn device_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

fn exponential(mean_ns: f64, seed: u64) -> Law {
    Law::Exponential(mean_ns, Xoshiro256PlusPlus::seed_from_u64(seed))
}

/// `(process_num, queue_depth)` slots.
fn job(arrivals: Value, slots: (u32, u32), warm_up_s: f64, window_s: f64, seed: u64) -> MeasureJob {
    let job = json!({
        "version": 1, "kind": "measure", "job_id": "j", "seed": seed,
        "target": {"kind": "simulated", "system": {}}, "backend": {"name": "simulated"},
        "workload": {
            "unique_bytes": 1 << 20, "size_mean": 4096, "size_dist": "fixed", "read_frac": 0.5,
            "seq_frac": 0.0, "process_num": slots.0, "queue_depth": slots.1,
        },
        "limits": {
            "warm_up_s_max": warm_up_s, "measure_s_min": window_s, "measure_s_max": window_s,
            "accuracy": 0.0, "total_s_max": 1e6,
        },
        "arrivals": arrivals,
    });
    measurement(&job)
}

fn poisson(rate_per_s: f64) -> Value {
    json!({"kind": "poisson", "rate_per_s": rate_per_s})
}

fn constant(rate_per_s: f64) -> Value {
    json!({"kind": "constant", "rate_per_s": rate_per_s})
}

fn run(job: &MeasureJob, law: Law) -> VirtualRun {
    let mut ignore = |_: &str| {};
    let mut device = Device { law, last_ns: 0 };
    simulate(&mut device, job, START_NS, &mut Reporter::new("j", &mut ignore)).unwrap()
}

fn open(run: &VirtualRun) -> &OpenTally {
    run.tally.open.as_ref().unwrap()
}

/// Mean of independent runs and its standard error.
fn over_seeds(measure: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=24).map(measure).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// The mean wait in the queue, in milliseconds, of `slots` servers of 1 ms at `load` per server.
fn agrees(name: &str, slots: (u32, u32), load: f64, law: impl Fn(u64) -> Law, theory_ms: f64) {
    let rate_per_s = load * 1e3 * f64::from(slots.0 * slots.1);
    let (mean, error) = over_seeds(|seed| {
        let run = run(&job(poisson(rate_per_s), slots, 2.0, 40.0, seed), law(seed));
        open(&run).due_to_submitted.mean_ns() * 1e-6
    });
    assert!(error < 0.03 * theory_ms, "{name}: too few requests to tell: ±{error}");
    assert!((mean - theory_ms).abs() < 3.5 * error, "{name}: {mean} ± {error} for {theory_ms}");
}

#[test]
fn one_server_of_fixed_time_keeps_poisson_arrivals_waiting_as_pollaczek_and_khinchine_say() {
    let load = 0.7;
    agrees("M/D/1", (1, 1), load, |_| Law::Fixed(MS_NS), load / (2.0 * (1.0 - load)));
}

#[test]
fn one_exponential_server_keeps_poisson_arrivals_waiting_as_theory_says() {
    let load = 0.7;
    agrees("M/M/1", (1, 1), load, |seed| exponential(1e6, seed), load / (1.0 - load));
}

#[test]
fn two_slots_share_one_queue_whether_of_one_issuer_or_of_two() {
    let load: f64 = 0.7;
    let erlang_c = 2.0 * load * load / (1.0 + load);
    let theory_ms = erlang_c / (2.0 * (1.0 - load));
    for slots in [(1, 2), (2, 1)] {
        agrees("M/M/2", slots, load, |seed| exponential(1e6, 100 + seed), theory_ms);
    }
}

#[test]
fn percentiles_of_the_response_are_those_of_its_exponential_law() {
    let (quantile_ms, error) = over_seeds(|seed| {
        let run = run(&job(poisson(500.0), (1, 1), 2.0, 60.0, seed), exponential(1e6, seed));
        open(&run).due_to_completed.quantile_ns(0.99) * 1e-6
    });
    let theory_ms = 100f64.ln() / 0.5;
    assert!((quantile_ms - theory_ms).abs() < 3.5 * error + 0.004 * theory_ms, "{quantile_ms}");
}

#[test]
fn every_slots_time_is_accounted_for_exactly_and_slices_hold_every_completion() {
    for (slots, rate_per_s) in [((1, 1), 600.0), ((4, 2), 6000.0), ((1, 3), 9000.0), ((4, 2), 3.0)]
    {
        let run = run(&job(poisson(rate_per_s), slots, 1.0, 5.0, 5), exponential(1e6, 6));
        let slots_ns = f64::from(slots.0 * slots.1) * (run.closed_ns - run.opened_ns) as f64;
        let accounted_ns = run.tally.waiting_ns() + run.tally.idle_ns() as f64;
        assert!((accounted_ns / slots_ns - 1.0).abs() < 1e-9, "{accounted_ns} of {slots_ns}");
        assert_eq!((run.tally.own_ns, run.tally.think_ns), (0, 0));
        let sliced: u64 = run.controller.window().iter().map(|slice| slice.operations).sum();
        assert_eq!(sliced, run.tally.operations());
        let offered = run.offered.unwrap();
        let unfinished = open(&run).due_to_completed.count() - run.tally.operations();
        assert!(offered.missed <= unfinished && offered.late_generator == 0);
    }
}

#[test]
fn requests_overtaken_by_shorter_ones_complete_in_the_order_of_time() {
    /// Every other request takes fifty times as long.
    struct Alternating(bool);
    impl VirtualDevice for Alternating {
        fn service_ns(&mut self, _: u64, _: &Request) -> u64 {
            self.0 = !self.0;
            if self.0 { 50 * MS_NS } else { MS_NS }
        }
        fn cache_resident_bytes(&self) -> u64 {
            0
        }
        fn device_bytes(&self) -> (u64, u64) {
            (0, 0)
        }
    }
    let mut ignore = |_: &str| {};
    let job = job(constant(100.0), (1, 8), 1.0, 10.0, 1);
    let run =
        simulate(&mut Alternating(true), &job, START_NS, &mut Reporter::new("j", &mut ignore))
            .unwrap();
    // 100 a second, none of which waits: half take 1 ms and half 50 ms, and no slice is late.
    assert!((run.tally.operations() as f64 - 1000.0).abs() <= 2.0, "{}", run.tally.operations());
    assert_eq!(open(&run).due_to_submitted.max_ns(), 0);
    assert!((open(&run).due_to_completed.mean_ns() * 1e-6 - 25.5).abs() < 0.3);
    let quiet = run.controller.window().windows(3).any(|slices| {
        slices.iter().all(|slice| slice.operations == 0)
            && slices.iter().map(|slice| slice.seconds).sum::<f64>() > 0.05
    });
    assert!(!quiet, "a completion was put into a later slice");
}

#[test]
fn a_stall_of_one_second_shows_in_p99_of_the_open_loop_and_not_of_the_closed_one() {
    let stall = || Law::Stalling(START_NS + 5_000 * MS_NS, START_NS + 6_000 * MS_NS);
    let open_run = run(&job(constant(1000.0), (1, 1), 1.0, 10.0, 1), stall());
    let closed_run = run(&job(json!({"kind": "closed"}), (1, 1), 1.0, 10.0, 1), stall());
    assert_eq!(
        closed_run.tally.read.latency.max_ns().max(closed_run.tally.write.latency.max_ns())
            / 100_000_000,
        10
    );
    let p99_ms = |run: &VirtualRun| {
        let mut all = run.tally.read.latency.clone();
        all.merge(&run.tally.write.latency);
        all.quantile_ns(0.99) * 1e-6
    };
    assert!((p99_ms(&closed_run) - 0.1).abs() < 0.001, "the closed loop hides it");
    // One request in ten waited, evenly up to a second: the 99th percentile waited 0.9 s.
    assert!((p99_ms(&open_run) - 900.0).abs() < 20.0, "{}", p99_ms(&open_run));
    assert!((open(&open_run).due_to_completed.quantile_ns(0.99) * 1e-6 - 900.0).abs() < 20.0);
    let offered = open_run.offered.unwrap();
    assert_eq!(offered.fell_short, None, "it caught up: {offered:?}");
    assert!((1000..1200).contains(&offered.late_target), "{offered:?}");
}

#[test]
fn a_stall_that_outlasts_the_window_still_shows() {
    let probe = run(&job(constant(1000.0), (1, 1), 1.0, 10.0, 1), Law::Fixed(100_000));
    let from_ns = probe.closed_ns - 1_000 * MS_NS;
    let stall = Law::Stalling(from_ns, from_ns + 60_000 * MS_NS);
    let run = run(&job(constant(1000.0), (1, 1), 1.0, 10.0, 1), stall);
    assert_eq!(run.closed_ns, probe.closed_ns);
    assert!(run.tally.read.latency.max_ns() < MS_NS, "no request that completed saw it");
    for histogram in [&open(&run).due_to_completed, &open(&run).due_to_submitted] {
        assert!((histogram.quantile_ns(0.99) * 1e-6 - 900.0).abs() < 20.0);
    }
    let offered = run.offered.unwrap();
    assert_eq!(offered.fell_short, Some(FellShort::Target), "{offered:?}");
    assert!((990..=1000).contains(&offered.missed), "{offered:?}");
    assert!((offered.shortfall_frac - 0.1).abs() < 0.003, "{offered:?}");
}

#[test]
fn a_target_asked_for_twice_what_it_can_do_falls_short() {
    for arrivals in [constant(4000.0), poisson(4000.0)] {
        let run = run(&job(arrivals, (2, 1), 1.0, 5.0, 3), Law::Fixed(MS_NS));
        let offered = run.offered.unwrap();
        assert_eq!(offered.fell_short, Some(FellShort::Target), "{offered:?}");
        assert!((offered.shortfall_frac - 0.5).abs() < 0.02, "{offered:?}");
        assert!((offered.completed_per_s - 2000.0).abs() < 2.0, "{offered:?}");
        let found = missed_rate(&offered, 5.0).unwrap();
        assert_eq!(found.values["completed_per_s"], offered.completed_per_s.into());
        assert!(found.values.contains_key("waiting_requests"), "{found:?}");
    }
}

#[test]
fn a_rate_that_uses_all_of_the_target_is_not_missed() {
    for slots in [(1, 1), (4, 1), (2, 16)] {
        let rate_per_s = 100.0 * f64::from(slots.0 * slots.1);
        let run = run(&job(constant(rate_per_s), slots, 1.0, 10.0, 3), Law::Fixed(10 * MS_NS));
        let offered = run.offered.unwrap();
        assert_eq!(offered.fell_short, None, "{slots:?}: {offered:?}");
        assert!(offered.shortfall_frac < 0.002, "{slots:?}: {offered:?}");
    }
}

#[test]
fn a_window_that_opens_before_the_pipeline_is_full_is_not_short_by_being_mid_flight() {
    let run = run(&job(constant(100.0), (1, 100), 0.0, 2.0, 3), Law::Fixed(500 * MS_NS));
    let offered = run.offered.unwrap();
    assert!((offered.completed_per_s - 76.0).abs() < 2.0, "{offered:?}");
    assert_eq!(offered.fell_short, None, "{offered:?}");
}

#[test]
fn a_pipeline_that_was_full_before_excuses_nothing() {
    // A hundred slots of half a second serve 200/s; 5% more are asked for.
    let run = run(&job(constant(210.0), (1, 100), 5.0, 4.0, 3), Law::Fixed(500 * MS_NS));
    let offered = run.offered.unwrap();
    assert_eq!(offered.fell_short, Some(FellShort::Target), "{offered:?}");
    assert!((offered.shortfall_frac - 10.0 / 210.0).abs() < 0.01, "{offered:?}");
}

#[test]
fn no_more_is_excused_as_mid_flight_than_is_in_flight() {
    let run = run(&job(constant(100.0), (1, 1), 0.0, 2.0, 3), Law::Fixed(300 * MS_NS));
    let offered = run.offered.unwrap();
    let (due, completed) = (offered.due as f64, run.tally.operations() as f64);
    assert!(offered.shortfall_frac * due >= due - completed - 1.0 - 1e-9, "{offered:?}");
}

#[test]
fn the_noise_of_arrivals_below_capacity_is_no_missed_rate() {
    let missed = (1..=40)
        .filter(|seed| {
            let job = job(poisson(800.0), (1, 1), 2.0, 10.0, *seed);
            run(&job, exponential(1e6, *seed)).offered.unwrap().fell_short.is_some()
        })
        .count();
    assert_eq!(missed, 0);
}

#[test]
fn a_seed_gives_the_same_answer_again() {
    let answer = |seed| {
        let run = run(&job(poisson(700.0), (2, 2), 1.0, 5.0, seed), exponential(4e6, 9));
        (open(&run).due_to_completed.clone(), run.tally.bytes(), run.closed_ns, run.offered)
    };
    assert_eq!(answer(1), answer(1));
    assert_ne!(answer(1).0, answer(2).0);
}

#[test]
fn a_rate_changes_no_address() {
    /// Keeps what it is asked for.
    struct Listener(Vec<Request>);
    impl VirtualDevice for Listener {
        fn service_ns(&mut self, _: u64, request: &Request) -> u64 {
            self.0.push(*request);
            MS_NS
        }
        fn cache_resident_bytes(&self) -> u64 {
            0
        }
        fn device_bytes(&self) -> (u64, u64) {
            (0, 0)
        }
    }
    let asked = |arrivals: Value| {
        let mut ignore = |_: &str| {};
        let mut device = Listener(Vec::new());
        let job = job(arrivals, (1, 1), 0.1, 1.0, 8);
        simulate(&mut device, &job, START_NS, &mut Reporter::new("j", &mut ignore)).unwrap();
        device.0.truncate(500);
        device.0
    };
    let closed = asked(json!({"kind": "closed"}));
    assert_eq!(closed.len(), 500);
    assert_eq!(asked(constant(700.0)), closed);
    assert_eq!(asked(poisson(700.0)), closed);
}

#[test]
fn a_hopeless_rate_ends() {
    let run = run(&job(constant(1e7), (1, 1), 0.01, 1000.0, 1), Law::Fixed(MS_NS / 100));
    assert!(run.capped);
    assert_eq!(run.offered.unwrap().fell_short, Some(FellShort::Target));
}
