//! The hot loop's connection: one per worker, with as many calls outstanding as it has slots.
//!
//! Calls are sent together as the kernel takes them, each slot's head and buffer in one gathering
//! call; answers come in any order and are told apart by their number, which holds the slot. Small
//! answers are taken many at a time through an inbox; the data of long reads goes straight from the
//! socket to the slot's buffer. With nothing else to do a worker sleeps in the very call that takes
//! the next answer. Numbers are not used twice on a connection, nor soon on another that happens to
//! have its port: servers take a repeated number for the same call sent again, and do not answer.

use std::collections::VecDeque;
use std::io::Error;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use leadline_base::buffer::BufferSlice;
use leadline_base::clock::now_ns;
use leadline_base::error::{EngineError, ErrorKind};
use leadline_wire::job::backend::WriteSync;
use nfs3_types::nfs3::nfs_fh3;

use crate::backend::nfs::calls::{Asked, CallHead, Stable};
use crate::backend::nfs::inbox::Inbox;
use crate::backend::nfs::reply::Answer;
use crate::backend::nfs::rpc::{self, CONNECT_TIMEOUT, connect, lost};
use crate::backend::nfs::volume::refused_with;
use crate::backend::nfs::{SILENCE_S_MAX, silence_ns_max};
use crate::backend::{Completion, QueueBackend, ended_early};
use crate::backend::{Connection, Wire};
use leadline_base::request::{Kind, Request};

/// Calls gathered into one system call.
const GATHERED_MAX: usize = 8;

/// How often a worker that sleeps in the kernel looks how long the server has been silent.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// When writes must be on stable storage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Durability {
    /// What each WRITE asks for.
    pub stable: Stable,
    /// A COMMIT follows every so many writes of a worker, and the last of them waits for it.
    pub commit_every: Option<u32>,
}

impl Durability {
    /// The server may keep writes in memory.
    pub const UNSTABLE: Self = Self { stable: Stable::Unstable, commit_every: None };
}

impl From<WriteSync> for Durability {
    /// `O_DSYNC` of a local file is FILE_SYNC, an `fsync` is a COMMIT.
    fn from(sync: WriteSync) -> Self {
        match sync {
            WriteSync::None {} => Self::UNSTABLE,
            WriteSync::Dsync {} => Self { stable: Stable::FileSync, commit_every: None },
            WriteSync::Fsync { each, .. } => {
                Self { stable: Stable::Unstable, commit_every: Some(each) }
            }
        }
    }
}

/// What a connection serves.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Addresses of the server.
    pub addresses: Vec<SocketAddr>,
    /// The file.
    pub file: nfs_fh3,
    /// Most bytes of one READ or WRITE.
    pub transfer_bytes_max: u32,
}

/// One slot's request and the call it is at.
pub(super) struct Slot {
    pub(super) buffer: BufferSlice,
    head: CallHead,
    request: Request,
    moved: u64,
    pub(super) asked: Asked,
    pub(super) piece: u32,
    pub(super) xid: u32,
    /// Whether the server owes an answer.
    pub(super) waits: bool,
    wire: Wire,
}

impl Slot {
    /// Bytes of data that follow the head, their padding left out.
    fn data_bytes(&self) -> usize {
        if matches!(self.asked, Asked::Write(_)) { self.piece as usize } else { 0 }
    }
}

/// One worker's connection.
pub struct NfsQueue {
    stream: TcpStream,
    peer: String,
    slots: Vec<Slot>,
    /// Slots whose call is not wholly sent, in order.
    outbox: VecDeque<usize>,
    /// Bytes of the first of them that are sent.
    sent: usize,
    inbox: Inbox,
    slot_bits: u32,
    calls: u32,
    transfer_bytes_max: u32,
    durability: Durability,
    uncommitted: u32,
    outstanding: usize,
    heard_ns: u64,
    /// The server's verifier; another one later means that it began anew.
    verifier: Option<[u8; 8]>,
    restarted: bool,
    /// WRITE calls answered, and those of them that the server says are on stable storage.
    writes: u64,
    stable_writes: u64,
}

