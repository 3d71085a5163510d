//! Several requests outstanding on a file, buffered or direct, with a queue per worker.
//!
//! `io_uring` where the kernel grants it. Where it does not, as in most containers and on RHEL,
//! direct requests go through Linux AIO, and requests through the cache to a pool of threads: Linux
//! AIO serves those within the call that should only send them.

mod aio;
mod pool;
mod uring;

use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd;

use leadline_base::buffer::BufferSlice;
use leadline_base::error::EngineError;
use leadline_base::request::{Kind, Request};
use leadline_base::threads::Threads;
use leadline_wire::job::backend::WriteSync;

use crate::backend::Wire;
use crate::backend::{Completion, FsyncTurn, QueueBackend, ended_early, failed, not_synced};

use aio::Context;
use uring::Ring;

/// Requests sent by one call through the cache.
const BUFFERED_BATCH: usize = 8;

/// By which of the kernel's interfaces requests are queued.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// `io_uring`.
    IoUring,
    /// `io_submit` and `io_getevents`, for direct requests.
    LinuxAio,
    /// A thread for each slot.
    Threads,
}

/// What is used in place of `io_uring`, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Instead {
    /// Its name.
    pub name: &'static str,
    /// Why `io_uring` is not to be had.
    pub why: String,
}

impl Way {
    /// The best way that this process has: a ring is made and closed.
    ///
    /// # Errors
    /// `Target` where a limit is too small for `io_uring`, which its owner can raise.
    pub fn here(direct: bool) -> Result<(Self, Option<Instead>), EngineError> {
        let Some(why) = uring::why_not()? else { return Ok((Self::IoUring, None)) };
        let way = if direct && aio::works() { Self::LinuxAio } else { Self::Threads };
        let name = if way == Self::LinuxAio { "Linux AIO" } else { "a pool of threads" };
        Ok((way, Some(Instead { name, why })))
    }
}

/// What is to be done for a slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Deed {
    Read,
    Write,
    Sync { data_only: bool },
}

/// A part of a slot's request that the kernel takes at once.
#[derive(Clone, Copy, Debug)]
struct Piece {
    slot: usize,
    deed: Deed,
    address: *mut u8,
    length: u32,
    offset: u64,
}

// SAFETY: the address is of a slot's own buffer, which nobody touches while the piece is under way.
unsafe impl Send for Piece {}

/// A queue that was made.
enum Queue {
    IoUring(Box<Ring>),
    LinuxAio(Context),
    Threads(Threads<Piece>),
}

impl Queue {
    #[inline]
    fn push(&mut self, piece: Piece) -> Result<(), EngineError> {
        match self {
            Self::IoUring(ring) => ring.push(piece),
            Self::LinuxAio(context) => context.push(piece),
            Self::Threads(threads) => {
                threads.push(piece.slot, piece);
                Ok(())
            }
        }
    }

    /// Waits for a completion; false when the timeout ended first.
    #[inline]
    fn enter(&mut self, timeout_ns: Option<u64>) -> Result<bool, EngineError> {
        match self {
            Self::IoUring(ring) => ring.enter(timeout_ns),
            Self::LinuxAio(context) => context.enter(timeout_ns),
            Self::Threads(threads) => Ok(threads.wait(timeout_ns)),
        }
    }

    /// A slot whose piece is done, with its bytes, or the error below zero.
    #[inline]
    fn pop(&mut self) -> Option<(usize, i32)> {
        match self {
            Self::IoUring(ring) => ring.pop(),
            Self::LinuxAio(context) => context.pop(),
            Self::Threads(threads) => threads.pop(),
        }
    }
}

/// A slot's request and how much of it has been moved.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    request: Request,
    moved: u64,
    /// All its bytes are moved, and an `fsync` is outstanding.
    syncing: bool,
}

/// One worker's queue.
pub struct AsyncBackend {
    /// First, so that what is under way ends before its buffers do.
    queue: Option<Queue>,
    way: Way,
    file: File,
    batch: usize,
    buffers: Vec<BufferSlice>,
    transfers: Vec<Option<Transfer>>,
    fsync_turn: FsyncTurn,
}

