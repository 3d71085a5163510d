//! The cluster platform (AD98 §4): one kernel on many ranks. Each reads its share of the input, sends
//! records or blocks to the rank that owns them, and writes one part of the output.
//!
//! Nothing here knows MPI: who carries the messages asks [`exchange::Exchange`] what to carry.

#![forbid(unsafe_code)]

mod ahead;
pub mod answer;
mod blocks;
mod dealt;
pub mod exchange;
mod grid;
pub mod kernel;
pub mod mailbox;
mod network;
pub mod rank;
mod selection;
mod sorted;
mod splitters;
mod tiles;
