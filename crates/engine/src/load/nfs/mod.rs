//! Another kind of job: the load of SH08 Table 3 on an NFS server, offered as an open loop.
//!
//! A data set is made once ([`plan`] says what is in it, [`data_set`] makes, repairs and removes it)
//! and lies in `.leadline/` of the target. [`stream`] draws what is asked of it, call by call; the
//! [`generator`] sends each call when it is due, over several connections ([`lines`]) with many calls
//! outstanding, and counts its response time from then. What the workloads are made of is in
//! [`workload`], each number with its source.

pub mod calls;
pub mod data_set;
pub mod generator;
pub mod lines;
mod pipeline;
pub mod plan;
mod run;
pub mod stream;
pub mod workload;

pub use run::run;

#[cfg(test)]
mod tests;
