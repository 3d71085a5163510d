//! Whole jobs on a machine made of parts, from their text to their result.

use leadline_engine::engine::run_job;
use serde_json::{Value, json};

/// Sixteen MiB of memory before four servers of 100 us.
fn system() -> Value {
    json!({
        "meta": {"name": "plain"},
        "survey": {"unique_bytes_max": 1u64 << 33},
        "machine": {
            "processors": {"count": 4, "read_overhead_us": 2.0, "copy_mb_s": 8000.0},
            "cache": {
                "capacity_bytes": 1u64 << 24,
                "dirty": {"background_bytes": 1u64 << 20, "limit_bytes": 1u64 << 21,
                          "interval_s": 5.0, "expire_s": 30.0},
            },
            "station": {"capacity_bytes": 1u64 << 40, "servers": 4, "read_us": 100.0,
                        "write_us": 100.0, "mb_s": 1e6},
        },
    })
}

/// The last event of a job; `change` may change everything in it.
fn last(change: impl FnOnce(&mut Value)) -> Value {
    let mut job = json!({
        "version": 1, "kind": "measure", "job_id": "j", "seed": 4,
        "target": {"kind": "simulated", "system": system(), "run_seed": 7},
        "backend": {"name": "simulated"},
        "workload": {
            "unique_bytes": 1u64 << 26, "size_mean": 4096, "read_frac": 1.0, "seq_frac": 0.0,
            "process_num": 2, "queue_depth": 4, "size_dist": "fixed",
        },
        "limits": {
            "warm_up_s_max": 2.0, "measure_s_min": 2.0, "measure_s_max": 2.0, "accuracy": 0.0,
            "total_s_max": 1e6,
        },
    });
    change(&mut job);
    let mut last = Value::Null;
    run_job(&job.to_string(), &mut |line| last = serde_json::from_str(line).unwrap());
    last
}

fn result(change: impl FnOnce(&mut Value)) -> Value {
    let last = last(change);
    assert_eq!(last["event"], "result", "{last}");
    last
}

fn number(result: &Value, path: &str) -> f64 {
    result.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

#[test]
fn a_window_opens_after_the_shortest_warm_up_however_steady_the_rate_is() {
    let soon =
        number(&result(|job| job["limits"]["warm_up_s_min"] = json!(0.0)), "/warm_up/seconds");
    let late =
        number(&result(|job| job["limits"]["warm_up_s_min"] = json!(1.5)), "/warm_up/seconds");
    assert!(soon < 1.0 && (1.5..1.6).contains(&late), "{soon} and {late}");
    let refused = last(|job| job["limits"]["warm_up_s_min"] = json!(2.5));
    assert_eq!(refused["event"], "error", "{refused}");
}

#[test]
fn a_job_counts_what_the_mechanism_did() {
    let found = result(|_| ());
    // A quarter fits; the rest goes to four servers of 10,000 a second each.
    assert!((number(&found, "/iops/value") / (40_000.0 / 0.75) - 1.0).abs() < 0.02, "{found}");
    assert!((number(&found, "/cached_share") - 0.25).abs() < 0.01, "{}", found["cached_share"]);
    assert_eq!(found["provenance"]["cached_share_from"], "residency");
    assert_eq!(number(&found, "/cache_resident_bytes"), f64::from(1 << 24));
    let (read, asked) =
        (number(&found, "/device_bytes/read"), number(&found, "/workload_bytes/read"));
    assert!((read / asked - 0.75).abs() < 0.01, "{read} of {asked}");
    assert!(found["simulated"]["truth_mb_s"].is_null());
    assert!(number(&found, "/littles_law_error_frac") < 1e-9, "{found}");
    assert_eq!(found["admissible"], true);
}

#[test]
fn a_job_gives_the_same_answer_again_and_another_one_with_another_seed() {
    let run = |seed: u64| result(|job| job["seed"] = json!(seed));
    assert_eq!(run(4), run(4));
    assert_ne!(run(4)["iops"], run(5)["iops"]);
}

#[test]
fn issuers_that_think_are_accounted_for() {
    let found = result(|job| {
        job["workload"]["think_time_s"] = json!(0.001);
        job["workload"]["unique_bytes"] = json!(1 << 22);
    });
    // Eight slots, each a millisecond of thought and a copy.
    let copy_s = 2e-6 + 4096.0 / 8e9;
    let expected = 8.0 / (0.001 + copy_s);
    assert!((number(&found, "/iops/value") / expected - 1.0).abs() < 0.01, "{}", found["iops"]);
    assert!(number(&found, "/littles_law_error_frac") < 1e-9, "{found}");
}

#[test]
fn an_open_loop_is_answered_at_its_rate_and_falls_short_beyond_it() {
    let asked = |rate_per_s: f64| {
        result(|job| job["arrivals"] = json!({"kind": "poisson", "rate_per_s": rate_per_s}))
    };
    let easy = asked(20_000.0);
    assert!((number(&easy, "/iops/value") / 20_000.0 - 1.0).abs() < 0.02, "{}", easy["iops"]);
    assert_eq!(easy["admissible"], true);
    assert!(number(&easy, "/littles_law_error_frac") < 1e-9, "{easy}");
    let hard = asked(100_000.0);
    assert_eq!(hard["offered"]["fell_short"], "target", "{}", hard["offered"]);
    assert!((number(&hard, "/iops/value") / (40_000.0 / 0.75) - 1.0).abs() < 0.05);
}

#[test]
fn writes_that_wait_take_the_devices_time() {
    let written = |sync: Value| {
        let found = result(|job| {
            job["workload"]["read_frac"] = json!(0.0);
            job["workload"]["unique_bytes"] = json!(1 << 19);
            job["backend"]["sync"] = sync;
        });
        number(&found, "/iops/value")
    };
    let free = written(json!({"kind": "none"}));
    assert!(free > 1e6, "{free}");
    let through = written(json!({"kind": "dsync"}));
    assert!((through / 40_000.0 - 1.0).abs() < 0.05, "{through}");
    let synced = written(json!({"kind": "fsync", "each": 16}));
    assert!(synced < 0.7 * free && synced > through, "{free} {synced} {through}");
}

#[test]
fn what_a_machine_cannot_do_is_refused_in_words() {
    let told = |change: fn(&mut Value)| {
        let last = last(change);
        assert_eq!(last["event"], "error", "{last}");
        last["message"].as_str().unwrap_or_default().to_owned()
    };
    let much = told(|job| job["workload"]["unique_bytes"] = json!(1u64 << 41));
    assert!(much.contains("must be between 1 and the machine's 1099511627776"), "{much}");
    let long = told(|job| job["workload"]["size_mean"] = json!(1u64 << 30));
    assert!(long.contains("it must be at most 67108864 on a simulated machine"), "{long}");
}

#[test]
fn a_job_that_costs_the_host_too_much_ends_and_says_so() {
    let found = result(|job| {
        job["workload"]["unique_bytes"] = json!(1u64 << 23);
        job["workload"]["size_mean"] = json!(1u64 << 20);
        job["limits"]["measure_s_max"] = json!(1000.0);
        job["limits"]["measure_s_min"] = json!(1000.0);
    });
    let findings = found["findings"].to_string();
    assert!(findings.contains("simulation_capped"), "{findings}");
    assert!(number(&found, "/wall_s") > 1.0, "{}", found["wall_s"]);
}
