//! Streaming kernels (AD98): scan, sort and transpose, the records they move, and what they cost.
//!
//! A job of kind `stream` names one kernel, where its input lies and where its output goes; the
//! answer says phase by phase what was moved and what it cost. Python decides which jobs to run.

pub mod job;
pub mod result;
pub mod run;
pub mod sort;
