//! How probable trials of a workbench are, and where the peak rate is, for many servers at once.
//!
//! `open_queue` is the model: the expected wait of an open queue whose speed wanders. `trials` are
//! trials of a server for several speeds of the trial, `completions` what an overload says,
//! `likelihood` how probable a trial is, `peak` the peak rate that follows.

mod completions;
pub mod likelihood;
mod open_queue;
pub mod peak;
pub mod reading;
pub mod server;
mod speeds;
pub mod student;
mod trials;

#[cfg(test)]
mod examples;

pub use reading::{Aim, Busy, Part, Reading};
pub use server::Server;
