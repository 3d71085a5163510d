//! A file test: KM83's four programs on plain files of one file system, on all its drives at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, absolute, begins_well, require, within};
use crate::ranges::{self, TEST_GRANULE_BYTES};
use crate::schema::{bounded, counted, pattern, version};

/// One file system under the programs, on all its drives at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileTestJob {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// Chosen by the caller; every event repeats it.
    #[schemars(length(min = 1))]
    pub job_id: String,
    /// Where the files lie; every program runs on all of them at once.
    #[schemars(transform = counted(ranges::TEST_DRIVES))]
    pub drives: Vec<Drive>,
    /// Which programs, in their order.
    #[schemars(transform = counted(ranges::TEST_PROGRAMS))]
    pub tests: Vec<Test>,
    /// Length of a file.
    #[schemars(transform = bounded(ranges::TEST_FILE_BYTES))]
    #[schemars(extend("multipleOf" = TEST_GRANULE_BYTES))]
    pub file_bytes: u64,
    /// Runs of each program, one after the other.
    #[schemars(transform = bounded(ranges::TEST_RUNS))]
    pub runs: u32,
    /// What the clock of a program covers.
    pub timing: Timing,
    /// Decides the bytes that are written.
    pub seed: u64,
    /// Longest job.
    #[schemars(transform = bounded(ranges::TOTAL_S))]
    pub total_s_max: f64,
}

/// One drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Directory below which the file is made, or the point at which `mount` is mounted.
    #[schemars(transform = pattern("^/"))]
    pub directory: String,
    /// What to mount there for this job, in a mount namespace of this process's own.
    #[serde(default)]
    pub mount: Option<Mount>,
    /// A device or a written file of at least `file_bytes`, read and written past the cache beside
    /// every run.
    #[serde(default)]
    #[schemars(transform = pattern("^/"))]
    pub raw: Option<String>,
}

/// A made file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Block device that holds it.
    #[schemars(transform = pattern("^/"))]
    pub device: String,
    /// The kernel's name of its type.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The file system's own options.
    #[serde(default)]
    pub options: String,
}

/// The programs of KM83 §4 and appendix A; the number is the request's size in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// As KM83: from the program's open to its close; the cache is left as it is.
    Program,
    /// Until the drive has the data (`fsync` before the close), and reads begin with nothing of
    /// the file in the cache: memory of today holds any file of 1983.
    Drive,
}

impl FileTestJob {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        begins_well(self.version, &self.job_id)?;
        within("drives", self.drives.len(), &ranges::TEST_DRIVES, "a list of drives")?;
        self.drives.iter().try_for_each(Drive::validate)?;
        within("tests", self.tests.len(), &ranges::TEST_PROGRAMS, "a list of programs")?;
        within("file_bytes", self.file_bytes, &ranges::TEST_FILE_BYTES, "the length of a file")?;
        require(
            self.file_bytes.is_multiple_of(TEST_GRANULE_BYTES),
            "file_bytes",
            self.file_bytes,
            &format!("a multiple of {TEST_GRANULE_BYTES}"),
            "every program moves as many bytes",
        )?;
        within("runs", self.runs, &ranges::TEST_RUNS, "runs of each program")?;
        within("total_s_max", self.total_s_max, &ranges::TOTAL_S, "seconds for the whole job")
    }
}

impl Drive {
    fn validate(&self) -> Result<(), Wrong> {
        absolute("drives.directory", &self.directory)?;
        if let Some(raw) = &self.raw {
            absolute("drives.raw", raw)?;
        }
        let Some(mount) = &self.mount else { return Ok(()) };
        absolute("drives.mount.device", &mount.device)?;
        require(
            !mount.kind.is_empty(),
            "drives.mount.type",
            "empty",
            "the kernel's name of a file system",
            "write for example ext4",
        )
    }
}
