//! `io_uring`, buffered or direct, with a queue per worker.
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
use std::os::fd::AsRawFd;

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use leadline_base::buffer::BufferSlice;
use leadline_base::error::EngineError;
use leadline_base::ring;
use leadline_wire::job::backend::WriteSync;

use crate::backend::Wire;
use crate::backend::{Completion, FsyncTurn, QueueBackend, ended_early, failed, not_synced};
use leadline_base::request::{Kind, Request};

/// A slot's request and how much of it has been moved.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    request: Request,
    moved: u64,
    /// All its bytes are moved, and an `fsync` is outstanding.
    syncing: bool,
}

/// Requests sent by one call through the cache.
const BUFFERED_BATCH: usize = 8;

/// One worker's queue.
pub struct UringBackend {
    file: File,
    batch: usize,
    buffers: Vec<BufferSlice>,
    transfers: Vec<Option<Transfer>>,
    ring: Option<Ring>,
    fsync_turn: FsyncTurn,
}

/// The ring and what is registered with it.
struct Ring {
    uring: IoUring,
    fixed_file: bool,
    fixed_buffers: bool,
    /// Requests queued since the kernel was last entered.
    prepared: usize,
    /// Requests after which it is entered.
    batch: usize,
}

impl UringBackend {
    /// A worker on `file`, open for direct I/O or not, with a slot for each of `buffers`. A request
    /// longer than its buffer is moved in pieces, one after the other, and is still one request with
    /// one response time. For [`WriteSync::Dsync`] `file` is open with `O_DSYNC`, and every piece
    /// waits.
    #[must_use]
    pub fn new(file: File, buffers: Vec<BufferSlice>, direct: bool, sync: WriteSync) -> Self {
        let transfers = vec![None; buffers.len()];
        let past_the_cache = direct || sync == WriteSync::Dsync {};
        let batch = if past_the_cache && buffers.len() > 1 { 1 } else { BUFFERED_BATCH };
        Self { file, batch, buffers, transfers, ring: None, fsync_turn: FsyncTurn::new(sync) }
    }

    /// Queues the next piece of a slot's request, or the `fsync` that follows the last.
    #[inline]
    fn push(&mut self, slot: usize) -> Result<(), EngineError> {
        let (Some(ring), Some(Some(transfer)), Some(buffer)) =
            (self.ring.as_mut(), self.transfers.get(slot), self.buffers.get_mut(slot))
        else {
            return Err(EngineError::fault("a request for a queue or slot that is not there"));
        };
        let left = transfer.request.length_bytes - transfer.moved;
        let length = left.min(buffer.len() as u64) as u32;
        if transfer.request.kind == Kind::Write && !transfer.syncing {
            buffer.renew(length as usize);
        }
        let entry = if transfer.syncing {
            ring.fsync(&self.file, self.fsync_turn.data_only)
        } else {
            ring.entry(
                transfer.request.kind,
                &self.file,
                buffer.as_mut_ptr(),
                length,
                transfer.request.offset_bytes + transfer.moved,
                slot as u16,
            )
        }
        .user_data(slot as u64);
        // SAFETY: the file and the buffer live as long as the backend, which collects every request
        // before it is dropped or, after an error, closes the ring; the slot's buffer is its own.
        let pushed = unsafe { ring.uring.submission().push(&entry) };
        pushed.map_err(|_| EngineError::fault("the queue has fewer entries than slots"))?;
        ring.prepared += 1;
        if ring.prepared >= ring.batch {
            ring.send()?;
        }
        Ok(())
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
        loop {
            let Some(ring) = self.ring.as_mut() else { return Ok(()) };
            let Some(entry) = ring.uring.completion().next() else { return Ok(()) };
            let slot = entry.user_data() as usize;
            match self.take(slot, entry.result())? {
                Some(completion) => done.push(completion),
                None => self.push(slot)?,
            }
        }
    }
}

impl QueueBackend for UringBackend {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.ring = Some(Ring::new(&self.file, &mut self.buffers, self.batch)?);
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
            let Some(ring) = self.ring.as_mut() else { return Ok(()) };
            let patient = ring.enter(timeout_ns)?;
            self.collect(done)?;
            if !done.is_empty() || !patient {
                return Ok(());
            }
        }
    }
}

