//! A streaming job (`protocol/stream-job.schema.json`).

use leadline_engine::error::EngineError;
use leadline_engine::job;
use leadline_engine::wire::job::WIRE_VERSION;
use leadline_engine::wire::limits;
use leadline_engine::wire::text::{Text, read_job};
use serde::{Deserialize, Serialize};

/// What `kind` says in a job of this kind.
pub const KIND: &str = "stream";

/// Any job of the wire.
#[derive(Clone, Debug)]
pub enum Job {
    /// `kind` says `stream`.
    Stream(StreamJob),
    /// Any other: the engine's own.
    Engine(job::Job),
}

impl Job {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// `BadJob` with the field, its value and what to write instead.
    pub fn read(text: &Text) -> Result<Self, EngineError> {
        if text.kind() == Some(KIND) {
            return StreamJob::parse(text.line()).map(Self::Stream);
        }
        job::Job::read(text).map(Self::Engine)
    }
}

/// One kernel over one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamJob {
    /// Version of the wire; 1.
    pub version: u32,
    /// `stream`: tells this job from the others.
    pub kind: String,
    /// Chosen by the caller; every event repeats it.
    pub job_id: String,
    /// What to do.
    pub kernel: Kernel,
    /// The data set to read: its path; `PATH.layout` beside it says where its stripes are. None for
    /// `generate` and `capacity`.
    #[serde(default)]
    pub input: Option<String>,
    /// The data set to make; none for `check` and `capacity`.
    #[serde(default)]
    pub output: Option<Output>,
    /// Directories for the runs of a sort in two passes, used in turn; nothing in them ever has a
    /// name. Empty: the output's own.
    #[serde(default)]
    pub temporary: Vec<String>,
    /// Most memory of the kernel, everything in it counted but the program itself.
    pub memory_bytes: u64,
    /// Threads that compute, each on its own part of the data.
    pub threads: u32,
    /// How bytes are moved.
    pub io: Io,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// Longest job.
    pub total_s_max: f64,
}

/// The kernels of AD98 §4 and what belongs to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// Writes the records with `low <= key < high` (AD98 §4.1).
    Scan {
        /// Lowest key that matches: 20 hexadecimal digits.
        low: String,
        /// First key above that no longer matches; none: all above `low` match.
        #[serde(default)]
        high: Option<String>,
    },
    /// Orders the records by their keys (AD98 §4.2).
    Sort {},
    /// Blocks of 4096 bytes from row-major into column-major order (AD98 §4.3).
    Transpose {
        /// Rows of the input, in blocks.
        rows: u64,
        /// Columns of the input, in blocks.
        columns: u64,
    },
    /// Makes the sort benchmark's records.
    Generate {
        /// How many.
        records: u64,
        /// Number of the first, so that many can make one data set.
        #[serde(default)]
        first: u64,
        /// Binary or printable.
        format: Format,
        /// 0: uniform keys. Above: exponent of a Zipf distribution over the keys.
        #[serde(default)]
        skew: f64,
    },
    /// Counts the records, sums their checksums and says whether they are in order.
    Check {},
    /// What memory and disks can do, by themselves.
    Capacity {
        /// One for each disk.
        directories: Vec<String>,
        /// Bytes laid out on each.
        bytes: u64,
    },
}

/// The two forms of the sort benchmark's records.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Any bytes.
    Binary,
    /// Printable, ended by CR LF.
    Ascii,
}

/// Where a data set goes. It gets its name when it is whole and verified, never before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its name, in an existing directory.
    pub path: String,
    /// Directories of its stripes, one for each disk; empty: a plain file at `path`.
    #[serde(default)]
    pub stripes: Vec<String>,
    /// Bytes on one disk before the next one's turn.
    #[serde(default = "stripe_bytes")]
    pub stripe_bytes: u64,
    /// Whether a data set of that name may be replaced.
    #[serde(default)]
    pub replace: bool,
}

/// The stripe unit of AD98 §4.
fn stripe_bytes() -> u64 {
    64 << 10
}

