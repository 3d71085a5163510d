//! A trace made again: each step in its place, after those that it waits for and not before its time.

use std::fs::{self, File};

use leadline_base::replay::{ALL_FILES, Act, FOLDER, Step, Steps};
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::target::conformance::{events, on, result};

const BLOCK: u64 = 4096;

fn step(act: Act, file: u32, lane: u16, offset_bytes: u64) -> Step {
    let length_bytes = if matches!(act, Act::Read | Act::Write) { BLOCK } else { 0 };
    let (at_ns, after_steps, after_lane) = (0, 0, 0);
    let fresh_pages = 0;
    Step {
        at_ns,
        offset_bytes,
        length_bytes,
        fresh_pages,
        file,
        after_steps,
        after_lane,
        lane,
        act,
    }
}

fn job(scratch: &Scratch, steps: &Steps, at_times: bool) -> Value {
    let path = scratch.path().join("steps");
    steps.write(&mut File::create(&path).unwrap()).unwrap();
    let mut job = on(scratch, "pread", false);
    job["workload"] = json!({
        "unique_bytes": 1 << 20, "size_mean": BLOCK, "size_dist": "fixed", "read_frac": 0.5,
        "seq_frac": 0.0, "process_num": steps.lanes,
    });
    job["limits"] = json!({
        "warm_up_s_max": 0.0, "measure_s_min": 60.0, "measure_s_max": 60.0, "accuracy": 0.0,
        "total_s_max": 120.0, "operations_max": steps.steps.len(),
    });
    job["replay"] = json!({"path": path, "at_times": at_times});
    job
}

fn content(scratch: &Scratch, file: u32) -> Vec<u8> {
    fs::read(scratch.path().join(format!("replay-{file}.bin"))).unwrap()
}

#[test]
fn every_step_is_made_where_it_belongs_and_nothing_else_is_touched() {
    let scratch = Scratch::new("replay");
    let mut steps = Steps {
        initial_bytes: vec![8 * BLOCK + 100, 0],
        lanes: 1,
        steps: vec![step(Act::Read, 0, 0, 0)],
    };
    result(&job(&scratch, &steps, false));
    let before = content(&scratch, 0);
    assert_eq!(before.len() as u64, 8 * BLOCK + 100);
    steps.steps = vec![
        step(Act::Write, 0, 0, 3 * BLOCK),
        step(Act::Write, 0, 0, 5 * BLOCK),
        step(Act::Read, 0, 0, 0),
        step(Act::Fsync, 0, 0, 0),
        step(Act::Write, 1, 0, 0),
        step(Act::Write, 1, 0, BLOCK),
        step(Act::BeginWriteback, 1, 0, BLOCK),
        step(Act::Fdatasync, 1, 0, 0),
        step(Act::Fsync, ALL_FILES, 0, 0),
    ];
    let found = result(&job(&scratch, &steps, false));
    let after = content(&scratch, 0);
    assert_eq!(after.len(), before.len());
    let changed = |block: u64| {
        let range = (block * BLOCK) as usize..((block + 1) * BLOCK) as usize;
        before[range.clone()] != after[range]
    };
    assert_eq!((0..8).filter(|block| changed(*block)).collect::<Vec<_>>(), [3, 5]);
    assert_eq!(content(&scratch, 1).len() as u64, 2 * BLOCK);
    let count = |kind: &str| found[kind]["operations"].as_u64().unwrap();
    assert_eq!((count("read"), count("write"), count("syncs")), (1, 4, 4));
    assert_eq!(found["workload_bytes"], json!({"read": BLOCK, "write": 4 * BLOCK}));
    assert_eq!(found["written_bytes"]["layout"], json!(0), "the files were there");
}

