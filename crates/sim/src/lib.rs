//! Simulated storage systems and servers, in virtual time; the same seed gives the same run.
//!
//! Two kinds of each. By a law whose truth is known to the number: [`law`] and [`server::law`]. And
//! made of parts that remember (caches that fill, arms that move, cells that wear): a [`Machine`],
//! made from a [`Document`] (the `[machine]` of a profile), takes requests by [`Machine::submit`] and
//! gives them back by [`Machine::next_end`]; [`server`] is the same for a server of requests from a
//! network. Nothing there knows the law of what comes out, and its truth is a long run.
//!
//! Field by field: `docs/reference/profile.md`, `machine.md`, `server.md`; why: `docs/decisions/`.

#![forbid(unsafe_code)]

mod cache;
mod calendar;
mod document;
mod io;
pub mod law;
mod machine;
mod parts;
mod profile;
mod random;
mod replay;
#[cfg(test)]
mod sample;
pub mod server;

pub use document::{
    Array, ArrayKind, Bucket, Dirty, Disk, DiskQueue, Document, Flash, Neighbour, Network,
    PageCache, PolicyName, Processors, ReadAhead, Refused, Server, ServiceShape, Slc, Station,
    Tier, TierWrites, Tokens, Volume,
};
pub use io::End;
pub use machine::{EFFORT_MAX, Machine, Request, Safety, Setting};
pub use profile::{MachineSystem, Profile};
pub use replay::Replay;
