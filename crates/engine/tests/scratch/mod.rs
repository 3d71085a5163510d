//! A directory of a test's own, gone when the test ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tests run side by side and may use one name.
static MADE: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        Self::within(&std::env::temp_dir(), name).unwrap()
    }

    /// The same in a folder of choice, which may not be there.
    pub fn within(folder: &Path, name: &str) -> std::io::Result<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("leadline-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map(|()| Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

/// Says on a line of its own that a test cannot run here, and why, past the capture of its output:
/// a skip is always seen and counted. A dot per test may stand before it.
#[allow(clippy::explicit_write)]
pub fn skip(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "\nSKIPPED [rust] {test}: {reason}").unwrap();
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
