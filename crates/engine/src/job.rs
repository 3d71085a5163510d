//! Every kind of job of this crate, told apart once by what the text itself says.

use crate::error::EngineError;
use crate::file_test::{self, FileTestJob};
use crate::load::nfs::{self, NfsLoadJob};
use crate::target::ask::Ask;
use crate::wire::job::{MeasureJob, Target};
use crate::wire::text::Text;

/// One job.
#[derive(Clone, Debug)]
pub enum Job {
    /// A question about a target: the text has a field `ask`.
    Ask(Ask),
    /// `kind` says `file_test`.
    FileTest(FileTestJob),
    /// `kind` says `nfs_load`.
    NfsLoad(NfsLoadJob),
    /// Any other.
    Measure(Box<MeasureJob>),
}

impl Job {
    /// Reads and checks one job.
    ///
    /// # Errors
    /// `BadJob` with the field, its value and what to write instead.
    pub fn read(text: &Text) -> Result<Self, EngineError> {
        let line = text.line();
        if text.document().get("ask").is_some() {
            return Ask::read(text.document()).map(Self::Ask);
        }
        match text.kind() {
            Some(file_test::KIND) => FileTestJob::parse(line).map(Self::FileTest),
            Some(nfs::KIND) => NfsLoadJob::parse(line).map(Self::NfsLoad),
            _ => MeasureJob::parse(line).map(|job| Self::Measure(Box::new(job))),
        }
    }

    /// Whether it does I/O on a target and measures that.
    #[must_use]
    pub fn measures_a_real_target(&self) -> bool {
        match self {
            Self::Measure(job) => {
                matches!(job.target, Target::Directory { .. } | Target::Nfs { .. })
            }
            Self::FileTest(_) | Self::NfsLoad(_) => true,
            Self::Ask(_) => false,
        }
    }
}
