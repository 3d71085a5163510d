//! Where the bytes came from, and what a mean over the window would hide.

pub mod extents;
pub mod levels;
pub mod modes;
pub mod provenance;
pub mod residency;
pub mod stalls;