impl NfsQueue {
    /// Connects to a server, with a slot for each of `buffers`. A request longer than its buffer, or
    /// than the server takes at once, is moved in pieces, one after the other, and is still one
    /// request with one response time.
    ///
    /// # Errors
    /// `Lost` when the server does not answer.
    pub fn connect(
        remote: &Remote,
        buffers: Vec<BufferSlice>,
        durability: Durability,
    ) -> Result<Self, EngineError> {
        let stream = connect(&remote.addresses, CONNECT_TIMEOUT)?;
        let peer = stream.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
        stream.set_read_timeout(Some(LOOK_EVERY)).map_err(|error| lost(&peer, &error))?;
        let head = CallHead::new(&remote.file)
            .map_err(|error| EngineError::fault(format!("a call cannot be encoded: {error}")))?;
        let slot_bits = buffers.len().next_power_of_two().trailing_zeros();
        let slots: Vec<Slot> = buffers
            .into_iter()
            .map(|buffer| Slot {
                buffer,
                head: head.clone(),
                request: Request::NONE,
                moved: 0,
                asked: Asked::Read,
                piece: 0,
                xid: 0,
                waits: false,
                wire: Wire::default(),
            })
            .collect();
        Ok(Self {
            peer,
            outbox: VecDeque::with_capacity(slots.len()),
            slots,
            sent: 0,
            inbox: Inbox::new(),
            slot_bits,
            calls: rpc::first_number(&stream),
            transfer_bytes_max: remote.transfer_bytes_max,
            durability,
            uncommitted: 0,
            outstanding: 0,
            heard_ns: now_ns(),
            verifier: None,
            restarted: false,
            writes: 0,
            stable_writes: 0,
            stream,
        })
    }

