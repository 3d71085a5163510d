//! What takes NumPy too long: fits of a hierarchy of caches, and a workbench's [`belief`].
//!
//! # Time per byte of a hierarchy of caches
//!
//! Time per byte of a hierarchy of caches over `unique_bytes`, and many least-squares fits of it.
//!
//! The model, with x = ln U, U the unique bytes, and y = ln(time per byte in s/MB):
//!
//! ```text
//! time(U) = a * V^b + V^s * sum_k d_k * (1 - h_k(U)),   a > 0, d_k >= 0, V = U / middle
//! ```
//!
//! Time adds, throughput does not: a request that misses level k pays `d_k` more (LITERATURE §2.1).
//! `b` and `s` are weak slopes: CPU caches stop helping the hits, seeks of the misses grow.
//!
//! The parameters of a fit of so many levels stand in one row: ln a, b, s, each ln `d_k`, each
//! ln `C_k` and each ln width, what a shape has no use for included.

#![forbid(unsafe_code)]

pub mod belief;
mod least_squares;
pub mod model;
pub mod readings;
pub mod refine;
pub mod shape;
pub mod start;

pub use readings::{Fits, Readings};
pub use shape::Shape;

/// Steepest fall of a level by itself, as a power of `unique_bytes`: seeks over a span
/// (LITERATURE §2.1). What falls faster over a range has a boundary in it, however smeared.
pub const SLOPE_MAX: f64 = 0.5;