impl AsyncBackend {
    /// A worker on `file`, open for direct I/O or not, with a slot for each of `buffers`. A request
    /// longer than its buffer is moved in pieces, one after the other, and is still one request with
    /// one response time. For [`WriteSync::Dsync`] `file` is open with `O_DSYNC`, and every piece
    /// waits.
    #[must_use]
    pub fn new(
        way: Way,
        file: File,
        buffers: Vec<BufferSlice>,
        direct: bool,
        sync: WriteSync,
    ) -> Self {
        let transfers = vec![None; buffers.len()];
        let past_the_cache = direct || sync == WriteSync::Dsync {};
        let batch = if past_the_cache && buffers.len() > 1 { 1 } else { BUFFERED_BATCH };
        let fsync_turn = FsyncTurn::new(sync);
        Self { queue: None, way, file, batch, buffers, transfers, fsync_turn }
    }

    /// Queues the next piece of a slot's request, or the `fsync` that follows the last.
    #[inline]
    fn push(&mut self, slot: usize) -> Result<(), EngineError> {
        let (Some(queue), Some(Some(transfer)), Some(buffer)) =
            (self.queue.as_mut(), self.transfers.get(slot), self.buffers.get_mut(slot))
        else {
            return Err(EngineError::fault("a request for a queue or slot that is not there"));
        };
        let left = transfer.request.length_bytes - transfer.moved;
        let length = left.min(buffer.len() as u64) as u32;
        let deed = match transfer.request.kind {
            _ if transfer.syncing => Deed::Sync { data_only: self.fsync_turn.data_only },
            Kind::Read => Deed::Read,
            Kind::Write => {
                buffer.renew(length as usize);
                Deed::Write
            }
        };
        let offset = transfer.request.offset_bytes + transfer.moved;
        queue.push(Piece { slot, deed, address: buffer.as_mut_ptr(), length, offset })
    }

    /// Takes one completion; true when its request is done.
    #[inline]
    fn take(&mut self, slot: usize, code: i32) -> Result<Option<Completion>, EngineError> {
        let Some(Some(transfer)) = self.transfers.get_mut(slot) else {
            return Err(EngineError::fault("a completion for a slot that sent nothing"));
        };
        if transfer.syncing && code >= 0 {
            let wire = Wire::default();
            return Ok(Some(Completion { slot, bytes: transfer.moved, wire }));
        }
        if code > 0 {
            transfer.moved += code as u64;
            if transfer.moved >= transfer.request.length_bytes {
                transfer.syncing = self.fsync_turn.comes(transfer.request.kind);
                if transfer.syncing {
                    return Ok(None);
                }
                let wire = Wire::default();
                return Ok(Some(Completion { slot, bytes: transfer.moved, wire }));
            }
        } else if code == 0 {
            return Err(ended_early(&transfer.request, transfer.moved));
        } else if !matches!(-code, libc::EINTR | libc::EAGAIN) {
            let error = Error::from_raw_os_error(-code);
            if transfer.syncing {
                return Err(not_synced(&transfer.request, &error));
            }
            return Err(failed(&transfer.request, transfer.moved, &error));
        }
        Ok(None)
    }

    /// Collects what is done; pieces that are left over, and an `fsync` that is due, are queued.
    #[inline]
    fn collect(&mut self, done: &mut Vec<Completion>) -> Result<(), EngineError> {
        while let Some((slot, code)) = self.queue.as_mut().and_then(Queue::pop) {
            match self.take(slot, code)? {
                Some(completion) => done.push(completion),
                None => self.push(slot)?,
            }
        }
        Ok(())
    }
}

impl QueueBackend for AsyncBackend {
    fn begin(&mut self) -> Result<(), EngineError> {
        let (file, slots) = (&self.file, self.buffers.len());
        self.queue = Some(match self.way {
            Way::IoUring => {
                Queue::IoUring(Box::new(Ring::new(file, &mut self.buffers, self.batch)?))
            }
            Way::LinuxAio => Queue::LinuxAio(Context::new(file, slots)?),
            Way::Threads => Queue::Threads(pool::threads(file.as_raw_fd(), slots)?),
        });
        Ok(())
    }

    #[inline]
    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        if let Some(transfer) = self.transfers.get_mut(slot) {
            *transfer = Some(Transfer { request: *request, moved: 0, syncing: false });
        }
        self.push(slot)
    }

    #[inline]
    fn turn(
        &mut self,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        loop {
            let Some(queue) = self.queue.as_mut() else { return Ok(()) };
            let patient = queue.enter(timeout_ns)?;
            self.collect(done)?;
            if !done.is_empty() || !patient {
                return Ok(());
            }
        }
    }
}
