//! All that the kernel is asked for in ways that Rust cannot check: bpf(2), fork(2), ptrace(2).

pub mod bpf;
pub mod child;
pub mod tracing;
