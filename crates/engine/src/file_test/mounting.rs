//! File systems mounted where only this process sees them: they go when it goes, however it goes.

use std::cell::Cell;
use std::ffi::CString;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use leadline_base::beneath::{self, Directory};
use leadline_base::error::EngineError;
use leadline_wire::job::file_test::Mount;

const UNMOUNT_TRIES: u32 = 50;
const UNMOUNT_WAIT: Duration = Duration::from_millis(20);

thread_local! {
    /// A thread enters a namespace by itself; those it starts later are in it as well.
    static OWN_NAMESPACE: Cell<bool> = const { Cell::new(false) };
}

/// One mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    /// The directory that holds the mount point: the kernel takes no handle to unmount by.
    parent: Directory,
    point: Option<CString>,
}

impl Mounted {
    /// Mounts `mount` at `point`, an empty directory of Leadline's own, and opens its root.
    ///
    /// # Errors
    /// `Target` when the kernel refuses, or the mount point is not ours.
    pub fn new(mount: &Mount, point: &Path) -> Result<(Directory, Self), EngineError> {
        let not_ours = |error: Error| {
            let advice = beneath::advice(&error);
            EngineError::target(format!("{} cannot be used: {error}; {advice}", point.display()))
        };
        let name = beneath::name_of(point).map_err(not_ours)?;
        let parent = point.parent().unwrap_or(Path::new("/"));
        let parent = Directory::own(parent).map_err(not_ours)?;
        let below = parent.below(name, false).map_err(not_ours)?;
        enter_own_namespace()?;
        // A handle from before belongs to mounts that nothing can be added to from here.
        let parent = parent.seen_anew().map_err(not_ours)?;
        let point = below.seen_anew().map_err(not_ours)?;
        attach(mount, &point)?;
        let mounted = Self { point: Some(text(&by_handle(&parent, name))?), parent };
        let root = mounted.parent.below(name, true).map_err(not_ours)?;
        let device = |directory: &Directory| directory.facts().map(|facts| facts.st_dev);
        if device(&root).map_err(not_ours)? == device(&point).map_err(not_ours)? {
            return Err(EngineError::fault("a mounted file system is not where it was mounted"));
        }
        Ok((root, mounted))
    }

    /// Unmounts it now; nothing may be open on it any more.
    ///
    /// # Errors
    /// `Io` when it stays busy.
    pub fn close(mut self) -> Result<(), EngineError> {
        let Some(point) = self.point.take() else { return Ok(()) };
        for _ in 0..UNMOUNT_TRIES {
            // SAFETY: a terminated string.
            if unsafe { libc::umount2(point.as_ptr(), libc::UMOUNT_NOFOLLOW) } == 0 {
                return Ok(());
            }
            std::thread::sleep(UNMOUNT_WAIT);
        }
        let error = Error::last_os_error();
        self.point = Some(point); // dropping detaches it
        Err(EngineError::io(format!("a tested file system cannot be unmounted: {error}")))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(point) = &self.point {
            let how = libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW;
            // SAFETY: a terminated string; a failure leaves it to the end of the namespace.
            unsafe { libc::umount2(point.as_ptr(), how) };
        }
    }
}

/// The path of a name in a directory that begins with the directory's handle.
fn by_handle(directory: &Directory, name: &str) -> String {
    format!("/proc/self/fd/{}/{name}", directory.as_fd().as_raw_fd())
}

fn attach(mount: &Mount, point: &Directory) -> Result<(), EngineError> {
    let (device, at) = (text(&mount.device)?, text(&by_handle(point, "."))?);
    let (kind, options) = (text(&mount.kind)?, text(&mount.options)?);
    let flags = libc::MS_NODEV | libc::MS_NOSUID | libc::MS_NOEXEC;
    // SAFETY: all five are terminated strings that outlive the call.
    let done = unsafe {
        libc::mount(device.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    if done == 0 {
        return Ok(());
    }
    let error = Error::last_os_error();
    let why = match error.raw_os_error() {
        Some(libc::ENODEV) => "this kernel does not know the file system".to_owned(),
        _ => error.to_string(),
    };
    Err(EngineError::target(format!(
        "{} on {} cannot be mounted at {}: {why}",
        mount.kind,
        mount.device,
        point.path().display()
    )))
}

fn text(words: &str) -> Result<CString, EngineError> {
    CString::new(words).map_err(|_| EngineError::bad_job("a name in the job holds a NUL byte"))
}

/// Leaves the mount namespace of whoever started this process; nothing mounted here is seen there.
fn enter_own_namespace() -> Result<(), EngineError> {
    if OWN_NAMESPACE.get() {
        return Ok(());
    }
    // SAFETY: no pointers.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(refused());
    }
    let (none, root) = (c"none", c"/");
    // SAFETY: terminated strings; with these flags the other arguments are not looked at.
    let done = unsafe {
        libc::mount(
            none.as_ptr(),
            root.as_ptr(),
            std::ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            std::ptr::null(),
        )
    };
    if done != 0 {
        return Err(refused());
    }
    OWN_NAMESPACE.set(true);
    Ok(())
}

fn refused() -> EngineError {
    EngineError::target(format!(
        "a mount namespace of its own cannot be had: {}; making file systems needs root",
        Error::last_os_error()
    ))
}
