//! How storage is reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, require, within};
use crate::job::target::Target;
use crate::ranges;
use crate::schema::bounded;

/// Which code makes the requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackendName {
    /// `pread(2)` and `pwrite(2)`, one outstanding request per worker.
    Pread,
    /// `io_uring`, up to `queue_depth` outstanding requests per worker.
    Uring,
    /// Copies from and to a shared mapping of the file (AD98 §3), one at a time per worker.
    Mmap,
    /// READ and WRITE calls of NFS version 3, up to `queue_depth` outstanding per worker.
    Nfs,
    /// Requests that return at once.
    Null,
    /// Requests answered by the simulated system.
    Simulated,
}

impl BackendName {
    /// As the wire writes it.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The backend and its options.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackendChoice {
    /// Which one.
    pub name: BackendName,
    /// Bypass the page cache (`O_DIRECT`).
    #[serde(default)]
    pub direct: bool,
    /// Which writes wait for the device; not with the backend null.
    #[serde(default)]
    pub sync: WriteSync,
    /// What data are laid out and written, where that is said; on a directory or NFS.
    #[serde(default)]
    pub content: Option<Content>,
}

/// What data are to storage that compresses, or that keeps what is alike once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Bytes over the bytes that they compress to, within 8% for lz4, zlib and zstd.
    #[schemars(transform = bounded(ranges::COMPRESS))]
    pub compress: f64,
    /// Share of the data that is a copy of other data.
    #[schemars(transform = bounded(ranges::SHARE))]
    pub dedup: f64,
}

/// Which writes wait until their bytes are on the device. The wait is part of the write's response
/// time.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WriteSync {
    /// None: the page cache writes them out when it likes.
    None {},
    /// Every one (`O_DSYNC`).
    Dsync {},
    /// Each worker calls `fsync` after this many of its writes; the last of them waits for it.
    Fsync {
        /// Writes from one `fsync` to the next, 1 for all.
        #[schemars(transform = bounded(ranges::FSYNC_EACH))]
        each: u32,
        /// `fdatasync` instead, which leaves the file's times for later; NFS knows one alone.
        #[serde(default)]
        data_only: bool,
    },
}

impl Default for WriteSync {
    fn default() -> Self {
        Self::None {}
    }
}

impl BackendChoice {
    /// Checks that it serves the target, and what it is told of direct I/O and waiting.
    pub(crate) fn validate(&self, target: &Target) -> Result<(), Wrong> {
        require(
            self.serves(target),
            "backend.name",
            self.name.name(),
            "pread, uring or mmap for a directory, nfs for nfs, null for null, simulated for \
            simulated",
            "choose the backend that serves the target's kind",
        )?;
        self.check_sync()?;
        self.check_content(target)?;
        let direct_too = matches!(self.name, BackendName::Pread | BackendName::Uring);
        require(
            direct_too || !self.direct,
            "backend.direct",
            true,
            "false unless backend.name is pread or uring",
            "leave it out",
        )
    }

    fn serves(&self, target: &Target) -> bool {
        match target {
            Target::Directory { .. } => {
                matches!(self.name, BackendName::Pread | BackendName::Uring | BackendName::Mmap)
            }
            Target::Nfs { .. } => self.name == BackendName::Nfs,
            Target::Null {} => self.name == BackendName::Null,
            Target::Simulated { .. } => self.name == BackendName::Simulated,
        }
    }

    fn check_content(&self, target: &Target) -> Result<(), Wrong> {
        let Some(content) = self.content else { return Ok(()) };
        require(
            matches!(target, Target::Directory { .. } | Target::Nfs { .. }),
            "backend.content",
            "given",
            "none on a target without data of its own",
            "leave it out",
        )?;
        within(
            "backend.content.compress",
            content.compress,
            &ranges::COMPRESS,
            "1 for data that do not compress",
        )?;
        within("backend.content.dedup", content.dedup, &ranges::SHARE, "0 for no copies")
    }

    fn check_sync(&self) -> Result<(), Wrong> {
        require(
            self.sync == WriteSync::default() || self.name != BackendName::Null,
            "backend.sync",
            "given",
            "none with the backend null, which writes nothing that could be waited for",
            "leave it out",
        )?;
        let WriteSync::Fsync { each, .. } = self.sync else { return Ok(()) };
        within("backend.sync.each", each, &ranges::FSYNC_EACH, "1 for an fsync after every write")
    }
}
