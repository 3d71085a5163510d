//! Transposes of real files, against two loops.

use crate::kernel_job::{
    Place, answer, answer_in_little, assert_refused, content, job, random_bytes, refusal,
};
use serde_json::{Value, json};

const BLOCK: usize = 4096;

fn transpose(rows: usize, columns: usize) -> Value {
    json!({"name": "transpose", "rows": rows, "columns": columns})
}

/// Blocks that can be told apart: each begins with its number, over random bytes.
fn matrix(blocks: usize) -> Vec<u8> {
    let mut bytes = random_bytes(blocks as u64, blocks * BLOCK);
    for (number, block) in bytes.chunks_mut(BLOCK).enumerate() {
        block[..8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn naively(bytes: &[u8], rows: usize, columns: usize) -> Vec<u8> {
    let mut output = Vec::with_capacity(bytes.len());
    for column in 0..columns {
        for row in 0..rows {
            output.extend_from_slice(&bytes[(row * columns + column) * BLOCK..][..BLOCK]);
        }
    }
    output
}

/// Transposes and compares; the answer.
fn check(place: &Place, (rows, columns): (usize, usize), change: impl Fn(&mut Value)) -> Value {
    let bytes = matrix(rows * columns);
    let input = place.put("input", &bytes);
    let mut job = job(transpose(rows, columns), &input, &place.at("output"));
    job["output"]["replace"] = json!(true);
    change(&mut job);
    let result = answer_in_little(&job);
    assert!(content(&place.at("output")) == naively(&bytes, rows, columns), "{rows} x {columns}");
    assert!(std::fs::read(&input).unwrap() == bytes, "the input was changed");
    assert_eq!(result["bytes_out"], bytes.len());
    result
}

#[test]
fn in_memory_reading_and_writing_are_apart() {
    let place = Place::new("transpose_memory");
    for (rows, columns) in [(1, 1), (1, 501), (499, 1), (8, 8), (13, 31), (401, 3)] {
        for (read, direct, threads) in
            [("uring", true, 1), ("uring", false, 3), ("mmap", false, 1), ("mmap", true, 2)]
        {
            let result = check(&place, (rows, columns), |job| {
                job["io"]["read"] = json!(read);
                job["io"]["read_direct"] = json!(direct);
                job["io"]["write_direct"] = json!(direct);
                job["threads"] = json!(threads);
            });
            let phases = result["phases"].as_array().unwrap();
            let names: Vec<_> = phases.iter().map(|phase| &phase["name"]).collect();
            assert_eq!(names, ["read", "write"]);
            let bytes = rows * columns * BLOCK;
            assert_eq!(
                (&phases[0]["bytes_read"], &phases[0]["copied_bytes"]),
                (&json!(bytes), &json!(bytes))
            );
            assert_eq!(phases[1]["bytes_written"], bytes);
        }
    }
}

#[test]
fn larger_than_memory_goes_by_tiles() {
    let place = Place::new("transpose_tiles");
    let shapes = [(59, 61), (1, 3000), (4001, 1), (3, 1001), (830, 4)];
    for (number, shape) in shapes.into_iter().enumerate() {
        let (read, threads, memory) =
            [("uring", 1, 16 << 20), ("mmap", 2, 16 << 20), ("uring", 3, 20 << 20)][number % 3];
        let result = check(&place, shape, |job| {
            job["memory_bytes"] = json!(memory);
            job["io"]["read"] = json!(read);
            job["threads"] = json!(threads);
        });
        let phases = result["phases"].as_array().unwrap();
        assert_eq!(phases.len(), 1, "{shape:?}");
        assert_eq!(phases[0]["name"], "tiles");
        let bytes = shape.0 * shape.1 * BLOCK;
        assert_eq!(phases[0]["bytes_read"], bytes);
        assert_eq!(phases[0]["bytes_written"], bytes);
    }
}

#[test]
fn stripes_are_read_and_made() {
    let place = Place::new("transpose_stripes");
    let disks = [place.directory("a"), place.directory("b"), place.directory("c")];
    let bytes = matrix(31 * 101);
    let input = place.put("input", &bytes);
    let mut there = job(transpose(31, 101), &input, &place.at("striped"));
    there["output"]["stripes"] = json!(disks);
    answer(&there);
    for (read, memory, threads) in
        [("uring", 16 << 20, 2), ("mmap", 16 << 20, 1), ("mmap", 64 << 20, 2)]
    {
        let mut back = job(transpose(101, 31), &place.at("striped"), &place.at("output"));
        back["output"]["replace"] = json!(true);
        back["io"]["read"] = json!(read);
        back["memory_bytes"] = json!(memory);
        back["threads"] = json!(threads);
        answer_in_little(&back);
        assert!(content(&place.at("output")) == bytes, "{read}, {memory} bytes");
    }
}

#[test]
fn what_cannot_be_transposed_is_refused_and_leaves_nothing() {
    let place = Place::new("transpose_refusals");
    let good = place.put("good", &matrix(12));
    let (cut, empty) = (place.put("cut", &[1; 12 * BLOCK + 1]), place.put("empty", &[]));
    let output = place.at("output");
    let few = {
        let mut job = job(transpose(3, 4), &good, &output);
        job["memory_bytes"] = json!(32 << 20);
        job["threads"] = json!(9);
        job
    };
    let cases = [
        (job(transpose(3, 5), &good, &output), "product is 12"),
        (job(transpose(3, 4), &cut, &output), "1 are left over"),
        (job(transpose(3, 4), &empty, &output), "is empty"),
        (few, "fewer threads"),
    ];
    assert_refused(&place, cases);
}

#[test]
fn the_time_given_is_kept() {
    let place = Place::new("transpose_time");
    let input = place.put("input", &matrix(100 * 120));
    let mut job = job(transpose(100, 120), &input, &place.at("output"));
    job["total_s_max"] = json!(0.02);
    job["memory_bytes"] = json!(32 << 20);
    assert!(refusal(&job).contains("0.02 seconds"));
    assert_eq!(place.names(), ["input"]);
}
