//! What the engine is asked to do: the wire's `job` document (`protocol/job.schema.json`).

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::wire::limits::{self, OUTSTANDING_MAX, SMALLEST_TRANSFER_BYTES};
use crate::wire::text::read_job;

/// Version of the wire this engine speaks.
pub const WIRE_VERSION: u32 = 1;

/// One run of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "struct Job")] // a refusal calls it so
pub struct MeasureJob {
    /// Version of the wire; 1.
    pub version: u32,
    /// Chosen by the caller; every event repeats it.
    pub job_id: String,
    /// Where requests go.
    pub target: Target,
    /// What is asked of it.
    pub workload: Workload,
    /// How requests are made.
    pub backend: BackendChoice,
    /// Seed of every address stream of the run.
    pub seed: u64,
    /// When to stop.
    pub limits: Limits,
    /// What makes a request due.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Which processors the issuers run on.
    #[serde(default)]
    pub placement: Placement,
    /// Random writes before the warm-up, until the rate has reached its plateau.
    #[serde(default)]
    pub precondition: Option<Precondition>,
    /// Requests per second that this host's generator reached against nothing with as many
    /// issuers; a run within 20 % of it is marked generator-bound.
    #[serde(default)]
    pub ceiling_iops: Option<f64>,
}

/// What makes a request due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// The completion of an earlier one (and the think time): closed loop.
    #[default]
    Closed,
    /// A clock that ticks evenly, whatever has completed: open loop.
    Constant {
        /// Requests due per second, all issuers together.
        rate_per_s: f64,
    },
    /// A Poisson process: open loop.
    Poisson {
        /// Requests due per second in the mean, all issuers together.
        rate_per_s: f64,
    },
}

impl Arrivals {
    /// Requests due per second; none in a closed loop.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Constant { rate_per_s } | Self::Poisson { rate_per_s } => Some(*rate_per_s),
        }
    }
}

/// Which processors the issuers run on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// One processor each while there are enough, those that serve the device's interrupts first.
    #[default]
    Auto,
    /// Wherever the kernel puts them.
    Free,
}

/// Bounds of the writes that bring a device to its sustained rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Most bytes to write; they wear the device.
    pub bytes_max: u64,
}

/// Where I/O goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// The run directory owned by Leadline; the engine keeps the single file `data.bin` in it.
    Directory {
        /// Absolute path of the run directory.
        path: String,
    },
    /// A directory of an NFS server, in which the engine was asked to claim the run directory.
    Nfs {
        /// The server and the directory.
        server: NfsAddress,
        /// Name of the run directory below `.leadline/`.
        run: String,
    },
    /// Nothing: measures Leadline itself.
    Null {},
    /// A stated model obeyed in virtual time.
    Simulated {
        /// The profile, as `backend::simulated` reads it.
        system: serde_json::Value,
        /// Virtual time at which the run starts, in seconds.
        #[serde(default)]
        clock_s: f64,
        /// Seed of the simulated system's own noise.
        #[serde(default)]
        run_seed: u64,
    },
}

/// A directory of an NFS server.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NfsAddress {
    /// Name or address of the server.
    pub host: String,
    /// Port of its NFS program; none leaves it to the server's port mapper.
    #[serde(default)]
    pub port: Option<u16>,
    /// Port of its MOUNT program; none leaves it to the server.
    #[serde(default)]
    pub mount_port: Option<u16>,
    /// Path of the directory, the export's included; from / on.
    pub path: String,
}

impl NfsAddress {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// `BadJob` naming the field, its value and its range.
    pub fn validate(&self) -> Result<(), EngineError> {
        if self.host.is_empty() {
            return Err(out_of_range(
                "server.host",
                "empty",
                "a name or address",
                "name the server",
            ));
        }
        if !self.path.starts_with('/') || self.path.split('/').any(|name| name == "..") {
            return Err(out_of_range(
                "server.path",
                &self.path,
                "an absolute path without ..",
                "write the path from / on",
            ));
        }
        Ok(())
    }
}

