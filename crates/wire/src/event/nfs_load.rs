//! What came of a load on an NFS server.

use schemars::JsonSchema;
use serde::Serialize;

use crate::WIRE_VERSION;
use crate::event::load::LoadResult;
use crate::job::nfs_load::NfsLoadJob;
use crate::schema::{version, words};

/// The answer to a load on an NFS server.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NfsLoadResult {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// The job's.
    pub job_id: String,
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
            version: WIRE_VERSION,
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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

const PROCEDURES: &[&str] = &[
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "commit",
    "create",
    "remove",
    "readdir",
    "readdirplus",
    "fsstat",
];

/// What one procedure of NFS was asked in the window.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OperationCount {
    /// Its name in RFC 1813, in lower case.
    #[schemars(transform = words(PROCEDURES))]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GeneratorFacts {
    /// Connections to the server.
    #[schemars(range(min = 1))]
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
