//! The Leadline engine: a [`leadline_wire::job::Job`] in, events out.
//!
//! job → access pattern → workers → backend → histogram → events. Everything above this crate
//! decides and explains; this crate measures and knows nothing of why.

pub mod access;
pub mod backend;
pub mod engine;
pub mod evidence;
pub mod file_test;
pub mod load;
pub mod run;
pub mod target;
