//! Sorts of real files: every kind of key, in one pass and in two, with one thread and several.

use std::fs;

use leadline_kernels::deadline::Deadline;
use leadline_kernels::memory::Memory;
use leadline_kernels::output::Output;
use leadline_kernels::sort::sink::RecordSink;
use leadline_wire::job::stream::{self, Io, ReadBy};
use serde_json::{Value, json};

use crate::kernel_job::{Place, run, run_in_little};

const RECORD_BYTES: usize = 100;

fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state ^ (*state >> 29)
}

fn records(kind: &str, count: usize) -> Vec<u8> {
    let mut state = 7;
    let mut bytes = vec![0u8; count * RECORD_BYTES];
    for (number, record) in bytes.chunks_exact_mut(RECORD_BYTES).enumerate() {
        let drawn = draw(&mut state);
        let key = &mut record[..10];
        match kind {
            "uniform" => key[..8].copy_from_slice(&drawn.to_be_bytes()),
            "printable" => {
                key.iter_mut().for_each(|byte| *byte = 32 + (draw(&mut state) >> 20) as u8 % 95)
            }
            "sorted" => key[2..].copy_from_slice(&(number as u64).to_be_bytes()),
            "reversed" => key[2..].copy_from_slice(&((count - number) as u64).to_be_bytes()),
            "skewed" => key[0] = drawn.leading_zeros() as u8,
            "last byte" => key[9] = (drawn >> 13) as u8,
            _ => {}
        }
        record[10..18].copy_from_slice(&(number as u64).to_be_bytes());
        record[92..].copy_from_slice(&drawn.to_be_bytes());
    }
    bytes
}

/// In order, equal keys as they came.
fn sorted(bytes: &[u8]) -> Vec<u8> {
    let mut records: Vec<&[u8]> = bytes.chunks_exact(RECORD_BYTES).collect();
    records.sort_by_key(|record| &record[..10]);
    records.concat()
}

fn job(place: &Place, memory_mib: u64, threads: u32) -> Value {
    json!({
        "version": 1, "kind": "stream", "job_id": "t", "kernel": {"name": "sort"},
        "input": place.at("in"), "output": {"path": place.at("out"), "replace": true},
        "memory_bytes": memory_mib << 20, "threads": threads, "seed": 1, "total_s_max": 60.0,
        "io": {"read": "uring", "read_direct": true, "write_direct": true, "depth": 4},
    })
}

#[test]
fn any_keys_come_out_in_order_in_one_pass_and_in_two() {
    let place = Place::new("sort_kinds");
    let kinds = ["uniform", "printable", "sorted", "reversed", "skewed", "last byte", "equal"];
    for (number, kind) in kinds.into_iter().enumerate() {
        let twice = [(16, 1, 2), (20, 2, 2)][number % 2];
        for (count, memory) in
            [(30_000, [(64, 1, 1), (96, 3, 1)].as_slice()), (130_000, [twice].as_slice())]
        {
            let bytes = records(kind, count);
            fs::write(place.at("in"), &bytes).unwrap();
            let wanted = sorted(&bytes);
            for (memory_mib, threads, passes) in memory {
                let result = run_in_little(&job(&place, *memory_mib, *threads));
                assert_eq!(result["event"], "result", "{kind}: {result}");
                assert_eq!(result["passes"], *passes, "{kind}");
                assert_eq!(result["verified"], true);
                let sorted = fs::read(place.at("out")).unwrap();
                assert!(sorted == wanted, "{kind} {memory_mib} {threads}");
            }
        }
    }
    assert_eq!(place.names(), ["in", "out"]);
}

