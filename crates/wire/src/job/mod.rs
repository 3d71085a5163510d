//! What the engine is asked to do: one line of the wire is one [`Job`].

pub mod ask;
pub mod backend;
pub mod file_test;
pub mod measure;
pub mod nfs_load;
pub mod spread;
pub mod stream;
pub mod streams;
pub mod target;
pub mod trial;
pub mod workload;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Wrong;
use ask::AskJob;
use file_test::FileTestJob;
use measure::MeasureJob;
use nfs_load::NfsLoadJob;
use stream::StreamJob;
use target::Target;
use trial::TrialJob;

/// One thing asked of the engine; `kind` says which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// A workload on a target.
    Measure(Box<MeasureJob>),
    /// Programs on plain files (KM83).
    FileTest(FileTestJob),
    /// A load on an NFS server (SH08).
    NfsLoad(NfsLoadJob),
    /// A trial of a simulated server (SH08).
    SimulatedTrial(Box<TrialJob>),
    /// A streaming kernel (AD98).
    Stream(Box<StreamJob>),
    /// A question about a target.
    Ask(AskJob),
}

/// Why a line of the wire is no job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// The job's own id, so that even a refused one hears whose answer it is; empty without one.
    pub job_id: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl Job {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// With the field, its value and what to write instead.
    pub fn read(text: &str) -> Result<Self, Refused> {
        let refused = |message| Refused { job_id: id_of(text), message };
        let job: Self = serde_json::from_str(text).map_err(|error| {
            refused(format!("the job cannot be read: {error}; see protocol/job.schema.json"))
        })?;
        job.validate().map_err(|wrong| refused(wrong.0))?;
        Ok(job)
    }

    fn validate(&self) -> Result<(), Wrong> {
        match self {
            Self::Measure(job) => job.validate(),
            Self::FileTest(job) => job.validate(),
            Self::NfsLoad(job) => job.validate(),
            Self::SimulatedTrial(job) => job.validate(),
            Self::Stream(job) => job.validate(),
            Self::Ask(job) => job.validate(),
        }
    }

    /// Chosen by the caller; every event repeats it.
    #[must_use]
    pub fn job_id(&self) -> &str {
        match self {
            Self::Measure(job) => &job.job_id,
            Self::FileTest(job) => &job.job_id,
            Self::NfsLoad(job) => &job.job_id,
            Self::SimulatedTrial(job) => &job.job_id,
            Self::Stream(job) => &job.job_id,
            Self::Ask(job) => &job.job_id,
        }
    }

    /// Whether it does I/O on a target and measures that.
    #[must_use]
    pub fn measures_a_real_target(&self) -> bool {
        match self {
            Self::Measure(job) => {
                matches!(job.target, Target::Directory { .. } | Target::Nfs { .. })
            }
            Self::FileTest(_) | Self::NfsLoad(_) | Self::Stream(_) => true,
            Self::SimulatedTrial(_) | Self::Ask(_) => false,
        }
    }
}

/// Whose a text is that was refused, as far as it says so.
fn id_of(text: &str) -> String {
    #[derive(Default, Deserialize)]
    struct Whose {
        job_id: String,
    }
    serde_json::from_str::<Whose>(text).unwrap_or_default().job_id
}
