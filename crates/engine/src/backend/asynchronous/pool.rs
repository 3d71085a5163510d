//! Blocking calls of a thread for each slot.

use std::os::fd::RawFd;

use leadline_base::error::EngineError;
use leadline_base::threads::{Threads, outcome};

use super::{Deed, Piece};

/// So many threads for a file, which outlives them.
pub(super) fn threads(file: RawFd, slots: usize) -> Result<Threads<Piece>, EngineError> {
    Threads::new(slots, move |piece| called(file, piece), || {}).map_err(|error| {
        EngineError::target(format!(
            "no more threads can be started for the queue: {error}; ask for less queue_depth"
        ))
    })
}

fn called(file: RawFd, piece: &Piece) -> i32 {
    let (at, bytes, offset) = (piece.address, piece.length as usize, piece.offset as i64);
    // SAFETY: the buffer is the slot's own and as long; buffer and file outlive the threads.
    outcome(unsafe {
        match piece.deed {
            Deed::Read => libc::pread(file, at.cast(), bytes, offset),
            Deed::Write => libc::pwrite(file, at.cast(), bytes, offset),
            Deed::Sync { data_only: true } => libc::fdatasync(file) as isize,
            Deed::Sync { data_only: false } => libc::fsync(file) as isize,
        }
    })
}
