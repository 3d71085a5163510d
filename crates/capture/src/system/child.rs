//! The command as a child that waits until it is watched.

use std::ffi::{CString, c_char};
use std::fs;
use std::io::{Error, Result};
use std::ptr;

/// What a child ends with that may not put its filter on itself, or not become its program.
pub const NOT_STARTED: i32 = 126;

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

/// A child that has stopped itself before it becomes the command. Until it is let go, it is killed
/// when this is dropped, or when the thread that made it ends.
#[derive(Debug)]
pub struct Waiting(i32);

impl Waiting {
    /// A child that waits.
    ///
    /// # Errors
    ///
    /// There can be no more processes, or it is gone.
    pub fn new(beginning: &Beginning<'_>) -> Result<Self> {
        let child = Self(fork(beginning)?);
        match wait(child.0, libc::WUNTRACED) {
            Some(status) if libc::WIFSTOPPED(status) => Ok(child),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Its number.
    pub fn process(&self) -> i32 {
        self.0
    }

    /// Lets it become the command; from now on it is the caller's to reap.
    pub fn go(self) -> i32 {
        let process = self.0;
        std::mem::forget(self);
        send(process, libc::SIGCONT);
        process
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        send(self.0, libc::SIGKILL);
        let _ = wait(self.0, 0);
    }
}

/// Descriptors that end at exec: a child that waits is not to hold what its starter may let go.
fn ends_at_exec() -> Vec<i32> {
    let listed = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // SAFETY: one number; whether it is open is the answer.
    numbers
        .filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } & libc::FD_CLOEXEC != 0)
        .collect()
}

fn fork(beginning: &Beginning<'_>) -> Result<i32> {
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(beginning.arguments), pointers(beginning.environment));
    let filter = beginning
        .filter
        .map(|code| libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() });
    let closed = ends_at_exec();
    let parent = std::process::id().cast_signed();
    // SAFETY: between here and exec the child calls nothing but system calls, with what was made
    // before; it shares nothing that it could break.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above: pointers into vectors that live in the child's copy, each list ended
        // by null.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                libc::_exit(NOT_STARTED);
            }
            for descriptor in &closed {
                libc::close(*descriptor);
            }
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL); // Python ignores both
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            libc::raise(libc::SIGSTOP);
            libc::prctl(libc::PR_SET_PDEATHSIG, 0);
            if let Some(filter) = &filter
                && !filtered(filter)
            {
                libc::_exit(NOT_STARTED);
            }
            libc::execve(beginning.program.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            libc::_exit(NOT_STARTED);
        }
    }
    if child < 0 { Err(Error::last_os_error()) } else { Ok(child) }
}

/// Puts a filter on this thread. Who may administer the system keeps the way to more rights open:
/// `sudo` and `ping` work below the filter as without it.
///
/// # Safety
///
/// The filter's instructions are there; nothing but system calls is made.
unsafe fn filtered(filter: &libc::sock_fprog) -> bool {
    let put = || {
        // SAFETY: as above.
        unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, ptr::from_ref(filter)) == 0
        }
    };
    // SAFETY: numbers.
    put() || unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && put() }
}

/// Waits for a child however often a signal comes between; None where there is none.
fn wait(child: i32, flags: i32) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: one child is waited for, into a number of ours.
        let found = unsafe { libc::waitpid(child, &raw mut status, flags) };
        if found == child {
            return Some(status);
        }
        if Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
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
    wait(child, 0).map_or(Ended::Code(NOT_STARTED), ended)
}

/// What a status of wait(2) says of an end.
pub fn ended(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status))
    } else {
        Ended::Code(libc::WEXITSTATUS(status))
    }
}

/// Sends a signal to one process of ours; numbers that mean several are none.
pub fn send(process: i32, signal: i32) {
    if process > 1 {
        // SAFETY: two numbers.
        unsafe { libc::kill(process, signal) };
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    static CAME: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_: i32) {
        CAME.fetch_add(1, Ordering::Relaxed);
    }

    fn waiting() -> Result<Waiting> {
        let program = c"/bin/true".to_owned();
        let arguments = [program.clone()];
        let beginning =
            Beginning { program: &program, arguments: &arguments, environment: &[], filter: None };
        Waiting::new(&beginning)
    }

    #[test]
    fn a_child_is_waited_for_through_a_storm_of_signals() {
        // SAFETY: a handler that counts; no call is begun again after it.
        let own = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as extern "C" fn(i32) as usize;
            libc::sigaction(libc::SIGUSR2, &raw const action, ptr::null_mut());
            libc::pthread_self()
        };
        let done = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // SAFETY: that thread waits for this one's end.
                    unsafe { libc::pthread_kill(own, libc::SIGUSR2) };
                    thread::yield_now();
                }
            });
            let mut ended = Vec::new();
            while ended.len() < 20 || CAME.load(Ordering::Relaxed) < 100 {
                ended.push(waiting().map(|child| reap(child.go())).map_err(|error| error.kind()));
            }
            done.store(true, Ordering::Relaxed);
            ended
        });
        assert!(ended.iter().all(|each| *each == Ok(Ended::Code(0))), "{ended:?}");
    }

    #[test]
    fn a_child_that_is_not_let_go_does_not_outlive_its_maker() {
        let dropped = waiting().map(|child| child.process());
        assert!(dropped.is_ok_and(|process| wait(process, 0).is_none()), "reaped when dropped");
        let forgotten = thread::spawn(|| {
            waiting().map(|child| {
                let process = child.process();
                std::mem::forget(child);
                process
            })
        });
        let process = forgotten.join().ok().and_then(Result::ok).unwrap_or_default();
        assert!(process > 1);
        let patience = Instant::now() + Duration::from_secs(10);
        while !has_ended(process) && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        send(process, libc::SIGTERM); // of which one dies that would stand still for ever
        send(process, libc::SIGCONT);
        assert_eq!(reap(process), Ended::Signal(libc::SIGKILL));
    }
}
