//! A thread for each slot, making blocking calls.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use leadline_base::error::EngineError;

use super::{Deed, Piece};

/// What the threads and their worker share.
struct Shared {
    file: RawFd,
    /// Pieces that no thread has yet; none when the threads are to end.
    waiting: Mutex<Option<VecDeque<Piece>>>,
    more: Condvar,
    done: Mutex<VecDeque<(usize, i32)>>,
    one_done: Condvar,
}

/// One worker's threads; dropped, it waits for what is under way.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// So many threads; the file outlives them.
    pub fn new(file: &File, slots: usize) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared {
            file: file.as_raw_fd(),
            waiting: Mutex::new(Some(VecDeque::with_capacity(slots))),
            more: Condvar::new(),
            done: Mutex::new(VecDeque::with_capacity(slots)),
            one_done: Condvar::new(),
        });
        let mut pool = Self { shared, threads: Vec::with_capacity(slots) };
        for _ in 0..slots {
            let shared = Arc::clone(&pool.shared);
            let made = thread::Builder::new().name("request".to_owned()).spawn(move || {
                while let Some(piece) = shared.next() {
                    let code = shared.call(&piece);
                    locked(&shared.done).push_back((piece.slot, code));
                    shared.one_done.notify_one();
                }
            });
            pool.threads.push(made.map_err(|error| {
                EngineError::target(format!(
                    "no more threads can be started for the queue: {error}; ask for less \
                     queue_depth"
                ))
            })?);
        }
        Ok(pool)
    }

    #[inline]
    pub fn push(&mut self, piece: Piece) {
        if let Some(waiting) = locked(&self.shared.waiting).as_mut() {
            waiting.push_back(piece);
        }
        self.shared.more.notify_one();
    }

    /// Waits for a completion; false when the timeout ended first.
    #[inline]
    pub fn enter(&mut self, timeout_ns: Option<u64>) -> bool {
        let done = locked(&self.shared.done);
        let (one_done, none) = (&self.shared.one_done, |done: &mut VecDeque<_>| done.is_empty());
        let done = match timeout_ns {
            None => one_done.wait_while(done, none).unwrap_or_else(PoisonError::into_inner),
            Some(timeout_ns) => {
                let limit = Duration::from_nanos(timeout_ns);
                let waited = one_done.wait_timeout_while(done, limit, none);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        !done.is_empty()
    }

    #[inline]
    pub fn pop(&mut self) -> Option<(usize, i32)> {
        locked(&self.shared.done).pop_front()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        *locked(&self.shared.waiting) = None;
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn next(&self) -> Option<Piece> {
        let waiting = locked(&self.waiting);
        let none = |waiting: &mut Option<VecDeque<Piece>>| {
            waiting.as_ref().is_some_and(VecDeque::is_empty)
        };
        let mut waiting =
            self.more.wait_while(waiting, none).unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.pop_front()
    }

    /// Bytes moved, or the error below zero.
    fn call(&self, piece: &Piece) -> i32 {
        let (at, bytes, offset) = (piece.address, piece.length as usize, piece.offset as i64);
        // SAFETY: the buffer is the slot's own and as long; buffer and file outlive the pool.
        let code = unsafe {
            match piece.deed {
                Deed::Read => libc::pread(self.file, at.cast(), bytes, offset),
                Deed::Write => libc::pwrite(self.file, at.cast(), bytes, offset),
                Deed::Sync { data_only: true } => libc::fdatasync(self.file) as isize,
                Deed::Sync { data_only: false } => libc::fsync(self.file) as isize,
            }
        };
        if code < 0 {
            return -Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        }
        code as i32
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
