//! What is said of a capture beside the trace.

#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::os::unix::fs::MetadataExt;

use leadline_trace::{Live, Refused, Trace};
use serde::Serialize;

use crate::records::{Seen, Use};
use crate::session::Way;
use crate::system::child;
use crate::totals::Totals;

/// Files that are told, those with most bytes.
const FILES_TOLD: usize = 16;
/// Files whose names are looked for again, while they are used.
const LOOKED_FOR: usize = 64;

/// How a command ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ended {
    /// Its exit code; None where a signal ended it.
    pub code: Option<i32>,
    /// That signal.
    pub signal: Option<i32>,
}

impl From<child::Ended> for Ended {
    fn from(ended: child::Ended) -> Self {
        match ended {
            child::Ended::Code(code) => Self { code: Some(code), signal: None },
            child::Ended::Signal(signal) => Self { code: None, signal: Some(signal) },
        }
    }
}

/// What was done with a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileUse {
    /// Its path where that is asked for and was found, or else a hash, in each capture another.
    pub name: String,
    /// Reads and writes.
    pub requests: u64,
    /// Bytes.
    pub read_bytes: u64,
    /// Bytes.
    pub written_bytes: u64,
}

/// What is said of a capture.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How it was seen.
    pub way: Way,
    /// Why not by BPF, if not.
    pub no_bpf: Option<String>,
    /// Why its trace is not kept, where it was to be.
    pub not_kept: Option<String>,
    /// From its beginning to its end.
    pub wall_s: f64,
    /// Calls that were looked at.
    pub calls: u64,
    /// Calls that found no room on the way, and are missing.
    pub lost: u64,
    /// Bytes read of files, of all else, and by the kernel to start programs.
    pub read_bytes: (u64, u64, u64),
    /// Bytes written to files, and to all else.
    pub written_bytes: (u64, u64),
    /// Of these, bytes that the kernel does not count (splice).
    pub uncounted_bytes: u64,
    /// What the kernel counted, read and written (/proc/PID/io); None where it cannot be asked.
    pub counted_bytes: Option<(u64, u64)>,
    /// Bytes that were counted while watching began or ended, which may have been seen or not.
    pub edge_bytes: u64,
    /// Of files used by mappings, touched for the first time; None where that cannot be seen.
    pub mapped_bytes: Option<u64>,
    /// Files that were mapped, programs left out.
    pub mapped_files: u64,
    /// Calls of programs of 32 bits, which are not understood.
    pub calls_of_32_bits: u64,
    /// Programs that would have got other rights, and did not since they were traced.
    pub rights_lost: u64,
    /// Threads that were too many to be watched.
    pub threads_missed: u64,
    /// Processes that were watched and went on after the end.
    pub left_running: u64,
    /// How the command ended.
    pub ended: Option<Ended>,
    /// Somebody stopped it by this signal.
    pub stopped: Option<i32>,
    /// Files with most bytes.
    pub files: Vec<FileUse>,
}

/// A trace, and how it was come by.
#[derive(Debug)]
pub struct Captured {
    /// Described like any other.
    pub trace: Trace,
    /// What is said beside.
    pub report: Report,
}

/// What both ways say at their end.
pub struct Beside {
    pub way: Way,
    pub no_bpf: Option<String>,
    pub not_kept: Option<String>,
    pub lost: u64,
    pub other: (u64, u64),
    pub counted: Option<Totals>,
    pub edge_bytes: u64,
    pub mapped_bytes: Option<u64>,
    pub calls_of_32_bits: u64,
    pub rights_lost: u64,
    pub threads_missed: u64,
    pub left_running: u64,
    pub ended: Option<child::Ended>,
}

/// Puts a trace and its report together; `heard` is how long it was watched, and what stopped it.
pub fn finish(
    seen: Seen,
    live: Live,
    beside: Beside,
    files: Vec<FileUse>,
    heard: (f64, Option<i32>),
) -> Result<Captured, Refused> {
    let bytes = seen.bytes;
    let report = Report {
        way: beside.way,
        no_bpf: beside.no_bpf,
        not_kept: beside.not_kept,
        wall_s: heard.0,
        calls: seen.calls,
        lost: beside.lost,
        read_bytes: (bytes.read, bytes.other_read + beside.other.0, bytes.programs),
        written_bytes: (bytes.written, bytes.other_written + beside.other.1),
        uncounted_bytes: bytes.uncounted,
        counted_bytes: beside.counted.map(|all| (all.read, all.written)),
        edge_bytes: beside.edge_bytes,
        mapped_bytes: beside.mapped_bytes,
        mapped_files: seen.mapped_files(),
        calls_of_32_bits: beside.calls_of_32_bits,
        rights_lost: beside.rights_lost,
        threads_missed: beside.threads_missed,
        left_running: beside.left_running,
        ended: beside.ended.map(Ended::from),
        stopped: heard.1,
        files,
    };
    let unseen = seen.unseen(report.mapped_bytes.is_some());
    let trace = live.finish(seen.uses.len() as u32, seen.threads(), unseen)?;
    Ok(Captured { trace, report })
}

/// Names of files that are open, by their number, found while they are.
#[derive(Default)]
pub struct Paths {
    found: Vec<Option<String>>,
}

impl Paths {
    /// Looks for the names of files that have none yet, the newest of them.
    pub fn look(&mut self, uses: &[Use]) {
        self.found.resize(uses.len(), None);
        let from = uses.len().saturating_sub(LOOKED_FOR);
        for (found, each) in self.found.iter_mut().zip(uses).skip(from) {
            if found.is_none() {
                *found = path_of(each);
            }
        }
    }

    /// Files with most bytes, by name or hash.
    pub fn told(&self, uses: &[Use], keep_paths: bool) -> Vec<FileUse> {
        let mut order: Vec<usize> =
            (0..uses.len()).filter(|place| uses[*place].requests > 0).collect();
        order.sort_by_key(|place| std::cmp::Reverse(uses[*place].read + uses[*place].written));
        let hasher = RandomState::new(); // its keys are kept nowhere: no name can be tried
        let told = order.into_iter().take(FILES_TOLD).map(|place| {
            let each = &uses[place];
            let path = self.found.get(place).cloned().flatten().filter(|_| keep_paths);
            let (file, part) = (
                each.file,
                hasher.hash_one((each.file.device, each.file.inode, each.file.generation)),
            );
            let unnamed =
                if keep_paths { format!("inode {}", file.inode) } else { format!("{part:016x}") };
            FileUse {
                name: path.unwrap_or(unnamed),
                requests: each.requests,
                read_bytes: each.read,
                written_bytes: each.written,
            }
        });
        told.collect()
    }
}

/// Its path, if its descriptor is still open for it.
fn path_of(each: &Use) -> Option<String> {
    let link = format!("/proc/{}/fd/{}", each.thread, each.descriptor);
    let same = fs::metadata(&link).is_ok_and(|now| now.ino() == each.file.inode);
    let path = same.then(|| fs::read_link(link).ok())??;
    Some(path.to_string_lossy().into_owned())
}
