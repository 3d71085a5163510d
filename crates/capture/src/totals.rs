//! What the kernel itself counted: /proc/PID/io, of a process and its children that are gone.

#![forbid(unsafe_code)]

use std::fs;

/// Bytes by /proc/PID/io.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    pub read: u64,
    pub written: u64,
}

impl Totals {
    /// Of one process; None where it is gone, or not ours to ask about.
    pub fn of(process: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/io")).ok()?)
    }

    /// Of one thread alone.
    pub fn of_thread(thread: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{thread}/task/{thread}/io")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field =
            |name| text.lines().find_map(|line: &str| line.strip_prefix(name)?.trim().parse().ok());
        Some(Self { read: field("rchar:")?, written: field("wchar:")? })
    }

    /// Both added up.
    pub fn sum(self, other: Self) -> Self {
        Self { read: self.read + other.read, written: self.written + other.written }
    }

    /// Read and written.
    pub fn bytes(self) -> u64 {
        self.read + self.written
    }

    /// What is beyond others.
    pub fn beyond(self, other: Self) -> Self {
        Self {
            read: self.read.saturating_sub(other.read),
            written: self.written.saturating_sub(other.written),
        }
    }
}

/// Memory that processes hold of their own, and what they share of one kind: what of both kinds a
/// page cache cannot have.
pub fn memory_of(processes: &[i32]) -> u64 {
    let field = |told: &str, name: &str| -> Option<u64> {
        let line = told.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let told = processes.iter().filter_map(|process| {
        let told = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        Some((field(&told, "RssAnon:")?, field(&told, "RssShmem:")?))
    });
    // Shared memory is mostly the same of all of them.
    let (own, shared) =
        told.fold((0, 0), |(own, shared), (its, of_all)| (own + its, of_all.max(shared)));
    (own + shared) << 10
}

/// Threads of a process; none where it is gone.
pub fn threads_of(process: i32) -> Vec<i32> {
    numbers_in(&format!("/proc/{process}/task"))
}

/// A process and all that descend from it, but for this one.
pub fn with_descendants(process: i32) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let parents: Vec<(i32, i32)> = numbers_in("/proc")
        .into_iter()
        .filter_map(|child| Some((child, parent_of(child)?)))
        .collect();
    let mut found = vec![process];
    let mut place = 0;
    while let Some(parent) = found.get(place).copied() {
        place += 1;
        let children = parents.iter().filter(|(child, of)| *of == parent && *child != own);
        found.extend(children.map(|(child, _)| *child));
    }
    found
}

/// The third word behind the name, which may hold anything (proc_pid_stat(5)).
pub fn parent_of(process: i32) -> Option<i32> {
    let told = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    told.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn numbers_in(folder: &str) -> Vec<i32> {
    let Ok(listed) = fs::read_dir(folder) else { return Vec::new() };
    listed.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
