//! The examples of streaming jobs under protocol/, which the Python tests read as well.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use leadline_engine::error::ErrorKind;
use leadline_engine::wire::text::Text;
use leadline_kernels::job::{Job, StreamJob};
use leadline_kernels::result::{CapacityResult, CheckResult, PhaseResult, StreamResult};
use leadline_kernels::run::run_job;
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

#[test]
fn every_valid_job_is_read_and_survives_being_written() {
    let examples = examples("valid");
    let mut kernels = BTreeSet::new();
    for (name, text) in examples {
        let read = Job::read(&Text::new(&text));
        assert!(matches!(read, Ok(Job::Stream(_))), "{name}");
        let job = StreamJob::parse(&text).unwrap();
        let again = StreamJob::parse(&serde_json::to_string(&job).unwrap()).unwrap();
        assert_eq!(again, job, "{name}");
        kernels.insert(job.kernel.name());
    }
    let all = ["capacity", "check", "generate", "scan", "sort", "transpose"];
    assert_eq!(kernels.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn every_invalid_job_is_refused() {
    let examples = examples("invalid");
    assert!(examples.len() >= 25);
    for (name, text) in examples {
        let error = StreamJob::parse(&text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadJob, "{name}");
        assert!(error.message.len() > 20, "{name}: {error}");
    }
}

#[test]
fn a_refusal_names_the_field_and_what_it_takes() {
    for (name, said) in [
        ("memory-small", "memory_bytes of the stream must be at least 32 MiB"),
        ("stripe-unit-odd", "stripe_bytes of the stream must be a power of two"),
        ("relative-temporary", "paths of the stream must be absolute"),
        ("no-output", "output of the stream must be there when the kernel writes"),
        ("key-short", "low and high of the stream must be 20 hexadecimal digits"),
        ("missing-seed", "`seed`"),
    ] {
        let message = StreamJob::parse(&example("invalid", name)).unwrap_err().message;
        assert!(message.contains(said), "{name}: {message}");
    }
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
    let job = StreamJob::parse(&example("valid", "sort-striped")).unwrap();
    let mut result = StreamResult::new(&job);
    result.phases.push(PhaseResult::default());
    result.check = Some(CheckResult::default());
    result.capacity = Some(CapacityResult::default());
    let written = serde_json::to_value(&result).unwrap();
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
