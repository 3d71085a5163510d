//! The system calls that are looked at, by their number on x86-64, and what each does.

#![forbid(unsafe_code)]

/// What a call does to storage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Does {
    /// Moves data where the file is at.
    Read,
    Write,
    /// The same at an offset, the fourth argument.
    ReadAt,
    WriteAt,
    /// The same, at the file's own place where the offset is -1.
    ReadMaybeAt,
    WriteMaybeAt,
    /// From a file into another, or a pipe or socket.
    Send,
    Copy,
    Splice,
    /// Waits until data is safe; by its name among `leadline_trace::CALLS`.
    Sync(&'static str),
    /// Begins to write a range back, or waits for it, by its flags.
    SyncRange,
    Open,
    Close,
    /// About a descriptor; nothing where that is no file.
    OnFile(&'static str),
    /// About a name.
    OnName(&'static str),
    /// About a name, or about its first argument where the flag `AT_EMPTY_PATH` is in argument n.
    OnEither(&'static str, u8),
    Map,
    Exec,
    /// Counted under this name as not seen.
    Unseen(&'static str),
}

/// A call that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub number: u32,
    pub does: Does,
    /// Argument that is a descriptor; [`RESULT`] or [`NONE`].
    pub first: u8,
    /// Another.
    pub second: u8,
}

/// The descriptor is what the call returns.
pub const RESULT: u8 = 6;
/// There is none.
pub const NONE: u8 = 15;

impl Wanted {
    /// Told also where it concerns no file.
    pub fn always(self) -> bool {
        !matches!(
            self.does,
            Does::Read
                | Does::Write
                | Does::ReadAt
                | Does::WriteAt
                | Does::ReadMaybeAt
                | Does::WriteMaybeAt
                | Does::Send
                | Does::Copy
                | Does::Splice
                | Does::Close
                | Does::OnFile(_)
                | Does::Map
        )
    }

    /// Its arguments that point to an offset, as bits.
    pub fn pointers(self) -> u8 {
        match self.does {
            Does::Send => 1 << 2,
            Does::Copy | Does::Splice => 1 << 1 | 1 << 3,
            _ => 0,
        }
    }
}

const fn of(number: u32, does: Does, first: u8) -> Wanted {
    Wanted { number, does, first, second: NONE }
}

const fn named(number: u32, name: &'static str) -> Wanted {
    of(number, Does::OnName(name), NONE)
}

const fn on(number: u32, name: &'static str) -> Wanted {
    of(number, Does::OnFile(name), 0)
}

/// All of them (arch/x86/entry/syscalls/syscall_64.tbl).
pub const WANTED: [Wanted; 72] = [
    of(0, Does::Read, 0),
    of(1, Does::Write, 0),
    of(2, Does::Open, RESULT),
    of(3, Does::Close, 0),
    named(4, "stat"),
    on(5, "stat"),
    named(6, "stat"),
    of(9, Does::Map, 4),
    of(17, Does::ReadAt, 0),
    of(18, Does::WriteAt, 0),
    of(19, Does::Read, 0),
    of(20, Does::Write, 0),
    named(21, "access"),
    of(26, Does::Unseen("msync"), NONE),
    Wanted { number: 40, does: Does::Send, first: 1, second: 0 },
    of(59, Does::Exec, NONE),
    of(74, Does::Sync("fsync"), 0),
    of(75, Does::Sync("fdatasync"), 0),
    named(76, "truncate"),
    on(77, "truncate"),
    named(78, "getdents"),
    named(82, "rename"),
    named(83, "mkdir"),
    named(84, "rmdir"),
    of(85, Does::Open, RESULT),
    named(86, "link"),
    named(87, "unlink"),
    named(88, "symlink"),
    named(89, "readlink"),
    named(90, "chmod"),
    on(91, "chmod"),
    named(92, "chown"),
    on(93, "chown"),
    named(94, "chown"),
    named(132, "utime"),
    named(137, "stat"),
    on(138, "stat"),
    of(162, Does::Sync("sync"), NONE),
    on(187, "fadvise"),
    of(209, Does::Unseen("libaio"), NONE),
    named(217, "getdents"),
    on(221, "fadvise"),
    named(235, "utime"),
    of(257, Does::Open, RESULT),
    named(258, "mkdir"),
    named(260, "chown"),
    named(261, "utime"),
    of(262, Does::OnEither("stat", 3), 0),
    named(263, "unlink"),
    named(264, "rename"),
    named(265, "link"),
    named(266, "symlink"),
    named(267, "readlink"),
    named(268, "chmod"),
    named(269, "access"),
    Wanted { number: 275, does: Does::Splice, first: 0, second: 2 },
    of(277, Does::SyncRange, 0),
    named(280, "utime"),
    on(285, "fallocate"),
    of(295, Does::ReadAt, 0),
    of(296, Does::WriteAt, 0),
    of(306, Does::Sync("sync"), NONE),
    named(316, "rename"),
    of(322, Does::Exec, NONE),
    Wanted { number: 326, does: Does::Copy, first: 0, second: 2 },
    of(327, Does::ReadMaybeAt, 0),
    of(328, Does::WriteMaybeAt, 0),
    of(332, Does::OnEither("stat", 2), 0),
    of(426, Does::Unseen("io_uring"), NONE),
    of(437, Does::Open, RESULT),
    named(439, "access"),
    named(452, "chmod"),
];

/// In place of a call's number: the last name of its first file is about to be removed.
pub const REMOVES: u32 = 1 << 16;
pub const UNLINK: u32 = 87;
/// It and unlinkat.
pub const UNLINKS: [u32; 2] = [UNLINK, 263];

/// What a call of this number does.
pub fn wanted(number: u32) -> Option<&'static Wanted> {
    WANTED.iter().find(|each| each.number == number)
}
