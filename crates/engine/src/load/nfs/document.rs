//! A load job and its answer (`protocol/nfs-load-job.schema.json`, `…-result.schema.json`).

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::load::LoadResult;
use crate::load::nfs::KIND;
use crate::wire::data_set::Data;
use crate::wire::job::{NfsAddress, WIRE_VERSION};
use crate::wire::limits;
use crate::wire::text::read_job;

/// One thing done with one data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NfsLoadJob {
    /// Version of the wire; 1.
    pub version: u32,
    /// `nfs_load`: tells this job from a workload's.
    pub kind: String,
    /// Chosen by the caller; every event repeats it.
    pub job_id: String,
    /// The directory that `.leadline/` is in.
    pub server: NfsAddress,
    /// Which data set; none stands for all, and only a removal may say so.
    #[serde(default)]
    pub data: Option<Data>,
    /// What is to be done.
    pub action: Action,
    /// Longest job.
    pub total_s_max: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Make the data set, or find it whole.
    Prepare {},
    /// Remove it.
    Remove {},
    /// Offer a load; the data set must be there.
    Load(LoadOrder),
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOrder {
    /// Calls due per second in the mean (Poisson).
    pub rate_per_s: f64,
    /// Length of the measured window.
    pub seconds: f64,
    /// Load before it that is not counted.
    pub warm_up_s: f64,
    /// Of every random number of the trial.
    pub seed: u64,
    /// Connections to the server.
    #[serde(default = "four")]
    pub connections: u32,
    /// Whether WRITEs ask for stable storage; none leaves it to the workload.
    #[serde(default)]
    pub stable: Option<bool>,
    /// Calls slower than this are counted per part of the window.
    #[serde(default)]
    pub limit_ms: Option<f64>,
    /// Give up when the mean response time is above this.
    #[serde(default)]
    pub abort_above_ms: Option<f64>,
}

fn four() -> u32 {
    4
}

impl NfsLoadJob {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// `BadJob` with the field, its value and what to write instead.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let job: Self = read_job(text, "nfs-load-job.schema.json")?;
        job.validate()?;
        Ok(job)
    }

    fn validate(&self) -> Result<(), EngineError> {
        self.server.validate()?;
        if let Some(data) = &self.data {
            data.validate()?;
        }
        require(self.version == WIRE_VERSION, "version", "1; install one release")?;
        require(!self.job_id.is_empty(), "job_id", "a text of at least one character")?;
        let needs_data = !matches!(self.action, Action::Remove {});
        require(
            self.data.is_some() || !needs_data,
            "data",
            "a data set; only a removal needs none",
        )?;
        within("total_s_max", self.total_s_max, &limits::NFS_LOAD_TOTAL_S)?;
        let Action::Load(order) = self.action else { return Ok(()) };
        within("action.rate_per_s", order.rate_per_s, &limits::NFS_LOAD_RATE_PER_S)?;
        within("action.seconds", order.seconds, &limits::NFS_LOAD_S)?;
        within("action.warm_up_s", order.warm_up_s, &limits::NFS_LOAD_WARM_UP_S)?;
        within("action.connections", order.connections, &limits::NFS_LOAD_CONNECTIONS)?;
        within("action.limit_ms", order.limit_ms.unwrap_or(1.0), &limits::RESPONSE_MS)?;
        within("action.abort_above_ms", order.abort_above_ms.unwrap_or(1.0), &limits::RESPONSE_MS)
    }
}

fn require(holds: bool, field: &str, wanted: &str) -> Result<(), EngineError> {
    if holds {
        return Ok(());
    }
    Err(EngineError::bad_job(format!("{field} of the load must be {wanted}")))
}

fn within<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<(), EngineError> {
    let wanted = format!("{} to {}, not {value}", range.start(), range.end());
    require(range.contains(&value), field, &wanted)
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NfsLoadResult {
    event: &'static str,
    version: u32,
    kind: &'static str,
    job_id: String,
    /// The data set, unless it was removed.
    pub data: Option<DataFacts>,
    /// Data sets that were removed.
    pub removed: u64,
    /// What was measured; none without a load.
    pub load: Option<LoadResult>,
    /// The same by procedure; empty without a load.
    pub operations: Vec<OperationCount>,
    /// How the generator itself did; none without a load.
    pub generator: Option<GeneratorFacts>,
}

impl NfsLoadResult {
    /// An answer that says nothing yet.
    #[must_use]
    pub fn new(job: &NfsLoadJob) -> Self {
        Self {
            event: "result",
            version: WIRE_VERSION,
            kind: KIND,
            job_id: job.job_id.clone(),
            data: None,
            removed: 0,
            load: None,
            operations: Vec::new(),
            generator: None,
        }
    }
}

/// A data set that is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataFacts {
    /// Its directory below `.leadline/`.
    pub directory: String,
    /// Files.
    pub files: u64,
    /// Bytes of all of them together.
    pub bytes: u64,
    /// Whether this job made it; else it was found.
    pub made: bool,
    /// Files that an earlier load had changed and that were put right.
    pub repaired: u64,
    /// Seconds that making or finding it took.
    pub seconds: f64,
}

/// What one procedure of NFS was asked in the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationCount {
    /// Its name in RFC 1813, in lower case.
    pub procedure: &'static str,
    /// Calls due in the window.
    pub due: u64,
    /// Of these answered with an error.
    pub failed: u64,
    /// Of these never answered.
    pub unanswered: u64,
    /// Mean response time of the others; 0 without any.
    pub mean_ms: f64,
    /// Bytes read or written.
    pub bytes: u64,
}

/// How the generator itself did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratorFacts {
    /// Connections to the server.
    pub connections: u32,
    /// Most calls that were outstanding at once.
    pub outstanding_max: u64,
    /// Calls of the window that could not be sent when they were due because too many were
    /// outstanding or the server's connections took no more: the server's doing.
    pub held: u64,
    /// How late all others were sent in the mean: the generator's own doing.
    pub sent_late_ms_mean: f64,
    /// The latest.
    pub sent_late_ms_max: f64,
    /// Share of a processor that the generator used; it shares the machine with a local server.
    pub cpu_frac: f64,
    /// Why the answer says more of the generator than of the server; none when it does not.
    pub fell_short: Option<String>,
    /// The first call that was answered with an error, in words.
    pub first_failure: Option<String>,
}
