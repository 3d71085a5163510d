//! The NFS client against a real server with its files in memory: claims, measures, and a server
//! that goes away in the middle.

use std::time::Duration;

use crate::memfs::{RUN, Server, Wire, answer, ask, claimed};
use leadline_engine::engine::run_job;
use serde_json::{Value, json};

fn job(target: Value) -> Value {
    json!({
        "version": 1, "kind": "measure", "job_id": "j", "target": target,
        "workload": {
            "unique_bytes": 4 << 20, "size_mean": 8192, "read_frac": 0.5, "seq_frac": 0.5,
            "process_num": 2, "queue_depth": 4,
        },
        "backend": {"name": "nfs"}, "seed": 1,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 0.1, "measure_s_max": 60.0, "accuracy": 0.5,
            "total_s_max": 120.0,
        },
    })
}

fn result(job: &Value) -> Value {
    let last = answer(job);
    assert_eq!(last["event"], "result", "{last}");
    last
}

fn number(result: &Value, path: &str) -> f64 {
    result.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {result}"))
}

#[test]
fn a_mixed_workload_is_measured_and_its_network_bytes_counted() {
    let server = Server::start();
    let result = result(&job(server.claimed()));
    assert_eq!(result["admissible"], true, "{result}");
    let (reads, writes) = (number(&result, "/read/bytes"), number(&result, "/write/bytes"));
    assert!(reads > 0.0 && writes > 0.0);
    assert_eq!(number(&result, "/network/payload_received_bytes"), reads);
    assert_eq!(number(&result, "/network/payload_sent_bytes"), writes);
    let operations = number(&result, "/read/operations") + number(&result, "/write/operations");
    for (path, payload) in [("/network/sent_bytes", writes), ("/network/received_bytes", reads)] {
        let heads = number(&result, path) - payload;
        // A call's head has 40 bytes of RPC, a credential, a handle and arguments.
        assert!((60.0..400.0).contains(&(heads / operations)), "{path}: {}", heads / operations);
    }
    assert!(number(&result, "/network/round_trip_us") > 0.0);
    assert!(number(&result, "/network/commit_s") >= 0.0);
    assert_eq!(number(&result, "/network/stable_share"), 1.0, "as a server in memory says");
    assert_eq!(number(&result, "/network/lost_requests"), 0.0);
    assert_eq!(number(&result, "/written_bytes/layout"), f64::from(4 << 20));
    assert!(result["cached_share"].is_null());
    assert!(result["provenance"]["unchecked"].to_string().contains("client keeps nothing"));
}

#[test]
fn long_requests_go_in_pieces_and_arrive_whole() {
    let server = Server::start();
    let mut job = job(server.claimed());
    job["workload"] = json!({
        "unique_bytes": 16 << 20, "size_mean": 3 << 20, "size_dist": "fixed", "read_frac": 0.5,
        "seq_frac": 0.0, "process_num": 1, "queue_depth": 2,
    });
    let result = result(&job);
    assert_eq!(number(&result, "/realised/size_mean"), f64::from(3 << 20));
    assert!(number(&result, "/network/received_bytes") > number(&result, "/read/bytes"));
}

#[test]
fn a_claim_owns_only_its_own_directory_and_leaves_nothing() {
    let server = Server::start();
    let first = ask("nfs_claim", server.port);
    assert!(first["server"]["read_bytes_max"].as_u64().unwrap() >= 4096, "{first}");
    assert!(number(&first, "/room/free_bytes") > 0.0, "{first}");
    let second = ask("nfs_claim", server.port);
    assert_eq!(second["kind"], "target", "{second}");
    let message = second["message"].as_str().unwrap();
    assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
    keys_like_the_example(&first);
    assert_eq!(ask("nfs_release", server.port)["event"], "answer");
    assert_eq!(ask("nfs_release", server.port)["event"], "answer", "twice does nothing");
    let third = ask("nfs_claim", server.port);
    assert_eq!(third["event"], "answer", "{third}");
}

