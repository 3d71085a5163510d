//! A kernel run as the engine child runs it: a job's line in, the last event out.

use std::path::{Path, PathBuf};

use leadline_base::events::Reporter;
use leadline_kernels::data_set::Input;
use leadline_kernels::lane::ReadLane;
use leadline_kernels::memory::Memory;
use leadline_kernels::run::run_job;
use leadline_kernels::{scan, sort, transpose};
use leadline_wire::job::Job;
use leadline_wire::job::stream::{Io, Kernel, ReadBy};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

/// A directory of the test's own on a real disk, gone when it is dropped.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    /// A path in it.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// A directory in it.
    pub fn directory(&self, name: &str) -> String {
        std::fs::create_dir_all(self.0.join(name)).unwrap();
        self.at(name)
    }

    /// Puts bytes at a path in it.
    pub fn put(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self.at(name)
    }

    /// Names of everything in it, in their order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A job for `kernel` from `input` to `output`, to be changed by the test.
pub fn job(kernel: Value, input: &str, output: &str) -> Value {
    json!({
        "version": 1, "kind": "stream", "job_id": "test", "kernel": kernel,
        "input": input, "output": {"path": output},
        "memory_bytes": 64 << 20, "threads": 1,
        "io": {"read": "uring", "read_direct": true, "write_direct": true, "depth": 4},
        "seed": 1, "total_s_max": 60.0,
    })
}

/// The job's last event.
pub fn run(job: &Value) -> Value {
    let mut last = String::new();
    run_job(&job.to_string(), &mut |event| event.clone_into(&mut last));
    serde_json::from_str(&last).unwrap()
}

/// The last event of a job that may have less memory than the wire allows: little data are then
/// more than its memory holds, and go the way of a lot.
pub fn run_in_little(job: &Value) -> Value {
    let Ok(Job::Stream(job)) = serde_json::from_value(job.clone()) else { unreachable!() };
    let mut last = String::new();
    let mut emit = |event: &str| event.clone_into(&mut last);
    Reporter::new(&job.job_id, &mut emit).tell(|reporter| match job.kernel {
        Kernel::Scan { .. } => scan::run(&job, reporter),
        Kernel::Transpose { .. } => transpose::run(&job, reporter),
        _ => sort::run(&job, reporter),
    });
    serde_json::from_str(&last).unwrap()
}

/// The answer to a job that works.
pub fn answer(job: &Value) -> Value {
    worked(run(job))
}

/// As [`answer`], in less memory than the wire allows.
pub fn answer_in_little(job: &Value) -> Value {
    worked(run_in_little(job))
}

fn worked(event: Value) -> Value {
    assert_eq!(event["event"], "result", "{event}");
    assert_eq!(event["verified"], true, "{event}");
    event
}

/// What a job that does not work says.
pub fn refusal(job: &Value) -> String {
    let event = run(job);
    assert_eq!(event["event"], "error", "{event}");
    event["message"].as_str().unwrap().to_owned()
}

/// Each of these jobs is refused in words with `said` in them, and leaves nothing behind.
pub fn assert_refused<const N: usize>(place: &Place, cases: [(Value, &str); N]) {
    let before = place.names();
    for (job, said) in cases {
        let message = refusal(&job);
        assert!(message.contains(said), "{said}: {message}");
        assert_eq!(place.names(), before, "{said}");
    }
}

/// All bytes of a data set, be it a file or stripes.
pub fn content(path: &str) -> Vec<u8> {
    let io = Io { read: ReadBy::Uring, read_direct: false, write_direct: false, depth: 2 };
    let input = Input::open(path, &io).unwrap();
    let length = input.bytes() as usize;
    let memory = Memory::new(length as u64).unwrap();
    let mut lane = ReadLane::open(&input, &io).unwrap();
    lane.submit(0, length, memory.take(length).unwrap());
    lane.take().unwrap().2.to_vec()
}

/// Bytes that nobody can guess.
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill(&mut bytes[..]);
    bytes
}
