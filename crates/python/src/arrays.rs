//! NumPy's arrays: in as buffers of doubles, out as bytes.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// Doubles in an array of any shape.
pub type Floats = PyBuffer<f64>;
/// Doubles for Python.
pub type Bytes = Py<PyByteArray>;

pub fn refused(why: &'static str) -> PyErr {
    PyValueError::new_err(why)
}

pub fn bytes_of(py: Python<'_>, values: &[f64]) -> PyResult<Bytes> {
    let filled = PyByteArray::new_with(py, size_of_val(values), |bytes| {
        for (bytes, value) in bytes.chunks_exact_mut(size_of::<f64>()).zip(values) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })?;
    Ok(filled.unbind())
}
