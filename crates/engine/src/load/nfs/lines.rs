//! Several connections to one server with many calls outstanding on them.
//!
//! Memory is bounded: so many calls outstanding, so many bytes not yet taken by the kernel. Calls are
//! numbered over all connections; a number leads to its call by its lower bits, and one that would
//! lead to a call that is still outstanding is left out, so that no number is used twice soon (servers
//! take a repeated number for the same call sent again).

use std::io::Error;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use leadline_base::clock::now_ns;
use leadline_base::error::EngineError;
use nfs3_types::nfs3::NFS_PROGRAM;

use crate::backend::nfs::rpc::{CONNECT_TIMEOUT, LAST_FRAGMENT, connect, first_number, lost};
use crate::backend::nfs::{SILENCE_S_MAX, silence_ns_max};
use crate::load::nfs::calls::{Head, KEPT_BYTES, Record, Said, understand};

/// Most calls outstanding.
pub const OUTSTANDING_MAX: usize = 1 << 16;

/// Places for them, twice as many, so that a free one is found at once.
const PLACES: usize = 2 * OUTSTANDING_MAX;

/// Bytes that a connection may hold back for a kernel that does not take them; then no more calls
/// are put on it.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Bytes taken from a socket at once.
const INBOX_BYTES: usize = 256 << 10;

/// Longest sleep: how often one looks whether the server is there.
const LOOK_EVERY_NS: u64 = 250_000_000;

/// The connections. `T` is what the caller wants to know of a call when its answer comes.
#[derive(Debug)]
pub struct Lines<T> {
    lines: Vec<Line>,
    head: Head,
    places: Vec<Place<T>>,
    outstanding: usize,
    number: u32,
    turn: usize,
    inbox: Box<[u8]>,
    ready: Vec<libc::pollfd>,
    heard_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place<T> {
    xid: u32,
    of: Option<T>,
}

#[derive(Debug)]
struct Line {
    stream: TcpStream,
    peer: String,
    outbox: Vec<u8>,
    sent: usize,
    record: Incoming,
}

/// A record that is coming in, fragment by fragment (RFC 5531 §11).
#[derive(Debug)]
struct Incoming {
    mark: [u8; 4],
    mark_bytes: usize,
    /// Bytes of the present fragment that are still to come.
    left: usize,
    last: bool,
    kept: Vec<u8>,
}

impl<T: Copy> Lines<T> {
    /// Connects `number` times.
    ///
    /// # Errors
    /// `Lost` when the server does not answer.
    pub fn connect(addresses: &[SocketAddr], number: u32) -> Result<Self, EngineError> {
        let lines: Vec<Line> =
            (0..number.max(1)).map(|_| Line::connect(addresses)).collect::<Result<_, _>>()?;
        Ok(Self {
            number: lines.first().map_or(0, |line| first_number(&line.stream)),
            lines,
            head: Head::new()?,
            places: vec![Place { xid: 0, of: None }; PLACES],
            outstanding: 0,
            turn: 0,
            inbox: vec![0; INBOX_BYTES].into_boxed_slice(),
            ready: Vec::new(),
            heard_ns: now_ns(),
        })
    }

    /// Calls without an answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// What the calls without an answer are.
    pub fn waiting(&self) -> impl Iterator<Item = T> + '_ {
        self.places.iter().filter_map(|place| place.of)
    }

    /// Where the first connection leads.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.lines.first().map_or("", |line| &line.peer)
    }

    /// Whether another call can be taken: not too many are outstanding, and some connection's kernel
    /// takes what it is given.
    pub fn has_room(&mut self) -> bool {
        if self.outstanding >= OUTSTANDING_MAX {
            return false;
        }
        let number = self.lines.len();
        for step in 1..=number {
            let next = (self.turn + step) % number;
            if self.lines[next].held_bytes() < HELD_BYTES_MAX {
                self.turn = (next + number - 1) % number;
                return true;
            }
        }
        false
    }

    /// Begins a call on the next connection; it leaves with [`Self::flush`].
    pub fn call(&mut self, procedure: NFS_PROGRAM, of: T) -> Record<'_> {
        if self.outstanding == 0 {
            self.heard_ns = now_ns();
        }
        self.number = self.number.wrapping_add(1);
        while self.places[self.number as usize % PLACES].of.is_some() {
            self.number = self.number.wrapping_add(1);
        }
        let xid = self.number;
        self.places[xid as usize % PLACES] = Place { xid, of: Some(of) };
        self.outstanding += 1;
        self.turn = (self.turn + 1) % self.lines.len();
        self.head.begin(&mut self.lines[self.turn].outbox, xid, procedure)
    }

    /// Sends as much as the kernel takes.
    ///
    /// # Errors
    /// `Lost` when a connection breaks.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.lines.iter_mut().try_for_each(Line::flush)
    }

    /// Waits until something has come, or can be sent that is held back, or it is `until_ns`.
    pub fn wait(&mut self, until_ns: u64) {
        let at_ns = now_ns();
        let wait_ns = until_ns.saturating_sub(at_ns).min(LOOK_EVERY_NS);
        self.ready.clear();
        self.ready.extend(self.lines.iter().map(Line::interest));
        let time = libc::timespec {
            tv_sec: (wait_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait_ns % 1_000_000_000) as libc::c_long,
        };
        let number = self.ready.len() as libc::nfds_t;
        // SAFETY: as many pollfds as are told, and a timespec; whatever comes of it, the caller
        // looks again.
        unsafe { libc::ppoll(self.ready.as_mut_ptr(), number, &time, std::ptr::null()) };
    }

    /// Takes what has come; `on_answer` gets each call, what was said, and when it came.
    ///
    /// # Errors
    /// `Lost` when a connection breaks, or the server owes answers and has been silent too long;
    /// `Io` when it answers nonsense.
    pub fn receive(
        &mut self,
        on_answer: &mut dyn FnMut(T, Said, u64) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        for line in &mut self.lines {
            loop {
                let came = line.receive(&mut self.inbox)?;
                if came == 0 {
                    break;
                }
                let at_ns = now_ns();
                self.heard_ns = at_ns;
                let (places, outstanding) = (&mut self.places, &mut self.outstanding);
                let peer = &line.peer;
                line.record.take(&self.inbox[..came], &mut |kept| {
                    let (xid, said) = understand(kept).ok_or_else(|| garbled(peer))?;
                    let place = &mut places[xid as usize % PLACES];
                    let of = place.of.take_if(|_| place.xid == xid);
                    let of = of.ok_or_else(|| garbled(peer))?;
                    *outstanding -= 1;
                    on_answer(of, said, at_ns)
                })?;
                if came < self.inbox.len() {
                    break;
                }
            }
        }
        self.silent()
    }

    fn silent(&self) -> Result<(), EngineError> {
        if self.outstanding == 0 || now_ns().saturating_sub(self.heard_ns) < silence_ns_max() {
            return Ok(());
        }
        Err(EngineError::lost(format!(
            "server silent: {} owes {} answers and has said nothing for {SILENCE_S_MAX:.0} s; see \
            whether it is stopped, stuck or cut off",
            self.peer(),
            self.outstanding
        )))
    }
}

