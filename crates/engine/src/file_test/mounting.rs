//! File systems mounted where only this process sees them: they go when it goes, however it goes.

use std::cell::Cell;
use std::ffi::CString;
use std::io::Error;
use std::time::Duration;

use leadline_wire::job::file_test::Mount;

use crate::error::EngineError;

const UNMOUNT_TRIES: u32 = 50;
const UNMOUNT_WAIT: Duration = Duration::from_millis(20);

thread_local! {
    /// A thread enters a namespace by itself; those it starts later are in it as well.
    static OWN_NAMESPACE: Cell<bool> = const { Cell::new(false) };
}

/// One mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    point: Option<CString>,
}

impl Mounted {
    /// Mounts `mount` at `point`.
    ///
    /// # Errors
    /// `Target` when the kernel refuses.
    pub fn new(mount: &Mount, point: &str) -> Result<Self, EngineError> {
        enter_own_namespace()?;
        let (device, at) = (text(&mount.device)?, text(point)?);
        let (kind, options) = (text(&mount.kind)?, text(&mount.options)?);
        let flags = libc::MS_NODEV | libc::MS_NOSUID | libc::MS_NOEXEC;
        // SAFETY: all five are terminated strings that outlive the call.
        let done = unsafe {
            libc::mount(device.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
        };
        if done == 0 {
            return Ok(Self { point: Some(at) });
        }
        let error = Error::last_os_error();
        let why = match error.raw_os_error() {
            Some(libc::ENODEV) => "this kernel does not know the file system".to_owned(),
            _ => error.to_string(),
        };
        Err(EngineError::target(format!(
            "{} on {} cannot be mounted at {point}: {why}",
            mount.kind, mount.device
        )))
    }

    /// Unmounts it now.
    ///
    /// # Errors
    /// `Io` when it stays busy.
    pub fn close(mut self) -> Result<(), EngineError> {
        let Some(point) = self.point.take() else { return Ok(()) };
        for _ in 0..UNMOUNT_TRIES {
            // SAFETY: a terminated string.
            if unsafe { libc::umount2(point.as_ptr(), 0) } == 0 {
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
            // SAFETY: a terminated string; a failure leaves it to the end of the namespace.
            unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH) };
        }
    }
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
