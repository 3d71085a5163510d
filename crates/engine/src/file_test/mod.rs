//! The direct method of KM83: plain files read, written and rewritten through the file system, on
//! one drive and on several at once.
//!
//! A job of this kind is one file system (as found, or made by the caller and mounted here) under
//! the four programs of KM83 §4, each run several times; beside every run the same bytes go to or
//! come from the raw device, so that both are of one moment.

mod drives;
mod mounting;
mod programs;
mod raw;

use leadline_base::clock::{now_ns, ns_from_s};
use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::file_test::{FileTestResult, Run, TestRuns};
use leadline_wire::job::file_test::FileTestJob;

/// Runs one job.
///
/// # Errors
/// `Target` when a file system cannot be mounted or a file not be made, `Io` when a program fails
/// or the job's time is up.
pub fn run(job: &FileTestJob, reporter: &mut Reporter) -> Result<FileTestResult, EngineError> {
    let began_ns = now_ns();
    let deadline_ns = began_ns.saturating_add(ns_from_s(job.total_s_max));
    reporter.phase(Phase::Prepare, 0);
    let mut drives = drives::Drives::open(job)?;
    reporter.phase(Phase::Measure, now_ns() - began_ns);
    let total = job.tests.len() * job.runs as usize;
    let mut tests: Vec<TestRuns> = Vec::new();
    for test in &job.tests {
        let mut runs = Vec::new();
        for _ in 0..job.runs {
            let measured = drives.run(*test, deadline_ns)?;
            runs.push(Run { raw: drives.run_raw(*test, deadline_ns)?, ..measured });
            let done = tests.len() * job.runs as usize + runs.len();
            reporter.progress(done as f64 / total as f64);
        }
        tests.push(TestRuns { test: *test, runs });
    }
    let block_bytes = drives.block_bytes();
    drives.close()?;
    Ok(FileTestResult::new(job, tests, block_bytes))
}
