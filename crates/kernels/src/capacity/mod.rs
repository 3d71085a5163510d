//! What memory and disks of this machine can do, by themselves.

pub mod memory_bus;
