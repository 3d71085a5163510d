//! A number that looks like a disk's and is a cache's is not admissible, and says why.
#![allow(clippy::unwrap_used, missing_docs)]

mod scratch;

use std::path::{Path, PathBuf};
use std::process::Command;

use leadline_engine::engine::run_job;
use scratch::{Scratch, skip};
use serde_json::{Value, json};

fn direct_result(directory: &Path) -> Value {
    let job = json!({
        "version": 1, "job_id": "j",
        "target": {"kind": "directory", "path": directory.to_str().unwrap()},
        "workload": {"unique_bytes": 8 << 20, "size_mean": 65536, "size_dist": "fixed", "read_frac": 1.0,
            "seq_frac": 0.0, "process_num": 1},
        "backend": {"name": "pread", "direct": true}, "seed": 1,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 0.2, "measure_s_max": 0.2, "accuracy": 0.5,
            "total_s_max": 20.0,
        },
    });
    let mut last = Value::Null;
    run_job(&job.to_string(), &mut |line| last = serde_json::from_str(line).unwrap());
    last
}

/// What a command printed, or why it could not.
fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let run = Command::new(program).args(arguments).output();
    let run = run.map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if run.status.success() {
        Ok(text(&run.stdout))
    } else {
        Err(format!("{program}: {}", text(&run.stderr)))
    }
}

/// An ext4 file system in an image on a loop device, gone when the test ends.
struct LoopFileSystem {
    scratch: Scratch,
    device: Option<String>,
    mounted: bool,
}

impl LoopFileSystem {
    fn new(direct_io: &str) -> Result<Self, String> {
        let mut made = Self { scratch: Scratch::new("loop"), device: None, mounted: false };
        let image = made.scratch.path().join("image");
        std::fs::write(&image, vec![0u8; 32 << 20]).unwrap();
        let image = image.to_str().unwrap();
        output("mkfs.ext4", &["-q", "-F", image])?;
        let flag = format!("--direct-io={direct_io}");
        let device = output("losetup", &["--find", "--show", &flag, image])?;
        made.device = Some(device.clone());
        let place = device.replace("/dev/", "/sys/block/");
        let direct = std::fs::read_to_string(format!("{place}/loop/dio")).unwrap_or_default();
        if (direct.trim() == "1") != (direct_io == "on") {
            return Err(format!("{device} did not take --direct-io={direct_io}"));
        }
        std::fs::create_dir(made.mount()).unwrap();
        output("mount", &[&device, made.mount().to_str().unwrap()])?;
        made.mounted = true;
        Ok(made)
    }

    fn mount(&self) -> PathBuf {
        self.scratch.path().join("mount")
    }
}

impl Drop for LoopFileSystem {
    fn drop(&mut self) {
        if self.mounted {
            let _ = output("umount", &[self.mount().to_str().unwrap()]);
        }
        if let Some(device) = &self.device {
            let _ = output("losetup", &["--detach", device]);
        }
    }
}

fn reasons(result: &Value) -> Vec<&str> {
    assert_eq!(result["event"], "result", "{result}");
    result["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn direct_reads_of_an_image_in_the_page_cache_are_caught() {
    let files = match LoopFileSystem::new("off") {
        Ok(files) => files,
        Err(reason) => return skip("a cached disk number", &reason),
    };
    let result = direct_result(&files.mount());
    let all = reasons(&result);
    let found = all.iter().find(|reason| reason.starts_with("cached disk number: "));
    let found = found.unwrap_or_else(|| unreachable!("{result}"));
    assert!(found.contains("loop device with a page cache of its own below"), "{found}");
    assert_eq!(result["admissible"], false);
    assert!(result["cached_share"].as_f64().unwrap() > 0.5, "{result}");
    assert_eq!(result["provenance"]["cached_share_from"], "device");
    assert!(
        result["provenance"]["process_bytes"]["read"].as_u64() >= result["read"]["bytes"].as_u64(),
        "the kernel charged us with what the loop device's cache answered: {result}"
    );
}

#[test]
fn direct_reads_of_an_image_that_passes_the_cache_by_are_a_disks() {
    let files = match LoopFileSystem::new("on") {
        Ok(files) => files,
        Err(reason) => return skip("direct loop device", &reason),
    };
    let result = direct_result(&files.mount());
    let read = result["read"]["bytes"].as_u64().unwrap();
    // The device's counters are read beside the window's edges, and a request may lie on each.
    let edges = 2 * 65536;
    assert!(result["device_bytes"]["read"].as_u64().unwrap() + edges >= read, "{result}");
    let all = reasons(&result);
    assert!(!all.iter().any(|reason| reason.starts_with("cached disk")), "{all:?}");
    assert!(result["cached_share"].as_f64().unwrap() < 0.01, "{result}");
}

#[test]
fn a_direct_run_in_memory_is_no_disks_number() {
    let scratch = match Scratch::within(Path::new("/dev/shm"), "memory") {
        Ok(scratch) => scratch,
        Err(error) => return skip("a memory file system", &format!("/dev/shm: {error}")),
    };
    let result = direct_result(scratch.path());
    let refused = result["message"].as_str().unwrap_or_default();
    if refused.contains("without direct I/O") {
        return skip("a memory file system", "this kernel's tmpfs refuses direct I/O by itself");
    }
    let all = reasons(&result);
    assert!(all.iter().any(|it| it.starts_with("memory file system: tmpfs")), "{result}");
    assert_eq!(result["admissible"], false);
    assert_eq!(result["cached_share"], 1.0, "{result}");
}
