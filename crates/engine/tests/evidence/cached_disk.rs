//! A number that looks like a disk's and is a cache's is not valid, and says why.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scratch::{Scratch, skip};
use leadline_base::host::BlockDevice;
use leadline_engine::engine::run_job;
use serde_json::{Value, json};

fn direct_result(directory: &Path) -> Value {
    let job = json!({
        "version": 1, "kind": "measure", "job_id": "j",
        "target": {"kind": "directory", "path": directory.to_str().unwrap()},
        "workload": {"unique_bytes": 8 << 20, "size_mean": 65536, "size_dist": "fixed", "read_frac": 1.0,
            "seq_frac": 0.0, "process_num": 1},
        "backend": {"name": "pread", "direct": true}, "seed": 1,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 0.2, "measure_s_max": 60.0, "accuracy": 0.5,
            "total_s_max": 120.0,
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

#[test]
fn direct_reads_of_an_image_in_the_page_cache_are_seen_for_what_they_are() {
    let test = "cached_disk::direct_reads_of_an_image_in_the_page_cache_are_seen_for_what_they_are";
    let files = match LoopFileSystem::new("off") {
        Ok(files) => files,
        Err(reason) => return skip(test, &reason),
    };
    // What the disk below read besides is anyone's: whether the numbers convict it is held on
    // made-up counts (`provenance`), and on a calm machine.
    let device = BlockDevice::of(&File::open(files.mount()).unwrap()).unwrap();
    let below = device.caches_below().join("; ");
    assert!(below.contains("loop device with a page cache of its own below"), "{below}");
    let result = direct_result(&files.mount());
    assert_eq!(result["provenance"]["cached_share_from"], "device", "{result}");
    assert!(
        result["provenance"]["process_bytes"]["read"].as_u64().unwrap() + EDGES_BYTES
            >= result["read"]["bytes"].as_u64().unwrap(),
        "the kernel charged us with what the loop device's cache answered: {result}"
    );
}

/// The counters are read beside the window's edges, and a request may lie on each.
const EDGES_BYTES: u64 = 2 * 65_536;

#[test]
fn direct_reads_of_an_image_that_passes_the_cache_by_are_a_disks() {
    let test = "cached_disk::direct_reads_of_an_image_that_passes_the_cache_by_are_a_disks";
    let files = match LoopFileSystem::new("on") {
        Ok(files) => files,
        Err(reason) => return skip(test, &reason),
    };
    let result = direct_result(&files.mount());
    assert_eq!(result["event"], "result", "{result}");
    let read = result["read"]["bytes"].as_u64().unwrap();
    assert!(result["device_bytes"]["read"].as_u64().unwrap() + EDGES_BYTES >= read, "{result}");
    let cached = result["cached_share"].as_f64().unwrap() * read as f64;
    assert!(cached <= EDGES_BYTES as f64, "{result}");
}

#[test]
fn a_direct_run_in_memory_is_no_disks_number() {
    let test = "cached_disk::a_direct_run_in_memory_is_no_disks_number";
    let scratch = match Scratch::within(Path::new("/dev/shm"), "memory") {
        Ok(scratch) => scratch,
        Err(error) => return skip(test, &format!("/dev/shm: {error}")),
    };
    let result = direct_result(scratch.path());
    let refused = result["message"].as_str().unwrap_or_default();
    if refused.contains("without direct I/O") {
        return skip(test, "this kernel's tmpfs refuses direct I/O by itself");
    }
    assert_eq!(result["findings"][0]["code"], "memory_file_system", "{result}");
    assert_eq!(result["findings"][0]["values"]["file_system"], "tmpfs", "{result}");
    assert_eq!(result["admissible"], false);
    assert_eq!(result["cached_share"], 1.0, "{result}");
}
