//! An export and a directory in it, found by its path, and what can be asked of directories there.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::time::Duration;

use leadline_base::clock::now_ns;
use leadline_base::error::EngineError;
use leadline_wire::job::target::NfsAddress;
use nfs3_types::mount::{self, MOUNT_PROGRAM, dirpath, mountres3, mountstat3};
use nfs3_types::nfs3::{
    COMMIT3args, COMMIT3res, CREATE3args, CREATE3res, FSINFO3args, FSINFO3res, FSINFO3resok,
    FSSTAT3args, FSSTAT3res, FSSTAT3resok, GETATTR3args, GETATTR3res, LOOKUP3args, LOOKUP3res,
    MKDIR3args, MKDIR3res, NFS_PROGRAM, Nfs3Option, Nfs3Result, PROGRAM, READ3args, READ3res,
    READDIR3args, READDIR3res, REMOVE3args, REMOVE3res, RMDIR3args, RMDIR3res, SETATTR3args,
    SETATTR3res, VERSION, WRITE3args, WRITE3res, cookieverf3, createhow3, diropargs3, fattr3,
    filename3, nfs_fh3, nfsstat3, sattr3, stable_how,
};
use nfs3_types::portmap::{self, PMAP_PROG, mapping};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack, Void};

use crate::backend::nfs::record::Lengths;
use crate::backend::nfs::rpc::{Caller, resolve};

/// Port of NFS where nobody says otherwise.
const NFS_PORT: u16 = 2049;

/// Bytes of a directory asked for at once.
const LISTING_BYTES: u32 = 8192;

/// Most entries looked at: Leadline's own directories have a handful.
const ENTRIES_MAX: usize = 1000;

/// NULL calls of which the fastest tells the distance to the server.
const ROUND_TRIPS: u32 = 11;

/// A file or directory by name, for the words of an error.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its handle.
    pub handle: nfs_fh3,
    /// Its path, as people know it.
    pub shown: String,
}

/// What the server refused, told apart where it matters.
#[derive(Debug)]
pub enum Refusal {
    /// With its status, about a named thing.
    Status(nfsstat3, String),
    /// Everything else.
    Other(EngineError),
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self::Other(error)
    }
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Other(error) => error,
            Refusal::Status(status, what) => refused(&what, status),
        }
    }
}

/// Says what a status means, and what to do.
#[cold]
#[must_use]
pub fn refused(what: &str, status: nfsstat3) -> EngineError {
    let meaning = match status {
        nfsstat3::NFS3ERR_PERM | nfsstat3::NFS3ERR_ACCES => {
            "the server does not allow it to this user; give a directory that you may write \
            (a root user is nobody there unless the export says no_root_squash)"
        }
        nfsstat3::NFS3ERR_NOENT => "it is not there",
        nfsstat3::NFS3ERR_ROFS => "the export is read-only; Leadline must write its data file",
        nfsstat3::NFS3ERR_NOSPC | nfsstat3::NFS3ERR_DQUOT => {
            "the server has no room; free some or ask for a smaller unique_bytes (--max-bytes)"
        }
        nfsstat3::NFS3ERR_NOTDIR => "it is not a directory",
        nfsstat3::NFS3ERR_EXIST => "it is there already",
        nfsstat3::NFS3ERR_STALE | nfsstat3::NFS3ERR_BADHANDLE => {
            return EngineError::lost(format!(
                "server lost: {what}: the server no longer knows it ({status}), as after a restart \
                that forgot its files"
            ));
        }
        nfsstat3::NFS3ERR_IO | nfsstat3::NFS3ERR_SERVERFAULT => {
            return EngineError::io(format!(
                "{what}: the server failed ({status}); look at its log"
            ));
        }
        _ => "look at the server's log",
    };
    EngineError::target(format!("{what}: {status}: {meaning}"))
}

/// The same of a status as it came.
#[cold]
#[must_use]
pub fn refused_with(what: &str, status: u32) -> EngineError {
    match nfsstat3::unpack(&mut &status.to_be_bytes()[..]) {
        Ok((status, _)) => refused(what, status),
        Err(_) => EngineError::io(format!("{what}: the server refuses with status {status}")),
    }
}

