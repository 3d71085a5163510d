//! Blocks from row-major into column-major order (AD98 §4.3), in memory and out of core.

pub mod fingerprint;
pub mod plan;
pub mod shape;
pub mod slots;

pub use fingerprint::Fingerprint;
pub use shape::Shape;

/// Length of a block.
pub const BLOCK_BYTES: usize = 4096;
