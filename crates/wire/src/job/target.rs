//! Where requests go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Wrong, absolute, require, within};
use crate::ranges;
use crate::schema::{bounded, pattern};

/// Where I/O goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// The run directory owned by Leadline; the engine keeps the single file `data.bin` in it.
    Directory {
        /// Absolute path of the run directory.
        #[schemars(transform = pattern("^/"))]
        path: String,
    },
    /// A directory of an NFS server, in which the engine was asked to claim the run directory.
    Nfs {
        /// The server and the directory.
        server: NfsAddress,
        /// Name of the run directory below `.leadline/`.
        #[schemars(transform = pattern(RUN_PATTERN))]
        run: String,
    },
    /// Nothing: measures Leadline itself.
    Null {},
    /// A stated model obeyed in virtual time.
    Simulated {
        /// The profile (docs/reference/profile.md).
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        system: serde_json::Value,
        /// Virtual time at which the run starts, in seconds.
        #[serde(default)]
        #[schemars(transform = bounded(ranges::VIRTUAL_CLOCK_S))]
        clock_s: f64,
        /// Seed of the simulated system's own noise.
        #[serde(default)]
        run_seed: u64,
    },
}

impl Target {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        match self {
            Self::Directory { path } => absolute("target.path", path),
            Self::Nfs { server, run } => {
                server.validate()?;
                check_run("target.run", run)
            }
            Self::Null {} => Ok(()),
            Self::Simulated { clock_s, .. } => within(
                "target.clock_s",
                *clock_s,
                &ranges::VIRTUAL_CLOCK_S,
                "seconds of virtual time, 0 for a fresh system",
            ),
        }
    }
}

/// A directory of an NFS server.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NfsAddress {
    /// Name or address of the server.
    #[schemars(length(min = 1))]
    pub host: String,
    /// Port of its NFS program; null leaves it to the server's port mapper.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::PORT))]
    pub port: Option<u16>,
    /// Port of its MOUNT program; null leaves it to the server.
    #[serde(default)]
    #[schemars(transform = bounded(ranges::PORT))]
    pub mount_port: Option<u16>,
    /// Path of the directory, the export's included; from / on, without `..`.
    #[schemars(transform = pattern("^/"))]
    pub path: String,
}

impl NfsAddress {
    /// Checks what the types alone cannot.
    ///
    /// # Errors
    /// The field, its value, the range and what to write instead.
    pub(crate) fn validate(&self) -> Result<(), Wrong> {
        let named = !self.host.is_empty();
        require(named, "server.host", "empty", "a name or address", "name the server")?;
        let ports = [("server.port", self.port), ("server.mount_port", self.mount_port)];
        for (field, port) in ports {
            let write = "leave it out to ask the server";
            port.map_or(Ok(()), |port| within(field, port, &ranges::PORT, write))?;
        }
        require(
            self.path.starts_with('/') && self.path.split('/').all(|name| name != ".."),
            "server.path",
            &self.path,
            "an absolute path without ..",
            "write the path from / on",
        )
    }
}

/// What [`is_run`] says, for a schema.
pub(crate) const RUN_PATTERN: &str = "^run-[0-9a-f]{32}$";
const RUN: &str = "run-";
const RUN_DIGITS: usize = 32;

/// Whether a name is that of a run directory.
#[must_use]
pub fn is_run(name: &str) -> bool {
    name.strip_prefix(RUN).is_some_and(|digits| {
        digits.len() == RUN_DIGITS
            && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

pub(crate) fn check_run(field: &str, run: &str) -> Result<(), Wrong> {
    require(
        is_run(run),
        field,
        run,
        "run- and 32 hexadecimal digits",
        "take the name that the claim was made with",
    )
}
