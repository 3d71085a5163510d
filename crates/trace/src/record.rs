//! What a trace says happened, the same for all formats.

use std::fmt;

/// Time that a trace does not say.
pub const UNKNOWN: u64 = u64::MAX;
/// No file in particular, or not known which.
pub const NO_FILE: u32 = u32::MAX;
/// First byte that no request may touch: twelve bits of it are the page, and a page's number has
/// to leave room for the file's.
pub const OFFSET_END: u64 = 1 << 52;

/// Bytes of a request at most: Linux moves 2 GiB in one call.
pub const REQUEST_BYTES_MAX: u64 = 1 << 32;

/// What was done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deed {
    /// Data was read.
    Read,
    /// Data was written.
    Write,
    /// Somebody waited until what was written is safe, or had the kernel begin to write it back.
    Sync,
    /// A call about files and not about their data.
    Metadata,
    /// A device was at work; what it did is told by other records.
    Device,
    /// Data moved in a way in which this trace does not say where.
    Unplaced,
    /// Nothing was done: a file is so many bytes long before anything is done to it.
    Length,
    /// A file's last name was removed, or it was cut to nothing: what is cached of it is let go, and
    /// never written back.
    Removed,
    /// Nothing was done: the processes hold so many bytes of memory of their own.
    Memory,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// What was done.
    pub deed: Deed,
    /// Its name, of metadata and syncs: a place in [`CALLS`].
    pub call: u8,
    /// When it began, in ns from wherever the trace counts; 0 where it says no times.
    pub at_ns: u64,
    /// How long it took; [`UNKNOWN`] where the trace does not say.
    pub took_ns: u64,
    /// Who did it, numbered as they come.
    pub process: u32,
    /// Of which file or device, numbered as they come; [`NO_FILE`] means all.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Page faults while they were read into memory; 0 where the trace does not say.
    pub faults: u32,
}

impl Record {
    /// One that says only what was done.
    pub fn of(deed: Deed) -> Self {
        Self {
            deed,
            call: 0,
            at_ns: 0,
            took_ns: UNKNOWN,
            process: 0,
            file: NO_FILE,
            offset: 0,
            bytes: 0,
            faults: 0,
        }
    }

    /// First byte after it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// When it ended; when it began, where nobody says how long it took.
    pub fn ended_ns(&self) -> u64 {
        let took_ns = if self.took_ns == UNKNOWN { 0 } else { self.took_ns };
        self.at_ns.saturating_add(took_ns)
    }

    /// Whether it is a call in which somebody waits for the device, whatever it is of.
    pub fn waits(&self) -> bool {
        self.call < BEGINS_WRITEBACK && matches!(self.deed, Deed::Sync | Deed::Metadata)
    }

    /// Whether nobody waits in it for what was written: bytes from an offset are only begun to be
    /// written back, 0 of them being all to the file's end.
    pub fn begins_writeback(&self) -> bool {
        self.deed == Deed::Sync && self.call == BEGINS_WRITEBACK
    }
}

/// What one call says that moves data from a file to another.
#[derive(Debug, Default)]
pub struct Between(Vec<Record>);

impl Sink for Between {
    fn take(&mut self, record: Record) -> Result<(), Refused> {
        self.0.push(record);
        Ok(())
    }
}

impl Between {
    /// Gives it on: a call that read one file and wrote another did each in half of its time, one
    /// after the other, because nobody knows better and its time is not to count twice.
    ///
    /// # Errors
    ///
    /// Those of whoever takes it.
    pub fn give(self, mut take: impl FnMut(Record) -> Result<(), Refused>) -> Result<(), Refused> {
        let moves = |record: &&Record| matches!(record.deed, Deed::Read | Deed::Write);
        let halves = self.0.iter().filter(moves).count() == 2;
        for mut record in self.0 {
            if halves && record.took_ns != UNKNOWN {
                let half_ns = record.took_ns / 2;
                match record.deed {
                    Deed::Read => record.took_ns = half_ns,
                    Deed::Write => {
                        record.at_ns += half_ns;
                        record.took_ns -= half_ns;
                    }
                    _ => {}
                }
            }
            take(record)?;
        }
        Ok(())
    }
}

/// Calls that are counted by name: those that wait for the device first, the one that has the kernel
/// begin to write back, then metadata.
pub const CALLS: [&str; 25] = [
    "fsync",
    "fdatasync",
    "sync",
    "flush",
    "sync_file_range",
    "open",
    "close",
    "stat",
    "access",
    "getdents",
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "link",
    "symlink",
    "readlink",
    "truncate",
    "fallocate",
    "chmod",
    "chown",
    "utime",
    "fadvise",
    "discard",
    "end of file",
];

/// The flag of `sync_file_range` that begins to write back and waits for nothing.
pub const BEGIN_ONLY: u64 = 2;
const BEGINS_WRITEBACK: u8 = 4;

/// The place of a name in [`CALLS`].
pub fn call_named(name: &str) -> u8 {
    CALLS.iter().position(|call| *call == name).map_or(0, |place| place as u8)
}

/// Why a trace is not taken, in a sentence that says what to do instead.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Takes records as they are read.
pub trait Sink {
    /// Takes the next one.
    ///
    /// # Errors
    ///
    /// The trace cannot be described.
    fn take(&mut self, record: Record) -> Result<(), Refused>;
}
