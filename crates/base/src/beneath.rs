//! Files of Leadline's in a target: opened, named and removed beneath the handle of the directory
//! that was claimed, never by a path.
//!
//! Whoever owns a target's directory can rename what lies in it at any moment, and put a tree of
//! his own in its place; a path then leads where he likes. A handle stays with the directory it was
//! opened on. Below it every name is one component, a symbolic link is never followed, nothing else
//! may be mounted there, and what is opened is looked at before it is used: a regular file, this
//! user's own, without a second name. Nothing is emptied or written before that.
//!
//! Whoever claimed the directory and started this process hands it the handle ([`claimed`]). Where
//! there is none, as for the output of a stream that a person named, the path is followed once; see
//! [`Directory::own`] and [`Directory::named`].

mod claimed;

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fcntl_getfl, fcntl_setfl, fstat,
    linkat, openat, openat2, renameat, stat, statat, unlinkat,
};
use rustix::io::Errno;

/// Of a directory's own handle.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Of everything: nobody inherits it, and no link at its end is followed.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW);

/// What is made is this user's alone.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// A way to open a file that is there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Way {
    /// For writing as well.
    pub write: bool,
    /// By direct I/O (`O_DIRECT`).
    pub direct: bool,
    /// Writes wait for the device (`O_DSYNC`).
    pub dsync: bool,
}

impl Way {
    /// For reading alone.
    pub const READ: Self = Self { write: false, direct: false, dsync: false };
    /// For reading and writing.
    pub const WRITE: Self = Self { write: true, direct: false, dsync: false };

    fn flags(self) -> OFlags {
        let mut flags = if self.write { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::DIRECT, self.direct);
        flags.set(OFlags::DSYNC, self.dsync);
        flags
    }
}

/// An open directory. Clones share the handle.
#[derive(Clone, Debug)]
pub struct Directory {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

impl Directory {
    /// A directory of Leadline's own: by the handle that was handed to this process for `path`, or
    /// else by `path`, in which no link is followed and whose end must belong to this user.
    ///
    /// # Errors
    /// Those of the system; `Other` with a sentence for what is not ours.
    pub fn own(path: &Path) -> Result<Self, Error> {
        if let Some(handle) = claimed::handle_of(path)? {
            return Ok(Self { handle: Arc::new(handle), path: path.to_owned() });
        }
        let found = Self::at(path)?;
        if fstat(&found.handle)?.st_uid != my_uid() {
            return Err(Error::other("it belongs to another user, so that it is not Leadline's"));
        }
        Ok(found)
    }

    /// A directory that a person named; a claimed one is found by its handle. Whoever starts an
    /// engine child has resolved the links in the path, so that one in it now was put there since,
    /// and is not followed; elsewhere, as in the ranks of a cluster, they are resolved here, once.
    ///
    /// # Errors
    /// Those of the system.
    pub fn named(path: &Path) -> Result<Self, Error> {
        let handle = match claimed::handle_of(path)? {
            Some(handle) => handle,
            None if claimed::are_handed_down() => open_from_root(path)?,
            None => open_from_root(&path.canonicalize()?)?,
        };
        Ok(Self { handle: Arc::new(handle), path: path.to_owned() })
    }

    /// The directory at a path from the root on, in which no link is followed.
    fn at(path: &Path) -> Result<Self, Error> {
        let handle = open_from_root(path)?;
        Ok(Self { handle: Arc::new(handle), path: path.to_owned() })
    }

    /// The same directory as this process sees it now, after it has left the mounts it began with.
    ///
    /// # Errors
    /// Those of the system; `Other` when another directory has its path by now.
    pub fn seen_anew(&self) -> Result<Self, Error> {
        let anew = Self::at(&self.path)?;
        if same(&fstat(&self.handle)?, &fstat(&anew.handle)?) {
            return Ok(anew);
        }
        Err(Error::other("it was moved away, and another has its name"))
    }

    /// Its path when it was opened, for messages and nothing else.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory `name` in it; another file system may be mounted there when `across`.
    ///
    /// # Errors
    /// Those of the system; `Other` when it belongs to another user.
    pub fn below(&self, name: &str, across: bool) -> Result<Self, Error> {
        let one = one_component(name)?;
        let handle = if across {
            openat(&self.handle, one, DIRECTORY | ALWAYS, Mode::empty())?
        } else {
            open_beneath(self.as_fd(), one, DIRECTORY, Mode::empty())?
        };
        if fstat(&handle)?.st_uid != my_uid() {
            return Err(Error::other("it belongs to another user, so that it is not Leadline's"));
        }
        Ok(Self { handle: Arc::new(handle), path: self.path.join(name) })
    }

