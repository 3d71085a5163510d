//! A shared mapping of the file: a read copies from it, a write copies into it.
//!
//! The reading of AD98 §4 ("Benchmarks read data from disk via memory-mapped files"), with its
//! advice: a sequential access pattern, so that the kernel reads ahead and lets go behind. A
//! workload that is not all sequential gets no such advice, which would make every random fault
//! read ahead; one that is all random is advised as random.
//!
//! A device that fails, or a file that is shortened, shows as SIGBUS within the copy. The handler
//! here puts an empty page in the way, so that the copy ends, and leaves a mark that turns the
//! request into an error.

use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use leadline_base::buffer::BufferSlice;
use leadline_base::error::EngineError;
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::workload::Workload;

use crate::backend::{Backend, FsyncTurn, not_synced};
use leadline_base::request::{Kind, Request};

const PAGE_BYTES: usize = 4096;

/// Set by the handler; a mapping fails once and for all.
static FAULTED: AtomicBool = AtomicBool::new(false);

/// One worker's mapping. Workers write to the same bytes of the file, as processes do, each through
/// addresses of its own.
#[derive(Debug)]
pub struct Mapping {
    file: File,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory of a file at addresses that belong to this value alone; nothing but copies
// of bytes ever touches it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `unique_bytes` of `file`.
    ///
    /// # Errors
    /// `Target` when the file system or the address space does not allow it.
    pub fn new(file: &File, workload: &Workload) -> Result<Self, EngineError> {
        let refused = |error: &dyn std::fmt::Display| {
            EngineError::target(format!(
                "the data file cannot be mapped into memory: {error}; use --backend pread"
            ))
        };
        let length = usize::try_from(workload.unique_bytes).map_err(|error| refused(&error))?;
        let own = file.try_clone().map_err(|error| refused(&error))?;
        // SAFETY: a fresh shared mapping of an open file; its length is positive.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let start = NonNull::new(address.cast::<u8>())
            .filter(|_| address != libc::MAP_FAILED)
            .ok_or_else(|| refused(&Error::last_os_error()))?;
        let advice = if workload.seq_frac >= 1.0 {
            libc::MADV_SEQUENTIAL
        } else if workload.seq_frac <= 0.0 {
            libc::MADV_RANDOM
        } else {
            libc::MADV_NORMAL
        };
        // SAFETY: exactly the range that was mapped; advice only.
        unsafe { libc::madvise(address, length, advice) };
        guard();
        Ok(Self { file: own, start, length })
    }

    /// Waits until the pages of these bytes are on the device, as `O_DSYNC` does (`msync` asks the
    /// file system for the same).
    fn write_out(&self, offset: usize, length: usize) -> Result<(), Error> {
        let begin = offset & !(PAGE_BYTES - 1);
        // SAFETY: within the mapping, from a page's first byte on.
        let outcome = unsafe {
            let from = self.start.as_ptr().add(begin).cast();
            libc::msync(from, offset + length - begin, libc::MS_SYNC)
        };
        if outcome == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped; nobody else knows it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// One worker on a mapping.
#[derive(Debug)]
pub struct MmapBackend {
    mapping: Mapping,
    buffer: BufferSlice,
    dsync: bool,
    fsync_turn: FsyncTurn,
}

impl MmapBackend {
    /// A worker that copies through `buffer`, piece by piece when a request is longer.
    #[must_use]
    pub fn new(mapping: Mapping, buffer: BufferSlice, sync: WriteSync) -> Self {
        let dsync = sync == WriteSync::Dsync {};
        Self { mapping, buffer, dsync, fsync_turn: FsyncTurn::new(sync) }
    }

    /// Waits for the device where the request has to; called after its last byte was copied.
    #[inline]
    fn wait(&mut self, request: &Request) -> Result<(), Error> {
        if self.fsync_turn.comes(request.kind) {
            let file = &self.mapping.file;
            return if self.fsync_turn.data_only { file.sync_data() } else { file.sync_all() };
        }
        if self.dsync && request.kind == Kind::Write {
            return self
                .mapping
                .write_out(request.offset_bytes as usize, request.length_bytes as usize);
        }
        Ok(())
    }

    #[inline]
    fn copy(&mut self, kind: Kind, offset: usize, length: usize) {
        if kind == Kind::Write {
            self.buffer.renew(length);
        }
        let buffer = self.buffer.as_mut_ptr();
        // SAFETY: the caller keeps offset + length within the mapping, and length within the
        // buffer; the two never overlap.
        unsafe {
            let place = self.mapping.start.as_ptr().add(offset);
            match kind {
                Kind::Read => std::ptr::copy_nonoverlapping(place, buffer, length),
                Kind::Write => std::ptr::copy_nonoverlapping(buffer, place, length),
            }
        }
        // Nobody reads what was copied; the compiler must not find that out.
        std::hint::black_box(buffer);
        settle(kind);
    }
}

impl Backend for MmapBackend {
    #[inline]
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        let length = request.length_bytes as usize;
        let offset = request.offset_bytes as usize;
        if offset + length > self.mapping.length {
            return Err(EngineError::fault("a request past the end of the mapping"));
        }
        let mut moved = 0;
        while moved < length {
            let piece = (length - moved).min(self.buffer.len());
            self.copy(request.kind, offset + moved, piece);
            moved += piece;
        }
        if FAULTED.load(Ordering::Relaxed) {
            return Err(faulted(request));
        }
        self.wait(request).map_err(|error| not_synced(request, &error))?;
        Ok(request.length_bytes)
    }
}

/// Lets the copy end before the next instruction begins. The processor works ahead: without this
/// it reads the clock while the copy still waits for memory (seen: 370 ns told of 650).
#[cfg(target_arch = "x86_64")]
#[inline]
fn settle(kind: Kind) {
    // SAFETY: every x86-64 processor has both instructions; they touch no memory.
    unsafe {
        if kind == Kind::Write {
            core::arch::x86_64::_mm_mfence();
        }
        core::arch::x86_64::_mm_lfence();
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn settle(_: Kind) {
    std::sync::atomic::fence(Ordering::SeqCst);
}

#[cold]
fn faulted(request: &Request) -> EngineError {
    FAULTED.store(false, Ordering::Relaxed);
    EngineError::io(format!(
        "the kernel could not bring in {} bytes at byte {} of the mapped data file (SIGBUS): \
        something else shortened it while it was measured, or the device failed; look at the \
        kernel log",
        request.length_bytes, request.offset_bytes
    ))
}

/// Installs the handler of SIGBUS, once for the process.
fn guard() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        // SAFETY: sigaction is plain data, for which all zero bytes are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        // SAFETY: a valid action whose handler makes only system calls.
        unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) };
    });
}

/// Puts an empty page under the address that failed and marks the failure. Only system calls and an
/// atomic store, as a signal handler must.
extern "C" fn on_bus_error(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid siginfo to a handler that asked for it.
    let address = unsafe { (*info).si_addr() } as usize & !(PAGE_BYTES - 1);
    // SAFETY: replaces one page that cannot be read by one that can.
    let patched = unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            PAGE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    FAULTED.store(true, Ordering::Relaxed);
    if patched == libc::MAP_FAILED {
        // SAFETY: ends the process, which is all that is left to do.
        unsafe { libc::_exit(128 + libc::SIGBUS) };
    }
}
