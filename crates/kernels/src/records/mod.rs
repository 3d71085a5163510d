//! The sort benchmark's records: 100 bytes, of which the first 10 are the key.
//!
//! Compatible with gensort 1.5 and valsort (sortbenchmark.org), whose outputs the tests know by
//! their checksums. Most of it is memory only; the kernels [`generate`] and [`check`] move it.

pub mod check;
mod crc;
pub mod generate;
mod generator;
mod sequence;
mod summary;

pub use generator::Generator;
pub use sequence::Sequence;
pub use summary::{Key, Summary, whole_records};

/// Length of a record.
pub const RECORD_BYTES: usize = 100;

/// Length of its key, which comes first and is compared byte by byte.
pub const KEY_BYTES: usize = 10;