const RUN: &str = "run-";
const RUN_DIGITS: usize = 32;

/// Whether a name is that of a run directory.
#[must_use]
pub fn is_run(name: &str) -> bool {
    name.strip_prefix(RUN).is_some_and(|digits| {
        digits.len() == RUN_DIGITS
            && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Which code makes the requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendName {
    /// `pread(2)` and `pwrite(2)`, one outstanding request per issuer.
    Pread,
    /// `io_uring`, up to `queue_depth` outstanding requests per issuer.
    Uring,
    /// Copies from and to a shared mapping of the file (AD98 §3), one at a time per issuer.
    Mmap,
    /// READ and WRITE calls of NFS version 3, up to `queue_depth` outstanding per issuer.
    Nfs,
    /// Requests that return at once.
    Null,
    /// Requests answered by the simulated system.
    Simulated,
}

/// The backend and its options.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendChoice {
    /// Which one.
    pub name: BackendName,
    /// Bypass the file cache (`O_DIRECT`).
    #[serde(default)]
    pub direct: bool,
    /// Which writes wait for the device.
    #[serde(default)]
    pub sync: WriteSync,
}

/// Which writes wait until their bytes are on the device. The wait is part of the write's response
/// time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WriteSync {
    /// None: the file cache writes them out when it likes.
    #[default]
    None,
    /// Every one (`O_DSYNC`).
    Dsync,
    /// Each issuer calls `fsync` after this many of its writes; the last of them waits for it.
    Fsync {
        /// Writes from one `fsync` to the next, 1 for all.
        each: u32,
    },
}

/// When to stop. Times in seconds: wall time, or virtual time on a simulated target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Longest warm-up.
    pub warm_up_s_max: f64,
    /// Shortest measured window.
    pub measure_s_min: f64,
    /// Longest measured window.
    pub measure_s_max: f64,
    /// Measuring ends when the 95 % interval's half-width is below this share of the mean.
    pub accuracy: f64,
    /// Longest job, laying out the file included.
    pub total_s_max: f64,
}

/// How request sizes are drawn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeDist {
    /// Normal with coefficient of variation 1, cut at the smallest transfer (CP94 §5).
    #[default]
    Normal,
    /// Every request has exactly `size_mean` bytes.
    Fixed,
}

/// The five parameters of CP94 §5, CP93's think time, and the queue depth of one issuer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Bytes of distinct data touched.
    pub unique_bytes: u64,
    /// Mean request size in bytes.
    pub size_mean: u64,
    /// Probability that a request is a read, 0 to 1.
    pub read_frac: f64,
    /// Probability that a request starts where this process's previous one ended, 0 to 1.
    pub seq_frac: f64,
    /// Issuers at once.
    pub process_num: u32,
    /// Distribution of request sizes.
    #[serde(default)]
    pub size_dist: SizeDist,
    /// Requests outstanding per issuer.
    #[serde(default = "one")]
    pub queue_depth: u32,
    /// Pause of an issuer between a completion and its next request, in seconds.
    #[serde(default)]
    pub think_time_s: f64,
}