#[test]
fn what_a_killed_holder_left_is_swept() {
    let server = Server::start();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let old = "run-ffffffffffffffffffffffffffffffff";
    let mut claim = json!({
        "kind": "nfs_claim", "server": server.address(), "run": old, "timeout_s": 5.0,
        "process": gone.id(),
    });
    let ask_it =
        |ask: &Value| answer(&json!({"version": 1, "kind": "ask", "job_id": "a", "ask": ask}));
    assert_eq!(ask_it(&claim)["event"], "answer");
    let target = json!({"kind": "nfs", "server": server.address(), "run": old});
    result(&job(target.clone()));
    claim["run"] = json!(RUN);
    assert_eq!(ask_it(&claim)["event"], "answer");
    let swept = answer(&job(target));
    assert_eq!(swept["kind"], "lost", "{swept}");
    assert!(swept["message"].as_str().unwrap().contains(old), "{swept}");
}

#[test]
fn foreign_files_are_refused_and_not_touched() {
    let server = Server::with(&["/x/.leadline/precious"]);
    let refused = ask("nfs_claim", server.port);
    assert_eq!(refused["kind"], "target", "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains(".leadline/precious was not made by this Leadline"), "{message}");
    assert_eq!(ask("nfs_claim", server.port)["message"], refused["message"], "nothing changed");
}

#[test]
fn a_path_that_is_not_there_and_a_port_where_nobody_listens_are_told_apart() {
    let server = Server::start();
    let mut question = json!({
        "kind": "nfs_claim", "server": server.address(), "run": RUN, "timeout_s": 1.0,
        "process": 1,
    });
    question["server"]["path"] = json!("/x/not/there");
    let missing = answer(&json!({"version": 1, "kind": "ask", "job_id": "a", "ask": question}));
    assert_eq!(missing["kind"], "target", "{missing}");
    assert!(missing["message"].as_str().unwrap().contains("not"), "{missing}");
    question["server"]["port"] = json!(1);
    let nobody = answer(&json!({"version": 1, "kind": "ask", "job_id": "a", "ask": question}));
    assert_eq!(nobody["kind"], "lost", "{nobody}");
    assert!(nobody["message"].as_str().unwrap().contains("refused"), "{nobody}");
}

/// Runs a job of ten minutes and does something to its wire when its window, or its warm-up, has
/// brought some bytes: what ends it before its time is the server alone.
fn disturbed(wire: &Wire, phase: &str, disturb: fn(&Wire)) -> Value {
    let mut job = job(claimed(wire.port));
    job["limits"] = json!({
        "warm_up_s_max": if phase == "measure" { 0.1 } else { 600.0 }, "measure_s_min": 600.0,
        "measure_s_max": 600.0, "accuracy": 0.0001, "total_s_max": 1800.0,
    });
    let mut last = Value::Null;
    std::thread::scope(|scope| {
        run_job(&job.to_string(), &mut |line| {
            last = serde_json::from_str(line).unwrap();
            if last["phase"] == phase && last["event"] == "phase" {
                // The pass over the file comes first in a warm-up.
                let bytes = if phase == "measure" { 1 << 20 } else { 5 << 20 };
                scope.spawn(move || {
                    wire.wait_for(bytes);
                    disturb(wire);
                });
            }
        });
    });
    assert_eq!(last["admissible"], json!(false), "{last}");
    assert!(last["wall_s"].as_f64().unwrap() < 600.0, "{last}");
    last
}

fn assert_lost(result: &Value, begins: &str) {
    let found = &result["findings"][0];
    assert_eq!(found["code"], "server_lost", "{result}");
    assert!(found["values"]["why"].as_str().unwrap().starts_with(begins), "{result}");
    assert_eq!(found["values"]["lost_requests"], result["network"]["lost_requests"]);
}

#[test]
fn a_server_killed_in_the_window_ends_the_run_with_its_verdict() {
    let server = Server::start();
    let wire = Wire::to(server.port);
    let result = disturbed(&wire, "measure", Wire::cut);
    assert_eq!(result["event"], "result", "{result}");
    assert_lost(&result, "server lost: ");
    let lost = number(&result, "/network/lost_requests");
    assert!((1.0..=8.0).contains(&lost), "{lost}");
    let counted = number(&result, "/read/operations") + number(&result, "/write/operations");
    let sliced: f64 = result["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slice| slice["operations"].as_f64().unwrap())
        .sum();
    assert!(counted > 0.0 && sliced <= counted, "{counted} {sliced}");
}

#[test]
fn a_server_killed_in_the_warm_up_leaves_a_verdict_and_no_rate() {
    let server = Server::start();
    let wire = Wire::to(server.port);
    let result = disturbed(&wire, "warm_up", Wire::cut);
    assert_lost(&result, "server lost: ");
    assert!(result["findings"][0]["values"]["window_s"].is_null(), "{result}");
}

#[test]
fn a_stalled_server_ends_the_run_after_ten_seconds_of_silence() {
    let server = Server::start();
    let wire = Wire::to(server.port);
    let result = disturbed(&wire, "measure", Wire::stall);
    assert_lost(&result, "server silent: ");
    assert_eq!(number(&result, "/network/lost_requests"), 8.0);
    assert!(number(&result, "/wall_s") >= 10.0, "{result}");
    wire.resume();
}

#[test]
fn a_server_that_is_slow_but_there_is_no_loss() {
    let server = Server::start();
    let wire = Wire::to(server.port);
    let mut job = job(claimed(wire.port));
    job["limits"]["measure_s_min"] = json!(1.0);
    job["arrivals"] = json!({"kind": "constant", "rate_per_s": 500.0});
    let mut last = Value::Null;
    std::thread::scope(|scope| {
        run_job(&job.to_string(), &mut |line| {
            last = serde_json::from_str(line).unwrap();
            if last["phase"] == "measure" && last["event"] == "phase" {
                wire.stall();
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(500));
                    wire.resume();
                });
            }
        });
    });
    assert_eq!(last["event"], "result", "{last}");
    assert_eq!(number(&last, "/network/lost_requests"), 0.0);
    assert!(number(&last, "/latency_us/max") > 4e5, "{last}");
}

