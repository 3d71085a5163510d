//! Stalls of a real run: the disk held back for a second, and the engine itself stopped.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod scratch;

use std::fs;
use std::io::{BufRead, BufReader, Error, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use scratch::Scratch;
use serde_json::{Value, json};

/// The engine in a process of its own, gone when the test ends.
struct Engine(Child);

impl Engine {
    fn start() -> Self {
        let tests = std::env::current_exe().unwrap();
        let serve = tests.ancestors().nth(2).unwrap().join("examples/serve");
        assert!(serve.exists(), "{} is not built: cargo build --examples", serve.display());
        let child = Command::new(serve).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self(child.unwrap())
    }

    /// Runs a job; `once_measuring` is called half a second into the window.
    fn run(&mut self, job: &Value, once_measuring: impl FnOnce(u32)) -> Value {
        let id = self.0.id();
        writeln!(self.0.stdin.as_mut().unwrap(), "{job}").unwrap();
        let mut once_measuring = Some(once_measuring);
        for line in BufReader::new(self.0.stdout.as_mut().unwrap()).lines() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            match event["event"].as_str().unwrap() {
                "result" => return event,
                "error" => panic!("{event}"),
                _ if event["phase"] == "measure" => {
                    if let Some(act) = once_measuring.take() {
                        sleep(Duration::from_millis(500));
                        act(id);
                    }
                }
                _ => {}
            }
        }
        panic!("the engine went away")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A group of processes whose reads from one disk can be held back.
struct Throttle {
    group: PathBuf,
    device: String,
}

impl Throttle {
    /// A group for the disk below `path`, with `process` in it.
    fn new(path: &Path, process: u32) -> Result<Self, Error> {
        let device = fs::metadata(path)?.dev();
        let device = format!("{}:{}", libc::major(device), libc::minor(device));
        let group = format!("/sys/fs/cgroup/blkio/leadline-stalls-{process}");
        fs::create_dir(&group)?;
        let throttle = Self { group: group.into(), device };
        throttle.set(0)?;
        fs::write(throttle.group.join("cgroup.procs"), process.to_string())?;
        Ok(throttle)
    }

    /// Reads per second that are let through; 0 for all.
    fn set(&self, read_iops: u64) -> Result<(), Error> {
        let line = format!("{} {read_iops}", self.device);
        fs::write(self.group.join("blkio.throttle.read_iops_device"), line)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let _ = self.set(0);
        let everywhere = Path::new("/sys/fs/cgroup/blkio/cgroup.procs");
        for process in
            fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default().lines()
        {
            let _ = fs::write(everywhere, process);
        }
        let _ = fs::remove_dir(&self.group);
    }
}

fn job(scratch: &Scratch, direct: bool) -> Value {
    json!({
        "version": 1, "job_id": "stall", "target": {"kind": "directory", "path": scratch.text()},
        "workload": {
            "unique_bytes": 16 << 20, "size_mean": 4096, "size_dist": "fixed", "read_frac": 1.0,
            "seq_frac": 0.0, "process_num": 1,
        },
        "backend": {"name": "pread", "direct": direct}, "seed": 1,
        "limits": {
            "warm_up_s_max": 0.3, "measure_s_min": 3.0, "measure_s_max": 3.0, "accuracy": 0.0,
            "total_s_max": 30.0,
        },
    })
}

fn stall_warnings(result: &Value) -> Vec<&str> {
    let warnings = result["warnings"].as_array().unwrap();
    let texts = warnings.iter().filter_map(Value::as_str);
    texts.filter(|text| text.starts_with("stall: ")).collect()
}

#[test]
fn a_disk_held_back_for_a_second_is_named_and_the_tail_shows_it() {
    let scratch = Scratch::new("stall");
    let mut engine = Engine::start();
    let throttle = match Throttle::new(scratch.path(), engine.0.id()) {
        Ok(throttle) => throttle,
        Err(error) => {
            eprintln!("skipped: no blkio throttle for the disk of {}: {error}", scratch.text());
            return;
        }
    };
    let result = engine.run(&job(&scratch, true), |_| {
        throttle.set(1).unwrap();
        sleep(Duration::from_millis(1200));
        throttle.set(0).unwrap();
    });
    let named: Vec<&Value> = result["stalls"].as_array().unwrap().iter().collect();
    assert!(!named.is_empty(), "{}", result["warnings"]);
    assert!(named.iter().all(|stall| stall["generator"] == false), "{named:?}");
    let told = stall_warnings(&result);
    assert_eq!(told.len(), named.len());
    assert!(told[0].contains("no request completed for"), "{told:?}");
    let longest_s = named.iter().filter_map(|stall| stall["seconds"].as_f64()).fold(0.0, f64::max);
    assert!((0.5..2.5).contains(&longest_s), "{named:?}");
    let most_us = result["latency_us"]["max"].as_f64().unwrap();
    assert!(most_us * 1e-6 > 0.9 * longest_s, "{most_us} us");
}

#[test]
fn an_engine_that_was_stopped_says_so_and_does_not_blame_the_disk() {
    let scratch = Scratch::new("stopped");
    let result = Engine::start().run(&job(&scratch, false), |process| {
        let process = process as libc::pid_t;
        // SAFETY: signals to our own child, which is alive until it is dropped.
        unsafe { libc::kill(process, libc::SIGSTOP) };
        sleep(Duration::from_millis(500));
        // SAFETY: as above.
        unsafe { libc::kill(process, libc::SIGCONT) };
    });
    let named = result["stalls"].as_array().unwrap();
    // The machine may stand still by itself too; only the half second we made is ours to check.
    let made = |stall: &&Value| stall["seconds"].as_f64().unwrap() >= 0.4;
    let longest: Vec<&Value> = named.iter().filter(made).collect();
    assert!(longest.iter().any(|stall| stall["generator"] == true), "{named:?}");
    assert!(longest.iter().all(|stall| stall["generator"] == true), "{named:?}");
    let told = stall_warnings(&result);
    assert!(told.iter().any(|text| text.contains("Leadline itself did not run")), "{told:?}");
}