impl Line {
    fn connect(addresses: &[SocketAddr]) -> Result<Self, EngineError> {
        let stream = connect(addresses, CONNECT_TIMEOUT)?;
        let peer = stream.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
        let kept = Vec::with_capacity(KEPT_BYTES);
        let record = Incoming { mark: [0; 4], mark_bytes: 0, left: 0, last: false, kept };
        Ok(Self { stream, peer, outbox: Vec::new(), sent: 0, record })
    }

    fn held_bytes(&self) -> usize {
        self.outbox.len() - self.sent
    }

    fn interest(&self) -> libc::pollfd {
        let out = if self.held_bytes() > 0 { libc::POLLOUT } else { 0 };
        libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN | out, revents: 0 }
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        while self.held_bytes() > 0 {
            let rest = &self.outbox[self.sent..];
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: the pointer and the length are those of a slice.
            let sent = unsafe {
                libc::send(self.stream.as_raw_fd(), rest.as_ptr().cast(), rest.len(), flags)
            };
            if sent < 0 {
                let error = Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::EAGAIN) => break,
                    _ => return Err(lost(&self.peer, &error)),
                }
            }
            self.sent += sent as usize;
        }
        // What is left moves to the front seldom enough that this costs next to nothing.
        if self.held_bytes() == 0 || self.sent >= HELD_BYTES_MAX {
            self.outbox.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }

    /// Bytes that have come into `room`; 0 when none have.
    fn receive(&mut self, room: &mut [u8]) -> Result<usize, EngineError> {
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the pointer and the length are those of a slice.
        let came = unsafe {
            libc::recv(self.stream.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), flags)
        };
        if came > 0 {
            return Ok(came as usize);
        }
        if came == 0 {
            return Err(lost(&self.peer, &std::io::ErrorKind::UnexpectedEof.into()));
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(0),
            _ => Err(lost(&self.peer, &error)),
        }
    }
}

impl Incoming {
    /// Takes bytes of the connection; `on_record` gets the beginning of every whole record.
    fn take(
        &mut self,
        mut bytes: &[u8],
        on_record: &mut dyn FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        loop {
            if self.left == 0 && self.last {
                self.last = false;
                on_record(&self.kept)?;
                self.kept.clear();
            }
            if bytes.is_empty() {
                return Ok(());
            }
            if self.left == 0 {
                let part = bytes.len().min(4 - self.mark_bytes);
                self.mark[self.mark_bytes..self.mark_bytes + part].copy_from_slice(&bytes[..part]);
                bytes = &bytes[part..];
                self.mark_bytes += part;
                if self.mark_bytes == 4 {
                    let mark = u32::from_be_bytes(self.mark);
                    self.mark_bytes = 0;
                    (self.left, self.last) =
                        ((mark & !LAST_FRAGMENT) as usize, mark & LAST_FRAGMENT != 0);
                }
                continue;
            }
            let part = bytes.len().min(self.left);
            let keep = part.min(KEPT_BYTES - self.kept.len());
            self.kept.extend_from_slice(&bytes[..keep]);
            bytes = &bytes[part..];
            self.left -= part;
        }
    }
}

#[cold]
fn garbled(peer: &str) -> EngineError {
    EngineError::io(format!(
        "an answer of {peer} cannot be understood; is that an NFS server, and does nothing between \
        change what it says?"
    ))
}
