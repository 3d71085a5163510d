//! What kind of file system a file lies on, as far as it decides what can be believed.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The magic number of OpenZFS, which the C library does not name.
const ZFS_SUPER_MAGIC: u64 = 0x2fc1_2fc1;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// A file system, known by the magic number of `statfs(2)`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileSystem {
    magic: u64,
}

impl FileSystem {
    /// The one a file lies on; none when the kernel does not say.
    #[must_use]
    pub fn of(file: &File) -> Option<Self> {
        // SAFETY: statfs is plain data, for which all zero bytes are valid.
        let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: a valid descriptor and a writable statfs.
        let code = unsafe { libc::fstatfs(file.as_raw_fd(), &mut facts) };
        (code == 0).then_some(Self { magic: facts.f_type as u64 & 0xffff_ffff })
    }

    /// The one a path lies on; none when the kernel does not say.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        // SAFETY: statfs is plain data, for which all zero bytes are valid.
        let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: a C string and a writable statfs.
        let code = unsafe { libc::statfs(path.as_ptr(), &mut facts) };
        (code == 0).then_some(Self { magic: facts.f_type as u64 & 0xffff_ffff })
    }

    /// Its name when its files live in memory and nowhere else.
    #[must_use]
    pub fn memory(self) -> Option<&'static str> {
        match self.magic {
            magic if magic == libc::TMPFS_MAGIC as u64 => Some("tmpfs"),
            RAMFS_MAGIC => Some("ramfs"),
            _ => None,
        }
    }

    /// Its name when it caches files by itself, out of sight of the page cache's counters.
    #[must_use]
    pub fn own_cache(self) -> Option<&'static str> {
        (self.magic == ZFS_SUPER_MAGIC).then_some("ZFS")
    }

    /// Whether the kernel charges a process for what it makes this file system fetch although the
    /// file lies on no block device that can be seen.
    #[must_use]
    pub fn charges_reads(self) -> bool {
        [libc::OVERLAYFS_SUPER_MAGIC as u64, libc::NFS_SUPER_MAGIC as u64].contains(&self.magic)
    }
}
