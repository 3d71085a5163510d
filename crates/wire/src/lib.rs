//! The wire: what is asked of the engine ([`job::Job`]) and what it answers ([`event::Event`]).
//!
//! Documents and what makes them right, and nothing that acts on them: this crate stands on no other
//! of Leadline's. The range of every number stands once, in [`ranges`]; what refuses a job and what
//! `protocol/*.schema.json` says both read it there.

#![forbid(unsafe_code)]

mod check;
pub mod event;
pub mod finding;
pub mod job;
pub mod ranges;
pub mod schema;

pub use check::Wrong;

/// Version of the wire that this release speaks.
pub const WIRE_VERSION: u32 = 1;
