//! A test in a process of its own, for what holds for a whole process: limits, memory, bytes read.

use std::process::{Command, Stdio};

/// Names the test that a second instance of this program is to run.
const MARK: &str = "LEADLINE_TEST_IN_ITS_OWN_PROCESS";

/// Runs `body` in another instance of this program; `test` is the calling test's full name.
pub fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some_and(|name| name == test) {
        return body();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env(MARK, test).stdin(Stdio::null());
    let ran = again.stderr(Stdio::inherit()).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    // A name without a test runs nothing and succeeds.
    assert!(ran.status.success() && told.contains("1 passed"), "{test}: {told}");
}
