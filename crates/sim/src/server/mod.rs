//! A server of requests from a network, made of parts, event by event in virtual time.
//!
//! A request is taken in by a worker, or waits for one; it works on the processors, which it shares
//! or takes in turns; a part of them write to the storage under a lock, others read from it what a
//! cache does not have; each asks another server over a connection of a pool; then it is answered.
//! A collector stops all of it now and then, or works beside it; batch jobs come and go; speed
//! drifts, a cache stays cold and an array degraded for a whole trial; clients who waited too long
//! send their request again, while the server still works on the first attempt.
//!
//! Nothing here knows how response rises with load: it comes of the parts, and the peak rate of such
//! a server is found by long runs of it (`tests/proving/peak_truth.py`).

mod collector;
mod cores;
mod document;
mod gate;
pub mod law;
mod request;
mod run;
mod slab;
mod speed;
mod validate;

#[cfg(test)]
mod tests;

pub use document::{
    Batch, Cache, Clients, Collecting, Collector, Cores, Discipline, Document, Law, Lock, Pool,
    Speed, Storage,
};
pub use request::{Answer, End};
pub use run::Server;
