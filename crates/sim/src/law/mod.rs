//! Systems that obey a law, in virtual time (METHODS §8).
//!
//! A renewal-reward process, not an emergent cache: each request draws its service time
//! independently, given the workload and the virtual time, from a law whose mean is known. So
//! [`truth`] knows the throughput a survey must find, to the number. The price is stated in
//! `docs/reference/profile.md`: nothing warms up, no request remembers the one before it.

mod cost;
mod popularity;
mod service;
mod speed;
mod system;
pub mod truth;
pub(crate) mod validate;

#[cfg(test)]
mod tests;

pub use popularity::found_share;
pub use service::SimulatedRun;
pub use system::{
    Bursts, CacheLevel, Copy, Device, Drift, DriftShape, Flusher, Growth, HitShape, Meta, Network,
    Noise, SimulatedSystem, StatedTruth, SurveyHints, WritePolicy,
};
