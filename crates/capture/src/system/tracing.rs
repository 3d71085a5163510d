//! ptrace(2), and the filter by which only the calls that matter stop.

use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::ptr;

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};

const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
/// `AUDIT_ARCH_X86_64` of linux/audit.h.
const X86_64: u32 = 0xc000_003e;
/// Where `struct seccomp_data` has the number of the call, and the architecture.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;

/// What a call is at.
#[derive(Clone, Copy, Debug)]
pub enum At {
    Entry {
        number: u64,
        arguments: [u64; 6],
    },
    Exit {
        returned: i64,
    },
    Other,
    /// A program of 32 bits, whose calls have other numbers.
    Foreign,
}

/// `struct ptrace_syscall_info` of linux/ptrace.h.
#[derive(Default)]
#[repr(C)]
struct Info {
    op: u8,
    pad: [u8; 3],
    architecture: u32,
    pointers: [u64; 2],
    entry: [u64; 8],
}

/// How a thread goes on.
#[derive(Clone, Copy)]
pub enum On {
    /// Until something is to be told.
    Freely,
    /// Until the next beginning or end of a call.
    ToCall,
    /// It stays as it is: stopped by its own terminal or user.
    Stopped,
}

fn ask(request: libc::c_uint, thread: i32, address: usize, data: usize) -> Result<i64> {
    // SAFETY: the callers give numbers, or the address of a value of theirs that is as large as
    // the request fills.
    let found = unsafe { libc::ptrace(request, thread, address, data) };
    if found < 0 { Err(Error::last_os_error()) } else { Ok(found) }
}

/// Begins to trace a thread, and with it all that it starts.
///
/// # Errors
///
/// It is gone, somebody else's, or traced already.
pub fn seize(thread: i32, dies_with_us: bool) -> Result<()> {
    let mut options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACESECCOMP;
    // What a running process had moved before is taken off thread by thread, so each is asked at
    // its end: of a first thread that another replaces by exec nothing is left to ask later.
    options |= if dies_with_us { libc::PTRACE_O_EXITKILL } else { libc::PTRACE_O_TRACEEXIT };
    ask(libc::PTRACE_SEIZE, thread, 0, options as usize).map(drop)
}

/// Has a thread stop as soon as it can. One that is gone is told of by `next`.
pub fn interrupt(thread: i32) {
    let _ = ask(libc::PTRACE_INTERRUPT, thread, 0, 0);
}

/// Lets a stopped thread go on, with a signal that it was stopped for. One that was killed
/// meanwhile is told of by `next`.
pub fn go_on(thread: i32, how: On, signal: i32) {
    let request = match how {
        On::Freely => libc::PTRACE_CONT,
        On::ToCall => libc::PTRACE_SYSCALL,
        On::Stopped => libc::PTRACE_LISTEN,
    };
    let _ = ask(request, thread, 0, signal as usize);
}

/// Traces a stopped thread no longer.
pub fn let_go(thread: i32, signal: i32) {
    let _ = ask(libc::PTRACE_DETACH, thread, 0, signal as usize);
}

/// What a stopped thread's call is at.
pub fn call_at(thread: i32) -> At {
    let mut info = Info::default();
    let size = size_of::<Info>();
    if ask(GET_SYSCALL_INFO, thread, size, (&raw mut info) as usize).is_err() {
        return At::Other;
    }
    if info.architecture != X86_64 {
        return At::Foreign;
    }
    let [number, arguments @ .., _] = info.entry;
    match info.op {
        1 | 3 => At::Entry { number, arguments },
        2 => At::Exit { returned: number.cast_signed() },
        _ => At::Other,
    }
}

/// The thread that a stop is about: the one that was begun, or that became another program. None
/// where the one that stopped was killed meanwhile.
pub fn about(thread: i32) -> Option<i32> {
    let mut number: libc::c_ulong = 0;
    ask(libc::PTRACE_GETEVENTMSG, thread, 0, (&raw mut number) as usize).ok()?;
    i32::try_from(number).ok().filter(|number| *number > 0)
}

/// What `next` has to tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Told {
    /// A thread stopped.
    Stopped(i32),
    /// A thread ended. It stays until `reap`, so that it can be asked about.
    Ended(i32),
    /// `Wakeable` was used.
    Woken,
    /// There is no thread left that this one traces.
    Nobody,
}

