//! The `[machine]` of a profile: which parts, and their numbers.
//!
//! Field by field with ranges: `docs/reference/machine.md`.

mod media;
mod validate;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use media::{
    Array, ArrayKind, Disk, DiskQueue, Flash, ServiceShape, Slc, Station, Tier, TierWrites,
};

/// What a machine is made of, from the workers down. Exactly one of `disk`, `flash` and `station`
/// is given: what lies at the bottom, each member of the array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// What workers share.
    pub processors: Processors,
    /// The page cache in the host's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PageCache>,
    /// The way to a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The server at the other end of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// A provider's limits on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volume>,
    /// Somebody else on the same hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// Flash before what is slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Several of what lies at the bottom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// A disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
    /// A flash drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
    /// Something that takes a stated time, whose inside is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub station: Option<Station>,
}

/// `[machine.processors]`: each request takes one of them for its overhead and its copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processors {
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// System call and file system of a read.
    pub read_overhead_us: f64,
    /// Of a write; the read's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_overhead_us: Option<f64>,
    /// Rate at which one of them copies.
    pub copy_mb_s: f64,
}

/// How a memory chooses what goes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// Least recently used.
    #[default]
    Lru,
    /// Second chance.
    Clock,
    /// Linux's active and inactive lists with refault activation.
    TwoLists,
    /// 2Q.
    TwoQueues,
    /// Adaptive replacement.
    Arc,
}

/// `[machine.cache]`, `[machine.server.cache]`: pages in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCache {
    /// A page; a power of two.
    #[serde(default = "page")]
    pub page_bytes: u64,
    /// Memory for them.
    pub capacity_bytes: u64,
    /// Who goes.
    #[serde(default)]
    pub policy: PolicyName,
    /// Largest request to what lies below.
    #[serde(default = "mebibyte")]
    pub request_max_bytes: u64,
    /// Reading on before it is asked for; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<ReadAhead>,
    /// Writing later than it is asked for; when absent every write goes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<Dirty>,
}

/// `[machine.cache.read_ahead]`: a window that doubles with every step of a sequential reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAhead {
    /// The first window.
    pub initial_bytes: u64,
    /// The largest.
    pub max_bytes: u64,
}

/// `[machine.cache.dirty]`: pages written that are not below yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dirty {
    /// More than so much, and writeback writes.
    pub background_bytes: u64,
    /// So much, and writers wait.
    pub limit_bytes: u64,
    /// Writeback looks so often.
    pub interval_s: f64,
    /// What has been dirty for so long is written.
    pub expire_s: f64,
    /// Requests that writeback has outstanding.
    #[serde(default = "flusher_depth")]
    pub depth: u32,
}

/// `[machine.network]`: a link each way, first come first served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// There and back.
    pub latency_us: f64,
    /// Rate of each way.
    pub mb_s: f64,
    /// Requests under way at once; others wait.
    pub window: u32,
    /// Share of requests that are lost.
    #[serde(default)]
    pub loss_frac: f64,
    /// Until a lost one is sent again.
    #[serde(default = "retransmit")]
    pub retransmit_ms: f64,
}

/// `[machine.server]`: threads that each serve one request at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// How many.
    pub threads: u32,
    /// What a request takes of a thread besides waiting.
    pub overhead_us: f64,
    /// Its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PageCache>,
}

/// What a token stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// Each `unit_bytes` of a request, or part of them.
    Requests,
    /// A byte.
    Bytes,
}

/// `[machine.volume]`: a request goes on when every bucket has its tokens, in order of arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// What the way to it takes.
    #[serde(default)]
    pub latency_us: f64,
    /// Its coefficient of variation.
    #[serde(default)]
    pub latency_cv: f64,
    /// The limits; a burst is a second bucket that is deep and fills slowly.
    pub buckets: Vec<Bucket>,
}

/// `[[machine.volume.buckets]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// What it counts.
    pub tokens: Tokens,
    /// Tokens that come in a second.
    pub per_s: f64,
    /// Tokens it holds.
    pub depth: f64,
    /// How full it is when a job begins.
    #[serde(default = "full")]
    pub begin_frac: f64,
    /// Bytes of one request's token.
    #[serde(default = "unit_bytes")]
    pub unit_bytes: u64,
}

/// `[machine.neighbour]`: another tenant, busy and idle by turns of exponential length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// Mean length of a busy time.
    pub mean_busy_s: f64,
    /// Mean length of an idle one.
    pub mean_idle_s: f64,
    /// Its requests while busy, a Poisson process, to what lies below the volume's limits.
    #[serde(default)]
    pub requests_per_s: f64,
    /// Bytes of each.
    #[serde(default = "page")]
    pub size_bytes: u64,
    /// Read fraction.
    #[serde(default = "full")]
    pub read_frac: f64,
    /// Share of the processors' time that it takes while busy.
    #[serde(default)]
    pub processor_frac: f64,
}

/// A document that describes no machine; the text names field, value and range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Document {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is out of range, by name.
    pub fn validate(&self) -> Result<(), Refused> {
        validate::check(self)
    }

    /// Bytes that the machine stores.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        let disk = self.disk.as_ref().map(|disk| disk.capacity_bytes);
        let flash = self.flash.as_ref().map(|flash| flash.capacity_bytes);
        let station = self.station.as_ref().map(|station| station.capacity_bytes);
        let one = disk.or(flash).or(station).unwrap_or(0);
        one * self.array.as_ref().map_or(1, |array| u64::from(array.data_members()))
    }

    /// Longest mean request that it simulates: so many pages of the smallest cache, or bytes.
    #[must_use]
    pub fn size_mean_max(&self) -> u64 {
        let server = self.server.as_ref().and_then(|server| server.cache.as_ref());
        let pages = [self.cache.as_ref(), server].into_iter().flatten();
        let page = pages.map(|cache| cache.page_bytes).min().unwrap_or(4096).min(4096);
        page * PAGES_PER_REQUEST
    }
}

/// Pages of the longest mean request.
const PAGES_PER_REQUEST: u64 = 16_384;

fn one() -> u32 {
    1
}

fn page() -> u64 {
    4096
}

fn mebibyte() -> u64 {
    1 << 20
}

fn flusher_depth() -> u32 {
    32
}

fn retransmit() -> f64 {
    200.0
}

fn full() -> f64 {
    1.0
}

fn unit_bytes() -> u64 {
    256 << 10
}
