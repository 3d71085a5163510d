//! One of AD98's kernels over one data set.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::check::{Wrong, absolute, begins_well, require, size, within};
use crate::ranges;
use crate::schema::{bounded, only_if, pattern, version};

/// One kernel over one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = read_and_written)]
pub struct StreamJob {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// Chosen by the caller; every event repeats it.
    #[schemars(length(min = 1))]
    pub job_id: String,
    /// What to do.
    pub kernel: Kernel,
    /// The data set to read: its path; `PATH.layout` beside it says where its stripes are. None for
    /// `generate` and `capacity`.
    #[serde(default)]
    #[schemars(transform = pattern("^/"))]
    pub input: Option<String>,
    /// The data set to make; none for `check` and `capacity`.
    #[serde(default)]
    pub output: Option<Output>,
    /// Directories for the runs of a sort in two passes, used in turn; nothing in them ever has a
    /// name. Empty: the output's own.
    #[serde(default)]
    #[schemars(transform = pattern("^/"))]
    pub temporary: Vec<String>,
    /// Most memory of the kernel, everything in it counted but the program itself.
    #[schemars(transform = bounded(ranges::STREAM_MEMORY_BYTES))]
    pub memory_bytes: u64,
    /// Threads that compute, each on its own part of the data.
    #[schemars(transform = bounded(ranges::STREAM_THREADS))]
    pub threads: u32,
    /// How bytes are moved.
    pub io: Io,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// Longest job.
    #[schemars(transform = bounded(ranges::TOTAL_S))]
    pub total_s_max: f64,
}

/// The kernels of AD98 §4 and what belongs to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// Writes the records with `low <= key < high` (AD98 §4.1).
    Scan {
        /// Lowest key that matches: 20 hexadecimal digits.
        #[schemars(transform = pattern(KEY))]
        low: String,
        /// First key above that no longer matches; none: all above `low` match.
        #[serde(default)]
        #[schemars(transform = pattern(KEY))]
        high: Option<String>,
    },
    /// Orders the records by their keys (AD98 §4.2).
    Sort {},
    /// Blocks of 4096 bytes from row-major into column-major order (AD98 §4.3).
    Transpose {
        /// Rows of the input, in blocks of 4096 bytes; fewer than 2^40 blocks in all.
        #[schemars(transform = bounded(ranges::BLOCKS))]
        rows: u64,
        /// Columns of the input, in blocks.
        #[schemars(transform = bounded(ranges::BLOCKS))]
        columns: u64,
    },
    /// Makes the sort benchmark's records.
    Generate {
        /// How many; with those before the first fewer than 2^48.
        #[schemars(transform = bounded(ranges::RECORDS))]
        records: u64,
        /// Number of the first, so that many can make one data set.
        #[serde(default)]
        #[schemars(transform = bounded(ranges::RECORDS))]
        first: u64,
        /// Binary or printable.
        format: Format,
        /// 0: uniform keys. Above: exponent of a Zipf distribution over the keys.
        #[serde(default)]
        #[schemars(transform = bounded(ranges::SKEW))]
        skew: f64,
    },
    /// Counts the records, sums their checksums and says whether they are in order.
    Check {},
    /// What memory and disks can do, by themselves.
    Capacity {
        /// One for each disk.
        #[schemars(transform = pattern("^/"))]
        directories: Vec<String>,
        /// Bytes laid out on each.
        #[schemars(transform = bounded(ranges::CAPACITY_BYTES))]
        bytes: u64,
    },
}

/// The two forms of the sort benchmark's records.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Any bytes.
    Binary,
    /// Printable, ended by CR LF.
    Ascii,
}

/// Where a data set goes. It gets its name when it is whole and verified, never before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its name, in an existing directory.
    #[schemars(transform = pattern("^/"))]
    pub path: String,
    /// Directories of its stripes, one for each disk; empty: a plain file at `path`.
    #[serde(default)]
    #[schemars(transform = pattern("^/"))]
    pub stripes: Vec<String>,
    /// Bytes on one disk before the next one's turn.
    #[serde(default = "stripe_bytes")]
    #[schemars(transform = powers_of_two)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Io {
    /// How the input is read.
    pub read: ReadBy,
    /// Whether `uring` reads by direct I/O.
    pub read_direct: bool,
    /// Whether writes use direct I/O.
    pub write_direct: bool,
    /// Reads, and writes, outstanding on each disk.
    #[schemars(transform = bounded(ranges::STREAM_DEPTH))]
    pub depth: u32,
}

/// The interfaces of the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// A mapping with sequential advice, as in AD98 §4.
    Mmap,
    /// Reads ahead through `io_uring`.
    Uring,
}

/// A key, for a schema.
const KEY: &str = "^[0-9A-Fa-f]{20}$";