/// The wire's example of a claim's answer has the same keys.
fn keys_like_the_example(answer: &Value) {
    let text = include_str!("../../../../protocol/examples/answers/claim.json");
    let example: Value = serde_json::from_str(text).unwrap();
    for part in ["", "/server", "/room"] {
        let keys = |value: &Value| -> Vec<String> {
            value.pointer(part).unwrap().as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(answer), keys(&example), "{part}");
    }
}

#[test]
fn writes_that_must_be_on_stable_storage_are_asked_for_it() {
    let server = Server::start();
    let mut job = job(server.claimed());
    job["workload"]["read_frac"] = json!(0.0);
    job["workload"]["size_dist"] = json!("fixed");
    // Bytes sent beside the data, and writes: each call has its own, wherever the window begins.
    let heads = |job: &Value| {
        let result = result(job);
        let sent = number(&result, "/network/sent_bytes");
        (
            sent - number(&result, "/network/payload_sent_bytes"),
            number(&result, "/write/operations"),
        )
    };
    let each = |job: &Value| {
        let (bytes, writes) = heads(job);
        bytes / writes
    };
    let unstable = each(&job);
    job["backend"]["sync"] = json!({"kind": "dsync"});
    assert_eq!(each(&job), unstable, "one call each");
    job["backend"]["sync"] = json!({"kind": "fsync", "each": 1});
    let (bytes, synced) = heads(&job);
    let commit = bytes / synced - unstable;
    assert!((0.7..1.1).contains(&(commit / unstable)), "{commit} {unstable}: a COMMIT each");
    job["backend"]["sync"] = json!({"kind": "fsync", "each": 4});
    let (bytes, writes) = heads(&job);
    let commits = (bytes - writes * unstable) / commit;
    // Each of the two workers may be anywhere between two COMMITs at either edge, here and where
    // the bytes of one were taken from as many writes.
    let edges = 2.0 + 2.0 * commits / synced;
    assert!((commits - writes / 4.0).abs() <= edges, "{commits} COMMITs of {writes} writes");
}