/// One answer of the server, or its refusal.
fn settle<T, E>(answer: Nfs3Result<T, E>, what: &str) -> Result<T, Refusal> {
    match answer {
        Nfs3Result::Ok(found) => Ok(found),
        Nfs3Result::Err((status, _)) => Err(Refusal::Status(status, what.to_owned())),
    }
}

/// A server's directory, reached.
#[derive(Debug)]
pub struct Volume {
    caller: Caller,
    /// Addresses of the NFS program.
    pub addresses: Vec<SocketAddr>,
    /// The export, or what of the path the server lets one mount.
    pub export: String,
    /// The directory of the target.
    pub directory: Place,
    timeout: Duration,
}

impl Volume {
    /// Reaches the directory that an address names; nothing is changed there.
    ///
    /// # Errors
    /// `Lost` when the server does not answer; `Target` when it refuses or the path is not there.
    pub fn open(address: &NfsAddress, timeout: Duration) -> Result<Self, EngineError> {
        let ports = Ports::find(address, timeout)?;
        let mut mounter = Caller::connect(
            &resolve(&address.host, ports.mount)?,
            (mount::PROGRAM, mount::VERSION),
            timeout,
        )?;
        let (export, root) = mount_longest(&mut mounter, &address.path)?;
        let addresses = resolve(&address.host, ports.nfs)?;
        let caller = Caller::connect(&addresses, (PROGRAM, VERSION), timeout)?;
        let directory = Place { handle: root, shown: export.clone() };
        let mut volume = Self { caller, addresses, export, directory, timeout };
        let rest = address.path.strip_prefix(&volume.export).unwrap_or(&address.path).to_owned();
        for name in rest.split('/').filter(|name| !name.is_empty()) {
            volume.enter(name)?;
        }
        let facts = volume.attributes(&volume.directory.clone())?;
        if facts.type_ != nfs3_types::nfs3::ftype3::NF3DIR {
            return Err(EngineError::target(format!(
                "{} is no directory on the server; give one, Leadline makes its own data file",
                volume.directory.shown
            )));
        }
        Ok(volume)
    }

    fn enter(&mut self, name: &str) -> Result<(), EngineError> {
        let directory = self.directory.clone();
        let (place, facts) = self.lookup(&directory, name)?;
        if facts.is_some_and(|facts| facts.type_ == nfs3_types::nfs3::ftype3::NF3LNK) {
            return Err(EngineError::target(format!(
                "{} is a symlink on the server, and Leadline follows none; give the directory \
                itself",
                place.shown
            )));
        }
        self.directory = place;
        Ok(())
    }

    /// Where the server was reached.
    #[must_use]
    pub fn peer(&self) -> &str {
        self.caller.peer()
    }

    fn ask<T: Unpack + Lengths>(
        &mut self,
        procedure: NFS_PROGRAM,
        arguments: &impl Pack,
    ) -> Result<T, EngineError> {
        self.caller.call(procedure as u32, arguments)
    }

