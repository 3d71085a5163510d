//! The Leadline engine: a [`job::Job`] in, events out.
//!
//! job → access pattern → workers → backend → histogram → events. Everything above this crate
//! decides and explains; this crate measures and knows nothing of why.

pub mod backend;
pub mod error;
pub mod job;
