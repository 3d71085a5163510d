//! `leadline._engine`: the thin PyO3 shim over the engine crate, and nothing else.

use pyo3::prelude::*;

/// The native module `leadline._engine`.
#[pymodule]
mod _engine {}