#[test]
fn stripes_and_mappings_are_sorted_like_plain_files() {
    let place = Place::new("sort_stripes");
    let bytes = records("printable", 150_000);
    fs::write(place.at("in"), &bytes).unwrap();
    let wanted = sorted(&bytes);
    let disks = ["a", "b", "c"].map(|name| place.at(name));
    disks.iter().for_each(|disk| fs::create_dir(disk).unwrap());
    for (memory_mib, passes) in [(32, 1), (20, 2)] {
        let mut there = job(&place, memory_mib, 2);
        there["io"]["read"] = json!("mmap");
        there["output"]["path"] = json!(place.at("striped"));
        there["output"]["stripes"] = json!(disks);
        let result = run_in_little(&there);
        assert_eq!(result["passes"], passes, "{result}");
        let copied = if passes == 1 { &result["phases"][0]["copied_bytes"] } else { &Value::Null };
        assert!(copied.is_null() || *copied == json!(bytes.len()), "the mapping's: {copied}");
        for read in ["uring", "mmap"] {
            let mut back = job(&place, memory_mib, 2);
            back["io"]["read"] = json!(read);
            back["input"] = json!(place.at("striped"));
            back["temporary"] = json!(disks[1..]);
            assert_eq!(run_in_little(&back)["verified"], true);
            assert!(fs::read(place.at("out")).unwrap() == wanted, "{memory_mib} {read}");
        }
    }
}

#[test]
fn any_number_of_records_is_sorted() {
    let place = Place::new("sort_counts");
    for count in [0, 1, 40, 41, 1023, 1024, 1025, 16_384, 16_385, 50_001] {
        let bytes = records("uniform", count);
        fs::write(place.at("in"), &bytes).unwrap();
        let result = run(&job(&place, 64, 2));
        assert_eq!(result["event"], "result", "{result}");
        assert!(fs::read(place.at("out")).unwrap() == sorted(&bytes), "{count}");
        assert_eq!(result["check"]["records"], count);
    }
}

/// Hands records over in pieces of odd sizes; the passes it took.
fn through_sink(place: &Place, bytes: &[u8], expected: usize, memory_mib: usize) -> u32 {
    let memory = Memory::new((memory_mib << 20) as u64).unwrap();
    let io = Io { read: ReadBy::Uring, read_direct: true, write_direct: true, depth: 4 };
    let (deadline, temporary) = (Deadline::after(60.0), [place.at("")]);
    let mut sink =
        RecordSink::new((&memory, memory.left()), expected as u64, 2, (&temporary, &io), deadline)
            .unwrap();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = sink.space().unwrap();
        if space.is_empty() {
            sink.wait().unwrap();
            continue;
        }
        let count = space.len().min(rest.len()).min(77_777);
        space[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        sink.filled(count).unwrap();
    }
    sink.seal().unwrap();
    let passes = sink.passes();
    let spec: stream::Output =
        serde_json::from_value(json!({"path": place.at("out"), "replace": true})).unwrap();
    let output = Output::create(&spec, bytes.len() as u64, &io).unwrap();
    sink.write(&output.part(0).unwrap()).unwrap();
    output.publish().unwrap();
    passes
}

#[test]
fn records_that_are_handed_over_come_out_in_order_however_many_were_expected() {
    let place = Place::new("sort_sink");
    for kind in ["printable", "equal"] {
        let bytes = records(kind, 100_000);
        let wanted = sorted(&bytes);
        let whole = bytes.len();
        for (expected, memory_mib, passes) in
            [(whole, 64, 1), (whole, 8, 2), (whole / 4, 8, 2), (whole * 2, 8, 2), (0, 64, 1)]
        {
            let took = through_sink(&place, &bytes, expected, memory_mib);
            assert_eq!(took, passes, "{kind} {expected} {memory_mib}");
            assert!(fs::read(place.at("out")).unwrap() == wanted, "{kind} {expected}");
        }
    }
    assert_eq!(through_sink(&place, &[], 1000, 8), 1);
    assert_eq!(fs::read(place.at("out")).unwrap().len(), 0);
}

#[test]
fn a_part_of_a_record_is_refused_and_leaves_nothing() {
    let place = Place::new("sort_part");
    fs::write(place.at("in"), &records("uniform", 100)[..9_950]).unwrap();
    let result = run(&job(&place, 64, 1));
    assert_eq!(result["kind"], "bad_job", "{result}");
    assert!(result["message"].as_str().unwrap().contains("byte 9900"), "{result}");
    assert_eq!(place.names(), ["in"]);
}
