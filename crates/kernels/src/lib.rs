//! Streaming kernels (AD98): scan, sort and transpose, the records they move, and what they cost.
//!
//! A job of kind `stream` names one kernel, where its input lies and where its output goes; the
//! answer says phase by phase what was moved and what it cost. Python decides which jobs to run.
//!
//! Below the kernels: [`memory`] (the limit), [`data_set`], [`output`] and [`scratch`] (where bytes
//! lie), [`lane`] and [`chunks`] (how they move), [`phases`] (what it cost).

pub mod capacity;
pub mod chunks;
mod counters;
pub mod data_set;
pub mod deadline;
pub mod lane;
pub mod layout;
mod mapped;
pub mod memory;
mod memory_bus;
pub mod output;
pub mod phases;
pub mod ranks;
pub mod records;
pub mod run;
pub mod scan;
pub mod scratch;
pub mod sort;
mod stripes;
pub mod thread_group;
pub mod transpose;
mod unnamed;