/// How bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Io {
    /// How the input is read.
    pub read: ReadBy,
    /// Whether `uring` reads past the file cache.
    pub read_direct: bool,
    /// Whether writes go past the file cache.
    pub write_direct: bool,
    /// Reads, and writes, outstanding on each disk.
    pub depth: u32,
}

/// The interfaces of the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// A mapping with sequential advice, as in AD98 §4.
    Mmap,
    /// Reads ahead through `io_uring`.
    Uring,
}

impl StreamJob {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// `BadJob` with the field, its value and what to write instead.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let job: Self = read_job(text, "stream-job.schema.json")?;
        job.validate()?;
        Ok(job)
    }

    fn validate(&self) -> Result<(), EngineError> {
        let reads = matches!(
            self.kernel,
            Kernel::Scan { .. } | Kernel::Sort {} | Kernel::Transpose { .. } | Kernel::Check {}
        );
        let writes = !matches!(self.kernel, Kernel::Check {} | Kernel::Capacity { .. });
        let output = self.output.iter();
        let mut paths = output
            .flat_map(|output| std::iter::once(&output.path).chain(&output.stripes))
            .chain(&self.input)
            .chain(&self.temporary);
        let units = self.output.as_ref().map_or(64 << 10, |output| output.stripe_bytes);
        let checks = [
            (self.version == WIRE_VERSION, "version", "1; install one release"),
            (!self.job_id.is_empty(), "job_id", "a text of at least one character"),
            (self.input.is_some() == reads, "input", "there when the kernel reads, and only then"),
            (
                self.output.is_some() == writes,
                "output",
                "there when the kernel writes, and only then",
            ),
            (paths.all(|path| path.starts_with('/')), "paths", "absolute, from / on"),
            (
                units.is_power_of_two() && limits::STRIPE_BYTES.contains(&units),
                "stripe_bytes",
                "a power of two from 4 KiB to 1 GiB",
            ),
            (
                self.memory_bytes >= limits::STREAM_MEMORY_BYTES_MIN,
                "memory_bytes",
                "at least 32 MiB",
            ),
            (limits::STREAM_THREADS.contains(&self.threads), "threads", "1 to 1024"),
            (limits::STREAM_DEPTH.contains(&self.io.depth), "depth", "1 to 256"),
            (limits::TOTAL_S.contains(&self.total_s_max), "total_s_max", "0.02 to 1e9 seconds"),
        ];
        match checks.iter().find(|check| !check.0) {
            None => self.kernel.validate(),
            Some((_, field, wanted)) => Err(bad(field, wanted)),
        }
    }
}

impl Kernel {
    /// Its name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Scan { .. } => "scan",
            Self::Sort {} => "sort",
            Self::Transpose { .. } => "transpose",
            Self::Generate { .. } => "generate",
            Self::Check {} => "check",
            Self::Capacity { .. } => "capacity",
        }
    }

    fn validate(&self) -> Result<(), EngineError> {
        let key =
            |text: &str| text.len() == 20 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (fits, field, wanted) = match self {
            Self::Scan { low, high } => (
                key(low) && high.as_deref().is_none_or(key),
                "low and high",
                "20 hexadecimal digits",
            ),
            Self::Transpose { rows, columns } => (
                *rows > 0
                    && *columns > 0
                    && rows.checked_mul(*columns).is_some_and(|n| n < 1 << 40),
                "rows and columns",
                "at least 1, and fewer than 2^40 blocks in all",
            ),
            Self::Generate { records, first, skew, .. } => (
                first.checked_add(*records).is_some_and(|n| n < 1 << 48)
                    && (0.0..=10.0).contains(skew),
                "records, first and skew",
                "fewer than 2^48 records; a skew from 0 to 10",
            ),
            Self::Capacity { directories, bytes } => (
                directories.iter().all(|path| path.starts_with('/'))
                    && (1 << 20..1 << 44).contains(bytes),
                "directories and bytes",
                "absolute paths; from 1 MiB on",
            ),
            Self::Sort {} | Self::Check {} => (true, "", ""),
        };
        if fits { Ok(()) } else { Err(bad(field, wanted)) }
    }
}

fn bad(field: &str, wanted: &str) -> EngineError {
    EngineError::bad_job(format!("{field} of the stream must be {wanted}"))
}
