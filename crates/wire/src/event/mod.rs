//! What the engine says: one line of the wire is one [`Event`], and the last of a job's is its
//! result, its answer or an error.

pub mod answer;
pub mod file_test;
pub mod load;
pub mod measure;
pub mod nfs_load;
pub mod stream;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::ranges;
use crate::schema::bounded;
use answer::Answer;
use file_test::FileTestResult;
use load::TrialResult;
use measure::MeasureResult;
use nfs_load::NfsLoadResult;
use stream::StreamResult;

/// One thing the engine says of a job; `event` says which.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[schemars(deny_unknown_fields)]
pub enum Event<'a> {
    /// A part of the job begins.
    Phase {
        /// The job's.
        job_id: &'a str,
        /// Which part.
        phase: Phase,
        /// Seconds since the job began.
        elapsed_s: f64,
    },
    /// A share of the present part is done.
    Progress {
        /// The job's.
        job_id: &'a str,
        /// Which part.
        phase: Phase,
        /// How much of it.
        #[schemars(transform = bounded(ranges::SHARE))]
        done_frac: f64,
    },
    /// The job failed.
    Error {
        /// The job's; empty when it had none.
        job_id: &'a str,
        /// What kind of failure it was.
        kind: ErrorKind,
        /// One sentence: what failed and why, and what to try when that is known.
        #[schemars(length(min = 1))]
        message: &'a str,
    },
    /// What was asked is answered.
    Answer(Answer),
    /// The job is done.
    #[schemars(transform = closed)]
    Result(Outcome),
}

/// What came of a job; `kind` is the job's.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Of a measurement.
    Measure(Box<MeasureResult>),
    /// Of a file test.
    FileTest(Box<FileTestResult>),
    /// Of a load on an NFS server.
    NfsLoad(Box<NfsLoadResult>),
    /// Of a trial of a simulated server.
    SimulatedTrial(Box<TrialResult>),
    /// Of a streaming kernel.
    Stream(Box<StreamResult>),
}

/// The part of a job that runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Laying out the data file.
    Prepare,
    /// Until the rate is steady.
    WarmUp,
    /// The measured window.
    Measure,
    /// Waiting for what is still outstanding.
    Drain,
}

/// What kind of failure it was; it decides the exit code of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The job, or the simulated system in it, asks for something that makes no sense.
    BadJob,
    /// The target refuses: no permission, no space, not a file we made.
    Target,
    /// The operating system failed an operation in the middle of a run.
    Io,
    /// No request ended within the measured window; a longer one may measure it.
    NothingCompleted,
    /// A server went away: it died, was stopped, began anew, or cannot be reached.
    Lost,
    /// A defect of Leadline itself.
    Fault,
}

/// The fields of a result are those of its kind and no others: the two tags stand in two schemas,
/// and each would refuse the other's.
fn closed(schema: &mut Schema) {
    schema.insert("unevaluatedProperties".to_owned(), false.into());
}

macro_rules! outcomes {
    ($($kind:ident: $result:ty),*) => {$(
        impl From<$result> for Event<'_> {
            fn from(result: $result) -> Self {
                Self::Result(Outcome::$kind(Box::new(result)))
            }
        }
    )*};
}

outcomes! {
    Measure: MeasureResult,
    FileTest: FileTestResult,
    NfsLoad: NfsLoadResult,
    SimulatedTrial: TrialResult,
    Stream: StreamResult
}

impl From<Answer> for Event<'_> {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Event<'_> {
    /// One line of the wire, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        // Strings, numbers and lists always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}
