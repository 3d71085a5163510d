//! A trace of an application, as Python sees it: read once, then asked.

use std::fs::File;

use leadline_trace::{Refused, Trace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

/// A trace that has been read.
#[pyclass(frozen, module = "leadline._engine")]
pub struct TraceRead(Trace);

#[pymethods]
impl TraceRead {
    /// Reads what a descriptor is open for; `progress` is told the bytes, and may end it by raising.
    #[new]
    fn new(py: Python<'_>, descriptor: u32, progress: &Bound<'_, PyAny>) -> PyResult<Self> {
        let told = progress.clone().unbind();
        let mut raised = None;
        let read = py.detach(|| {
            // By the name that the kernel has for it: the descriptor itself stays Python's.
            let input = File::open(format!("/proc/self/fd/{descriptor}"))
                .map_err(|error| Refused(format!("it cannot be read: {error}")))?;
            Trace::read(input, &mut |bytes| {
                let going_on = Python::attach(|py| {
                    py.check_signals()?;
                    told.call1(py, (bytes,)).map(|_| ())
                });
                going_on.map_err(|error| {
                    raised = Some(error);
                    Refused(String::new())
                })
            })
        });
        match (read, raised) {
            (_, Some(error)) => Err(error),
            (Err(refused), None) => Err(PyValueError::new_err(refused.0)),
            (Ok(trace), None) => Ok(Self(trace)),
        }
    }

    /// What is known of the whole, as JSON.
    fn about(&self) -> PyResult<String> {
        json_of(self.0.about())
    }

    /// What tells each slice from the next, as JSON.
    fn features(&self, py: Python<'_>) -> PyResult<String> {
        json_of(&py.detach(|| self.0.features()))
    }

    /// Some slices described, as JSON.
    fn part(&self, py: Python<'_>, from_slice: usize, to_slice: usize) -> PyResult<String> {
        json_of(&py.detach(|| self.0.part(from_slice, to_slice)))
    }

    /// Miss ratios of caches of so many pages, ascending, as JSON.
    fn misses(&self, py: Python<'_>, pages: Vec<u64>) -> PyResult<String> {
        if !pages.is_sorted() {
            return Err(PyValueError::new_err("sizes of caches have to ascend"));
        }
        json_of(&py.detach(|| self.0.misses(&pages)))
    }
}

fn json_of(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(|error| PyValueError::new_err(error.to_string()))
}