    /// A file that is there and is ours.
    ///
    /// # Errors
    /// Those of the system; `Other` with a sentence for what is no regular file, another user's, or
    /// has a second name.
    pub fn open(&self, name: &str, way: Way) -> Result<File, Error> {
        // A pipe put there would make an opening wait for its other end.
        let flags = way.flags() | OFlags::NONBLOCK | OFlags::NOCTTY;
        let handle = open_beneath(self.as_fd(), one_component(name)?, flags, Mode::empty())?;
        check_ours(&fstat(&handle)?)?;
        // Kept, it would make io_uring give up where it should wait.
        fcntl_setfl(&handle, fcntl_getfl(&handle)? - OFlags::NONBLOCK)?;
        Ok(handle.into())
    }

    /// The same file as `known`, opened once more.
    ///
    /// # Errors
    /// As [`Self::open`]; `Other` when another file has the name by now.
    pub fn open_again(&self, name: &str, way: Way, known: &File) -> Result<File, Error> {
        let again = self.open(name, way)?;
        if same(&fstat(known)?, &fstat(&again)?) {
            return Ok(again);
        }
        Err(Error::other("it was replaced while it was being used"))
    }

    /// Makes a file, readable by this user alone; `AlreadyExists` when anything has the name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make(&self, name: &str) -> Result<File, Error> {
        self.make_for(name, PRIVATE)
    }

    /// Makes a file that others may read as far as the process's mask has it.
    ///
    /// # Errors
    /// Those of the system; `AlreadyExists` when anything has the name.
    pub fn make_shared(&self, name: &str) -> Result<File, Error> {
        self.make_for(name, Mode::from_raw_mode(0o666))
    }

