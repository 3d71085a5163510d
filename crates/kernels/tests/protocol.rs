//! The examples of streaming jobs under protocol/, which the Python tests read as well.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use leadline_kernels::run::run_job;
use leadline_wire::event::Event;
use leadline_wire::event::stream::{CapacityResult, CheckResult, PhaseResult, StreamResult};
use leadline_wire::job::Job;
use serde_json::{Value, json};

fn examples(kind: &str) -> Vec<(String, String)> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples/streams").join(kind);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn example(kind: &str, name: &str) -> String {
    examples(kind).into_iter().find(|pair| pair.0 == name).unwrap().1
}

/// What the schema calls an object's fields, and what serde calls them.
fn same_keys(example: &Value, written: &Value) {
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(example), keys(written));
}

#[test]
fn a_result_is_written_with_the_keys_of_the_examples() {
    let sort: Value = serde_json::from_str(&example("events", "sort")).unwrap();
    let capacity: Value = serde_json::from_str(&example("events", "capacity")).unwrap();
    let Ok(Job::Stream(job)) = Job::read(&example("valid", "sort-striped")) else {
        panic!("it is valid")
    };
    let mut result = StreamResult::new(&job);
    result.phases.push(PhaseResult::default());
    result.check = Some(CheckResult::default());
    result.capacity = Some(CapacityResult::default());
    let written: Value = serde_json::from_str(&Event::from(result).line()).unwrap();
    same_keys(&sort, &written);
    same_keys(&sort["phases"][0], &written["phases"][0]);
    same_keys(&sort["check"], &written["check"]);
    same_keys(&capacity["capacity"], &written["capacity"]);
    let named = json!(["result", 1, "stream", "sort-1", "sort"]);
    let told = ["event", "version", "kind", "job_id", "kernel"].map(|key| written[key].clone());
    assert_eq!(json!(told), named);
}

#[test]
fn a_refused_job_is_answered_under_its_own_id() {
    let mut lines = Vec::new();
    run_job(&example("invalid", "no-threads"), &mut |line| lines.push(line.to_owned()));
    let told: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!((&told["event"], &told["job_id"]), (&json!("error"), &json!("x")));
    assert_eq!(told["kind"], "bad_job");
}
