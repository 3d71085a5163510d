//! A files job and its answer (`protocol/file-test-job.schema.json`, `…-result.schema.json`).

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::file_test::KIND;
use crate::wire::job::WIRE_VERSION;
use crate::wire::limits;
use crate::wire::text::read_job;

/// Sizes are whole numbers of the largest request, so that every program moves as many bytes.
const GRANULE_BYTES: u64 = 8192;

/// One file system under the programs, on all its drives at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileTestJob {
    /// Version of the wire; 1.
    pub version: u32,
    /// `file_test`: tells this job from a workload's.
    pub kind: String,
    /// Chosen by the caller; every event repeats it.
    pub job_id: String,
    /// Where the files lie; every program runs on all of them at once.
    pub drives: Vec<Drive>,
    /// Which programs, in their order.
    pub tests: Vec<Test>,
    /// Length of a file.
    pub file_bytes: u64,
    /// Runs of each program, one after the other.
    pub runs: u32,
    /// What the clock of a program covers.
    pub timing: Timing,
    /// Decides the bytes that are written.
    pub seed: u64,
    /// Longest job.
    pub total_s_max: f64,
}

/// One drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Directory below which the file is made, or the point at which `mount` is mounted.
    pub directory: String,
    /// What to mount there for this job, in a mount namespace of this process's own.
    #[serde(default)]
    pub mount: Option<Mount>,
    /// A device or a written file of at least `file_bytes`, read and written past the cache beside
    /// every run.
    #[serde(default)]
    pub raw: Option<String>,
}

/// A made file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Block device that holds it.
    pub device: String,
    /// The kernel's name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The file system's own options.
    #[serde(default)]
    pub options: String,
}

/// The programs of KM83 §4 and appendix A; the number is the request's size in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Reads a file from its beginning to its end.
    #[serde(rename = "read_8192")]
    Read8192,
    /// Makes a file and writes it.
    #[serde(rename = "write_4096")]
    Write4096,
    /// Makes a file and writes it.
    #[serde(rename = "write_8192")]
    Write8192,
    /// Writes over an existing file.
    #[serde(rename = "rewrite_8192")]
    Rewrite8192,
}

impl Test {
    /// Bytes of one request.
    #[must_use]
    pub fn request_bytes(self) -> usize {
        if self == Self::Write4096 { 4096 } else { 8192 }
    }

    /// Whether it reads.
    #[must_use]
    pub fn reads(self) -> bool {
        self == Self::Read8192
    }
}

/// What the clock of a program covers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// As KM83: from the program's open to its close; the cache is left as it is.
    Program,
    /// Until the drive has the data (`fsync` before the close), and reads begin with nothing of
    /// the file in the cache: memory of today holds any file of 1983.
    Drive,
}

impl FileTestJob {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// `BadJob` with the field, its value and what to write instead.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let job: Self = read_job(text, "file-test-job.schema.json")?;
        job.validate()?;
        Ok(job)
    }

    fn validate(&self) -> Result<(), EngineError> {
        let mut paths = self.drives.iter().flat_map(|drive| {
            let device = drive.mount.as_ref().map(|mount| &mount.device);
            [Some(&drive.directory), drive.raw.as_ref(), device].into_iter().flatten()
        });
        let absolute = paths.all(|path| path.starts_with('/'));
        let granules = self.file_bytes.is_multiple_of(GRANULE_BYTES);
        let checks = [
            (self.version == WIRE_VERSION, "version", "1; install one release"),
            (!self.job_id.is_empty(), "job_id", "a text of at least one character"),
            (limits::TEST_DRIVES.contains(&self.drives.len()), "drives", "1 to 64 drives"),
            (absolute, "drives", "absolute paths, from / on"),
            ((1..=4).contains(&self.tests.len()), "tests", "one to four programs"),
            (
                granules && limits::TEST_FILE_BYTES.contains(&self.file_bytes),
                "file_bytes",
                "a multiple of 8192 of at most 2^50",
            ),
            (limits::TEST_RUNS.contains(&self.runs), "runs", "1 to 1000"),
            (limits::TOTAL_S.contains(&self.total_s_max), "total_s_max", "0.02 to 1e9 seconds"),
        ];
        match checks.iter().find(|check| !check.0) {
            None => Ok(()),
            Some((_, field, wanted)) => {
                Err(EngineError::bad_job(format!("{field} of the file test must be {wanted}")))
            }
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileTestResult {
    event: &'static str,
    version: u32,
    kind: &'static str,
    job_id: String,
    file_bytes: u64,
    /// Block of each drive's file system, as `statvfs(3)` has it.
    block_bytes: Vec<u64>,
    tests: Vec<TestRuns>,
}

impl FileTestResult {
    /// The answer to `job`.
    #[must_use]
    pub fn new(job: &FileTestJob, tests: Vec<TestRuns>, block_bytes: Vec<u64>) -> Self {
        Self {
            event: "result",
            version: WIRE_VERSION,
            kind: KIND,
            job_id: job.job_id.clone(),
            file_bytes: job.file_bytes,
            block_bytes,
            tests,
        }
    }

    /// The runs of every program.
    #[must_use]
    pub fn tests(&self) -> &[TestRuns] {
        &self.tests
    }
}

/// All runs of one program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestRuns {
    /// Which program.
    pub test: Test,
    /// In their order.
    pub runs: Vec<Run>,
}

/// One run, on all drives at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// From the common start until the last drive was done.
    pub seconds: f64,
    /// Bytes that this process made the block layer read during it; null when not counted.
    pub device_read_bytes: Option<u64>,
    /// Each drive by itself.
    pub drives: Vec<DriveRun>,
    /// The same bytes past the file system, directly after; null when a drive has no raw device.
    pub raw: Option<RawRun>,
}

/// One drive's part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DriveRun {
    /// Seconds from its open to its close.
    pub seconds: f64,
    /// Of these, waiting for the drive to have the data; 0 when nobody waited.
    pub sync_s: f64,
    /// Processor seconds of the program, the kernel's on its behalf included.
    pub cpu_s: f64,
    /// Share of the file that lay in the file cache when a read began; null for a write, or when
    /// that cannot be known.
    pub cached_share: Option<f64>,
}

/// The raw devices, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RawRun {
    /// Bytes moved, all drives together.
    pub bytes: u64,
    /// From the common start until the last was done.
    pub seconds: f64,
}
