//! Simulated storage systems, obeyed in virtual time (METHODS §8): by a law, or made of parts.
//!
//! A law is a renewal-reward process, not an emergent cache: each request draws its service
//! time independently, given the workload and the virtual time, from a law whose mean is known.
//! So [`truth`] knows the throughput a survey must find, to the number. The price is stated in
//! `docs/reference/profile.md`: nothing warms up, no request remembers the one before it. A
//! [`machine`] is the contrary: parts that remember, and no law but what comes out of them.

#![forbid(unsafe_code)]

mod law;
mod machine;
mod popularity;
mod profile;
mod service;
mod speed;
mod system;
pub mod truth;
mod validate;

#[cfg(test)]
mod tests;

pub use machine::{MachineRun, MachineSystem};
pub use profile::Profile;
pub use service::SimulatedRun;
pub use system::{
    Bursts, CacheLevel, Copy, Device, Drift, DriftShape, Flusher, Growth, HitShape, Meta, Network,
    Noise, SimulatedSystem, StatedTruth, SurveyHints, WritePolicy,
};