#[test]
fn a_file_that_the_trace_makes_is_made_anew_each_time() {
    let scratch = Scratch::new("replay-anew");
    let steps = Steps {
        initial_bytes: vec![0],
        lanes: 1,
        steps: vec![step(Act::Write, 0, 0, 0), step(Act::Read, 0, 0, 0)],
    };
    for _ in 0..2 {
        let found = result(&job(&scratch, &steps, false));
        assert_eq!(found["workload_bytes"], json!({"read": BLOCK, "write": BLOCK}));
        assert_eq!(content(&scratch, 0).len() as u64, BLOCK);
    }
}

#[test]
fn a_file_that_is_removed_holds_nothing_and_that_is_no_request() {
    let scratch = Scratch::new("replay-removed");
    let steps = Steps {
        initial_bytes: vec![BLOCK, BLOCK],
        lanes: 1,
        steps: vec![
            step(Act::Write, 0, 0, BLOCK),
            step(Act::Remove, 0, 0, 0),
            step(Act::Fsync, FOLDER, 0, 0),
            step(Act::Read, 1, 0, 0),
            Step { at_ns: 200_000_000, ..step(Act::Read, 1, 0, 0) }, // a run that ends early has ended
        ],
    };
    let mut job = job(&scratch, &steps, true);
    job["limits"]["operations_max"] = json!(3);
    for _ in 0..2 {
        let found = result(&job);
        assert_eq!(found["workload_bytes"], json!({"read": 2 * BLOCK, "write": BLOCK}));
        assert_eq!(found["syncs"], json!(null));
        assert!(!scratch.path().join("replay-0.bin").exists());
        assert_eq!(content(&scratch, 1).len() as u64, BLOCK);
    }
}

#[test]
fn what_another_lane_writes_is_there_when_it_is_read() {
    let scratch = Scratch::new("replay-lanes");
    let mut all = Vec::new();
    for block in 0..16 {
        all.push(step(Act::Write, 0, 0, block * BLOCK));
        all.push(step(Act::Fsync, 0, 0, 0)); // so that a reader that does not wait is there first
    }
    all.push(Step { after_steps: 31, after_lane: 0, ..step(Act::Read, 0, 1, 15 * BLOCK) });
    let steps = Steps { initial_bytes: vec![0], lanes: 2, steps: all };
    let found = result(&job(&scratch, &steps, false));
    assert_eq!(found["read"]["bytes"], json!(BLOCK));
    assert_eq!(found["syncs"]["operations"], json!(16));
}

#[test]
fn no_step_comes_before_its_time() {
    let scratch = Scratch::new("replay-times");
    let later = Step { at_ns: 300_000_000, ..step(Act::Read, 0, 0, 0) };
    let steps = Steps {
        initial_bytes: vec![BLOCK],
        lanes: 1,
        steps: vec![step(Act::Read, 0, 0, 0), later],
    };
    assert!(result(&job(&scratch, &steps, true))["wall_s"].as_f64().unwrap() >= 0.3);
    let found = result(&job(&scratch, &steps, false));
    assert_eq!(found["read"]["operations"], json!(2));
    assert_eq!(found["stalls"], json!([]), "a replay has the pauses of its trace");
}

#[test]
fn a_replay_goes_through_the_page_cache_of_a_directory() {
    let scratch = Scratch::new("replay-wrong");
    let steps =
        Steps { initial_bytes: vec![BLOCK], lanes: 1, steps: vec![step(Act::Read, 0, 0, 0)] };
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut job = job(&scratch, &steps, false);
        change(&mut job);
        let error = events(&job).pop().unwrap();
        assert_eq!((&error["event"], &error["kind"]), (&json!("error"), &json!("bad_job")));
        assert!(error["message"].as_str().unwrap().contains("replay"), "{error}");
    };
    refused(&|job| job["backend"]["direct"] = json!(true));
    refused(&|job| job["backend"]["name"] = json!("uring"));
    refused(&|job| job["limits"]["operations_max"] = json!(null));
    refused(&|job| job["replay"]["path"] = json!(""));
    refused(&|job| job["arrivals"] = json!({"kind": "constant", "rate_per_s": 10.0}));
}
