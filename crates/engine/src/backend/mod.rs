//! Where requests go. One folder or file per kind of target.
//!
//! A backend that returns when a request is done is a [`Backend`]; one that keeps several
//! outstanding is a [`QueueBackend`]. `tests/target/conformance.rs` holds all of them to the same rules.

pub mod asynchronous;
pub mod data_file;
pub mod mmap;
pub mod nfs;
pub mod null;
pub mod pread;
mod read_ahead;

use std::io::Error;

use leadline_base::error::EngineError;
use leadline_wire::job::backend::WriteSync;

use leadline_base::request::{Kind, Request};

/// Bytes over a network, heads and marks of calls included, those of TCP and below not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wire {
    /// To the server.
    pub sent: u64,
    /// From it.
    pub received: u64,
}

/// What connections to a server were like, over the whole run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Connection {
    /// Segments that TCP had to send again.
    pub retransmitted_segments: u64,
    /// What the server's writes and commits named as its present life; none without any.
    pub verifier: Option<[u8; 8]>,
    /// Whether that changed: the server began anew.
    pub restarted: bool,
    /// WRITE calls answered.
    pub writes: u64,
    /// Of those, the ones that the server says were on stable storage by then.
    pub stable_writes: u64,
}

impl Connection {
    /// Adds another connection's.
    pub fn merge(&mut self, other: &Self) {
        self.retransmitted_segments += other.retransmitted_segments;
        self.restarted |= other.restarted;
        self.writes += other.writes;
        self.stable_writes += other.stable_writes;
        match (self.verifier, other.verifier) {
            (Some(mine), Some(theirs)) => self.restarted |= mine != theirs,
            (None, theirs) => self.verifier = theirs,
            _ => {}
        }
    }
}

/// Moves the bytes of requests, one at a time. Every worker has its own instance, so nothing in it
/// is shared.
pub trait Backend: Send {
    /// Moves all bytes of one request and returns their number. Allocates nothing.
    ///
    /// # Errors
    /// `Io` when the target fails in the middle of a run.
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError>;

    /// True when a request goes nowhere, so that its response time is one turn of Leadline's own
    /// loop.
    fn measures_itself(&self) -> bool {
        false
    }
}

/// A slot's request is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Completion {
    /// The slot that carried it.
    pub slot: usize,
    /// Bytes moved: all of the request.
    pub bytes: u64,
    /// Bytes that went over a network for it, everything included; 0 without one.
    pub wire: Wire,
}

/// Moves the bytes of requests, several at a time. Every worker has its own instance.
pub trait QueueBackend: Send {
    /// Called once on the worker's own thread, before the first request.
    ///
    /// # Errors
    /// `Target` when the kernel refuses what the queue needs.
    fn begin(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Takes a slot's next request; it is sent by the next [`Self::turn`]. Allocates nothing.
    ///
    /// # Errors
    /// `Fault` when the slot's request cannot be queued.
    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError>;

    /// Sends what was prepared, waits until at least one request is done or `timeout_ns` are over,
    /// and appends all that are done. Allocates nothing while `done` has room for every slot.
    ///
    /// # Errors
    /// `Io` when the target fails in the middle of a run.
    fn turn(
        &mut self,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError>;

    /// What a connection was like, asked once at its end; none where there is none.
    fn connection(&self) -> Option<Connection> {
        None
    }
}

/// Counts a worker's writes and says which of them waits for an `fsync`.
#[derive(Clone, Copy, Debug)]
struct FsyncTurn {
    each: Option<u32>,
    /// Whether it is an `fdatasync`.
    data_only: bool,
    writes: u32,
}

impl FsyncTurn {
    fn new(sync: WriteSync) -> Self {
        let (each, data_only) = match sync {
            WriteSync::Fsync { each, data_only } => (Some(each), data_only),
            WriteSync::None {} | WriteSync::Dsync {} => (None, false),
        };
        Self { each, data_only, writes: 0 }
    }

    /// Whether the request that is done now is the write whose turn it is.
    #[inline]
    fn comes(&mut self, kind: Kind) -> bool {
        let (Some(each), Kind::Write) = (self.each, kind) else { return false };
        self.writes += 1;
        if self.writes < each {
            return false;
        }
        self.writes = 0;
        true
    }
}

/// The device, or the file system, failed to make a write lasting.
#[cold]
fn not_synced(request: &Request, error: &Error) -> EngineError {
    EngineError::io(format!(
        "waiting for the write of {} bytes at byte {} of the data file to reach the device failed: \
        {error}; look at the kernel log for the device",
        request.length_bytes, request.offset_bytes
    ))
}

/// The target failed a request after `moved` of its bytes.
#[cold]
fn failed(request: &Request, moved: u64, error: &Error) -> EngineError {
    let verb = match request.kind {
        Kind::Read => "reading",
        Kind::Write => "writing",
    };
    EngineError::io(format!(
        "{verb} {} bytes at byte {} of the data file failed after {moved} bytes: {error}; look \
        at the kernel log for the device",
        request.length_bytes, request.offset_bytes
    ))
}

/// The file ended within a request.
#[cold]
fn ended_early(request: &Request, moved: u64) -> EngineError {
    EngineError::io(format!(
        "the data file ended within the request of {} bytes at byte {} (after {moved} bytes): \
        something else shortened it while it was measured",
        request.length_bytes, request.offset_bytes
    ))
}
