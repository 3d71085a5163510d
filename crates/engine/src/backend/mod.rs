//! Where requests go. One folder or file per kind of target.

pub mod simulated;
