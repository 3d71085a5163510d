//! Storage systems made of parts that remember: caches that fill, arms that move, cells that wear.
//!
//! Requests pass through stateful parts event by event in virtual time. A [`Machine`] is made from a
//! [`Document`] (the `[machine]` of a profile); requests go in by [`Machine::submit`] and come out
//! of [`Machine::next_end`]. Nothing here knows the law of what comes out: throughput emerges, and
//! its truth is a long run. The same seed gives the same run. [`server`] is the same for a server of
//! requests from a network: processors, threads, a pool of connections, locks, a collector.
//!
//! Field by field: `docs/reference/machine.md`; why it is so: `docs/decisions/`.

#![forbid(unsafe_code)]

mod cache;
mod calendar;
mod document;
mod io;
mod machine;
mod parts;
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
pub use replay::Replay;
