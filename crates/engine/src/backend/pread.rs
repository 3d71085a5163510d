//! `pread(2)` and `pwrite(2)`, buffered or direct, one outstanding request per worker.

#![forbid(unsafe_code)]

use std::fs::File;

use leadline_base::buffer::BufferSlice;
use leadline_base::error::EngineError;
use leadline_wire::job::backend::WriteSync;
use rustix::io::Errno;

use crate::backend::read_ahead::ReadAhead;
use crate::backend::{Backend, FsyncTurn, ended_early, failed, not_synced};
use leadline_base::request::{Kind, Request};

/// One worker's open file and buffer.
#[derive(Debug)]
pub struct PreadBackend {
    file: File,
    /// For reads of pieces; none where no kernel reads ahead, or there are none.
    pieces: Option<ReadAhead>,
    buffer: BufferSlice,
    fsync_turn: FsyncTurn,
}

impl PreadBackend {
    /// A worker on `file`. A request longer than `buffer` is moved by several calls, one after the
    /// other, and is still one request with one response time. For [`WriteSync::Dsync`] `file` is
    /// open with `O_DSYNC`, and every call waits.
    #[must_use]
    pub fn new(file: File, buffer: BufferSlice, sync: WriteSync) -> Self {
        Self { file, pieces: None, buffer, fsync_turn: FsyncTurn::new(sync) }
    }

    /// Reads the pieces of its data, from now on, as files are read; `file` is another open file on
    /// the same data.
    ///
    /// # Errors
    /// `Io` when the kernel does not take the advice.
    pub fn reading_pieces(mut self, file: File) -> Result<Self, EngineError> {
        self.pieces = Some(ReadAhead::new(file)?);
        Ok(self)
    }

    #[inline]
    fn move_once(&mut self, request: &Request, length: usize, moved: u64) -> Result<usize, Errno> {
        let length = length.min(self.buffer.len());
        if request.kind == Kind::Write {
            self.buffer.renew(length);
        }
        let bytes = &mut self.buffer.as_mut_slice()[..length];
        let offset = request.offset_bytes + moved;
        // Straight to the kernel: the C library's own pread takes two locked instructions more in a
        // process with threads, for the sake of their cancellation.
        match request.kind {
            Kind::Read => {
                let file = match &self.pieces {
                    Some(pieces) if request.piece_end_bytes > 0 => pieces.file(),
                    _ => &self.file,
                };
                rustix::io::pread(file, bytes, offset)
            }
            Kind::Write => rustix::io::pwrite(&self.file, bytes, offset),
        }
    }

    fn fsync(&self) -> Result<(), Errno> {
        loop {
            let outcome = if self.fsync_turn.data_only {
                rustix::fs::fdatasync(&self.file)
            } else {
                rustix::fs::fsync(&self.file)
            };
            match outcome {
                Err(Errno::INTR) => {}
                outcome => return outcome,
            }
        }
    }
}

impl Backend for PreadBackend {
    #[inline]
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        let mut moved = 0;
        if let (Some(pieces), Kind::Read, 1..) =
            (&mut self.pieces, request.kind, request.piece_end_bytes)
        {
            pieces.before(request);
        }
        while moved < request.length_bytes {
            let left = usize::try_from(request.length_bytes - moved).unwrap_or(usize::MAX);
            match self.move_once(request, left, moved) {
                Ok(0) => return Err(ended_early(request, moved)),
                Ok(count) => moved += count as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(request, moved, &error.into())),
            }
        }
        if self.fsync_turn.comes(request.kind) {
            self.fsync().map_err(|error| not_synced(request, &error.into()))?;
        }
        Ok(moved)
    }
}
