//! What an open-loop load generator finds at one rate: a trial of the workbench (SH08 §3).
//!
//! Every request that was due in the measured window counts, from when it was *due*. One that has no
//! answer when the generator stops waiting counts with its age then: a response time that is at
//! least so long.

mod early_abort;
pub mod nfs;
pub mod simulated;
mod tally;

pub use early_abort::ABORT_AFTER_S;
pub use tally::{Limits, LoadTally, Window};