    /// What the server says of its transfers.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn info(&mut self) -> Result<FSINFO3resok, EngineError> {
        let fsroot = self.directory.handle.clone();
        let answer: FSINFO3res = self.ask(NFS_PROGRAM::NFSPROC3_FSINFO, &FSINFO3args { fsroot })?;
        Ok(settle(answer, &self.directory.shown)?)
    }

    /// What the server says of its room.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn room(&mut self) -> Result<FSSTAT3resok, EngineError> {
        let fsroot = self.directory.handle.clone();
        let answer: FSSTAT3res = self.ask(NFS_PROGRAM::NFSPROC3_FSSTAT, &FSSTAT3args { fsroot })?;
        Ok(settle(answer, &self.directory.shown)?)
    }

    /// The shortest of several round trips to the server, in nanoseconds.
    ///
    /// # Errors
    /// `Lost` when it stops answering.
    pub fn round_trip_ns(&mut self) -> Result<u64, EngineError> {
        let mut least = u64::MAX;
        for _ in 0..ROUND_TRIPS {
            let began_ns = now_ns();
            self.ask::<Void>(NFS_PROGRAM::NFSPROC3_NULL, &Void)?;
            least = least.min(now_ns() - began_ns);
        }
        Ok(least)
    }

    /// Attributes of a place.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn attributes(&mut self, place: &Place) -> Result<fattr3, EngineError> {
        let object = place.handle.clone();
        let answer: GETATTR3res =
            self.ask(NFS_PROGRAM::NFSPROC3_GETATTR, &GETATTR3args { object })?;
        Ok(settle(answer, &place.shown)?.obj_attributes)
    }

    /// A name in a directory, and its attributes where the server adds them.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn lookup(
        &mut self,
        directory: &Place,
        name: &str,
    ) -> Result<(Place, Option<fattr3>), Refusal> {
        let shown = below(directory, name);
        let what = within(directory, name);
        let answer: LOOKUP3res = self.ask(NFS_PROGRAM::NFSPROC3_LOOKUP, &LOOKUP3args { what })?;
        let found = settle(answer, &shown)?;
        let place = Place { handle: found.object, shown };
        let facts = match found.obj_attributes {
            Nfs3Option::Some(facts) => facts,
            Nfs3Option::None => self.attributes(&place)?,
        };
        Ok((place, Some(facts)))
    }

    /// Makes a directory that only its owner may enter.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn make_directory(&mut self, directory: &Place, name: &str) -> Result<Place, Refusal> {
        let attributes = sattr3 { mode: Nfs3Option::Some(0o700), ..sattr3::default() };
        let arguments = MKDIR3args { where_: within(directory, name), attributes };
        let answer: MKDIR3res = self.ask(NFS_PROGRAM::NFSPROC3_MKDIR, &arguments)?;
        let made = settle(answer, &below(directory, name))?;
        self.made(directory, name, made.obj)
    }

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// As the server refuses: `NFS3ERR_EXIST` when the name is taken.
    pub fn create(&mut self, directory: &Place, name: &str) -> Result<Place, Refusal> {
        let attributes = sattr3 { mode: Nfs3Option::Some(0o600), ..sattr3::default() };
        let how = createhow3::GUARDED(attributes);
        let arguments = CREATE3args { where_: within(directory, name), how };
        let answer: CREATE3res = self.ask(NFS_PROGRAM::NFSPROC3_CREATE, &arguments)?;
        let made = settle(answer, &below(directory, name))?;
        self.made(directory, name, made.obj)
    }

    /// The handle of what was just made; servers need not tell it.
    fn made(
        &mut self,
        directory: &Place,
        name: &str,
        handle: Nfs3Option<nfs_fh3>,
    ) -> Result<Place, Refusal> {
        match handle {
            Nfs3Option::Some(handle) => Ok(Place { handle, shown: below(directory, name) }),
            Nfs3Option::None => self.lookup(directory, name).map(|(place, _)| place),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn remove(&mut self, directory: &Place, name: &str) -> Result<(), Refusal> {
        let arguments = REMOVE3args { object: within(directory, name) };
        let answer: REMOVE3res = self.ask(NFS_PROGRAM::NFSPROC3_REMOVE, &arguments)?;
        settle(answer, &below(directory, name)).map(|_| ())
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn remove_directory(&mut self, directory: &Place, name: &str) -> Result<(), Refusal> {
        let arguments = RMDIR3args { object: within(directory, name) };
        let answer: RMDIR3res = self.ask(NFS_PROGRAM::NFSPROC3_RMDIR, &arguments)?;
        settle(answer, &below(directory, name)).map(|_| ())
    }

    /// Names in a directory of Leadline's, without `.` and `..`.
    ///
    /// # Errors
    /// As the server refuses, and when there are more than Leadline would ever make.
    pub fn names(&mut self, directory: &Place) -> Result<Vec<String>, EngineError> {
        self.names_up_to(directory, ENTRIES_MAX)
    }

    /// Names in a directory that holds at most `most`, without `.` and `..`.
    ///
    /// # Errors
    /// As the server refuses, and when there are more.
    pub fn names_up_to(
        &mut self,
        directory: &Place,
        most: usize,
    ) -> Result<Vec<String>, EngineError> {
        let (mut names, mut cookie, mut cookieverf) = (Vec::new(), 0, cookieverf3::default());
        // Two more than names: `.` and `..` are told once, where they are told at all.
        let mut told = 0;
        loop {
            let dir = directory.handle.clone();
            let arguments = READDIR3args { dir, cookie, cookieverf, count: LISTING_BYTES };
            let answer: READDIR3res = self.ask(NFS_PROGRAM::NFSPROC3_READDIR, &arguments)?;
            let page = settle(answer, &directory.shown)?;
            let ended = page.reply.eof || page.reply.entries.is_empty();
            for entry in page.reply.entries.into_inner() {
                cookie = entry.cookie;
                told += 1;
                let name = String::from_utf8_lossy(entry.name.as_ref()).into_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            if ended {
                return Ok(names);
            }
            if told > most + 2 {
                return Err(EngineError::target(format!(
                    "{} holds more than {most} entries, which Leadline did not make; give \
                    another directory",
                    directory.shown
                )));
            }
            cookieverf = page.cookieverf;
        }
    }

    /// The first bytes of a small file.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn read_start(&mut self, file: &Place, count: u32) -> Result<Vec<u8>, EngineError> {
        let arguments = READ3args { file: file.handle.clone(), offset: 0, count };
        let answer: READ3res = self.ask(NFS_PROGRAM::NFSPROC3_READ, &arguments)?;
        Ok(settle(answer, &file.shown)?.data.into_owned())
    }

    /// Writes a small file from its start, to stable storage.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn write_start(&mut self, file: &Place, bytes: &[u8]) -> Result<(), EngineError> {
        let arguments = WRITE3args {
            file: file.handle.clone(),
            offset: 0,
            count: bytes.len() as u32,
            stable: stable_how::FILE_SYNC,
            data: Opaque::borrowed(bytes),
        };
        let answer: WRITE3res = self.ask(NFS_PROGRAM::NFSPROC3_WRITE, &arguments)?;
        settle(answer, &file.shown)?;
        Ok(())
    }

    /// Cuts or lengthens a file.
    ///
    /// # Errors
    /// As the server refuses.
    pub fn set_length(&mut self, file: &Place, length_bytes: u64) -> Result<(), EngineError> {
        let new_attributes = sattr3 { size: Nfs3Option::Some(length_bytes), ..sattr3::default() };
        let arguments =
            SETATTR3args { object: file.handle.clone(), new_attributes, guard: Nfs3Option::None };
        let answer: SETATTR3res = self.ask(NFS_PROGRAM::NFSPROC3_SETATTR, &arguments)?;
        settle(answer, &file.shown)?;
        Ok(())
    }

    /// Has the server put what was written to a file on stable storage; returns its write verifier.
    ///
    /// A server with much to write may take longer than it may be silent elsewhere, so while it owes
    /// this answer it is asked on another connection whether it is there.
    ///
    /// # Errors
    /// As the server refuses; `Lost` when it answers neither.
    pub fn commit(&mut self, file: &Place) -> Result<[u8; 8], EngineError> {
        let arguments = COMMIT3args { file: file.handle.clone(), offset: 0, count: 0 };
        let (addresses, timeout) = (self.addresses.clone(), self.timeout);
        let mut alive = move || -> Result<(), EngineError> {
            let mut other = Caller::connect(&addresses, (PROGRAM, VERSION), timeout)?;
            other.call::<Void>(NFS_PROGRAM::NFSPROC3_NULL as u32, &Void).map(|_| ())
        };
        let answer: COMMIT3res = self.caller.call_patiently(
            NFS_PROGRAM::NFSPROC3_COMMIT as u32,
            &arguments,
            &mut alive,
        )?;
        Ok(settle(answer, &file.shown)?.verf.0)
    }
}

fn within<'a>(directory: &Place, name: &'a str) -> diropargs3<'a> {
    diropargs3 { dir: directory.handle.clone(), name: filename3::from(name.as_bytes()) }
}

