//! The examples under protocol/, which the Python tests read as well.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use leadline_engine::engine::run_job;
use serde_json::Value;

/// The jobs and events of one folder of examples, with their paths.
pub fn examples(kind: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples").join(kind);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The paths of all keys; the elements of a list count as one.
pub fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                let path = format!("{path}/{key}");
                keys(inner, &path, found);
                found.insert(path);
            }
        }
        Value::Array(list) => {
            list.iter().for_each(|inner| keys(inner, &format!("{path}[]"), found))
        }
        _ => {}
    }
}

/// The keys of an example, less those inside parts that the run did not have (null or empty).
fn wanted_keys(example: &Value, run: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    keys(example, "", &mut found);
    let absent = |key: &str| {
        let ends = key.match_indices(['/', '[']).map(|found| found.0).filter(|end| *end > 0);
        ends.map(|end| run.pointer(&key[..end])).any(|part| {
            part.is_some_and(|part| part.is_null() || part.as_array().is_some_and(Vec::is_empty))
        })
    };
    found.into_iter().filter(|key| !absent(key) && !of_a_finding(key)).collect()
}

/// Which findings a run has, and what each says, is not the same every time.
fn of_a_finding(key: &str) -> bool {
    key.starts_with("/findings[]")
}

#[test]
fn a_null_run_writes_the_events_of_the_examples_key_by_key() {
    let job = examples("valid").into_iter().find(|pair| pair.0.ends_with("null.json")).unwrap().1;
    let mut lines = Vec::new();
    run_job(&job, &mut |line| lines.push(line.to_owned()));
    run_job("{\"job_id\": \"point-1\"}", &mut |line| lines.push(line.to_owned()));
    let told: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (path, text) in examples("events") {
        let example: Value = serde_json::from_str(&text).unwrap();
        let like: Vec<&Value> =
            told.iter().filter(|event| event["event"] == example["event"]).collect();
        assert!(!like.is_empty() || example["event"] == "progress", "{}", path.display());
        for event in like {
            let mut told = BTreeSet::new();
            keys(event, "", &mut told);
            told.retain(|key| !of_a_finding(key));
            assert_eq!(told, wanted_keys(&example, event), "{}", path.display());
        }
    }
    assert!(lines.iter().all(|line| !line.contains('\n')));
}

#[test]
fn a_refused_job_is_answered_under_its_own_id() {
    let mut lines = Vec::new();
    run_job("{\"job_id\": \"x\", \"version\": 1}", &mut |line| lines.push(line.to_owned()));
    run_job("no json", &mut |line| lines.push(line.to_owned()));
    let told: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(
        (&told[0]["job_id"], &told[0]["kind"]),
        (&Value::from("x"), &Value::from("bad_job"))
    );
    assert_eq!(told[1]["job_id"], "");
}
