//! A trace of an application, as Python sees it: read once, then asked.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError};

use leadline_trace::{Refused, Trace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

/// A trace that has been read.
#[pyclass(frozen, module = "leadline._engine")]
pub struct TraceRead(pub Trace);

#[pymethods]
impl TraceRead {
    /// Reads what a descriptor is open for; `progress` is told the bytes, and may end it by raising.
    #[new]
    fn new(py: Python<'_>, descriptor: u32, progress: &Bound<'_, PyAny>) -> PyResult<Self> {
        interruptibly(py, descriptor, progress, |input, told| Trace::read(input, told)).map(Self)
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

    /// The steps with which it is made again: what they are of, as JSON, and they themselves; none of
    /// a long one.
    fn steps(&self, py: Python<'_>) -> PyResult<Option<(String, Vec<u8>)>> {
        let Some((steps, found)) = self.0.steps() else { return Ok(None) };
        let mut packed = Vec::new();
        py.detach(|| steps.write(&mut packed))?;
        Ok(Some((json_of(found)?, packed)))
    }

    /// Miss ratios of caches of so many pages, ascending, as JSON.
    fn misses(&self, py: Python<'_>, pages: Vec<u64>) -> PyResult<String> {
        if !pages.is_sorted() {
            return Err(PyValueError::new_err("sizes of caches have to ascend"));
        }
        json_of(&py.detach(|| self.0.misses(&pages)))
    }
}

/// Reads a trace for a replay, and writes its steps to a descriptor; returns what they are of, as
/// JSON.
#[pyfunction]
pub fn replay_steps(
    py: Python<'_>,
    descriptor: u32,
    to: u32,
    progress: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let (steps, found) = interruptibly(py, descriptor, progress, |input, told| {
        leadline_trace::steps_of(input, told)
    })?;
    let file = OpenOptions::new().write(true).open(format!("/proc/self/fd/{to}"))?;
    py.detach(|| {
        let mut whole = BufWriter::new(file);
        steps.write(&mut whole)?;
        whole.flush()
    })?;
    json_of(&found)
}

/// Reads what a descriptor is open for; `progress` is told the bytes, and may end it by raising.
fn interruptibly<T: Send>(
    py: Python<'_>,
    descriptor: u32,
    progress: &Bound<'_, PyAny>,
    read: impl Send
    + FnOnce(
        Interruptible<'_>,
        &mut dyn FnMut(u64) -> Result<(), Refused>,
    ) -> Result<T, Refused>,
) -> PyResult<T> {
    let told = progress.clone().unbind();
    let raised = Mutex::new(None);
    let found = py.detach(|| {
        // By the name that the kernel has for it: the descriptor itself stays Python's.
        let input = File::open(format!("/proc/self/fd/{descriptor}"))
            .map_err(|error| Refused(format!("it cannot be read: {error}")))?;
        read(Interruptible { input, raised: &raised }, &mut |bytes| {
            let going_on = Python::attach(|py| told.call1(py, (bytes,)).map(|_| ()));
            going_on.map_err(|error| {
                keep(&raised, error);
                Refused(String::new())
            })
        })
    });
    match (found, raised.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (_, Some(error)) => Err(error),
        (Err(refused), None) => Err(PyValueError::new_err(refused.0)),
        (Ok(found), None) => Ok(found),
    }
}

/// A file or a pipe whose reader can be stopped, also while nothing comes.
struct Interruptible<'a> {
    input: File,
    /// What a handler of signals raised.
    raised: &'a Mutex<Option<PyErr>>,
}

/// Between two looks for a signal that came just before the wait.
const LOOK_MS: i32 = 200;

impl Interruptible<'_> {
    /// Waits until something can be read or the other side has closed it.
    fn wait(&self) -> Result<(), Error> {
        let mut ready =
            libc::pollfd { fd: self.input.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                keep(self.raised, error);
                return Err(Error::other("stopped"));
            }
            // SAFETY: one descriptor is given, which lives as long as `self.input`.
            match unsafe { libc::poll(&raw mut ready, 1, LOOK_MS) } {
                0 => {}
                1.. => return Ok(()),
                _ if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
                _ => return Err(Error::last_os_error()),
            }
        }
    }
}

impl Read for Interruptible<'_> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.wait()?;
        self.input.read(into)
    }
}

fn keep(raised: &Mutex<Option<PyErr>>, error: PyErr) {
    *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
}

pub fn json_of(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(|error| PyValueError::new_err(error.to_string()))
}
