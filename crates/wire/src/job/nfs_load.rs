//! The load of SH08 Table 3 on an NFS server: its data set made, loaded in an open loop, or removed.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::check::{Wrong, begins_well, require, size, within};
use crate::job::target::NfsAddress;
use crate::ranges;
use crate::schema::{bounded, version};

/// One thing done with one data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = data_unless_removed)]
pub struct NfsLoadJob {
    /// Version of the wire.
    #[schemars(transform = version)]
    pub version: u32,
    /// Chosen by the caller; every event repeats it.
    #[schemars(length(min = 1))]
    pub job_id: String,
    /// The directory that `.leadline/` is in.
    pub server: NfsAddress,
    /// Which data set; none stands for all, and only a removal may say so.
    #[serde(default)]
    pub data: Option<Data>,
    /// What is to be done.
    pub action: Action,
    /// Longest job.
    #[schemars(transform = bounded(ranges::NFS_LOAD_TOTAL_S))]
    pub total_s_max: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadOrder {
    /// Calls due per second in the mean (Poisson).
    #[schemars(transform = bounded(ranges::NFS_LOAD_RATE_PER_S))]
    pub rate_per_s: f64,
    /// Length of the measured window.
    #[schemars(transform = bounded(ranges::NFS_LOAD_S))]
    pub seconds: f64,
    /// Load before it that is not counted.
    #[schemars(transform = bounded(ranges::NFS_LOAD_WARM_UP_S))]
    pub warm_up_s: f64,
    /// Of every random number of the trial.
    pub seed: u64,
    /// Connections to the server.
    #[serde(default = "four")]
    #[schemars(transform = bounded(ranges::NFS_LOAD_CONNECTIONS))]
    pub connections: u32,
    /// Whether WRITEs ask for stable storage; none leaves it to the workload.
    #[serde(default)]
    pub stable: Option<bool>,
    /// Calls slower than this are counted per part of the window.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::RESPONSE_MS))]
    pub limit_ms: Option<f64>,
    /// Give up when the mean response time is above this.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::RESPONSE_MS))]
    pub abort_above_ms: Option<f64>,
}

fn four() -> u32 {
    4
}

/// All data sets can be removed at once; everything else is done with one.
fn data_unless_removed(schema: &mut Schema) {
    let rule = json!({
        "if": {"properties": {"action": {"properties": {"kind": {"enum": ["prepare", "load"]}}}}},
        "then": {"required": ["data"], "properties": {"data": {"type": "object"}}},
    });
    schema.insert("allOf".to_owned(), json!([rule]));
}

impl NfsLoadJob {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        begins_well(self.version, &self.job_id)?;
        self.server.validate()?;
        require(
            self.data.is_some() || matches!(self.action, Action::Remove {}),
            "data",
            "absent",
            "a data set",
            "only a removal needs none",
        )?;
        if let Some(Data { data_bytes, .. }) = self.data {
            let sizes = &ranges::DATA_BYTES;
            let write = format!("{} to {}", size(*sizes.start()), size(*sizes.end()));
            within("data.data_bytes", data_bytes, sizes, &write)?;
        }
        let whole = "seconds for the whole job";
        within("total_s_max", self.total_s_max, &ranges::NFS_LOAD_TOTAL_S, whole)?;
        match &self.action {
            Action::Load(order) => order.validate(),
            Action::Prepare {} | Action::Remove {} => Ok(()),
        }
    }
}

impl LoadOrder {
    fn validate(&self) -> Result<(), Wrong> {
        let rates = &ranges::NFS_LOAD_RATE_PER_S;
        within("action.rate_per_s", self.rate_per_s, rates, "calls due per second")?;
        within("action.seconds", self.seconds, &ranges::NFS_LOAD_S, "of the window")?;
        let before = "seconds of load before the window";
        within("action.warm_up_s", self.warm_up_s, &ranges::NFS_LOAD_WARM_UP_S, before)?;
        let connections = &ranges::NFS_LOAD_CONNECTIONS;
        within("action.connections", self.connections, connections, "to the server")?;
        let bounds =
            [("action.limit_ms", self.limit_ms), ("action.abort_above_ms", self.abort_above_ms)];
        bounds.into_iter().try_for_each(|(field, bound)| {
            let write = "milliseconds; leave it out for none";
            bound.map_or(Ok(()), |bound| within(field, bound, &ranges::RESPONSE_MS, write))
        })
    }
}

const PREFIX: &str = "data-";

/// The workloads of SH08 Table 3.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NfsWorkload")]
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
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// Of which workload.
    pub workload: Workload,
    /// Bytes of all files together, as near as whole files come.
    #[schemars(transform = bounded(ranges::DATA_BYTES))]
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
