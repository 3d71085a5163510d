//! What is asked for: addresses, sizes and the moments at which requests become due.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod mixture;
pub mod request;
pub mod sizes;
pub mod stream;