impl MeasureJob {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// `BadJob` with the field, its value, the range and what to write instead.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let job: Self = read_job(text, "job.schema.json")?;
        job.validate()?;
        Ok(job)
    }

    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// `BadJob` with the field, its value, the range and what to write instead.
    pub fn validate(&self) -> Result<(), EngineError> {
        if self.version != WIRE_VERSION {
            return Err(out_of_range(
                "version",
                self.version,
                "1",
                "the engine and its caller come from different releases; install one release",
            ));
        }
        if self.job_id.is_empty() {
            return Err(out_of_range(
                "job_id",
                "empty",
                "any text of at least one character",
                "give every job a name",
            ));
        }
        self.workload.validate()?;
        self.limits.validate()?;
        self.check_backend()?;
        self.check_queue_depth()?;
        self.check_arrivals()?;
        self.check_extras()
    }

    fn check_backend(&self) -> Result<(), EngineError> {
        let fits = match &self.target {
            Target::Directory { path } => {
                if !path.starts_with('/') {
                    return Err(out_of_range(
                        "target.path",
                        path,
                        "an absolute path",
                        "write the path from / on",
                    ));
                }
                let name = self.backend.name;
                matches!(name, BackendName::Pread | BackendName::Uring | BackendName::Mmap)
            }
            Target::Nfs { server, run } => {
                server.validate()?;
                if !is_run(run) {
                    return Err(out_of_range(
                        "target.run",
                        run,
                        "run- and 32 hexadecimal digits",
                        "take the name that the claim was made with",
                    ));
                }
                self.backend.name == BackendName::Nfs
            }
            Target::Null {} => self.backend.name == BackendName::Null,
            Target::Simulated { clock_s, .. } => {
                check(
                    "target.clock_s",
                    *clock_s,
                    &limits::VIRTUAL_CLOCK_S,
                    "seconds of virtual time, 0 for a fresh system",
                )?;
                self.backend.name == BackendName::Simulated
            }
        };
        if !fits {
            return Err(out_of_range(
                "backend.name",
                format!("{:?}", self.backend.name).to_lowercase(),
                "pread, uring or mmap for a directory, nfs for nfs, null for null, simulated for \
                simulated",
                "choose the backend that serves the target's kind",
            ));
        }
        self.check_sync()?;
        let direct_too = matches!(self.backend.name, BackendName::Pread | BackendName::Uring);
        if self.backend.direct && !direct_too {
            return Err(out_of_range(
                "backend.direct",
                true,
                "false unless backend.name is pread or uring",
                "leave it out",
            ));
        }
        Ok(())
    }

    fn check_sync(&self) -> Result<(), EngineError> {
        if self.backend.sync != WriteSync::None && self.backend.name == BackendName::Null {
            return Err(out_of_range(
                "backend.sync",
                "given",
                "none with the backend null, which writes nothing that could be waited for",
                "leave it out",
            ));
        }
        let WriteSync::Fsync { each } = self.backend.sync else { return Ok(()) };
        check("backend.sync.each", each, &limits::FSYNC_EACH, "1 for an fsync after every write")
    }

    fn check_queue_depth(&self) -> Result<(), EngineError> {
        let outstanding =
            u64::from(self.workload.process_num) * u64::from(self.workload.queue_depth);
        if outstanding > OUTSTANDING_MAX && self.backend.name != BackendName::Simulated {
            return Err(out_of_range(
                "workload.queue_depth",
                self.workload.queue_depth,
                &format!("at most {OUTSTANDING_MAX} divided by process_num"),
                "every outstanding request has a buffer of its own",
            ));
        }
        let queues = !matches!(self.backend.name, BackendName::Pread | BackendName::Mmap);
        if self.workload.queue_depth == 1 || queues {
            return Ok(());
        }
        let name = format!("{:?}", self.backend.name).to_lowercase();
        Err(out_of_range(
            "workload.queue_depth",
            self.workload.queue_depth,
            &format!("1 with the backend {name}, which keeps one request outstanding per issuer"),
            "raise process_num instead, or choose the backend uring",
        ))
    }

    fn check_arrivals(&self) -> Result<(), EngineError> {
        let Some(rate_per_s) = self.arrivals.rate_per_s() else { return Ok(()) };
        check(
            "arrivals.rate_per_s",
            rate_per_s,
            &limits::WORKLOAD_RATE_PER_S,
            "requests due per second",
        )?;
        if self.workload.think_time_s > 0.0 {
            return Err(out_of_range(
                "workload.think_time_s",
                self.workload.think_time_s,
                "0 when requests arrive by a clock",
                "leave the think time or the rate out",
            ));
        }
        Ok(())
    }

    fn check_extras(&self) -> Result<(), EngineError> {
        if let Some(ceiling_iops) = self.ceiling_iops {
            let write = "requests per second; leave it out when it was not measured";
            check("ceiling_iops", ceiling_iops, &limits::CEILING_IOPS, write)?;
        }
        let Some(precondition) = self.precondition else { return Ok(()) };
        let bytes = "bytes that may be written";
        check(
            "precondition.bytes_max",
            precondition.bytes_max,
            &limits::PRECONDITION_BYTES,
            bytes,
        )?;
        if matches!(self.target, Target::Directory { .. }) {
            return Ok(());
        }
        Err(out_of_range(
            "precondition",
            "given",
            "absent unless the target is a directory",
            "leave it out",
        ))
    }
}

