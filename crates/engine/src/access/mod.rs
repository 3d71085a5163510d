//! What is asked for: addresses, sizes and the moments at which requests become due.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod mixture;
mod shares;
pub mod sizes;
mod spread;
pub mod stream;
