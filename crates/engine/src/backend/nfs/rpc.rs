//! Remote procedure calls (RFC 5531) over TCP, one at a time: for everything but the hot loop.

use std::io::{Error, ErrorKind as IoErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::time::Duration;

use leadline_base::error::EngineError;
use nfs3_types::rpc::{
    RPC_VERSION_2, accept_stat_data, auth_unix, call_body, msg_body, opaque_auth, rejected_reply,
    reply_body, rpc_msg,
};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack, Void};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use socket2::{Domain, Socket, Type};

use crate::backend::nfs::record::{self, Lengths};

/// Longest wait for a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Ports that only root binds, without those below that services have.
const PRIVILEGED_PORTS: RangeInclusive<u16> = 600..=1023;

/// Longest reply to anything asked here; bulk data goes another way.
const REPLY_BYTES_MAX: usize = 4 << 20;

/// Set in a record mark when the fragment is the record's last (RFC 5531 §11).
pub const LAST_FRAGMENT: u32 = 1 << 31;

/// Groups an AUTH_SYS credential may name (RFC 5531, appendix A).
const GROUPS_MAX: usize = 16;

/// Who calls: the user of this process, as AUTH_SYS tells it.
#[must_use]
pub fn credential() -> opaque_auth<'static> {
    let mut groups = [0 as libc::gid_t; 1024];
    // SAFETY: the array has as many places as are named; the other calls cannot fail.
    let (uid, gid, number) = unsafe {
        (
            libc::geteuid(),
            libc::getegid(),
            libc::getgroups(groups.len() as i32, groups.as_mut_ptr()),
        )
    };
    let gids = groups.iter().take((number.max(0) as usize).min(GROUPS_MAX)).copied().collect();
    let machinename = Opaque::owned(leadline_base::host::name().into_bytes());
    opaque_auth::auth_unix(&auth_unix { stamp: 0, machinename, uid, gid, gids })
}

/// The addresses of a host.
///
/// # Errors
/// `Target` when the name is not known.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, EngineError> {
    let found: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| {
            EngineError::target(format!(
                "the host {host} is not known: {error}; check its name, or give its address"
            ))
        })?
        .collect();
    if found.is_empty() {
        return Err(EngineError::target(format!("the host {host} has no address; give one")));
    }
    Ok(found)
}

/// A connection to the first address that answers.
///
/// # Errors
/// `Lost` when none does.
pub fn connect(addresses: &[SocketAddr], timeout: Duration) -> Result<TcpStream, EngineError> {
    let mut why = String::from("it has no address");
    for address in addresses {
        match reach(*address, timeout) {
            Ok(stream) => {
                let set = stream.set_nodelay(true);
                return set.map(|()| stream).map_err(|error| lost(&address.to_string(), &error));
            }
            Err(error) => why = format!("{address}: {error}"),
        }
    }
    Err(EngineError::lost(format!(
        "the server does not answer ({why}); see that it runs and that nothing between keeps it away"
    )))
}

/// A connection from a privileged port where this process may have one: many exports take calls
/// from no other (`secure`, the default of exports(5)).
fn reach(address: SocketAddr, timeout: Duration) -> Result<TcpStream, Error> {
    for port in PRIVILEGED_PORTS.rev() {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // They are few: an ended connection must not keep one for a minute.
        socket.set_linger(Some(Duration::ZERO))?;
        let own = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        };
        let reached = socket
            .bind(&own.into())
            .and_then(|()| socket.connect_timeout(&address.into(), timeout))
            .map(|()| TcpStream::from(socket));
        match reached.as_ref().map_err(Error::kind) {
            Err(IoErrorKind::AddrInUse | IoErrorKind::AddrNotAvailable) => {}
            Err(IoErrorKind::PermissionDenied) => break,
            _ => return reached,
        }
    }
    TcpStream::connect_timeout(&address, timeout)
}

/// Where a connection begins to number its calls: anywhere, so that they are not taken for those of
/// an earlier connection from the same port.
#[must_use]
pub fn first_number(stream: &TcpStream) -> u32 {
    let own = stream.local_addr().map_or(0, |address| u64::from(address.port()));
    Xoshiro256PlusPlus::seed_from_u64(leadline_base::clock::now_ns() ^ own << 48).next_u64() as u32
}

/// The connection broke.
#[cold]
#[must_use]
pub fn lost(peer: &str, error: &Error) -> EngineError {
    EngineError::lost(match error.kind() {
        IoErrorKind::WouldBlock | IoErrorKind::TimedOut => format!(
            "server lost: {peer} owes an answer and has been silent too long; see whether it is \
            stopped or cut off"
        ),
        IoErrorKind::UnexpectedEof => format!(
            "server lost: {peer} closed the connection; it was stopped, killed or restarted"
        ),
        _ => format!("server lost: the connection to {peer} broke: {error}"),
    })
}

/// One program of one server, one call at a time.
#[derive(Debug)]
pub struct Caller {
    stream: TcpStream,
    peer: String,
    program: u32,
    version: u32,
    credential: opaque_auth<'static>,
    xid: u32,
}

