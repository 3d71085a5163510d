//! `io_uring`.
//!
//! Past the cache every request is sent at once; to send together all that can be sent would spare
//! calls, but the device would idle while the batch is made up and the worker while it is served
//! (seen at depth 32 on a virtio disk: 158 k requests/s all together, 185 k in twos, 189 k singly).
//! Through the cache most requests are answered within the call, so there it is made for several.
//! A lone request is sent by the call that waits for it. The file and
//! the buffers are registered where the kernel allows, which spares looking up the one and pinning
//! the other for every request; where it does not (a small limit of locked memory), plain requests
//! are sent. The ring is made on the worker's own thread, so that the kernel may run its completion
//! work there alone (`SINGLE_ISSUER`, `DEFER_TASKRUN`; older kernels get less).

use std::fs::{File, read_to_string};
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use leadline_base::buffer::BufferSlice;
use leadline_base::error::EngineError;
use leadline_base::ring;

use super::{Deed, Piece};

/// The ring and what is registered with it.
pub(super) struct Ring {
    uring: IoUring,
    file: RawFd,
    fixed_file: bool,
    fixed_buffers: bool,
    /// Requests queued since the kernel was last entered.
    prepared: usize,
    /// Requests after which it is entered.
    batch: usize,
}

impl Ring {
    /// A ring with an entry for each buffer; file and buffers outlive it.
    pub fn new(
        file: &File,
        buffers: &mut [BufferSlice],
        batch: usize,
    ) -> Result<Self, EngineError> {
        let entries = buffers.len().next_power_of_two() as u32;
        let uring = ring::build(entries).map_err(|error| refused(&error))?;
        let submitter = uring.submitter();
        let fixed_file = submitter.register_files(&[file.as_raw_fd()]).is_ok();
        let ranges: Vec<libc::iovec> = buffers
            .iter_mut()
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        // SAFETY: the buffers are mapped and live longer than the ring.
        let fixed_buffers = unsafe { submitter.register_buffers(&ranges) }.is_ok();
        Ok(Self { uring, file: file.as_raw_fd(), fixed_file, fixed_buffers, prepared: 0, batch })
    }

    /// Prepares a piece, and sends when enough are.
    #[inline]
    pub fn push(&mut self, piece: Piece) -> Result<(), EngineError> {
        let entry = self.entry(&piece).user_data(piece.slot as u64);
        // SAFETY: the file and the buffer live as long as the backend, which collects every request
        // before it is dropped or, after an error, closes the ring; the slot's buffer is its own.
        let pushed = unsafe { self.uring.submission().push(&entry) };
        pushed.map_err(|_| EngineError::fault("the queue has fewer entries than slots"))?;
        self.prepared += 1;
        if self.prepared >= self.batch {
            self.send()?;
        }
        Ok(())
    }

    /// A completion that is there.
    #[inline]
    pub fn pop(&mut self) -> Option<(usize, i32)> {
        let entry = self.uring.completion().next()?;
        Some((entry.user_data() as usize, entry.result()))
    }

    #[inline]
    fn entry(&self, piece: &Piece) -> squeue::Entry {
        let &Piece { slot, deed, address, length, offset } = piece;
        let index = slot as u16;
        // The calls differ only in types, which io-uring does not name.
        macro_rules! entry {
            ($target:expr) => {
                match (deed, self.fixed_buffers) {
                    (Deed::Read, true) => opcode::ReadFixed::new($target, address, length, index)
                        .offset(offset)
                        .build(),
                    (Deed::Write, true) => opcode::WriteFixed::new($target, address, length, index)
                        .offset(offset)
                        .build(),
                    (Deed::Read, false) => {
                        opcode::Read::new($target, address, length).offset(offset).build()
                    }
                    (Deed::Write, false) => {
                        opcode::Write::new($target, address, length).offset(offset).build()
                    }
                    (Deed::Sync { data_only }, _) => {
                        let flags =
                            if data_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
                        opcode::Fsync::new($target).flags(flags).build()
                    }
                }
            };
        }
        if self.fixed_file { entry!(Fixed(0)) } else { entry!(Fd(self.file)) }
    }

    /// Sends what is prepared without waiting.
    fn send(&mut self) -> Result<(), EngineError> {
        self.prepared = 0;
        match self.uring.submit() {
            // What was not taken is taken by the call that waits.
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(EngineError::io(format!("io_uring_enter failed: {error}"))),
        }
    }

    /// Sends what is prepared and waits for a completion; false when the timeout ended first.
    #[inline]
    pub fn enter(&mut self, timeout_ns: Option<u64>) -> Result<bool, EngineError> {
        self.prepared = 0;
        let waited = match timeout_ns {
            None => self.uring.submit_and_wait(1),
            Some(timeout_ns) => {
                let time = Timespec::new()
                    .sec(timeout_ns / 1_000_000_000)
                    .nsec((timeout_ns % 1_000_000_000) as u32);
                let arguments = SubmitArgs::new().timespec(&time);
                self.uring.submitter().submit_with_args(1, &arguments)
            }
        };
        match waited {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(EngineError::io(format!("io_uring_enter failed: {error}"))),
        }
    }
}

/// Why there is no `io_uring` here, and will be none; nothing where there is.
///
/// # Errors
/// `Target` where a limit is too small for it.
pub(super) fn why_not() -> Result<Option<String>, EngineError> {
    ring::build(1).map_or_else(|error| forbidden(&error).map(Some), |_| Ok(None))
}

/// What forbids it, from the error by which a ring was refused.
fn forbidden(error: &Error) -> Result<String, EngineError> {
    let setting = read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (error.raw_os_error(), setting.trim()) {
        (Some(libc::ENOSYS), _) => Ok("this kernel has none".to_owned()),
        (Some(libc::EPERM | libc::EACCES), "1" | "2") => {
            Ok(format!("sysctl kernel.io_uring_disabled={}", setting.trim()))
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            Ok("a seccomp filter forbids it, as container runtimes do by default".to_owned())
        }
        _ => Err(refused(error)),
    }
}

/// A refusal that its owner can do something about.
fn refused(error: &Error) -> EngineError {
    let cause = match error.raw_os_error() {
        Some(libc::ENOMEM) => "the limit of locked memory is too small (ulimit -l)",
        Some(libc::EMFILE | libc::ENFILE) => "too many files are open (ulimit -n)",
        _ => "the likely cause is not known",
    };
    EngineError::target(format!(
        "io_uring is refused by the kernel: {error}; {cause}; use --backend pread, with more \
        processes in place of queue_depth"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_limit_that_is_too_small_is_named_and_what_is_forbidden_has_a_substitute() {
        for (errno, cause) in [(libc::ENOMEM, "ulimit -l"), (libc::EMFILE, "ulimit -n")] {
            let message = forbidden(&Error::from_raw_os_error(errno)).unwrap_err().message;
            assert!(message.contains(cause) && message.contains("--backend pread"), "{message}");
        }
        let none = forbidden(&Error::from_raw_os_error(libc::ENOSYS)).unwrap();
        assert_eq!(none, "this kernel has none");
    }
}
