//! Pages of a file that stay in the cache: this kernel may drop an idle file's within seconds, and
//! any kernel may when memory is short.

use std::fs::File;
use std::os::fd::AsRawFd;

/// A mapping that is locked in memory until it is dropped.
pub struct Pinned {
    start: *mut libc::c_void,
    length: usize,
}

impl Pinned {
    /// Brings the first `length` bytes in, and no others; in words, why it may not.
    pub fn new(file: &File, length: u64) -> Result<Self, String> {
        let length = length as usize;
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping of a valid descriptor.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, flags, file.as_raw_fd(), 0)
        };
        let refused = || format!("locking a file in memory: {}", std::io::Error::last_os_error());
        if start == libc::MAP_FAILED {
            return Err(refused());
        }
        let pinned = Self { start, length };
        // SAFETY: the mapping made above; without read-ahead only its own pages come in.
        let code = unsafe {
            libc::madvise(start, length, libc::MADV_RANDOM);
            libc::mlock(start, length)
        };
        if code == 0 { Ok(pinned) } else { Err(refused()) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, which nothing else uses.
        unsafe { libc::munmap(self.start, self.length) };
    }
}
