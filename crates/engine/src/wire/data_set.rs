//! Which data set an NFS load lies on, and the name of its directory.

use serde::{Deserialize, Serialize};

const PREFIX: &str = "data-";

/// The workloads of SH08 Table 3.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// The mix of operations of SPECsfs97.
    Specsfs97,
    /// Static pages, read from their beginning to their end.
    WebServer,
    /// A few large tables, read and written at random, and a log.
    DbTp,
    /// A mailbox a file: read through, appended to, cut.
    Mail,
}

impl Workload {
    /// All of them, in the order of Table 3.
    pub const ALL: [Self; 4] = [Self::Specsfs97, Self::WebServer, Self::DbTp, Self::Mail];

    /// As people and the wire write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Specsfs97 => "specsfs97",
            Self::WebServer => "web_server",
            Self::DbTp => "db_tp",
            Self::Mail => "mail",
        }
    }
}

/// Which data set.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Of which workload.
    pub workload: Workload,
    /// Bytes of all files together, as near as whole files come.
    pub data_bytes: u64,
    /// Decides sizes, and which files are popular.
    pub seed: u64,
}

impl Data {
    /// Name of its directory below `.leadline/`.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("{PREFIX}{}-{}-{}", self.workload.name(), self.data_bytes, self.seed)
    }

    /// The data set of a directory's name; none for any other name.
    #[must_use]
    pub fn of_directory(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        let workload = parts.next()?;
        let workload = Workload::ALL.into_iter().find(|known| known.name() == workload)?;
        let (data_bytes, seed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let found = Self { workload, data_bytes, seed };
        // Only the one spelling: no leading zeros, nothing after.
        (found.directory() == name).then_some(found)
    }
}
