//! A whole job of an open loop, from its text to its result, on a shipped simulated system.

use leadline_engine::engine::run_job;
use serde_json::{Value, json};

fn result(arrivals: Value) -> Value {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/leadline/profiles/two-level.toml");
    let system: toml::Value = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let job = json!({
        "version": 1, "kind": "measure", "job_id": "j", "seed": 4, "arrivals": arrivals,
        "target": {"kind": "simulated", "system": system}, "backend": {"name": "simulated"},
        "workload": {
            "unique_bytes": 1u64 << 33, "size_mean": 16384, "read_frac": 1.0, "seq_frac": 0.0,
            "process_num": 2,
        },
        "limits": {
            "warm_up_s_max": 20.0, "measure_s_min": 60.0, "measure_s_max": 60.0, "accuracy": 0.0,
            "total_s_max": 1e6,
        },
    });
    let mut last = Value::Null;
    run_job(&job.to_string(), &mut |line| last = serde_json::from_str(line).unwrap());
    assert_eq!(last["event"], "result", "{last}");
    last
}

fn number(result: &Value, path: &str) -> f64 {
    result.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

#[test]
fn the_result_of_an_open_loop_tells_what_was_offered_and_who_fell_short() {
    let closed = result(json!({"kind": "closed"}));
    assert!(closed["offered"].is_null() && closed["spans_us"]["due_to_completed"].is_null());
    assert_eq!(closed["spans_us"]["submitted_to_completed"], closed["latency_us"]);
    let able_per_s = number(&closed, "/iops/value");

    let easy = result(json!({"kind": "poisson", "rate_per_s": 0.6 * able_per_s}));
    assert!(easy["findings"].as_array().unwrap().iter().all(|it| it["severity"] != "invalid"));
    assert!((number(&easy, "/iops/value") / able_per_s - 0.6).abs() < 0.03, "{}", easy["iops"]);
    assert!(number(&easy, "/littles_law_error_frac") < 1e-6);
    // The truth of an open loop is what was asked for, as long as the target can do it.
    let truth = number(&easy, "/throughput_mb_s/value") / number(&easy, "/simulated/truth_mb_s");
    assert!((truth - 1.0).abs() < 0.05, "{truth}");
    let mean = |span: &str| number(&easy, &format!("/spans_us/{span}/mean"));
    let parts = mean("due_to_submitted") + mean("submitted_to_completed");
    assert!((parts / mean("due_to_completed") - 1.0).abs() < 0.02, "{}", easy["spans_us"]);
    assert!((mean("due_to_completed") / number(&easy, "/latency_us/mean") - 1.0).abs() < 0.02);

    let hard = result(json!({"kind": "poisson", "rate_per_s": 2.0 * able_per_s}));
    assert_eq!(hard["admissible"], false);
    assert_eq!(hard["offered"]["fell_short"], "target", "{}", hard["offered"]);
    let found = &hard["findings"][0];
    assert_eq!(found["code"], "missed_rate");
    assert!(found["values"]["waiting_requests"].as_u64().unwrap() > 0, "{found}");
    assert!(number(&hard, "/offered/missed") > 0.3 * number(&hard, "/offered/due"));
    assert!(number(&hard, "/littles_law_error_frac") < 1e-6);
}
