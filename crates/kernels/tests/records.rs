//! The kernels `generate` and `check` on real files, and damage that `check` must find.

use std::fs;
use std::os::unix::fs::FileExt;

use leadline_kernels::run::run_job;
use serde_json::{Value, json};

use crate::kernel_job::Place;

fn run(kernel: Value, changes: Value) -> Value {
    let io = json!({"read": "uring", "read_direct": true, "write_direct": true, "depth": 8});
    let mut job = json!({"version": 1, "kind": "stream", "job_id": "t", "kernel": kernel,
        "memory_bytes": 64 << 20, "threads": 2, "io": io, "seed": 0, "total_s_max": 60.0});
    for (field, value) in changes.as_object().unwrap() {
        job[field] = value.clone();
    }
    let mut lines = Vec::new();
    run_job(&job.to_string(), &mut |line| lines.push(line.to_owned()));
    serde_json::from_str(lines.last().unwrap()).unwrap()
}

fn generate(path: &str, format: &str, records: u64, changes: Value) -> Value {
    let mut all = json!({"output": {"path": path}});
    for (field, value) in changes.as_object().unwrap() {
        all[field] = value.clone();
    }
    run(json!({"name": "generate", "records": records, "format": format}), all)
}

fn check(path: &str, changes: Value) -> Value {
    let mut all = json!({"input": path});
    for (field, value) in changes.as_object().unwrap() {
        all[field] = value.clone();
    }
    run(json!({"name": "check"}), all)
}

#[test]
fn a_million_records_are_those_of_gensort() {
    let place = Place::new("records_million");
    for (format, checksum) in [("binary", "7a0e0d4868cd4"), ("ascii", "7a19cff467438")] {
        let path = place.at(format);
        let made = generate(&path, format, 1_000_000, json!({}));
        assert_eq!(made["verified"], true, "{made}");
        assert_eq!(made["check"]["checksum"], checksum);
        assert_eq!(made["bytes_out"], 100_000_000);
        assert_eq!(made["phases"][0]["name"], "write");
        assert_eq!(made["phases"][0]["bytes_written"], 100_000_000);
    }
    // `valsort` on the binary ones.
    let found = check(&place.at("binary"), json!({}));
    assert_eq!(found["check"]["checksum"], "7a0e0d4868cd4");
    assert_eq!(found["check"]["unordered"], 499_452);
    assert_eq!(found["check"]["first_unordered"], 2);
}

#[test]
fn records_are_judged_alike_however_they_are_read() {
    let place = Place::new("records_alike");
    for format in ["binary", "ascii"] {
        let path = place.at(format);
        let made = generate(&path, format, 100_001, json!({}));
        let mmap = json!({"read": "mmap", "read_direct": false, "write_direct": false, "depth": 4});
        for changes in [json!({}), json!({"threads": 1}), json!({"threads": 5, "io": mmap})] {
            let found = check(&path, changes);
            assert_eq!(found["check"], made["check"], "{found}");
            assert_eq!(found["phases"][0]["bytes_read"], 10_000_100);
            assert_eq!(found["verified"], false, "they are in no order");
        }
    }
}

#[test]
fn stripes_hold_what_a_plain_file_holds() {
    let place = Place::new("records_stripes");
    let plain = generate(&place.at("plain"), "ascii", 123_457, json!({"seed": 9}));
    let stripes: Vec<String> = ["a", "b", "c"].iter().map(|name| place.at(name)).collect();
    stripes.iter().for_each(|stripe| fs::create_dir(stripe).unwrap());
    let output = json!({"path": place.at("striped"), "stripes": stripes});
    let striped =
        generate("", "ascii", 123_457, json!({"seed": 9, "output": output, "threads": 3}));
    assert_eq!(striped["check"], plain["check"], "{striped}");
    let found = check(&place.at("striped"), json!({}));
    assert_eq!(found["check"], plain["check"], "{found}");
}

