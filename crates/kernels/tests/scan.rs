//! Scans of real files, against a filter of three lines.

use crate::kernel_job::{Place, answer, assert_refused, content, job, random_bytes, refusal};
use serde_json::{Value, json};

const RECORD: usize = 100;
/// Records of a chunk of the data plane.
const CHUNK: usize = 16_384;

fn scan(low: &str, high: Option<&str>) -> Value {
    json!({"name": "scan", "low": low, "high": high})
}

/// Keys that begin with 0x00 to 0x7f: about half.
fn half() -> Value {
    scan("00000000000000000000", Some("80000000000000000000"))
}

fn everything() -> Value {
    scan("00000000000000000000", None)
}

fn filtered(records: &[u8], keep: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    records.chunks(RECORD).filter(|record| keep(&record[..10])).flatten().copied().collect()
}

#[test]
fn every_interface_finds_what_a_plain_filter_finds() {
    let place = Place::new("scan_interfaces");
    for (number, records) in [1, 7, CHUNK - 1, CHUNK, 3 * CHUNK + 5].into_iter().enumerate() {
        let bytes = random_bytes(number as u64, records * RECORD);
        let input = place.put("input", &bytes);
        let wanted = filtered(&bytes, |key| key[0] < 0x80);
        for (read, direct, threads) in
            [("uring", true, 1), ("uring", false, 3), ("mmap", false, 1), ("mmap", true, 2)]
        {
            let mut job = job(half(), &input, &place.at("output"));
            job["output"]["replace"] = json!(true);
            job["io"]["read"] = json!(read);
            job["io"]["read_direct"] = json!(direct);
            job["io"]["write_direct"] = json!(direct);
            job["threads"] = json!(threads);
            let result = answer(&job);
            let case = format!("{records} records, {read}, direct {direct}, {threads} threads");
            assert!(content(&place.at("output")) == wanted, "{case}");
            assert_eq!(result["bytes_out"], wanted.len(), "{case}");
            assert_eq!(result["check"]["records"], wanted.len() / RECORD, "{case}");
            let (read, write) = (&result["phases"][0], &result["phases"][1]);
            assert_eq!((&read["name"], &write["name"]), (&json!("read"), &json!("write")));
            assert_eq!(read["bytes_read"], bytes.len(), "{case}");
            assert_eq!(read["copied_bytes"], wanted.len(), "{case}");
            assert_eq!(write["bytes_written"], wanted.len(), "{case}");
        }
        assert!(std::fs::read(&input).unwrap() == bytes, "the input was changed");
    }
}

#[test]
fn more_matches_than_memory_are_written_in_turns() {
    let place = Place::new("scan_turns");
    let bytes = random_bytes(5, 21 * CHUNK * RECORD + 300);
    let input = place.put("input", &bytes);
    for (kernel, threads, depth) in [(everything(), 1, 8), (half(), 3, 1), (everything(), 2, 64)] {
        let output = place.at("output");
        let mut job = job(kernel.clone(), &input, &output);
        job["output"]["replace"] = json!(true);
        job["memory_bytes"] = json!(32 << 20);
        job["threads"] = json!(threads);
        job["io"]["depth"] = json!(depth);
        let result = answer(&job);
        let all = kernel["high"].is_null();
        let wanted = filtered(&bytes, |key| all || key[0] < 0x80);
        assert!(content(&output) == wanted, "{kernel} on {threads} threads");
        assert_eq!(result["phases"].as_array().unwrap().len(), 2, "turns are added up");
        assert_eq!(result["phases"][0]["bytes_read"], bytes.len());
    }
}

#[test]
fn stripes_are_read_and_made() {
    let place = Place::new("scan_stripes");
    let bytes = random_bytes(6, 5 * CHUNK * RECORD + 12_300);
    let input = place.put("input", &bytes);
    let disks = [place.directory("a"), place.directory("b"), place.directory("c")];
    let mut first = job(everything(), &input, &place.at("striped"));
    first["output"]["stripes"] = json!(disks);
    answer(&first);
    for (read, threads) in [("uring", 1), ("mmap", 2), ("uring", 2)] {
        let mut second = job(half(), &place.at("striped"), &place.at("output"));
        second["output"]["replace"] = json!(true);
        second["output"]["stripes"] = json!(disks[1..]);
        second["io"]["read"] = json!(read);
        second["threads"] = json!(threads);
        answer(&second);
        let wanted = filtered(&bytes, |key| key[0] < 0x80);
        assert!(content(&place.at("output")) == wanted, "{read}, {threads} threads");
    }
}

#[test]
fn a_range_without_a_match_makes_an_empty_data_set() {
    let place = Place::new("scan_nothing");
    let input = place.put("input", &[7; 1000]);
    let low = scan("08000000000000000000", None);
    let result = answer(&job(low, &input, &place.at("output")));
    assert_eq!(result["bytes_out"], 0);
    assert_eq!(std::fs::metadata(place.at("output")).unwrap().len(), 0);
}

#[test]
fn what_cannot_be_scanned_is_refused_and_leaves_nothing() {
    let place = Place::new("scan_refusals");
    let good = place.put("good", &random_bytes(1, 100 * RECORD));
    let (cut, empty) = (place.put("cut", &[1; 1050]), place.put("empty", &[]));
    let output = place.at("output");
    let few = {
        let mut job = job(half(), &good, &output);
        job["memory_bytes"] = json!(32 << 20);
        job["threads"] = json!(9);
        // As many portions as threads need as many chunks.
        job["input"] = json!(place.put("large", &random_bytes(2, 9 * CHUNK * RECORD)));
        job
    };
    let taken = job(half(), &good, &cut);
    let reversed = scan("80000000000000000000", Some("70000000000000000000"));
    let cases = [
        (job(half(), &cut, &output), "1050 bytes"),
        (job(half(), &empty, &output), "is empty"),
        (job(half(), &place.at("nowhere"), &output), "nowhere"),
        (job(reversed, &good, &output), "lower key first"),
        (few, "fewer threads"),
        (taken, "cut"),
    ];
    assert_refused(&place, cases);
}

#[test]
fn the_time_given_is_kept() {
    let place = Place::new("scan_time");
    let input = place.put("input", &random_bytes(3, 30 * CHUNK * RECORD));
    let mut job = job(everything(), &input, &place.at("output"));
    job["total_s_max"] = json!(0.02);
    job["memory_bytes"] = json!(32 << 20);
    assert!(refusal(&job).contains("0.02 seconds"));
    assert_eq!(place.names(), ["input"]);
}
