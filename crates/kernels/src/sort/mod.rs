//! The external sort (AD98 §4.2).

pub mod buckets;
pub mod entries;
pub mod gather;
#[cfg(test)]
mod keys_for_tests;
pub mod loser_tree;
pub mod order;
pub mod splitters;