#[test]
fn parts_that_follow_each_other_make_one_data_set() {
    let place = Place::new("records_follow");
    let whole = generate(&place.at("whole"), "ascii", 50_000, json!({}));
    for first in [0, 25_000] {
        let kernel =
            json!({"name": "generate", "records": 25_000, "first": first, "format": "ascii"});
        let output = json!({"path": place.at(&first.to_string())});
        let made = run(kernel, json!({"output": output}));
        assert_eq!(made["verified"], true, "{made}");
    }
    let mut both = fs::read(place.at("0")).unwrap();
    both.extend(fs::read(place.at("25000")).unwrap());
    assert!(both == fs::read(place.at("whole")).unwrap());
    assert_eq!(whole["check"]["records"], 50_000);
}

#[test]
fn no_records_are_a_data_set_too() {
    let place = Place::new("records_none");
    let made = generate(&place.at("none"), "binary", 0, json!({}));
    assert_eq!((&made["verified"], &made["check"]["checksum"]), (&json!(true), &json!("0")));
    assert_eq!(check(&place.at("none"), json!({}))["check"]["records"], 0);
}

/// Ordered records in a file, then damaged by `damage`, and what `check` finds.
fn damaged(name: &str, damage: impl Fn(&fs::File, &mut Vec<u8>)) -> Value {
    let place = Place::new(&format!("records_{name}"));
    let path = place.at("data");
    generate(&path, "ascii", 40_000, json!({"seed": 4}));
    let mut records = fs::read(&path).unwrap();
    records.as_chunks_mut::<100>().0.sort_unstable();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&records, 0).unwrap();
    damage(&file, &mut records);
    let found = check(&path, json!({}));
    assert_eq!(place.names(), ["data"]);
    found
}

#[test]
fn damage_of_every_kind_is_found() {
    let whole = damaged("whole", |_, _| ())["check"].clone();
    assert_eq!((&whole["unordered"], &whole["duplicate_keys"]), (&json!(0), &json!(0)));

    let wrong = damaged("wrong", |file, _| file.write_all_at(b"?", 16_384 * 100 + 77).unwrap());
    assert_eq!(wrong["check"]["records"], 40_000);
    assert_ne!(wrong["check"]["checksum"], whole["checksum"]);

    let short = damaged("short", |file, _| file.set_len(39_999 * 100 + 99).unwrap());
    assert_eq!(short["event"], "error", "{short}");
    assert!(short["message"].as_str().unwrap().contains("cut short"), "{short}");

    let missing = damaged("missing", |file, _| file.set_len(39_999 * 100).unwrap());
    assert_eq!(missing["check"]["records"], 39_999);
    assert_ne!(missing["check"]["checksum"], whole["checksum"]);

    let doubled = damaged("doubled", |file, records| {
        file.write_all_at(&records[20_000 * 100..20_001 * 100], 20_001 * 100).unwrap();
    });
    assert_eq!(doubled["check"]["duplicate_keys"], 1);
    assert_ne!(doubled["check"]["checksum"], whole["checksum"]);

    // The first record of the second chunk, which another thread may read, changes places.
    let at = 16_384;
    let unsorted = damaged("unsorted", |file, records| {
        file.write_all_at(&records[(at - 1) * 100..at * 100], at as u64 * 100).unwrap();
        file.write_all_at(&records[at * 100..(at + 1) * 100], (at as u64 - 1) * 100).unwrap();
    });
    assert_eq!(unsorted["check"]["checksum"], whole["checksum"]);
    assert_eq!(unsorted["check"]["unordered"], 1);
    assert_eq!(unsorted["check"]["first_unordered"], at);
    assert_eq!(unsorted["verified"], false);
}

#[test]
fn nothing_is_named_when_time_is_up_or_memory_too_small() {
    let place = Place::new("records_refused");
    let late = generate(&place.at("late"), "ascii", 2_000_000, json!({"total_s_max": 0.02}));
    assert_eq!(late["kind"], "target", "{late}");
    let many = json!({"threads": 64, "memory_bytes": 32 << 20});
    let small = generate(&place.at("small"), "ascii", 1000, many);
    assert_eq!(small["kind"], "bad_job", "{small}");
    assert!(small["message"].as_str().unwrap().contains("fewer threads"));
    assert_eq!(place.names(), [] as [String; 0]);
}
