//! What a file test found: every run of every program, each drive by itself.

use schemars::JsonSchema;
use serde::Serialize;

use crate::WIRE_VERSION;
use crate::job::file_test::{FileTestJob, Test};
use crate::ranges;
use crate::schema::{bounded, version};

/// The answer to a file test.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FileTestResult {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// The job's.
    pub job_id: String,
    /// Length of a file.
    pub file_bytes: u64,
    /// Block of each drive's file system, as `statvfs(3)` has it; 0 when the kernel does not say.
    #[schemars(length(min = 1))]
    pub block_bytes: Vec<u64>,
    /// The runs of every program.
    #[schemars(length(min = 1))]
    pub tests: Vec<TestRuns>,
}

impl FileTestResult {
    /// The answer to `job`.
    #[must_use]
    pub fn new(job: &FileTestJob, tests: Vec<TestRuns>, block_bytes: Vec<u64>) -> Self {
        Self {
            version: WIRE_VERSION,
            job_id: job.job_id.clone(),
            file_bytes: job.file_bytes,
            block_bytes,
            tests,
        }
    }
}

/// All runs of one program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TestRuns {
    /// Which program.
    pub test: Test,
    /// In their order.
    #[schemars(length(min = 1))]
    pub runs: Vec<Run>,
}

/// One run, on all drives at once.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Run {
    /// From the common start until the last drive was done.
    pub seconds: f64,
    /// Bytes that this process made the block layer read during it; null when not counted.
    pub device_read_bytes: Option<u64>,
    /// Each drive by itself.
    #[schemars(length(min = 1))]
    pub drives: Vec<DriveRun>,
    /// The same bytes past the file system, directly after; null when a drive has no raw device.
    pub raw: Option<RawRun>,
}

/// One drive's part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DriveRun {
    /// Seconds from its open to its close.
    pub seconds: f64,
    /// Of these, waiting for the drive to have the data; 0 when nobody waited.
    pub sync_s: f64,
    /// Processor seconds of the program, the kernel's on its behalf included.
    pub cpu_s: f64,
    /// Share of the file that lay in the page cache when a read began; null for a write, or when
    /// that cannot be known.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub cached_share: Option<f64>,
}

/// The raw devices, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RawRun {
    /// Bytes moved, all drives together.
    pub bytes: u64,
    /// From the common start until the last was done.
    pub seconds: f64,
}
