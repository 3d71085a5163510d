//! Loads on a real NFS server with its files in memory: data sets made, found, put right and
//! removed; calls counted; a server that goes away.

use std::collections::BTreeSet;

use crate::memfs::{Server, Wire, address, answer, ask};
use crate::protocol::{examples, keys};
use leadline_engine::engine::run_job;
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

fn job(port: u16, workload: &str, action: Value) -> Value {
    json!({
        "version": 1, "kind": "nfs_load", "job_id": "trial-1", "server": address(port),
        "data": {"workload": workload, "data_bytes": 4 * MIB, "seed": 3}, "action": action,
        "total_s_max": 60.0,
    })
}

fn prepare(port: u16, workload: &str) -> Value {
    result(&job(port, workload, json!({"kind": "prepare"})))
}

fn load(rate_per_s: f64, seconds: f64) -> Value {
    json!({
        "kind": "load", "rate_per_s": rate_per_s, "seconds": seconds, "warm_up_s": 0.2, "seed": 5,
    })
}

fn result(job: &Value) -> Value {
    let last = answer(job);
    assert_eq!(last["event"], "result", "{last}");
    last
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn a_data_set_is_made_once_loaded_and_removed() {
    let server = Server::start();
    let unprepared = answer(&job(server.port, "db_tp", load(100.0, 0.5)));
    assert_eq!(unprepared["kind"], "target", "{unprepared}");
    assert!(unprepared["message"].as_str().unwrap().contains("prepare the data set first"));

    let made = prepare(server.port, "db_tp");
    assert_eq!((&made["data"]["made"], number(&made, "/data/files")), (&json!(true), 5.0));
    assert_eq!(number(&made, "/data/bytes"), (4 * MIB) as f64);
    assert_eq!(prepare(server.port, "db_tp")["data"]["made"], json!(false));

    let done = result(&job(server.port, "db_tp", load(400.0, 1.5)));
    let due = number(&done, "/load/due");
    assert!((500.0..700.0).contains(&due), "{due}");
    assert_eq!(number(&done, "/load/failed"), 0.0);
    let operations = done["operations"].as_array().unwrap();
    let of = |name: &str| operations.iter().find(|found| found["procedure"] == name).unwrap();
    let sum: f64 = operations.iter().map(|found| number(found, "/due")).sum();
    assert_eq!(sum, due);
    let answered = number(of("read"), "/due") - number(of("read"), "/unanswered");
    assert_eq!(number(of("read"), "/bytes"), 8192.0 * answered);
    let batches = done["load"]["batches"].as_array().unwrap();
    assert_eq!(batches.len(), 60);
    assert_eq!(batches.iter().map(|batch| number(batch, "/due")).sum::<f64>(), due);

    assert_eq!(
        number(&result(&job(server.port, "db_tp", json!({"kind": "remove"}))), "/removed"),
        1.0
    );
    assert_eq!(ask("nfs_claim", server.port)["event"], "answer", "nothing foreign is left");
}

#[test]
fn the_answer_has_the_keys_of_the_example() {
    let server = Server::start();
    prepare(server.port, "mail");
    let done = result(&job(server.port, "mail", load(300.0, 1.0)));
    let example: Value = serde_json::from_str(
        &examples("nfs_loads/events")
            .into_iter()
            .find(|pair| pair.0.ends_with("result.json"))
            .unwrap()
            .1,
    )
    .unwrap();
    let (mut wanted, mut told) = (BTreeSet::new(), BTreeSet::new());
    keys(&example, "", &mut wanted);
    keys(&done, "", &mut told);
    assert_eq!(told, wanted);
}

#[test]
fn what_a_load_left_is_put_right_and_the_data_set_stays_beside_other_claims() {
    let server = Server::start();
    prepare(server.port, "mail");
    result(&job(server.port, "mail", load(500.0, 1.0)));
    let again = prepare(server.port, "mail");
    assert_eq!(again["data"]["made"], json!(false));
    assert!(number(&again, "/data/repaired") > 10.0, "mailboxes had grown: {again}");
    assert_eq!(number(&prepare(server.port, "mail"), "/data/repaired"), 0.0);

    assert_eq!(ask("nfs_claim", server.port)["event"], "answer");
    let busy = answer(&job(server.port, "mail", json!({"kind": "prepare"})));
    assert_eq!(busy["kind"], "target", "{busy}");
    assert!(busy["message"].as_str().unwrap().contains("in use"), "{busy}");
    assert_eq!(ask("nfs_release", server.port)["event"], "answer");
    assert_eq!(prepare(server.port, "mail")["data"]["made"], json!(false), "it is still whole");
}

#[test]
fn all_data_sets_go_at_once() {
    let server = Server::start();
    for workload in ["db_tp", "web_server"] {
        prepare(server.port, workload);
    }
    let mut all = job(server.port, "db_tp", json!({"kind": "remove"}));
    all["data"] = Value::Null;
    assert_eq!(number(&result(&all), "/removed"), 2.0);
    assert_eq!(number(&result(&all), "/removed"), 0.0);
}

#[test]
fn a_workload_with_links_is_refused_by_a_server_that_has_none() {
    let server = Server::start();
    let refused = answer(&job(server.port, "specsfs97", json!({"kind": "prepare"})));
    assert_eq!(refused["kind"], "target", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("no symbolic links"), "{refused}");
    let mut all = job(server.port, "specsfs97", json!({"kind": "remove"}));
    all["data"] = Value::Null;
    assert_eq!(number(&result(&all), "/removed"), 0.0, "what was made of it is gone");
}

/// Runs a load of ten minutes over a wire and does something to that when its window opens: what
/// ends it before its time is the server alone.
fn disturbed(wire: &Wire, disturb: fn(&Wire)) -> Value {
    let mut job = job(wire.port, "db_tp", load(200.0, 600.0));
    job["total_s_max"] = json!(1800.0);
    let (mut last, mut due) = (Value::Null, false);
    run_job(&job.to_string(), &mut |line| {
        last = serde_json::from_str(line).unwrap();
        if last["phase"] == "measure" && last["event"] == "phase" {
            disturb(wire);
            due = true;
        }
    });
    assert!(due, "it went away before: {last}");
    assert_eq!(last["kind"], "lost", "{last}");
    last
}

#[test]
fn a_server_that_goes_away_ends_the_load() {
    let server = Server::start();
    let wire = Wire::to(server.port);
    prepare(wire.port, "db_tp");
    disturbed(&wire, Wire::cut);
}

#[test]
fn a_server_that_says_nothing_ends_the_load_with_its_timeout() {
    let server = Server::start();
    let wire = Wire::to(server.port);
    prepare(wire.port, "db_tp");
    let last = disturbed(&wire, Wire::stall);
    assert!(last["message"].as_str().unwrap().starts_with("server silent"), "{last}");
}