/// Whether a text is a key.
fn is_key(text: &str) -> bool {
    text.len() == 20 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The input is there when the kernel reads, the output when it writes, and only then.
fn read_and_written(schema: &mut Schema) {
    let is_one_of = |names: &[&str]| json!({"kernel": {"properties": {"name": {"enum": names}}}});
    only_if(schema, &is_one_of(READERS), ("input", "string"));
    only_if(schema, &is_one_of(WRITERS), ("output", "object"));
}

const READERS: &[&str] = &["scan", "sort", "transpose", "check"];
const WRITERS: &[&str] = &["scan", "sort", "transpose", "generate"];

/// Units of stripes, in bytes.
fn powers_of_two(schema: &mut Schema) {
    let (low, high) = ranges::STRIPE_BYTES.into_inner();
    let units: Vec<u64> = (low.ilog2()..=high.ilog2()).map(|power| 1 << power).collect();
    schema.insert("enum".to_owned(), json!(units));
}

impl StreamJob {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        begins_well(self.version, &self.job_id)?;
        self.check_places()?;
        let memory = &ranges::STREAM_MEMORY_BYTES;
        let least = format!("at least {}", size(*memory.start()));
        within("memory_bytes", self.memory_bytes, memory, &least)?;
        within("threads", self.threads, &ranges::STREAM_THREADS, "threads that compute")?;
        within("io.depth", self.io.depth, &ranges::STREAM_DEPTH, "outstanding on each disk")?;
        within("total_s_max", self.total_s_max, &ranges::TOTAL_S, "seconds for the whole job")?;
        self.kernel.validate()
    }

    fn check_places(&self) -> Result<(), Wrong> {
        let kernel = self.kernel.name();
        for (field, given, wanted) in [
            ("input", self.input.is_some(), READERS.contains(&kernel)),
            ("output", self.output.is_some(), WRITERS.contains(&kernel)),
        ] {
            let (is, rule) = if wanted { ("absent", "there") } else { ("there", "absent") };
            require(given == wanted, field, is, rule, &format!("with the kernel {kernel}"))?;
        }
        self.input.iter().try_for_each(|path| absolute("input", path))?;
        self.temporary.iter().try_for_each(|path| absolute("temporary", path))?;
        self.output.as_ref().map_or(Ok(()), Output::validate)
    }
}

impl Output {
    fn validate(&self) -> Result<(), Wrong> {
        absolute("output.path", &self.path)?;
        self.stripes.iter().try_for_each(|path| absolute("output.stripes", path))?;
        let (field, unit) = ("output.stripe_bytes", self.stripe_bytes);
        let units = &ranges::STRIPE_BYTES;
        let write = format!("{} to {}", size(*units.start()), size(*units.end()));
        within(field, unit, units, &write)?;
        let write = "for example 65536";
        require(unit.is_power_of_two(), field, unit, "a power of two", write)
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

    fn validate(&self) -> Result<(), Wrong> {
        match self {
            Self::Scan { low, high } => {
                let mut keys = [("kernel.low", Some(low)), ("kernel.high", high.as_ref())]
                    .into_iter()
                    .filter_map(|(field, key)| Some((field, key?)));
                keys.try_for_each(|(field, key)| {
                    require(is_key(key), field, key, "20 hexadecimal digits", "a key of 10 bytes")
                })
            }
            Self::Transpose { rows, columns } => {
                within("kernel.rows", *rows, &ranges::BLOCKS, "blocks")?;
                within("kernel.columns", *columns, &ranges::BLOCKS, "blocks")?;
                let most = *ranges::BLOCKS.end();
                require(
                    rows.checked_mul(*columns).is_some_and(|blocks| blocks <= most),
                    "kernel.rows times kernel.columns",
                    format!("{rows} x {columns}"),
                    &format!("at most {most}"),
                    "blocks in all",
                )
            }
            Self::Generate { records, first, skew, .. } => {
                within("kernel.records", *records, &ranges::RECORDS, "records")?;
                within("kernel.first", *first, &ranges::RECORDS, "the number of a record")?;
                within("kernel.skew", *skew, &ranges::SKEW, "0 for uniform keys")?;
                let (last, most) = (records + first, *ranges::RECORDS.end());
                let fewer = &format!("at most {most}");
                require(last <= most, "kernel.records with first", last, fewer, "records in all")
            }
            Self::Capacity { directories, bytes } => {
                let mut paths = directories.iter();
                paths.try_for_each(|path| absolute("kernel.directories", path))?;
                within("kernel.bytes", *bytes, &ranges::CAPACITY_BYTES, "bytes on each disk")
            }
            Self::Sort {} | Self::Check {} => Ok(()),
        }
    }
}
