//! The four programs (KM83 §4, appendix A): open, 8192 or 4096 bytes at a time to the end, close.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};

use leadline_base::beneath::{self, Directory, Way};
use leadline_base::clock::{now_ns, s_from_ns};
use leadline_base::error::EngineError;
use leadline_base::host::thread_cpu_s;
use leadline_wire::job::file_test::{Test, Timing};

use crate::evidence::residency::Residency;

/// Name of the file in a drive's directory; `claim.py` knows it as ours.
const FILE: &str = "file.bin";

/// The clock is looked at once in this many requests, to end a job whose time is up.
const REQUESTS_PER_LOOK: u64 = 64;

/// What one program is told.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Which program.
    pub test: Test,
    /// Where its file lies.
    pub directory: &'a Directory,
    /// How long that is.
    pub file_bytes: u64,
    /// What its clock covers.
    pub timing: Timing,
    /// When it gives up.
    pub deadline_ns: u64,
}

/// When a program ran and what it used.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    pub began_ns: u64,
    pub ended_ns: u64,
    pub sync_s: f64,
    pub cpu_s: f64,
}

/// Runs a program in this thread. `bytes` are written over and over, and read into; a multiple of
/// the request, and so long that a drive which joins equal blocks finds none side by side.
pub fn run(order: &Order, bytes: &mut [u8]) -> Result<Ran, EngineError> {
    let cpu_s = thread_cpu_s();
    let began_ns = now_ns();
    let mut file = open(order)?;
    transfer(order, &mut file, bytes)?;
    let mut sync_s = 0.0;
    if order.timing == Timing::Drive && !order.test.reads() {
        let waited_ns = now_ns();
        file.sync_all().map_err(|error| failed(order, "flushing", &error))?;
        sync_s = s_from_ns(now_ns() - waited_ns);
    }
    drop(file);
    let ended_ns = now_ns();
    let cpu_s = thread_cpu_s() - cpu_s;
    Ok(Ran { began_ns, ended_ns, sync_s, cpu_s })
}

fn open(order: &Order) -> Result<File, EngineError> {
    let opened = match order.test {
        Test::Read8192 => order.directory.open(FILE, Way::READ),
        Test::Rewrite8192 => order.directory.open(FILE, Way::WRITE),
        Test::Write4096 | Test::Write8192 => order.directory.make(FILE),
    };
    opened.map_err(|error| failed(order, "opening", &error))
}

fn transfer(order: &Order, file: &mut File, bytes: &mut [u8]) -> Result<(), EngineError> {
    let request = order.test.request_bytes();
    let requests = order.file_bytes / request as u64;
    let places = bytes.len() / request;
    for number in 0..requests {
        if number.is_multiple_of(REQUESTS_PER_LOOK) && now_ns() > order.deadline_ns {
            return Err(time_is_up());
        }
        let at = (number as usize % places) * request;
        let block = &mut bytes[at..at + request];
        if order.test.reads() {
            file.read_exact(block).map_err(|error| failed(order, "reading", &error))?;
        } else {
            file.write_all(block).map_err(|error| failed(order, "writing", &error))?;
        }
    }
    Ok(())
}

/// Brings the file into the state in which the program finds it; not timed. Returns the share of
/// it that lies in the page cache now, when the program reads.
pub fn prepare(order: &Order, bytes: &mut [u8]) -> Result<Option<f64>, EngineError> {
    if matches!(order.test, Test::Write4096 | Test::Write8192) {
        remove(order.directory)?;
        settle(order)?;
        return Ok(None);
    }
    let length = match order.directory.open(FILE, Way::READ) {
        Ok(file) => file.metadata().map_or(0, |found| found.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(failed(order, "opening", &error)),
    };
    if length != order.file_bytes {
        remove(order.directory)?;
        run(&Order { test: Test::Write8192, ..*order }, bytes)?;
    }
    settle(order)?;
    let file =
        order.directory.open(FILE, Way::READ).map_err(|error| failed(order, "opening", &error))?;
    if order.timing == Timing::Drive {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|error| failed(order, "uncaching", &error.into()))?;
    }
    if !order.test.reads() {
        return Ok(None);
    }
    let cached = Residency::new(&file).ok().and_then(|now| now.cached_bytes(0, order.file_bytes));
    Ok(cached.map(|cached| cached as f64 / order.file_bytes as f64))
}

/// Removes the file if there is one.
pub fn remove(directory: &Directory) -> Result<(), EngineError> {
    directory.remove(FILE).map_err(|error| {
        let path = directory.path().join(FILE);
        EngineError::io(format!("{} cannot be removed: {error}", path.display()))
    })
}

/// Lets the file system finish what earlier runs left, unless the paper's protocol is wanted.
fn settle(order: &Order) -> Result<(), EngineError> {
    if order.timing == Timing::Program {
        return Ok(());
    }
    rustix::fs::syncfs(order.directory).map_err(|error| failed(order, "flushing", &error.into()))
}

/// The error of a job whose time is up.
pub fn time_is_up() -> EngineError {
    EngineError::io("the time of this file test was up; give more, or smaller files")
}

fn failed(order: &Order, doing: &str, error: &Error) -> EngineError {
    let hint = match error.raw_os_error() {
        Some(libc::ENOSPC) => "; ask for smaller files".to_owned(),
        Some(libc::EIO) => "; look at the kernel log for the device".to_owned(),
        _ if doing == "opening" => format!("; {}", beneath::advice(error)),
        _ => String::new(),
    };
    let path = order.directory.path().join(FILE);
    EngineError::io(format!("{doing} {} failed: {error}{hint}", path.display()))
}
