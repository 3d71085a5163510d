//! A server by a law: the known truth of the workbench (SH08).
//!
//! Requests are taken first come, first served by `workers` threads; a thread works on a request
//! itself (M/G/k), or takes it through a shared processor and, for a share of the requests, one of
//! `disks` disks. The server drifts, is faster or slower from one trial to the next, begins cold,
//! stalls, has modes, and gets less done under more load, as told.
//!
//! One request costs a few random numbers and a heap of `workers`: a trial of a million requests
//! takes a tenth of a second.

mod queue;
mod service;
mod speed;

pub use queue::Queue;
pub use service::exponential;
