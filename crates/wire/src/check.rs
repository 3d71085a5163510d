//! What is wrong with a document, in words that say what to write instead.

use std::fmt;
use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::WIRE_VERSION;

/// Why a document makes no sense: the field, its value, its range and what to write instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wrong(pub String);

impl Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// A value that is within its range; `write` says what the field takes.
pub(crate) fn within<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: &RangeInclusive<T>,
    write: &str,
) -> Result<(), Wrong> {
    let (low, high) = (range.start(), range.end());
    require(range.contains(&value), field, &value, &format!("{low} to {high}"), write)
}

/// A number of bytes as people say it, in the largest unit that it is a whole number of.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.trailing_zeros() / 10).min(6);
    format!("{} {}", bytes >> (10 * power), UNITS[power as usize])
}

/// A value that is as `wanted`.
pub(crate) fn require(
    holds: bool,
    field: &str,
    value: impl Display,
    wanted: &str,
    write: &str,
) -> Result<(), Wrong> {
    if holds {
        return Ok(());
    }
    Err(Wrong(format!("{field} is {value}; it must be {wanted} ({write})")))
}

/// What every job begins with.
pub(crate) fn begins_well(version: u32, job_id: &str) -> Result<(), Wrong> {
    require(
        version == WIRE_VERSION,
        "version",
        version,
        "1",
        "the engine and its caller come from different releases; install one release",
    )?;
    require(
        !job_id.is_empty(),
        "job_id",
        "empty",
        "any text of at least one character",
        "give every job a name",
    )
}

/// A path from / on.
pub(crate) fn absolute(field: &str, path: &str) -> Result<(), Wrong> {
    require(path.starts_with('/'), field, path, "an absolute path", "write the path from / on")
}
