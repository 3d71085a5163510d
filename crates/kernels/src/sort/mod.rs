//! The external sort (AD98 §4.2).

pub mod batch;
pub mod buckets;
pub mod data_set;
pub mod entries;
pub mod gather;
#[cfg(test)]
mod keys_for_tests;
pub mod loser_tree;
pub mod merge;
pub mod order;
pub mod plan;
pub mod runs;
pub mod sample;
pub mod sink;
pub mod split;
pub mod splitters;
mod verify;
pub mod workshop;

pub use data_set::run;
