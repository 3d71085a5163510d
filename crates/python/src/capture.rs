//! A running program watched for Python, which is told how far it is and says when to stop.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::FromRawFd;
use std::path::PathBuf;

use leadline_capture::{Asked, Order, Target, Way};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::trace::{TraceRead, json_of};

/// Watches a command, a process or a control group until it ends or a signal wants an end.
///
/// `hear(requests, bytes)` returns None, or the number of the signal that wants an end and whether
/// the command has it already. `keep` is a descriptor that this closes.
#[pyfunction]
#[pyo3(signature = (command, process, group, *, way, seconds, keep_paths, keep, hear))]
#[allow(clippy::too_many_arguments)] // as Python calls it, by name
pub fn capture(
    py: Python<'_>,
    command: Vec<OsString>,
    process: Option<i32>,
    group: Option<PathBuf>,
    way: Option<&str>,
    seconds: Option<f64>,
    keep_paths: bool,
    keep: Option<i32>,
    hear: &Bound<'_, PyAny>,
) -> PyResult<(TraceRead, String)> {
    let target = match (process, group) {
        (Some(process), _) => Target::Process(process),
        (_, Some(group)) => Target::Group(group),
        _ => Target::Command(command),
    };
    let way = match way {
        Some("bpf") => Some(Way::Bpf),
        Some("ptrace") => Some(Way::Ptrace),
        _ => None,
    };
    // SAFETY: the caller has given it away, as the text above says.
    let keep = keep.map(|descriptor| unsafe { File::from_raw_fd(descriptor) });
    let asked = Asked { target, way, seconds, keep_paths, keep };
    let (told, mut raised) = (hear.clone().unbind(), None);
    let done = py.detach(|| {
        leadline_capture::capture(asked, &mut |requests, bytes| {
            order(&told, &mut raised, requests, bytes)
        })
    });
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Err(refused), None) => Err(PyValueError::new_err(refused.0)),
        (Ok(done), None) => Ok((TraceRead(done.trace), json_of(&done.report)?)),
    }
}

/// Seconds, exit code, the signal that ended it, and the one by which somebody stopped it.
type Run = (f64, Option<i32>, Option<i32>, Option<i32>);

/// Runs a command without looking; returns its seconds, its exit code or the signal that ended it,
/// and the signal by which somebody stopped it. `hear` as for `capture`.
#[pyfunction]
pub fn run_unwatched(
    py: Python<'_>,
    command: Vec<OsString>,
    hear: &Bound<'_, PyAny>,
) -> PyResult<Run> {
    let (told, mut raised) = (hear.clone().unbind(), None);
    let done = py.detach(|| {
        leadline_capture::run_unwatched(&command, &mut |requests, bytes| {
            order(&told, &mut raised, requests, bytes)
        })
    });
    match (done, raised) {
        (_, Some(error)) => Err(error),
        (Err(refused), None) => Err(PyValueError::new_err(refused.0)),
        (Ok((seconds, ended, stopped)), None) => Ok((seconds, ended.code, ended.signal, stopped)),
    }
}

/// Asks Python what to do; what it raises ends the watching and is kept.
fn order(told: &Py<PyAny>, raised: &mut Option<PyErr>, requests: u64, bytes: u64) -> Order {
    let answered =
        Python::attach(|py| told.call1(py, (requests, bytes))?.extract::<Option<(i32, bool)>>(py));
    match answered {
        Ok(None) => Order::GoOn,
        Ok(Some((signal, theirs))) => Order::Stop { signal, theirs },
        Err(error) => {
            *raised = Some(error);
            Order::Stop { signal: libc::SIGTERM, theirs: false }
        }
    }
}