    /// A slot's buffer, between its requests: what is written from it.
    pub fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        self.slots.get_mut(slot).map(|slot| slot.buffer.as_mut_slice())
    }

    /// The server's verifier as last told by a write or commit.
    #[must_use]
    pub fn verifier(&self) -> Option<[u8; 8]> {
        self.verifier
    }

    /// Makes a slot's next call.
    #[inline]
    fn push(&mut self, slot: usize, asked: Asked) {
        self.calls = self.calls.wrapping_add(1);
        let xid = self.calls << self.slot_bits | slot as u32;
        let call = &mut self.slots[slot];
        let (offset, count) = match asked {
            Asked::Commit => (0, 0),
            _ => {
                let left = call.request.length_bytes - call.moved;
                let most = (call.buffer.len() as u64).min(u64::from(self.transfer_bytes_max));
                (call.request.offset_bytes + call.moved, left.min(most) as u32)
            }
        };
        (call.asked, call.piece, call.xid, call.waits) = (asked, count, xid, true);
        if matches!(asked, Asked::Write(_)) {
            call.buffer.renew(count as usize);
        }
        call.head.set(xid, asked, offset, count);
        let data = call.data_bytes().next_multiple_of(4);
        call.wire.sent += (call.head.bytes().len() + data) as u64;
        self.outbox.push_back(slot);
    }

    /// Sends as much of the outbox as the kernel takes.
    fn flush(&mut self) -> Result<(), EngineError> {
        static PADDING: [u8; 4] = [0; 4];
        while !self.outbox.is_empty() {
            let mut parts =
                [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 3 * GATHERED_MAX];
            let (mut number, mut skip) = (0, self.sent);
            for slot in self.outbox.iter().take(GATHERED_MAX) {
                let slot = &mut self.slots[*slot];
                let data = slot.data_bytes();
                let pieces = [
                    (slot.head.bytes().as_ptr(), slot.head.bytes().len()),
                    (slot.buffer.as_mut_ptr().cast_const(), data),
                    (PADDING.as_ptr(), data.next_multiple_of(4) - data),
                ];
                for (start, length) in pieces {
                    let skipped = skip.min(length);
                    skip -= skipped;
                    if skipped < length {
                        // SAFETY: `skipped` is within the piece.
                        let start = unsafe { start.add(skipped) };
                        parts[number] = libc::iovec {
                            iov_base: start.cast_mut().cast(),
                            iov_len: length - skipped,
                        };
                        number += 1;
                    }
                }
            }
            // SAFETY: msghdr is plain data, for which all zero bytes are valid.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_iov = parts.as_mut_ptr();
            message.msg_iovlen = number;
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: the parts point to heads and buffers of slots, which outlive the call.
            let sent = unsafe { libc::sendmsg(self.stream.as_raw_fd(), &message, flags) };
            if sent < 0 {
                let error = Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::EAGAIN) => return Ok(()),
                    _ => return Err(lost(&self.peer, &error)),
                }
            }
            self.advance(sent as usize);
        }
        Ok(())
    }

    /// Takes what was sent off the outbox.
    fn advance(&mut self, sent: usize) {
        self.sent += sent;
        while let Some(slot) = self.outbox.front() {
            let slot = &self.slots[*slot];
            let whole = slot.head.bytes().len() + slot.data_bytes().next_multiple_of(4);
            if self.sent < whole {
                return;
            }
            self.sent -= whole;
            self.outbox.pop_front();
        }
    }

    /// Takes what has come and all answers in it; false when nothing had.
    fn receive(&mut self, blocking: bool, done: &mut Vec<Completion>) -> Result<bool, EngineError> {
        let mut flags = if blocking { 0 } else { libc::MSG_DONTWAIT };
        let mut any = false;
        loop {
            let (start, room) = self.inbox.room(&mut self.slots);
            // SAFETY: `room` bytes from `start` on are the inbox's or a slot's buffer.
            let came = unsafe { libc::recv(self.stream.as_raw_fd(), start.cast(), room, flags) };
            if came == 0 {
                return Err(lost(&self.peer, &std::io::ErrorKind::UnexpectedEof.into()));
            }
            if came < 0 {
                let error = Error::last_os_error();
                return match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => Ok(any),
                    _ => Err(lost(&self.peer, &error)),
                };
            }
            any = true;
            self.heard_ns = now_ns();
            self.inbox.came(came as usize);
            while let Some((slot, answer, bytes)) = self.next_answer()? {
                self.slots[slot].wire.received += bytes;
                if let Some(completion) = self.answered(slot, answer)? {
                    done.push(completion);
                }
            }
            if (came as usize) < room {
                return Ok(true);
            }
            flags = libc::MSG_DONTWAIT;
        }
    }

    /// The next whole answer: its slot, what it says, and its bytes on the wire.
    fn next_answer(&mut self) -> Result<Option<(usize, Answer, u64)>, EngineError> {
        let (slots, mask) = (&mut self.slots, (1u32 << self.slot_bits) - 1);
        self.inbox.next(slots, mask).map_err(|why| {
            EngineError::io(format!(
                "an answer of {} cannot be understood: {why}; is that an NFS server, and does \
                nothing between change what it says?",
                self.peer
            ))
        })
    }

    /// A slot's call was answered; returns the completion when its request is done.
    #[inline]
    fn answered(&mut self, slot: usize, answer: Answer) -> Result<Option<Completion>, EngineError> {
        let call = &mut self.slots[slot];
        call.waits = false;
        match answer {
            Answer::Read { bytes: 0 } | Answer::Write { bytes: 0, .. } => {
                return Err(ended_early(&call.request, call.moved));
            }
            Answer::Read { bytes } => call.moved += u64::from(bytes),
            Answer::Write { bytes, stable, verifier } => {
                call.moved += u64::from(bytes);
                self.writes += 1;
                self.stable_writes += u64::from(stable);
                self.hear_verifier(verifier);
            }
            Answer::Commit { verifier } => self.hear_verifier(verifier),
            Answer::Refused(status) => return Err(self.refused(slot, status)),
            Answer::Denied(why) => {
                return Err(EngineError::io(format!(
                    "{} no longer answers: {why}; look at its log",
                    self.peer
                )));
            }
        }
        Ok(self.go_on(slot))
    }

    /// Makes a slot's next call, or ends its request.
    #[inline]
    fn go_on(&mut self, slot: usize) -> Option<Completion> {
        let call = &mut self.slots[slot];
        let asked = call.asked;
        if call.moved < call.request.length_bytes {
            self.push(slot, asked);
            return None;
        }
        if matches!(asked, Asked::Write(_))
            && let Some(every) = self.durability.commit_every
        {
            self.uncommitted += 1;
            if self.uncommitted >= every {
                self.uncommitted = 0;
                self.push(slot, Asked::Commit);
                return None;
            }
        }
        let call = &mut self.slots[slot];
        self.outstanding -= 1;
        Some(Completion { slot, bytes: call.moved, wire: std::mem::take(&mut call.wire) })
    }

    #[inline]
    fn hear_verifier(&mut self, verifier: [u8; 8]) {
        self.restarted |= self.verifier.is_some_and(|earlier| earlier != verifier);
        self.verifier = Some(verifier);
    }

    #[cold]
    fn refused(&self, slot: usize, status: u32) -> EngineError {
        let call = &self.slots[slot];
        let what = match call.asked {
            Asked::Read => "reading",
            Asked::Write(_) => "writing",
            Asked::Commit => "committing",
        };
        let what = format!(
            "{what} {} bytes at byte {} of the data file on {}",
            call.piece,
            call.request.offset_bytes + call.moved,
            self.peer
        );
        let error = refused_with(&what, status);
        match error.kind {
            ErrorKind::Target => EngineError::io(error.message),
            _ => error,
        }
    }

    /// Waits until something can be received or sent, or until `until_ns`.
    fn wait(&self, until_ns: Option<u64>, at_ns: u64) {
        let look_ns = LOOK_EVERY.as_nanos() as u64;
        let wait_ns = until_ns.map_or(look_ns, |until_ns| (until_ns - at_ns).min(look_ns));
        let out = if self.outbox.is_empty() { 0 } else { libc::POLLOUT };
        let mut ready =
            libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN | out, revents: 0 };
        let time = libc::timespec {
            tv_sec: (wait_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: one pollfd and a timespec; whatever comes of it, the caller looks again.
        unsafe { libc::ppoll(&mut ready, 1, &time, std::ptr::null()) };
    }

    /// The server owes answers and has said nothing for too long.
    fn silent(&self, at_ns: u64) -> Result<(), EngineError> {
        if self.outstanding == 0 || at_ns.saturating_sub(self.heard_ns) < silence_ns_max() {
            return Ok(());
        }
        Err(EngineError::lost(format!(
            "server silent: {} owes {} answers and has said nothing for {SILENCE_S_MAX:.0} s; see \
            whether it is stopped, stuck or cut off",
            self.peer, self.outstanding
        )))
    }
}

