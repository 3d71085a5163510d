//! What is asked of a target beside work: a directory of a server is claimed, looked at and released
//! by the engine, because nothing above the wire speaks NFS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, begins_well, within};
use crate::job::target::{NfsAddress, RUN_PATTERN, check_run};
use crate::ranges;
use crate::schema::{bounded, pattern, version};

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskJob {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// Chosen by the caller; the answer repeats it.
    #[schemars(length(min = 1))]
    pub job_id: String,
    /// What is asked.
    pub ask: Question,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields)]
pub enum Question {
    /// Own `.leadline/` in the directory and make the run directory in it.
    #[serde(rename = "nfs_claim")]
    Claim {
        /// The server and the directory.
        server: NfsAddress,
        /// Name of the run directory below `.leadline/`.
        #[schemars(transform = pattern(RUN_PATTERN))]
        run: String,
        /// The process of this machine that holds it; gone, its claim may be swept.
        #[schemars(transform = bounded(ranges::PROCESS))]
        process: u32,
        /// Longest silence of the server, in seconds.
        #[schemars(transform = bounded(ranges::TIMEOUT_S))]
        timeout_s: f64,
    },
    /// How much room is there, and how much of it the data file has.
    #[serde(rename = "nfs_room")]
    Room {
        /// The server and the directory.
        server: NfsAddress,
        /// Name of the run directory below `.leadline/`.
        #[schemars(transform = pattern(RUN_PATTERN))]
        run: String,
        /// Longest silence of the server, in seconds.
        #[schemars(transform = bounded(ranges::TIMEOUT_S))]
        timeout_s: f64,
    },
    /// Remove what the claim made.
    #[serde(rename = "nfs_release")]
    Release {
        /// The server and the directory.
        server: NfsAddress,
        /// Name of the run directory below `.leadline/`.
        #[schemars(transform = pattern(RUN_PATTERN))]
        run: String,
        /// Longest silence of the server, in seconds.
        #[schemars(transform = bounded(ranges::TIMEOUT_S))]
        timeout_s: f64,
    },
}

impl AskJob {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        begins_well(self.version, &self.job_id)?;
        let (Question::Claim { server, run, timeout_s, .. }
        | Question::Room { server, run, timeout_s }
        | Question::Release { server, run, timeout_s }) = &self.ask;
        server.validate()?;
        check_run("ask.run", run)?;
        within("ask.timeout_s", *timeout_s, &ranges::TIMEOUT_S, "seconds of silence")?;
        let Question::Claim { process, .. } = &self.ask else { return Ok(()) };
        within("ask.process", *process, &ranges::PROCESS, "the number of a process")
    }
}
