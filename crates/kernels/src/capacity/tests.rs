//! The kernel on real directories; memory is read for moments, not for as long as a measurement.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use leadline_base::host::BlockDevice;
use leadline_wire::job::Job;
use serde_json::{Value, json};

use super::*;

fn capacity(directories: &[&str], count: usize, changes: &Value) -> Value {
    let io = json!({"read": "uring", "read_direct": true, "write_direct": true, "depth": 8});
    let kernel = json!({"name": "capacity", "directories": directories, "bytes": 2 << 20});
    let mut job = json!({"version": 1, "kind": "stream", "job_id": "t", "kernel": kernel,
        "memory_bytes": 16 << 20, "threads": 2, "io": io, "seed": 0, "total_s_max": 60.0});
    for (field, value) in changes.as_object().unwrap() {
        job[field] = value.clone();
    }
    let Ok(Job::Stream(job)) = serde_json::from_value(job) else { unreachable!() };
    let mut last = String::new();
    let mut emit = |event: &str| event.clone_into(&mut last);
    Reporter::new(&job.job_id, &mut emit).tell(|reporter| read(&job, reporter, (count, 0.01)));
    serde_json::from_str(&last).unwrap()
}

/// Folders on a disk that knows direct I/O, gone afterwards.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Readings that are all positive, and how many.
fn readings(of: &Value) -> usize {
    let readings = of.as_array().unwrap();
    assert!(readings.iter().all(|reading| reading.as_f64().unwrap() > 0.0), "{of}");
    readings.len()
}

#[test]
fn every_disk_and_all_together_are_read_and_written_and_nothing_is_left() {
    let names = ["a", "b"].map(|name| folder(&format!("capacity-{name}")));
    let paths = names.each_ref().map(|folder| folder.to_str().unwrap());
    let buffered = json!({"io": {"read": "mmap", "read_direct": false, "write_direct": false,
        "depth": 2}});
    for changes in [json!({}), buffered] {
        let answer = capacity(&paths, 2, &changes);
        let found = &answer["capacity"];
        assert_eq!(answer["event"], "result", "{answer}");
        for name in ["disk_read_bytes_s", "disk_write_bytes_s"] {
            let disks = found[name].as_array().unwrap();
            assert_eq!(disks.iter().map(readings).collect::<Vec<_>>(), [2, 2]);
        }
        for name in ["all_read", "all_write", "all_both", "memory_copy", "memory_read"] {
            assert_eq!(readings(&found[format!("{name}_bytes_s")]), 2);
        }
        let devices = BlockDevice::of(&fs::File::open(&names[0]).unwrap());
        let devices = devices.map_or_else(Vec::new, |device| device.names());
        assert_eq!(found["disk_devices"], json!([devices, devices]));
        let processors = found["processors"].as_f64().unwrap();
        assert!(processors > 0.0 && processors <= 1024.0);
    }
    for folder in &names {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
        fs::remove_dir(folder).unwrap();
    }
}

#[test]
fn one_disk_is_all_disks() {
    let folder = folder("capacity-one");
    let found = &capacity(&[folder.to_str().unwrap()], READINGS, &json!({}))["capacity"];
    assert_eq!(found["all_read_bytes_s"], found["disk_read_bytes_s"][0]);
    assert_eq!(found["all_write_bytes_s"], found["disk_write_bytes_s"][0]);
    assert_eq!(readings(&found["all_both_bytes_s"]), 6);
    fs::remove_dir(folder).unwrap();
}

#[test]
fn what_cannot_be_used_is_refused_by_name() {
    let answer = capacity(&["/nowhere/at/all"], 1, &json!({}));
    assert_eq!(answer["kind"], "target", "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("/nowhere/at/all"));
}