impl QueueBackend for NfsQueue {
    #[inline]
    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        let Some(call) = self.slots.get_mut(slot) else {
            return Err(EngineError::fault("a request for a slot that is not there"));
        };
        (call.request, call.moved) = (*request, 0);
        if self.outstanding == 0 {
            self.heard_ns = now_ns();
        }
        self.outstanding += 1;
        let asked = match request.kind {
            Kind::Read => Asked::Read,
            Kind::Write => Asked::Write(self.durability.stable),
        };
        self.push(slot, asked);
        Ok(())
    }

    #[inline]
    fn turn(
        &mut self,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        self.flush()?;
        let until_ns = timeout_ns.map(|timeout_ns| now_ns().saturating_add(timeout_ns));
        loop {
            let blocking = until_ns.is_none() && self.outbox.is_empty();
            let any = self.receive(blocking, done)?;
            self.flush()?;
            if !done.is_empty() {
                return Ok(());
            }
            if any {
                continue;
            }
            let at_ns = now_ns();
            self.silent(at_ns)?;
            if until_ns.is_some_and(|until_ns| at_ns >= until_ns) {
                return Ok(());
            }
            if !blocking {
                self.wait(until_ns, at_ns);
            }
        }
    }

    fn connection(&self) -> Option<Connection> {
        let segments = retransmitted_segments(&self.stream);
        Some(Connection {
            retransmitted_segments: segments.unwrap_or(0),
            verifier: self.verifier,
            restarted: self.restarted,
            writes: self.writes,
            stable_writes: self.stable_writes,
        })
    }
}

/// Segments the kernel had to send again; a number above 0 says that the network loses some.
fn retransmitted_segments(stream: &TcpStream) -> Option<u64> {
    // SAFETY: tcp_info is plain data, for which all zero bytes are valid.
    let mut facts: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: a writable tcp_info of the length told.
    let code = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut facts).cast(),
            &mut length,
        )
    };
    (code == 0).then(|| u64::from(facts.tcpi_total_retrans))
}
