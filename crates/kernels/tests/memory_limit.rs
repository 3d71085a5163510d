//! The memory that a job names is all it takes. By itself, because memory is counted by process.

use crate::kernel_job::{Place, answer, job, random_bytes};
use crate::own_process::alone;
use leadline_kernels::phases::anonymous_bytes;
use serde_json::json;

#[test]
fn a_scan_and_a_transpose_keep_to_their_memory() {
    alone("memory_limit::a_scan_and_a_transpose_keep_to_their_memory", limits_are_kept);
}

fn limits_are_kept() {
    let place = Place::new("memory_limit");
    // Whole records and whole blocks: 45 MB of each.
    let input = place.put("input", &random_bytes(1, 250 * 44 * 4096));
    let before = anonymous_bytes();
    let scan = json!({"name": "scan", "low": "00000000000000000000"});
    let transpose = json!({"name": "transpose", "rows": 250, "columns": 44});
    for (kernel, read, threads, limit) in [
        (&scan, "uring", 1, 32_u64 << 20),
        (&scan, "uring", 2, 32 << 20),
        (&scan, "mmap", 2, 48 << 20),
        (&transpose, "uring", 1, 32 << 20),
        (&transpose, "mmap", 2, 48 << 20),
        (&transpose, "uring", 2, 60 << 20),
    ] {
        let mut job = job(kernel.clone(), &input, &place.at("output"));
        job["output"]["replace"] = json!(true);
        job["memory_bytes"] = json!(limit);
        job["io"]["read"] = json!(read);
        job["io"]["depth"] = json!(64);
        job["threads"] = json!(threads);
        let result = answer(&job);
        let peak = result["memory_peak_bytes"].as_u64().unwrap();
        let case = format!("{kernel} by {read} on {threads} threads in {limit}");
        assert!(peak <= before + limit, "{case}: {peak} with {before} before");
        assert!(peak >= before + (2 << 20), "{case}: {peak} is no peak");
    }
}
