//! NFS version 3 (RFC 1813) over TCP, spoken in user space: no mount, no root, no cache of its own.
//!
//! Two ways to speak. [`rpc`] makes one call at a time and waits for its answer; with it [`volume`]
//! finds the export and the directory, and [`claim`] owns `.leadline/` in it. [`queue`] is the hot
//! loop: a connection per worker, many calls outstanding on it, built by [`calls`] and understood by
//! [`reply`] without allocating. The types of RFC 1813 and their encoding are `nfs3_types`'.

pub mod calls;
pub mod claim;
pub mod data;
#[cfg(test)]
pub(crate) mod examples;
mod inbox;
pub mod queue;
pub mod record;
pub mod reply;
pub mod rpc;
pub mod volume;

use leadline_base::clock::ns_from_s;

/// Longest silence of a server that owes an answer, in seconds: then the run is over. A slow disk
/// answers within it, and a run that meets a dead or stopped server still ends within 15 s.
pub const SILENCE_S_MAX: f64 = 10.0;

/// The same in nanoseconds.
#[must_use]
pub fn silence_ns_max() -> u64 {
    ns_from_s(SILENCE_S_MAX)
}
