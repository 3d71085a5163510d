//! The parts, a file for each kind.

pub(crate) mod array;
pub(crate) mod buckets;
pub(crate) mod disk;
pub(crate) mod flash;
pub(crate) mod neighbour;
pub(crate) mod network;
pub(crate) mod page_memory;
pub(crate) mod processors;
pub(crate) mod servers;
pub(crate) mod station;
pub(crate) mod threads;
pub(crate) mod tier;

#[cfg(test)]
mod tests;
