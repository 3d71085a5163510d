//! What must hold whatever is read, a module for each fuzz target: `targets/` tries them by
//! libFuzzer for minutes and hours, `tests/` with a few harms done to inputs that make sense.

#![allow(clippy::expect_used)] // whatever goes wrong here is a finding

pub mod histogram;
pub mod job;
pub mod layout;
pub mod nfs;
pub mod profile;
pub mod reply;
pub mod server;
pub mod trace;
