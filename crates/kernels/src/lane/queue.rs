//! The kernel's end of a lane: `io_uring`, or threads where that is forbidden.

use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Arc;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, opcode};
use leadline_base::error::EngineError;
use leadline_base::ring::build;
use leadline_base::threads::{Threads, outcome};

/// Wakes a worker that waits for the kernel.
pub(super) struct Bell(File);

impl Bell {
    pub fn new() -> Result<Self, EngineError> {
        // SAFETY: no pointers; the descriptor that comes back is ours alone.
        unsafe {
            let number = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if number < 0 {
                return Err(refused(&Error::last_os_error()));
            }
            Ok(Self(File::from_raw_fd(number)))
        }
    }

    pub fn ring(&self) {
        // A counter that is full wakes its reader as well.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    fn silence(&self) {
        // Nothing to read means that it is silent.
        let _ = (&self.0).read(&mut [0; 8]);
    }

    /// Waits until it rings.
    fn wait(&self) {
        let mut polled = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which outlives the call; what it answers is looked at by `silence`.
        unsafe { libc::poll(&raw mut polled, 1, -1) };
        self.silence();
    }
}

/// What is asked of the kernel. The file and the memory of the pieces are held by the worker until
/// its completion was collected.
#[derive(Clone, Copy)]
pub(super) enum Call {
    Read { at: u64, pieces: *const libc::iovec, count: u32 },
    Write { at: u64, pieces: *const libc::iovec, count: u32 },
    Sync,
}

/// `user_data` of the poll that waits for the bell.
const BELL: u64 = u64::MAX;

/// Requests under way, each in a slot.
pub(super) enum Queue {
    Ring { ring: Box<IoUring>, bell_armed: bool },
    Threads(Threads<Sent>),
}

impl Queue {
    /// Of so many slots.
    ///
    /// # Errors
    /// `Target` where neither a ring nor threads are to be had.
    pub fn new(slots: usize, bell: &Arc<Bell>) -> Result<Self, EngineError> {
        match build((slots + 1).next_power_of_two().min(4096) as u32) {
            Ok(ring) => Ok(Self::Ring { ring: Box::new(ring), bell_armed: false }),
            Err(error) if is_forbidden(&error) => {
                let bell = Arc::clone(bell);
                let made = Threads::new(slots, called, move || bell.ring());
                made.map(Self::Threads).map_err(|error| {
                    EngineError::target(format!(
                        "no more threads can be started: {error}; ask for less --depth"
                    ))
                })
            }
            Err(error) => Err(refused(&error)),
        }
    }

    pub fn send(&mut self, slot: usize, file: RawFd, call: Call) -> Result<(), EngineError> {
        let ring = match self {
            Self::Ring { ring, .. } => ring,
            Self::Threads(threads) => {
                threads.push(slot, Sent { file, call });
                return Ok(());
            }
        };
        let file = Fd(file);
        let entry = match call {
            Call::Read { at, pieces, count } => {
                opcode::Readv::new(file, pieces, count).offset(at).build()
            }
            Call::Write { at, pieces, count } => {
                opcode::Writev::new(file, pieces, count).offset(at).build()
            }
            Call::Sync => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        };
        push(ring, &entry.user_data(slot as u64))
    }

    /// Waits for the kernel or the bell; slots that are done, each with its result.
    pub fn wait(&mut self, bell: &Bell) -> Result<Vec<(usize, i32)>, EngineError> {
        let (ring, bell_armed) = match self {
            Self::Ring { ring, bell_armed } => (ring, bell_armed),
            Self::Threads(threads) => {
                bell.wait();
                return Ok(std::iter::from_fn(|| threads.pop()).collect());
            }
        };
        if !*bell_armed {
            let polled = Fd(bell.0.as_raw_fd());
            let poll = opcode::PollAdd::new(polled, libc::POLLIN as u32).build();
            push(ring, &poll.user_data(BELL))?;
            *bell_armed = true;
        }
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => {}
            Err(error) => return Err(entering(&error)),
        }
        let mut done = Vec::new();
        for entry in ring.completion() {
            if entry.user_data() == BELL {
                *bell_armed = false;
                bell.silence();
            } else {
                done.push((entry.user_data() as usize, entry.result()));
            }
        }
        Ok(done)
    }
}

fn push(ring: &mut IoUring, entry: &io_uring::squeue::Entry) -> Result<(), EngineError> {
    loop {
        // SAFETY: files and memory that the entry names are held by the worker until its completion
        // was collected: it does not end before.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        ring.submit().map_err(|error| entering(&error))?;
    }
}

fn entering(error: &Error) -> EngineError {
    EngineError::io(format!("io_uring_enter failed: {error}"))
}

/// Whether a kernel without `io_uring`, or somebody who forbids it, refuses a ring: no limit does.
fn is_forbidden(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES))
}

fn refused(error: &Error) -> EngineError {
    EngineError::target(format!(
        "io_uring is refused by the kernel: {error}; look at ulimit -l and -n"
    ))
}

pub(super) struct Sent {
    file: RawFd,
    call: Call,
}

// SAFETY: the memory that a call names is the worker's, which leaves it alone until the call is done.
unsafe impl Send for Sent {}

/// Bytes moved, or the error below zero.
fn called(sent: &Sent) -> i32 {
    // SAFETY: file and memory are the worker's, who waits for this call.
    outcome(unsafe {
        match sent.call {
            Call::Read { at, pieces, count } => {
                libc::preadv(sent.file, pieces, count as i32, at as i64)
            }
            Call::Write { at, pieces, count } => {
                libc::pwritev(sent.file, pieces, count as i32, at as i64)
            }
            Call::Sync => libc::fdatasync(sent.file) as isize,
        }
    })
}
