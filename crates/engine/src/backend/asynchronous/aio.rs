//! Linux AIO, as `libaio` has it: `io_submit` sends one request, `io_getevents` waits.
//!
//! Only for direct requests. Through the cache the kernel does all of a request within `io_submit`.

use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::ptr;

use leadline_base::error::EngineError;

use super::{Deed, Piece};

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// `struct iocb` of linux/aio_abi.h.
#[repr(C)]
#[derive(Default)]
struct ControlBlock {
    data: u64,
    /// `aio_key` and `aio_rw_flags`, both 0, in the machine's order.
    key_and_flags: u64,
    opcode: u16,
    priority: i16,
    file: u32,
    address: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control_block: u64,
    result: i64,
    second: i64,
}

/// One worker's queue; dropped, it waits for what is under way.
pub(super) struct Context {
    id: u64,
    file: u32,
    events: Vec<Event>,
    /// Events that were fetched, and how many of them were taken.
    fetched: usize,
    taken: usize,
}

/// Whether the kernel makes a queue.
pub(super) fn works() -> bool {
    set_up(1).map(destroy).is_ok()
}

fn set_up(slots: usize) -> Result<u64, Error> {
    let mut id: u64 = 0;
    // SAFETY: the kernel writes the id there.
    let made = unsafe { libc::syscall(libc::SYS_io_setup, slots, &raw mut id) };
    if made < 0 { Err(Error::last_os_error()) } else { Ok(id) }
}

fn destroy(id: u64) {
    // SAFETY: the id is of a queue that was made and is not used again.
    unsafe { libc::syscall(libc::SYS_io_destroy, id) };
}

impl Context {
    /// A queue of so many slots.
    pub fn new(file: &File, slots: usize) -> Result<Self, EngineError> {
        let id = set_up(slots).map_err(|error| {
            EngineError::target(format!(
                "the kernel makes no queue of {slots} requests: {error}; raise sysctl \
                 fs.aio-max-nr, or use --backend pread"
            ))
        })?;
        let events = vec![Event::default(); slots];
        Ok(Self { id, file: file.as_raw_fd() as u32, events, fetched: 0, taken: 0 })
    }

    #[inline]
    pub fn push(&mut self, piece: Piece) -> Result<(), EngineError> {
        let opcode = match piece.deed {
            Deed::Read => PREAD,
            Deed::Write => PWRITE,
            Deed::Sync { data_only: false } => FSYNC,
            Deed::Sync { data_only: true } => FDSYNC,
        };
        let mut block = ControlBlock {
            data: piece.slot as u64,
            opcode,
            file: self.file,
            ..ControlBlock::default()
        };
        if !matches!(piece.deed, Deed::Sync { .. }) {
            block.address = piece.address as u64;
            block.bytes = u64::from(piece.length);
            block.offset = piece.offset as i64;
        }
        let blocks = [&raw mut block];
        loop {
            // SAFETY: one block, which the kernel copies; the buffer that it names is the slot's own
            // and outlives the queue, as the file does.
            let sent =
                unsafe { libc::syscall(libc::SYS_io_submit, self.id, 1_i64, blocks.as_ptr()) };
            if sent == 1 {
                return Ok(());
            }
            let error = Error::last_os_error();
            if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) {
                return Err(EngineError::io(format!("io_submit failed: {error}")));
            }
        }
    }

    /// Waits for a completion; false when the timeout ended first.
    #[inline]
    pub fn enter(&mut self, timeout_ns: Option<u64>) -> Result<bool, EngineError> {
        if self.taken < self.fetched {
            return Ok(true);
        }
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let limit = timeout_ns.map_or(ptr::null_mut(), |timeout_ns| {
            time.tv_sec = (timeout_ns / 1_000_000_000) as i64;
            time.tv_nsec = (timeout_ns % 1_000_000_000) as i64;
            &raw mut time
        });
        let room = self.events.len() as i64;
        // SAFETY: there is room for so many events; the time is ours.
        let found = unsafe {
            let at = self.events.as_mut_ptr();
            libc::syscall(libc::SYS_io_getevents, self.id, 1_i64, room, at, limit)
        };
        if found < 0 {
            let error = Error::last_os_error();
            if error.raw_os_error() == Some(libc::EINTR) {
                return Ok(true);
            }
            return Err(EngineError::io(format!("io_getevents failed: {error}")));
        }
        (self.fetched, self.taken) = (found as usize, 0);
        Ok(found > 0)
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(usize, i32)> {
        let event = self.events.get(self.taken).filter(|_| self.taken < self.fetched)?;
        self.taken += 1;
        Some((event.data as usize, event.result as i32))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        destroy(self.id);
    }
}
