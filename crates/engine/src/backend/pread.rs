//! `pread(2)` and `pwrite(2)`, buffered or direct, one outstanding request per issuer.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;

use crate::backend::{Backend, ended_early, failed};
use crate::buffer::BufferSlice;
use crate::error::EngineError;
use crate::job::{Kind, Request};

/// One issuer's open file and buffer.
#[derive(Debug)]
pub struct PreadBackend {
    file: File,
    buffer: BufferSlice,
}

impl PreadBackend {
    /// An issuer on `file`. A request longer than `buffer` is moved by several calls, one after the
    /// other, and is still one request with one response time.
    #[must_use]
    pub fn new(file: File, buffer: BufferSlice) -> Self {
        Self { file, buffer }
    }

    fn move_once(&mut self, kind: Kind, length: usize, offset: u64) -> isize {
        let offset = offset as libc::off_t;
        let descriptor = self.file.as_raw_fd();
        let length = length.min(self.buffer.len());
        match kind {
            // SAFETY: the buffer is ours alone, mapped and at least `length` bytes long.
            Kind::Read => unsafe {
                libc::pread(descriptor, self.buffer.as_mut_ptr().cast(), length, offset)
            },
            // SAFETY: as above; the kernel only reads it.
            Kind::Write => unsafe {
                libc::pwrite(descriptor, self.buffer.as_mut_ptr().cast(), length, offset)
            },
        }
    }
}

impl Backend for PreadBackend {
    #[inline]
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        let mut moved = 0;
        while moved < request.length_bytes {
            let left = usize::try_from(request.length_bytes - moved).unwrap_or(usize::MAX);
            let count = self.move_once(request.kind, left, request.offset_bytes + moved);
            if count > 0 {
                moved += count as u64;
            } else if count == 0 {
                return Err(ended_early(request, moved));
            } else {
                let error = Error::last_os_error();
                if error.kind() != ErrorKind::Interrupted {
                    return Err(failed(request, moved, &error));
                }
            }
        }
        Ok(moved)
    }
}