impl Caller {
    /// Connects to a program.
    ///
    /// # Errors
    /// `Lost` when the server does not answer.
    pub fn connect(
        addresses: &[SocketAddr],
        (program, version): (u32, u32),
        timeout: Duration,
    ) -> Result<Self, EngineError> {
        let stream = connect(addresses, timeout.min(CONNECT_TIMEOUT))?;
        let peer = stream.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
        let set = stream
            .set_read_timeout(Some(timeout))
            .and_then(|()| stream.set_write_timeout(Some(timeout)));
        set.map_err(|error| lost(&peer, &error))?;
        let xid = first_number(&stream);
        Ok(Self { stream, peer, program, version, credential: credential(), xid })
    }

    /// Where it is connected to.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Whether the server offers the program at all.
    ///
    /// # Errors
    /// `Lost` when it does not answer.
    pub fn offered(&mut self) -> Result<bool, EngineError> {
        match self.call::<Void>(0, &Void) {
            Ok(_) => Ok(true),
            Err(error) if error.kind == leadline_base::error::ErrorKind::Lost => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Makes one call and waits for its answer.
    ///
    /// # Errors
    /// `Lost` when the server does not answer, `Target` when it refuses to be asked.
    pub fn call<T: Unpack + Lengths>(
        &mut self,
        procedure: u32,
        arguments: &impl Pack,
    ) -> Result<T, EngineError> {
        self.call_patiently(procedure, arguments, &mut || Err(EngineError::fault("impatient")))
    }

    /// Makes one call that may take long: whenever its answer is late, `alive` is asked whether the
    /// server is still there, and only when it is not the wait ends.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn call_patiently<T: Unpack + Lengths>(
        &mut self,
        procedure: u32,
        arguments: &impl Pack,
        alive: &mut dyn FnMut() -> Result<(), EngineError>,
    ) -> Result<T, EngineError> {
        self.xid = self.xid.wrapping_add(1);
        self.send(procedure, arguments)?;
        while let Err(error) = self.stream.peek(&mut [0]) {
            if error.kind() == IoErrorKind::Interrupted {
                continue;
            }
            let late = matches!(error.kind(), IoErrorKind::WouldBlock | IoErrorKind::TimedOut);
            if !late || alive().is_err() {
                return Err(lost(&self.peer, &error));
            }
        }
        let record = self.receive()?;
        let (xid, reply, rest) = record::head(&record).map_err(|why| self.garbled(&why))?;
        self.accepted(xid, &reply)?;
        record::body(rest).map_err(|why| self.garbled(&why))
    }

    fn send(&mut self, procedure: u32, arguments: &impl Pack) -> Result<(), EngineError> {
        let body = call_body {
            rpcvers: RPC_VERSION_2,
            prog: self.program,
            vers: self.version,
            proc: procedure,
            cred: self.credential.borrow(),
            verf: opaque_auth::default(),
        };
        let message = rpc_msg { xid: self.xid, body: msg_body::CALL(body) };
        let length = message.packed_size() + arguments.packed_size();
        let mut record = Vec::with_capacity(length + 4);
        record.extend_from_slice(&(LAST_FRAGMENT | length as u32).to_be_bytes());
        let packed = message.pack(&mut record).and_then(|_| arguments.pack(&mut record));
        packed.map_err(|error| EngineError::fault(format!("a call cannot be encoded: {error}")))?;
        self.stream.write_all(&record).map_err(|error| lost(&self.peer, &error))
    }

    /// One whole record: its fragments without their marks.
    fn receive(&mut self) -> Result<Vec<u8>, EngineError> {
        let mut record = Vec::new();
        loop {
            let mut mark = [0; 4];
            self.stream.read_exact(&mut mark).map_err(|error| lost(&self.peer, &error))?;
            let mark = u32::from_be_bytes(mark);
            let (from, length) = (record.len(), (mark & !LAST_FRAGMENT) as usize);
            if from + length > REPLY_BYTES_MAX {
                return Err(self.garbled(&"it is longer than any answer to this can be"));
            }
            record.resize(from + length, 0);
            let read = self.stream.read_exact(&mut record[from..]);
            read.map_err(|error| lost(&self.peer, &error))?;
            if mark & LAST_FRAGMENT != 0 {
                return Ok(record);
            }
        }
    }

    fn accepted(&self, xid: u32, reply: &reply_body) -> Result<(), EngineError> {
        if xid != self.xid {
            return Err(self.garbled(&"it answers something that was not asked"));
        }
        let why = match reply {
            reply_body::MSG_ACCEPTED(accepted) => match &accepted.reply_data {
                accept_stat_data::SUCCESS => return Ok(()),
                accept_stat_data::PROG_UNAVAIL => "does not offer this program".to_owned(),
                accept_stat_data::PROG_MISMATCH { low, high } => {
                    format!("offers versions {low} to {high} of it, not version {}", self.version)
                }
                other => format!("cannot answer ({other:?})"),
            },
            reply_body::MSG_DENIED(rejected_reply::AUTH_ERROR(status)) => format!(
                "does not accept who is asking (AUTH_SYS, {status}); export it with sec=sys to \
                this host"
            ),
            reply_body::MSG_DENIED(other) => format!("refuses to be asked ({other:?})"),
        };
        let program = match self.program {
            nfs3_types::nfs3::PROGRAM => "NFS",
            nfs3_types::mount::PROGRAM => "MOUNT",
            _ => "the port mapper",
        };
        Err(EngineError::target(format!("{program} at {}: the server {why}", self.peer)))
    }

    #[cold]
    fn garbled(&self, why: &dyn std::fmt::Display) -> EngineError {
        EngineError::target(format!(
            "an answer of {} cannot be understood: {why}; is that an NFS server?",
            self.peer
        ))
    }
}
