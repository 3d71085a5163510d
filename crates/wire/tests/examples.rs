//! The examples under protocol/, which the Python tests read as well.

use std::collections::BTreeSet;
use std::fs;

use leadline_wire::job::nfs_load::{Data, Workload};
use leadline_wire::job::{Job, Refused};

use crate::schemas::protocol;

/// The folders of jobs: that of measurements is the top one.
const KINDS: [(&str, &str); 5] = [
    ("", "measure"),
    ("file_tests/", "file_test"),
    ("nfs_loads/", "nfs_load"),
    ("simulated_trials/", "simulated_trial"),
    ("streams/", "stream"),
];

/// The documents of a folder of examples, by their names.
pub fn examples(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(protocol().join("examples").join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// Every job that is right, by its folder's name and its own.
pub fn right_jobs() -> Vec<(String, String)> {
    let folders = KINDS.iter().map(|(folder, _)| format!("{folder}valid"));
    folders.chain(["asks".to_owned()]).flat_map(|folder| examples(&folder)).collect()
}

fn kind_of(job: &Job) -> String {
    serde_json::to_value(job).unwrap()["kind"].as_str().unwrap().to_owned()
}

#[test]
fn every_valid_job_is_read_as_its_kind_and_survives_being_written() {
    let mut kinds = BTreeSet::new();
    for (folder, kind) in KINDS.iter().chain(&[("asks", "ask")]) {
        let folder = if *folder == "asks" { "asks".to_owned() } else { format!("{folder}valid") };
        for (name, text) in examples(&folder) {
            let job = Job::read(&text).unwrap_or_else(|refused| panic!("{name}: {refused:?}"));
            assert_eq!(kind_of(&job), *kind, "{name}");
            let written = serde_json::to_string(&job).unwrap();
            assert_eq!(Job::read(&written).unwrap(), job, "{name}");
            assert!(text.contains(&format!("\"{}\"", job.job_id())), "{name}");
            kinds.insert(kind_of(&job));
        }
    }
    assert_eq!(kinds.len(), 6);
}

#[test]
fn every_invalid_job_is_refused_in_words_under_its_own_id() {
    let mut count = 0;
    for (folder, _) in KINDS {
        for (name, text) in examples(&format!("{folder}invalid")) {
            let Refused { job_id, message } = Job::read(&text).unwrap_err();
            assert!(message.len() > 20, "{name}: {message}");
            assert!(text.contains(&format!("\"{job_id}\"")), "{name}: {job_id}");
            count += 1;
        }
    }
    assert!(count >= 95, "{count}");
}

#[test]
fn a_refusal_names_the_field_and_what_it_takes() {
    let message = |folder: &str, name: &str| {
        let found = examples(folder).into_iter().find(|pair| pair.0 == name).unwrap();
        Job::read(&found.1).unwrap_err().message
    };
    assert_eq!(
        message("invalid", "read-frac-above-one"),
        "workload.read_frac is 1.5; it must be 0 to 1 (1 for reads only)"
    );
    for (folder, name, said) in [
        ("invalid", "missing-seed", "`seed`"),
        ("invalid", "target-extra-field", "path"),
        ("invalid", "kind-missing", "`kind`"),
        ("invalid", "kind-unknown", "expected one of `measure`, `file_test`"),
        ("invalid", "zipf-theta-negative", "workload.access.theta is -0.5; it must be 0 to 10"),
        ("file_tests/invalid", "file-bytes-odd", "it must be a multiple of 8192"),
        ("nfs_loads/invalid", "data-missing", "data is absent; it must be a data set"),
        ("nfs_loads/invalid", "data-too-small", "(4 MiB to 1 PiB)"),
        ("streams/invalid", "memory-small", "(at least 32 MiB)"),
        ("streams/invalid", "stripe-unit-odd", "it must be a power of two"),
        ("streams/invalid", "stripe-unit-small", "(4 KiB to 1 GiB)"),
        ("streams/invalid", "relative-temporary", "it must be an absolute path"),
        ("streams/invalid", "no-output", "output is absent; it must be there (with the kernel"),
        ("streams/invalid", "key-short", "it must be 20 hexadecimal digits"),
        ("simulated_trials/invalid", "disk-share-above-one", "disk_share is 2; it must be 0 to 1"),
        ("simulated_trials/invalid", "no-workers", "workers is 0; it must be 1 to 4096"),
    ] {
        let message = message(folder, name);
        assert!(message.contains(said), "{folder} {name}: {message}");
    }
}

#[test]
fn a_text_that_is_no_job_is_refused_under_the_id_it_has() {
    for (text, job_id) in [
        ("{\"job_id\": \"x\", \"version\": 1}", "x"),
        ("{\"job_id\": 3}", ""),
        ("{\"kind\": \"measure\"}", ""),
        ("no json", ""),
    ] {
        assert_eq!(Job::read(text).unwrap_err().job_id, job_id, "{text}");
    }
}

#[test]
fn a_server_that_takes_no_time_is_refused_although_each_number_is_right() {
    let found = examples("simulated_trials/valid").into_iter().find(|pair| pair.0 == "plain");
    let idle = found.unwrap().1.replace("\"service_ms\": 5.0", "\"service_ms\": 0.0");
    let message = Job::read(&idle).unwrap_err().message;
    assert!(message.contains("give service_ms, cpu_ms or disk_ms"), "{message}");
}

#[test]
fn a_run_that_is_no_run_is_not_asked_about() {
    for (name, text) in examples("asks") {
        let elsewhere = text.replace("run-0123456789abcdef", "run-../0123456789abc");
        assert!(Job::read(&elsewhere).is_err(), "{name}");
    }
}

#[test]
fn a_data_set_is_told_by_the_name_of_its_directory() {
    let data = Data { workload: Workload::DbTp, data_bytes: 64 << 20, seed: u64::MAX };
    assert_eq!(data.directory(), "data-db_tp-67108864-18446744073709551615");
    assert_eq!(Data::of_directory(&data.directory()), Some(data));
    for name in [
        "data-db_tp-67108864",
        "data-db_tp-067108864-1",
        "data-db_tp-67108864-1-2",
        "data-x-1-1",
        "data-db_tp-67108864-1 ",
        "run-0123456789abcdef0123456789abcdef",
        "data.bin",
    ] {
        assert_eq!(Data::of_directory(name), None, "{name}");
    }
}
