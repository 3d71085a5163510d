//! Handles of claimed directories, inherited from whoever claimed them and started this process.
//!
//! The variable [`VARIABLE`] holds a JSON object: path of a directory as jobs name it, number of its
//! open handle. It is no part of the wire, because a number means something to this process alone;
//! and no argument, because those are shown to every user of the machine.

use std::collections::BTreeMap;
use std::io::Error;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::io::{FdFlags, fcntl_setfd};

/// Name of the variable (python/leadline/engine/child.py sets it).
const VARIABLE: &str = "LEADLINE_CLAIMED";

static HANDLES: OnceLock<Result<BTreeMap<PathBuf, OwnedFd>, String>> = OnceLock::new();

/// A handle of the directory that was claimed at `path`; none when nobody claimed it for us.
///
/// # Errors
/// When what was handed down makes no sense: then no path may stand in for it.
pub fn handle_of(path: &Path) -> Result<Option<OwnedFd>, Error> {
    let handed = HANDLES.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(text) => read(&text),
        Err(_) => Ok(BTreeMap::new()),
    });
    let handles = handed.as_ref().map_err(|reason| {
        Error::other(format!("the claimed directories in {VARIABLE} cannot be used: {reason}"))
    })?;
    handles.get(path).map(|handle| handle.try_clone()).transpose()
}

/// Whether whoever started this process has resolved the paths in its jobs.
pub fn are_handed_down() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

fn read(text: &str) -> Result<BTreeMap<PathBuf, OwnedFd>, String> {
    let said: BTreeMap<PathBuf, i32> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    said.into_iter().map(|(path, number)| taken(number).map(|handle| (path, handle))).collect()
}

/// Takes an inherited handle for its own.
fn taken(number: i32) -> Result<OwnedFd, String> {
    if number <= libc::STDERR_FILENO {
        return Err(format!("{number} is no number of a directory's handle"));
    }
    // SAFETY: whoever started this process opened it for this alone, and it is taken here, once;
    // whether it is open at all is asked before it is used.
    let handle = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_setfd(&handle, FdFlags::CLOEXEC) {
        Ok(()) => Ok(handle),
        Err(error) => {
            std::mem::forget(handle); // it is not open: there is nothing to close
            Err(format!("handle {number} was not inherited ({})", Error::from(error)))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_not_inherited_is_said_and_not_taken() {
        assert!(read("{}").unwrap().is_empty());
        for (text, said) in [
            ("nonsense", "expected"),
            (r#"{"/data": "5"}"#, "invalid type"),
            (r#"{"/data": 1}"#, "no number of a directory's handle"),
            (r#"{"/data": 1000000}"#, "was not inherited"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_directory_that_nobody_claimed_has_no_handle() {
        assert!(handle_of(Path::new("/nowhere/at/all")).unwrap().is_none());
    }
}
