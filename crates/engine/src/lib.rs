//! The Leadline engine: a [`job::Job`] in, events out.
//!
//! job → access pattern → workers → backend → histogram → events. Everything above this crate
//! decides and explains; this crate measures and knows nothing of why.

pub mod access;
pub mod arrival;
pub mod ask;
pub mod assemble;
pub mod backend;
pub mod buffer;
pub mod clock;
pub mod controller;
pub mod data_file;
mod directory;
pub mod engine;
pub mod error;
pub mod events;
pub mod extents;
pub mod file_test;
pub mod histogram;
pub mod host;
pub mod job;
pub mod levels;
pub mod load;
pub mod nfs_load;
pub mod normal;
pub mod offered;
pub mod phases;
pub mod placement;
pub mod precondition;
pub mod provenance;
pub mod recorder;
mod remote;
pub mod residency;
pub mod result;
pub mod simulated_server;
pub mod sizes;
pub mod stalls;
pub mod steady;
pub mod stop;
pub mod virtual_time;
pub mod worker;
