//! The answer to a question about a server's directory.

use schemars::JsonSchema;
use serde::Serialize;

/// What the server said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Answer {
    /// The job's.
    pub job_id: String,
    /// Of a claim.
    pub server: Option<ServerFacts>,
    /// Of a claim and of a look at the room.
    pub room: Option<Room>,
}

/// Facts of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ServerFacts {
    /// Where its NFS program was reached.
    pub address: String,
    /// What of the path is the export.
    pub export: String,
    /// Most bytes of a READ.
    pub read_bytes_max: u32,
    /// Most bytes of a WRITE.
    pub write_bytes_max: u32,
    /// The shortest of several empty calls, in microseconds.
    pub round_trip_us: f64,
}

/// Room in an export, in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Room {
    /// Of the export.
    pub total_bytes: u64,
    /// Free to this user.
    pub free_bytes: u64,
    /// What the data file has now.
    pub data_bytes: u64,
}