fn below(directory: &Place, name: &str) -> String {
    format!("{}/{name}", directory.shown.trim_end_matches('/'))
}

/// Where the two programs listen.
struct Ports {
    mount: u16,
    nfs: u16,
}

impl Ports {
    /// As the address says; else, with a port of its own for NFS, MOUNT on the same one if it is
    /// offered there; else as the port mapper says.
    fn find(address: &NfsAddress, timeout: Duration) -> Result<Self, EngineError> {
        let host = &address.host;
        if let (Some(nfs), Some(mount)) = (address.port, address.mount_port) {
            return Ok(Self { mount, nfs });
        }
        if let Some(nfs) = address.port {
            let mut same =
                Caller::connect(&resolve(host, nfs)?, (mount::PROGRAM, mount::VERSION), timeout)?;
            if same.offered()? {
                return Ok(Self { mount: nfs, nfs });
            }
        }
        let mapped = |program, version| mapped_port(host, (program, version), timeout);
        let nfs = match address.port {
            Some(port) => port,
            None => mapped(PROGRAM, VERSION)?.unwrap_or(NFS_PORT),
        };
        let mount = match address.mount_port {
            Some(port) => port,
            None => mapped(mount::PROGRAM, mount::VERSION)?.ok_or_else(|| {
                EngineError::target(format!(
                    "{host}: where its MOUNT program listens is not known: the port mapper does \
                    not tell; add ?mountport=PORT to the target (rpcinfo -p on the server shows it)"
                ))
            })?,
        };
        Ok(Self { mount, nfs })
    }
}