    fn make_for(&self, name: &str, mode: Mode) -> Result<File, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        Ok(open_beneath(self.as_fd(), one_component(name)?, flags, mode)?.into())
    }

    /// Makes a file without a name (`O_TMPFILE`).
    ///
    /// # Errors
    /// Those of the system; several numbers say that the file system knows no such files.
    pub fn make_unnamed(&self) -> Result<File, Error> {
        let flags = OFlags::RDWR | OFlags::TMPFILE;
        Ok(open_beneath(self.as_fd(), ".", flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// What has a name here, itself and not what it may link to; none when nothing has it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn look(&self, name: &str) -> Result<Option<Stat>, Error> {
        match statat(&self.handle, one_component(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives an open file without a name one here, which must be free.
    ///
    /// # Errors
    /// Those of the system.
    pub fn name_unnamed(&self, file: &File, name: &str) -> Result<(), Error> {
        let (own, name) = (by_number(file), one_component(name)?);
        Ok(linkat(CWD, own.as_str(), &self.handle, name, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Gives the file `from` the free name `to` as well.
    ///
    /// # Errors
    /// Those of the system.
    pub fn link(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to) = (one_component(from)?, one_component(to)?);
        Ok(linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?)
    }

    /// Gives the file `from` the name `to`, in place of what has it now.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        Ok(renameat(&self.handle, one_component(from)?, &self.handle, one_component(to)?)?)
    }

    /// Removes a name, if anything but a directory has it; a link goes, not what it links to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        match unlinkat(&self.handle, one_component(name)?, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings its names to the disk.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync(&self) -> Result<(), Error> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }

    /// What the kernel knows of the directory itself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn facts(&self) -> Result<Stat, Error> {
        Ok(fstat(&self.handle)?)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// What is at a path that a person named, wherever it leads; in a claimed directory, what its
/// handle leads to.
///
/// # Errors
/// Those of the system.
pub fn look_at(path: &Path) -> Result<Stat, Error> {
    match in_claimed(path)? {
        Some((directory, name)) => directory.look(name)?.ok_or_else(|| Errno::NOENT.into()),
        None => Ok(stat(path)?),
    }
}

/// The claimed directory that a path lies in, and its name there.
fn in_claimed(path: &Path) -> Result<Option<(Directory, &str)>, Error> {
    let (Some(folder), Ok(name)) = (path.parent(), name_of(path)) else { return Ok(None) };
    let handle = claimed::handle_of(folder)?;
    Ok(handle.map(|handle| (Directory { handle: Arc::new(handle), path: folder.to_owned() }, name)))
}

/// Opens a file of a person's for reading, wherever its path leads: nothing is written through it.
/// In a claimed directory it is ours, and opened as such.
///
/// # Errors
/// Those of the system; `Other` when it is no regular file.
pub fn open_input(path: &Path) -> Result<File, Error> {
    if let Some((directory, name)) = in_claimed(path)? {
        return directory.open(name, Way::READ);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let handle = openat(CWD, path, flags, Mode::empty())?;
    if !FileType::from_raw_mode(fstat(&handle)?.st_mode).is_file() {
        return Err(Error::other("it is no plain file"));
    }
    fcntl_setfl(&handle, fcntl_getfl(&handle)? - OFlags::NONBLOCK)?;
    Ok(handle.into())
}

/// Opens a file that is open already once more, by its number: whatever names it has.
///
/// # Errors
/// Those of the system.
pub fn reopen(file: &File, way: Way) -> Result<File, Error> {
    Ok(openat(CWD, by_number(file), way.flags() | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// The kernel's own link to an open file.
fn by_number(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens a block device for direct reads and writes; no link to one is followed.
///
/// # Errors
/// Those of the system; `Other` when it is no block device.
pub fn open_device(path: &Path) -> Result<File, Error> {
    // Looked at before it is opened: to open a device may do something to it.
    let found = openat(CWD, path, OFlags::PATH | ALWAYS, Mode::empty())?;
    if !FileType::from_raw_mode(fstat(&found)?.st_mode).is_block_device() {
        return Err(Error::other("it is no block device"));
    }
    reopen(&found.into(), Way { direct: true, ..Way::WRITE })
}

/// The last component of a path, as the one name it has in its directory.
///
/// # Errors
/// `InvalidInput` when there is none, or it is no text.
pub fn name_of(path: &Path) -> Result<&str, Error> {
    path.file_name().and_then(|name| name.to_str()).ok_or_else(|| Error::from(Errno::INVAL))
}

/// One name and no way to anywhere else.
fn one_component(name: &str) -> Result<&str, Error> {
    let mut parts = Path::new(name).components();
    let one = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
    if one && !name.contains(['/', '\0']) { Ok(name) } else { Err(Errno::INVAL.into()) }
}

/// Opens a name in a directory; neither a link nor a mount leads out of it.
fn open_beneath(
    directory: BorrowedFd<'_>,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    match openat2(directory, name, flags | ALWAYS, mode, rules) {
        // Linux before 5.6, and sandboxes that know it not: of one name O_NOFOLLOW says the same,
        // but for mounts.
        Err(Errno::NOSYS | Errno::PERM) => openat(directory, name, flags | ALWAYS, mode),
        opened => opened,
    }
}

/// Opens a directory by an absolute path in which no link is followed.
fn open_from_root(path: &Path) -> Result<OwnedFd, Error> {
    if !path.is_absolute() {
        return Err(Errno::INVAL.into());
    }
    let rules = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, DIRECTORY | ALWAYS, Mode::empty(), rules) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(step_by_step(path)?),
        opened => Ok(opened?),
    }
}

/// The same where the kernel has no `openat2`.
fn step_by_step(path: &Path) -> Result<OwnedFd, Errno> {
    let on_the_way = OFlags::PATH | OFlags::DIRECTORY | ALWAYS;
    let mut here = openat(CWD, "/", on_the_way, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => here = openat(&here, name, on_the_way, Mode::empty())?,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        }
    }
    openat(&here, ".", DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Says why a file is not one that Leadline made.
fn check_ours(facts: &Stat) -> Result<(), Error> {
    let reason = if !FileType::from_raw_mode(facts.st_mode).is_file() {
        "it is no regular file"
    } else if facts.st_uid != my_uid() {
        "it belongs to another user"
    } else if facts.st_nlink != 1 {
        "it has a second name elsewhere"
    } else {
        return Ok(());
    };
    Err(Error::other(format!("{reason}; Leadline did not make it and leaves it alone")))
}

fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn my_uid() -> u32 {
    // SAFETY: geteuid cannot fail and has no preconditions.
    unsafe { libc::geteuid() }
}

/// What to do about an error of this module, for the end of a message.
#[must_use]
pub fn advice(error: &Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ELOOP) => {
            "it is a symbolic link, which Leadline did not make and does not follow"
        }
        Some(libc::EXDEV) => "another file system is mounted there, which Leadline does not use",
        Some(libc::ENXIO | libc::ENOTDIR) => "Leadline did not make it and leaves it alone",
        Some(libc::ENOENT) => {
            "the run directory is not there: was it removed or unmounted meanwhile?"
        }
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => "choose a directory you may write",
        Some(libc::EMFILE | libc::ENFILE) => {
            "raise the limit of open files (ulimit -n) or ask for fewer processes"
        }
        None if error.kind() == ErrorKind::Other => "look at it and move it away",
        _ => "choose another directory",
    }
}

#[cfg(test)]
mod tests;