impl Workload {
    /// Checks the ranges, which are those of `python/leadline/record/workload.py`.
    ///
    /// # Errors
    /// `BadJob` naming the field, its value and its range.
    pub fn validate(&self) -> Result<(), EngineError> {
        let bytes = "bytes, as a whole number";
        check("workload.unique_bytes", self.unique_bytes, &limits::WORKLOAD_BYTES, bytes)?;
        check("workload.size_mean", self.size_mean, &limits::WORKLOAD_BYTES, bytes)?;
        check("workload.read_frac", self.read_frac, &limits::SHARE, "1 for reads only")?;
        check("workload.seq_frac", self.seq_frac, &limits::SHARE, "0 for random places only")?;
        check(
            "workload.process_num",
            self.process_num,
            &limits::PROCESSES,
            "the number of issuers",
        )?;
        check(
            "workload.queue_depth",
            self.queue_depth,
            &limits::QUEUE_DEPTH,
            "1 for one request at a time",
        )?;
        check("workload.think_time_s", self.think_time_s, &limits::THINK_S, "seconds, 0 for none")?;
        if self.size_dist == SizeDist::Fixed
            && !self.size_mean.is_multiple_of(SMALLEST_TRANSFER_BYTES)
        {
            return Err(out_of_range(
                "workload.size_mean",
                self.size_mean,
                "a multiple of 512 when size_dist is fixed",
                &format!("write {}", self.size_mean.next_multiple_of(SMALLEST_TRANSFER_BYTES)),
            ));
        }
        Ok(())
    }
}

impl Limits {
    /// Checks the ranges and that they fit each other.
    ///
    /// # Errors
    /// `BadJob` naming the field, its value and its range.
    pub fn validate(&self) -> Result<(), EngineError> {
        check("limits.warm_up_s_max", self.warm_up_s_max, &limits::WARM_UP_S, "seconds")?;
        check("limits.measure_s_max", self.measure_s_max, &limits::MEASURE_S, "seconds")?;
        check(
            "limits.measure_s_min",
            self.measure_s_min,
            &(0.0..=self.measure_s_max),
            "no more than measure_s_max",
        )?;
        check("limits.accuracy", self.accuracy, &limits::SHARE, "0.02 asks for 2 %")?;
        check("limits.total_s_max", self.total_s_max, &limits::TOTAL_S, "seconds for the whole job")
    }
}

fn check<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: &RangeInclusive<T>,
    write: &str,
) -> Result<(), EngineError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(out_of_range(field, value, &format!("{} to {}", range.start(), range.end()), write))
}

fn out_of_range(field: &str, value: impl Display, range: &str, write: &str) -> EngineError {
    EngineError::bad_job(format!("{field} is {value}; it must be {range} ({write})"))
}

fn one() -> u32 {
    1
}

/// A read or a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Bytes flow to the issuer.
    Read,
    /// Bytes flow to the target.
    Write,
}

/// One request of one issuer, as the access pattern draws it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// First byte touched, below `unique_bytes`.
    pub offset_bytes: u64,
    /// Length; `offset_bytes + length_bytes <= unique_bytes` always holds.
    pub length_bytes: u64,
    /// Read or write.
    pub kind: Kind,
    /// True when it starts where this issuer's previous request ended.
    pub sequential: bool,
}

impl Request {
    /// No request: what a place for one holds before its first.
    pub const NONE: Self =
        Self { offset_bytes: 0, length_bytes: 0, kind: Kind::Read, sequential: false };
}