/// Waits for a thread that this one traces.
pub fn next() -> Told {
    // SAFETY: a structure of numbers that the kernel fills.
    let (found, thread, code) = unsafe {
        let mut told: libc::siginfo_t = std::mem::zeroed();
        let flags =
            libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
        let found = libc::waitid(libc::P_ALL, 0, &raw mut told, flags);
        (found, told.si_pid(), told.si_code)
    };
    match (found, code) {
        (0, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) => Told::Ended(thread),
        (0, _) => Told::Stopped(thread),
        _ if Error::last_os_error().raw_os_error() == Some(libc::EINTR) => Told::Woken,
        _ => Told::Nobody,
    }
}

/// This process can wake a thread of its own out of `next`, and nobody else is sent a signal.
pub struct Wakeable {
    before: libc::sigaction,
}

/// Nobody sends it to this process; that it arrives is all that is wanted.
const WAKING: i32 = libc::SIGURG;

extern "C" fn nothing(_: i32) {}

impl Wakeable {
    /// Until it is dropped.
    pub fn new() -> Self {
        // SAFETY: structures of numbers and one address of a function that does nothing; without
        // SA_RESTART a call that waits returns.
        unsafe {
            let (mut now, mut before): (libc::sigaction, libc::sigaction) = std::mem::zeroed();
            now.sa_sigaction = nothing as *const () as usize;
            libc::sigaction(WAKING, &raw const now, &raw mut before);
            Self { before }
        }
    }

    /// Wakes a thread of this process that waits, and none that does not: to be said again.
    pub fn wake(&self, thread: i32) {
        // SAFETY: three numbers.
        unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, WAKING) };
    }
}

impl Drop for Wakeable {
    fn drop(&mut self) {
        // SAFETY: what was there before.
        unsafe { libc::sigaction(WAKING, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// The number of this thread.
pub fn own_number() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { libc::gettid() }
}

/// Takes what `next` told; its status as of wait(2).
pub fn reap(thread: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: a number of ours is filled.
    let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
    (found == thread).then_some(status)
}

/// The filter of seccomp(2) with which these calls stop, those of 32 bits too, and all others not.
pub fn filter(numbers: &[u32]) -> Vec<libc::sock_filter> {
    let count = numbers.len() as u8;
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (BPF_JMP | BPF_JEQ | BPF_K) as u16,
        jt,
        jf,
        k,
    };
    let mut code = vec![
        statement(BPF_LD | BPF_W | BPF_ABS, ARCHITECTURE_AT),
        jump(X86_64, 0, count + 2),
        statement(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT),
    ];
    code.extend(numbers.iter().zip(0_u8..).map(|(number, place)| jump(*number, count - place, 0)));
    code.push(statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW));
    code.push(statement(BPF_RET | BPF_K, libc::SECCOMP_RET_TRACE));
    code
}

/// Bytes of a process's memory; None where there are not so many.
fn bytes_at<const BYTES: usize>(process: i32, address: u64) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let own = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: BYTES };
    let theirs =
        libc::iovec { iov_base: ptr::without_provenance_mut(address as usize), iov_len: BYTES };
    // SAFETY: our side is so many bytes of ours; theirs is checked by the kernel.
    let read =
        unsafe { libc::process_vm_readv(process, &raw const own, 1, &raw const theirs, 1, 0) };
    (read == BYTES as isize).then_some(bytes)
}

/// Eight bytes of a process's memory, as a number.
pub fn number_at(process: i32, address: u64) -> Option<u64> {
    bytes_at(process, address).map(u64::from_ne_bytes)
}

/// A path in a process's memory, without the zero at its end.
pub fn path_at(process: i32, address: u64) -> Option<Vec<u8>> {
    let mut path = Vec::new();
    while path.len() < libc::PATH_MAX as usize {
        match bytes_at::<1>(process, address + path.len() as u64)? {
            [0] => return Some(path),
            [sign] => path.push(sign),
        }
    }
    None
}

/// Whether a program's file gives capabilities to whoever runs it.
pub fn has_capabilities(program: &CStr) -> bool {
    // SAFETY: two texts that end with zero; nothing is filled.
    unsafe {
        libc::getxattr(program.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) > 0
    }
}

/// The kind of a file system (linux/magic.h), by a path in it.
pub fn magic_of(path: &str) -> u64 {
    let Ok(path) = CString::new(path) else { return 0 };
    // SAFETY: a path that ends with zero, and a structure of numbers that the kernel fills.
    unsafe {
        let mut told: libc::statfs = std::mem::zeroed();
        if libc::statfs(path.as_ptr(), &raw mut told) == 0 { told.f_type as u64 } else { 0 }
    }
}
