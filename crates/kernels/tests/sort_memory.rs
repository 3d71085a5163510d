//! The memory limit of a sort, watched from beside it; a process of its own, so that nothing else
//! counts.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leadline_kernels::phases::anonymous_bytes;
use serde_json::{Value, json};

use crate::kernel_job::{run, run_in_little};
use crate::own_process::alone;

/// The most memory that is no file's while `work` runs.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let (over, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        (done, peak.load(Ordering::Relaxed))
    })
}

#[test]
fn a_sort_never_has_more_memory_than_it_was_given() {
    alone("sort_memory::a_sort_never_has_more_memory_than_it_was_given", sorts_stay_below);
}

fn sorts_stay_below() {
    let place = std::env::temp_dir().join(format!("leadline-sort-memory-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let path = |name: &str| place.join(name).to_string_lossy().into_owned();
    let io = json!({"read": "uring", "read_direct": true, "write_direct": true, "depth": 8});
    let job = |kernel: Value, memory_mib: u64, threads: u32| {
        json!({
            "version": 1, "kind": "stream", "job_id": "m", "kernel": kernel, "seed": 1,
            "memory_bytes": memory_mib << 20, "threads": threads, "total_s_max": 60.0, "io": io,
        })
    };
    let mut make = job(json!({"name": "generate", "records": 300_000, "format": "binary"}), 32, 1);
    make["output"] = json!({"path": path("in")});
    assert_eq!(run(&make)["event"], "result");
    for (memory_mib, threads, passes) in [(24, 1, 2), (32, 2, 2), (40, 4, 2), (56, 2, 1)] {
        let mut sort = job(json!({"name": "sort"}), memory_mib, threads);
        sort["input"] = json!(path("in"));
        sort["output"] = json!({"path": path("out"), "replace": true});
        let (result, peak) = peak_of(|| run_in_little(&sort));
        assert_eq!(result["passes"], passes, "{result}");
        let reported = result["memory_peak_bytes"].as_u64().unwrap();
        assert!(peak <= memory_mib << 20, "{peak} with {memory_mib} MiB, {threads} threads");
        assert!(reported <= memory_mib << 20 && reported > 8 << 20, "{reported}");
    }
    fs::remove_dir_all(&place).unwrap();
}