/// What the port mapper says of a program; none when it does not know it or is not there itself.
fn mapped_port(
    host: &str,
    (program, version): (u32, u32),
    timeout: Duration,
) -> Result<Option<u16>, EngineError> {
    let addresses = resolve(host, portmap::PMAP_PORT)?;
    let mapper = (portmap::PROGRAM, portmap::VERSION);
    let Ok(mut mapper) = Caller::connect(&addresses, mapper, timeout) else { return Ok(None) };
    let asked = mapping { prog: program, vers: version, prot: portmap::IPPROTO_TCP, port: 0 };
    let port: u32 = mapper.call(PMAP_PROG::PMAPPROC_GETPORT as u32, &asked)?;
    Ok(u16::try_from(port).ok().filter(|port| *port != 0))
}

/// Mounts the longest part of a path that the server lets one mount; servers differ in whether a
/// directory below an export will do.
fn mount_longest(mounter: &mut Caller, path: &str) -> Result<(String, nfs_fh3), EngineError> {
    let mut part = path.trim_end_matches('/');
    let mut worst = mountstat3::MNT3ERR_NOENT;
    loop {
        let tried = if part.is_empty() { "/" } else { part };
        let asked = dirpath(Opaque::borrowed(tried.as_bytes()));
        match mounter.call::<mountres3>(MOUNT_PROGRAM::MOUNTPROC3_MNT as u32, &asked)? {
            mountres3::Ok(found) => {
                let data = Opaque::owned(found.fhandle.0.into_owned());
                return Ok((tried.to_owned(), nfs_fh3 { data }));
            }
            mountres3::Err(status) => {
                if !matches!(status, mountstat3::MNT3ERR_NOENT) {
                    worst = status;
                }
            }
        }
        match part.rfind('/') {
            Some(at) => part = &part[..at],
            None => return Err(not_mounted(mounter.peer(), path, worst)),
        }
    }
}

fn not_mounted(peer: &str, path: &str, status: mountstat3) -> EngineError {
    let advice = match status {
        mountstat3::MNT3ERR_ACCES | mountstat3::MNT3ERR_PERM => {
            "the server does not export it to this host and user (or wants calls from a port below \
            1024: export it with `insecure`)"
        }
        _ => "`showmount -e` lists what it exports",
    };
    EngineError::target(format!("{peer} does not let {path} be mounted ({status}); {advice}"))
}
