//! The command as a child that waits until it is watched.

use std::ffi::{CString, c_char};
use std::io::{Error, Result};
use std::ptr;

/// How a child begins.
pub struct Beginning<'a> {
    /// The program's file.
    pub program: &'a CString,
    pub arguments: &'a [CString],
    pub environment: &'a [CString],
    /// Instructions of seccomp that the child puts on itself, if any.
    pub filter: Option<&'a [libc::sock_filter]>,
}

/// What became of a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A child that is stopped before it becomes the command.
///
/// # Errors
///
/// There can be no more processes.
pub fn fork(beginning: &Beginning<'_>) -> Result<i32> {
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(beginning.arguments), pointers(beginning.environment));
    let filter = beginning
        .filter
        .map(|code| libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() });
    // SAFETY: between here and exec the child calls nothing but system calls, with what was made
    // before; it shares nothing that it could break.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above: pointers into vectors that live in the child's copy, each list ended
        // by null.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL); // Python ignores both
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            libc::raise(libc::SIGSTOP);
            if let Some(filter) = &filter {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, ptr::from_ref(filter));
            }
            libc::execve(beginning.program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            libc::_exit(126);
        }
    }
    if child < 0 { Err(Error::last_os_error()) } else { Ok(child) }
}

/// Waits until a child has stopped itself.
///
/// # Errors
///
/// It is gone.
pub fn await_stop(child: i32) -> Result<()> {
    let mut status = 0;
    // SAFETY: one child is waited for, into a number of ours.
    let found = unsafe { libc::waitpid(child, &raw mut status, libc::WUNTRACED) };
    if found == child && libc::WIFSTOPPED(status) { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Whether a child has ended; it stays until it is reaped, so that it can be asked about.
pub fn has_ended(child: i32) -> bool {
    // SAFETY: a structure of numbers that the kernel fills.
    unsafe {
        let mut told: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let found = libc::waitid(libc::P_PID, child as u32, &raw mut told, flags);
        found != 0 || told.si_pid() == child
    }
}

/// Lets a child go that has ended; how it did.
pub fn reap(child: i32) -> Ended {
    let mut status = 0;
    // SAFETY: as in `await_stop`.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    ended(status)
}

/// What a status of wait(2) says of an end.
pub fn ended(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status))
    } else {
        Ended::Code(libc::WEXITSTATUS(status))
    }
}

/// Sends a signal to a process of ours.
pub fn send(process: i32, signal: i32) {
    // SAFETY: two numbers.
    unsafe { libc::kill(process, signal) };
}

/// While it lives, children of those that have ended become this process's, as if its own.
pub struct Orphans {
    before: i32,
}

impl Orphans {
    /// From now on.
    pub fn adopt() -> Self {
        let mut before = 0_i32;
        // SAFETY: a number of ours is filled, and another given.
        unsafe {
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut before);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        }
        Self { before }
    }

    /// One that has ended, if any, other than `not`; it stays until it is reaped.
    pub fn gone(&self, not: i32) -> Option<i32> {
        // SAFETY: a structure of numbers that the kernel fills.
        unsafe {
            let mut told: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let found = libc::waitid(libc::P_ALL, 0, &raw mut told, flags);
            (found == 0 && told.si_pid() > 0 && told.si_pid() != not).then(|| told.si_pid())
        }
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        // SAFETY: one number.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, self.before) };
    }
}