impl Ring {
    fn new(file: &File, buffers: &mut [BufferSlice], batch: usize) -> Result<Self, EngineError> {
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
        Ok(Self { uring, fixed_file, fixed_buffers, prepared: 0, batch })
    }

    #[inline]
    fn entry(
        &self,
        kind: Kind,
        file: &File,
        address: *mut u8,
        length: u32,
        offset: u64,
        index: u16,
    ) -> squeue::Entry {
        // The four calls differ only in types.
        macro_rules! entry {
            ($target:expr) => {
                match (kind, self.fixed_buffers) {
                    (Kind::Read, true) => opcode::ReadFixed::new($target, address, length, index)
                        .offset(offset)
                        .build(),
                    (Kind::Write, true) => opcode::WriteFixed::new($target, address, length, index)
                        .offset(offset)
                        .build(),
                    (Kind::Read, false) => {
                        opcode::Read::new($target, address, length).offset(offset).build()
                    }
                    (Kind::Write, false) => {
                        opcode::Write::new($target, address, length).offset(offset).build()
                    }
                }
            };
        }
        if self.fixed_file { entry!(Fixed(0)) } else { entry!(Fd(file.as_raw_fd())) }
    }

    #[inline]
    fn fsync(&self, file: &File, data_only: bool) -> squeue::Entry {
        let flags = if data_only { FsyncFlags::DATASYNC } else { FsyncFlags::empty() };
        if self.fixed_file {
            opcode::Fsync::new(Fixed(0)).flags(flags).build()
        } else {
            opcode::Fsync::new(Fd(file.as_raw_fd())).flags(flags).build()
        }
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
    fn enter(&mut self, timeout_ns: Option<u64>) -> Result<bool, EngineError> {
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

/// Why the kernel refuses io_uring, as far as it can be told, and what to use instead.
fn refused(error: &Error) -> EngineError {
    let setting = read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let cause = match (error.raw_os_error(), setting.trim()) {
        (Some(libc::ENOSYS), _) => {
            "this kernel has no io_uring (it came with Linux 5.1)".to_owned()
        }
        (Some(libc::EPERM | libc::EACCES), "1" | "2") => {
            format!("the system forbids it (sysctl kernel.io_uring_disabled={})", setting.trim())
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "a seccomp filter forbids it, as container runtimes do by default".to_owned()
        }
        (Some(libc::ENOMEM), _) => "the limit of locked memory is too small (ulimit -l)".to_owned(),
        (Some(libc::EMFILE | libc::ENFILE), _) => "too many files are open (ulimit -n)".to_owned(),
        _ => "the likely cause is not known".to_owned(),
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
    fn a_refusal_names_the_cause_and_the_fallback() {
        for (errno, cause) in [
            (libc::ENOSYS, "no io_uring"),
            (libc::ENOMEM, "ulimit -l"),
            (libc::EMFILE, "ulimit -n"),
        ] {
            let message = refused(&Error::from_raw_os_error(errno)).message;
            assert!(message.contains(cause) && message.contains("--backend pread"), "{message}");
        }
    }

    /// Forbids io_uring_setup to the calling thread for good, as a container runtime would.
    fn forbid_io_uring() {
        let statement =
            |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut program = [
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                0,
                1,
                libc::SYS_io_uring_setup as u32,
            ),
            statement(
                libc::BPF_RET | libc::BPF_K,
                0,
                0,
                libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            ),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: a valid program for this thread alone.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
        }
    }

    #[test]
    fn a_kernel_that_forbids_io_uring_is_met_with_the_fallback_by_name() {
        let refusal = std::thread::spawn(|| {
            forbid_io_uring();
            let file = File::open("/proc/self/exe").unwrap();
            let buffers = leadline_base::buffer::allocate(2, 4096, 1).unwrap();
            UringBackend::new(file, buffers, false, WriteSync::None {}).begin().unwrap_err()
        });
        let error = refusal.join().unwrap();
        assert_eq!(error.kind, leadline_base::error::ErrorKind::Target);
        assert!(error.message.contains("seccomp") || error.message.contains("sysctl"), "{error}");
        assert!(error.message.contains("--backend pread"), "{error}");
    }
}
