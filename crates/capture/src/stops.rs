//! Calls as a tracer sees them: the program stands still while each is looked at (ptrace).
//!
//! A command gets a filter of seccomp, with which only the calls that matter stop. A process that
//! runs already cannot be given one, and stops at every call.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use leadline_trace::Refused;

use crate::call::{Call, File};
use crate::calls::{Does, NONE, REMOVES, RESULT, UNLINK, UNLINKS, WANTED, Wanted, wanted};
use crate::report::Paths;
use crate::session::Taker;
use crate::start::Command;
use crate::system::child::{self, Beginning, Ended};
use crate::system::tracing::{self, At, On, Told};
use crate::totals::{Totals, threads_of};
use crate::watch::processes_of;

/// What two threads know of it: the one that traces, and the one that is asked.
#[derive(Default)]
pub struct Shared {
    /// Whom the command's signals go to; 0 where there is nobody. Held while one is sent, and while
    /// somebody who has ended is let go: no number is signalled that may be a stranger's by then.
    process: Mutex<i32>,
    /// The thread that traces.
    pub tracer: AtomicI32,
    /// An end is wanted.
    pub stop: AtomicBool,
    pub requests: AtomicU64,
    pub bytes: AtomicU64,
}

impl Shared {
    /// Sends the command a signal, or what it has left.
    pub fn send(&self, signal: i32) {
        child::send(*self.process.lock().unwrap_or_else(PoisonError::into_inner), signal);
    }

    fn address(&self, process: i32) {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
    }
}

/// How long those who are left to themselves may take to be so: one that waits for a device cannot
/// be stopped, and goes on by itself when this thread ends.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// A call that has begun.
struct Begun {
    known: &'static Wanted,
    at_ns: u64,
    arguments: [u64; 6],
    /// What it closes, or the file whose last name it removes.
    gone: File,
    before: Option<Totals>,
}

/// All that are traced.
pub struct Tracer<'a> {
    taker: &'a mut Taker,
    shared: &'a Shared,
    began: Instant,
    /// Threads, and what call each is in.
    threads: BTreeMap<i32, Option<Begun>>,
    /// Bytes of each thread of a process that ran already, as it first stood still.
    since: BTreeMap<i32, Totals>,
    /// Whether some thread has become a program.
    runs: bool,
    magics: BTreeMap<u64, u64>,
    filtered: bool,
    foreign: u64,
    rights_lost: u64,
    /// None where the kernel would not say it of some thread.
    counted: Option<Totals>,
    paths: Option<Paths>,
}

/// What was found beside the calls.
pub struct Followed {
    pub ended: Option<Ended>,
    pub counted: Option<Totals>,
    pub foreign: u64,
    pub rights_lost: u64,
    pub paths: Option<Paths>,
}

impl<'a> Tracer<'a> {
    pub fn new(taker: &'a mut Taker, shared: &'a Shared, keep_paths: bool) -> Self {
        Self {
            taker,
            shared,
            began: Instant::now(),
            threads: BTreeMap::new(),
            since: BTreeMap::new(),
            runs: false,
            magics: BTreeMap::new(),
            filtered: false,
            foreign: 0,
            rights_lost: 0,
            counted: Some(Totals::default()),
            paths: keep_paths.then(Paths::default),
        }
    }

    /// Runs a command to its end, and to that of all that it has started.
    pub fn command(mut self, command: &Command) -> Result<Followed, Refused> {
        let numbers: Vec<u32> = WANTED.iter().map(|call| call.number).collect();
        let filter = tracing::filter(&numbers);
        let beginning = Beginning {
            program: &command.program,
            arguments: &command.arguments,
            environment: &command.environment,
            filter: Some(&filter),
        };
        let failed = |error| Refused(format!("the command cannot be started: {error}"));
        let _orphans = child::Orphans::adopt();
        let waiting = child::Waiting::new(&beginning).map_err(failed)?;
        if let Err(error) = tracing::seize(waiting.process(), true) {
            return Err(Refused(format!(
                "the command may not be traced: {error}; run as root, or record with strace where \
                 that is allowed"
            )));
        }
        self.filtered = true;
        let process = waiting.go();
        self.threads.insert(process, None);
        self.shared.address(process);
        let ended = self.follow(process);
        if !self.runs && ended == Some(Ended::Code(child::NOT_STARTED)) {
            return Err(Refused(
                "the command cannot be started: the kernel refuses its program, or the filter by \
                 which its calls are seen; record with strace instead"
                    .into(),
            ));
        }
        Ok(self.followed(ended))
    }

    /// Traces processes until they end, or an end is wanted.
    pub fn processes(mut self, processes: &[i32]) -> Result<Followed, Refused> {
        for process in processes {
            for thread in threads_of(*process) {
                match tracing::seize(thread, false) {
                    Ok(()) => {
                        self.threads.insert(thread, None);
                        tracing::interrupt(thread);
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {} // it has ended
                    Err(error) => {
                        self.release();
                        return Err(Refused(refusal(*process, &error)));
                    }
                }
            }
        }
        self.follow(0);
        Ok(self.followed(None))
    }

    fn followed(self, ended: Option<Ended>) -> Followed {
        let Self { foreign, rights_lost, counted, paths, .. } = self;
        Followed { ended, counted, foreign, rights_lost, paths }
    }

    /// Lets go of those that were taken before one could not be.
    fn release(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.follow(0);
    }

    /// Goes from stop to stop until nobody is traced; how the command ended.
    fn follow(&mut self, command: i32) -> Option<Ended> {
        let (mut ended, mut leaving) = (None, None);
        while !self.threads.is_empty() {
            if self.shared.stop.load(Ordering::Relaxed) && leaving.is_none() {
                leaving = (!self.filtered).then(Instant::now);
                self.wind_up(leaving.is_some(), ended.is_some());
            }
            match tracing::next() {
                Told::Woken if leaving.is_some_and(|since| since.elapsed() > LEAVE_MAX) => break,
                Told::Woken => {}
                Told::Nobody => break,
                Told::Ended(thread) => {
                    let status = self.gone(thread);
                    ended =
                        ended.or_else(|| status.filter(|_| thread == command).map(child::ended));
                }
                Told::Stopped(thread) => match tracing::reap(thread) {
                    None => {}
                    Some(status) if leaving.is_some() => {
                        if of_call(status) {
                            self.call(thread); // one that ends was counted by the kernel
                        }
                        self.add_up(thread);
                        tracing::let_go(thread, delivered(status).unwrap_or(0));
                        self.threads.remove(&thread);
                    }
                    Some(status) => self.stopped(thread, status),
                },
            }
        }
        ended
    }

    /// A thread has ended: what was counted of it, if it is a process, is added up before it is let
    /// go, and from then on its number is nobody's.
    fn gone(&mut self, thread: i32) -> Option<i32> {
        if self.filtered && is_ours(thread) {
            self.add(Some(Totals::of(thread).unwrap_or_default()));
        }
        self.add_up(thread);
        self.threads.remove(&thread);
        let mut addressed = self.shared.process.lock().unwrap_or_else(PoisonError::into_inner);
        if *addressed == thread {
            *addressed = self.threads.keys().next().copied().unwrap_or(0);
        }
        tracing::reap(thread)
    }

    /// What a thread of a process that ran already has moved while it was traced, asked while it
    /// stands still, so that it is of the calls that were seen and no others.
    fn add_up(&mut self, thread: i32) {
        if let Some(before) = self.since.remove(&thread) {
            self.add(Totals::of_thread(thread).map(|now| now.beyond(before)));
        }
    }

    fn add(&mut self, moved: Option<Totals>) {
        self.counted = self.counted.and_then(|all| Some(all.sum(moved?)));
    }

    /// An end is wanted: processes are left to themselves; what a command has left, and cannot do
    /// a call without us, is ended.
    fn wind_up(&self, leaving: bool, command_ended: bool) {
        for thread in self.threads.keys() {
            if leaving {
                tracing::interrupt(*thread);
            } else if command_ended {
                child::send(*thread, libc::SIGTERM);
            }
        }
    }

    fn stopped(&mut self, thread: i32, status: i32) {
        let signal = libc::WSTOPSIG(status);
        let mut pass = 0;
        if !self.filtered && !self.since.contains_key(&thread) {
            match Totals::of_thread(thread) {
                Some(before) => drop(self.since.insert(thread, before)),
                None => self.counted = None,
            }
        }
        match status >> 16 {
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                return tracing::go_on(thread, On::Stopped, 0);
            }
            libc::PTRACE_EVENT_STOP => {
                self.threads.entry(thread).or_default();
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                // One that has ended and was let go before this was told is not waited for.
                let tracer = Some(tracing::own_number());
                let begun = tracing::about(thread)
                    .filter(|begun| number_in_status(*begun, "TracerPid:") == tracer);
                if let Some(begun) = begun {
                    self.threads.entry(begun).or_default();
                }
            }
            libc::PTRACE_EVENT_EXEC => {
                let former = tracing::about(thread).unwrap_or(thread);
                let call = self.threads.remove(&former).flatten();
                self.threads.insert(thread, call);
                if let Some(before) = self.since.remove(&former) {
                    self.since.insert(thread, before);
                }
                self.runs = true;
                self.rights_lost += u64::from(loses_rights(thread));
            }
            libc::PTRACE_EVENT_EXIT => self.add_up(thread),
            libc::PTRACE_EVENT_SECCOMP => self.call(thread),
            _ if of_call(status) => self.call(thread),
            0 => pass = signal,
            _ => {}
        }
        let within = self.threads.get(&thread).is_some_and(Option::is_some);
        let how = if within || !self.filtered { On::ToCall } else { On::Freely };
        tracing::go_on(thread, how, pass);
    }

    /// A call begins or ends.
    fn call(&mut self, thread: i32) {
        match tracing::call_at(thread) {
            At::Entry { number, arguments } => {
                let known = u32::try_from(number).ok().and_then(wanted);
                let begun = known.map(|known| self.begun(thread, known, arguments));
                self.threads.insert(thread, begun);
            }
            At::Exit { returned } => {
                if let Some(begun) = self.threads.insert(thread, None).flatten() {
                    self.ended(thread, &begun, returned);
                }
            }
            At::Foreign => self.foreign += 1,
            At::Other => {}
        }
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn begun(&mut self, thread: i32, known: &'static Wanted, arguments: [u64; 6]) -> Begun {
        let gone = match known.does {
            Does::Close => self.file(thread, arguments[0]),
            _ if UNLINKS.contains(&known.number) => {
                self.named(thread, known.number, arguments).unwrap_or_default()
            }
            _ => File::default(),
        };
        let runs = matches!(known.does, Does::Exec);
        let before = runs.then(|| Totals::of_thread(thread)).flatten();
        Begun { known, at_ns: self.now_ns(), arguments, gone, before }
    }

    fn ended(&mut self, thread: i32, begun: &Begun, returned: i64) {
        let took_ns = self.now_ns().saturating_sub(begun.at_ns);
        let known = begun.known;
        let mut call = Call {
            at_ns: begun.at_ns,
            took_ns,
            thread: thread.cast_unsigned(),
            number: known.number,
            returned,
            arguments: begun.arguments,
            first: begun.gone,
            ..Call::default()
        };
        if UNLINKS.contains(&known.number) {
            self.taker.take(&Call { number: REMOVES, ..call });
        }
        for place in (0..6).filter(|place| known.pointers() >> place & 1 == 1) {
            let address = begun.arguments[place];
            let told = (address != 0).then(|| tracing::number_at(thread, address)).flatten();
            if let Some(offset) = told {
                call.arguments[place] = offset;
                call.followed |= 1 << place;
            }
        }
        if !matches!(known.does, Does::Close) {
            let mut open = |which: u8| match which {
                NONE => File::default(),
                RESULT => self.file(thread, returned.cast_unsigned()),
                place => self.file(thread, begun.arguments[usize::from(place)]),
            };
            (call.first, call.second) = (open(known.first), open(known.second));
        }
        count(&mut call, known.does, begun.before, thread);
        self.taker.take(&call);
        let threads = &self.threads;
        self.taker.look_at_memory(|| processes_of(threads.keys().map(|each| each.cast_unsigned())));
        if let Some(paths) = &mut self.paths {
            paths.look(&self.taker.seen.uses);
        }
        let bytes = self.taker.seen.bytes;
        self.shared.requests.store(self.taker.seen.requests, Ordering::Relaxed);
        self.shared.bytes.store(bytes.read + bytes.written, Ordering::Relaxed);
    }

    /// What a descriptor means, asked while the thread stands still.
    fn file(&mut self, thread: i32, descriptor: u64) -> File {
        let Ok(descriptor) = u32::try_from(descriptor & 0xffff_ffff) else {
            return File::default();
        };
        let path = format!("/proc/{thread}/fd/{descriptor}");
        let Ok(about) = fs::metadata(&path) else { return File::default() };
        let found = self.file_at(&path, &about);
        let told = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}"));
        let told = told.unwrap_or_default();
        let field =
            |name| told.lines().find_map(|line: &str| Some(line.strip_prefix(name)?.trim()));
        File {
            position: field("pos:").and_then(|at| at.parse().ok()).unwrap_or(0),
            flags: field("flags:").and_then(|at| u32::from_str_radix(at, 8).ok()).unwrap_or(0),
            ..found
        }
    }

    /// The file whose last name a call of [`UNLINKS`] removes.
    fn named(&mut self, thread: i32, number: u32, arguments: [u64; 6]) -> Option<File> {
        let [directory, address] = match number {
            UNLINK => [libc::AT_FDCWD as u64, arguments[0]],
            _ => [arguments[0], arguments[1]],
        };
        let path = OsString::from_vec(tracing::path_at(thread, address)?);
        let from = match directory as i32 {
            _ if path.as_bytes().first() == Some(&b'/') => "root".to_owned(),
            libc::AT_FDCWD => "cwd".to_owned(),
            directory => format!("fd/{directory}"),
        };
        let mut whole = OsString::from(format!("/proc/{thread}/{from}/"));
        whole.push(path);
        let about = fs::symlink_metadata(&whole).ok()?;
        (about.nlink() == 1).then(|| self.file_at(&whole.to_string_lossy(), &about))
    }

    fn file_at(&mut self, path: &str, about: &Metadata) -> File {
        let born = about.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let magic = *self.magics.entry(about.dev()).or_insert_with(|| tracing::magic_of(path));
        File {
            known: true,
            device: about.dev() as u32,
            mode: about.mode(),
            inode: about.ino(),
            generation: born.map_or(0, |at| at.as_nanos() as u64),
            is_device: about.rdev() as u32,
            magic,
            size: about.size(),
            ..File::default()
        }
    }
}

/// What the kernel counts of a call: what it moved, or, to start a program, what it says itself.
fn count(call: &mut Call, does: Does, before: Option<Totals>, thread: i32) {
    let moved = u64::try_from(call.returned).unwrap_or(0);
    match does {
        Does::Read | Does::ReadAt | Does::ReadMaybeAt => call.counted_read = moved,
        Does::Write | Does::WriteAt | Does::WriteMaybeAt => call.counted_written = moved,
        Does::Send | Does::Copy => {
            (call.counted_read, call.counted_written) = (moved, moved);
        }
        Does::Exec => {
            let now = before.and_then(|before| Some(Totals::of_thread(thread)?.beyond(before)));
            call.counted_read = now.map_or(0, |now| now.read);
        }
        _ => {}
    }
}

/// Whether it is a process, and we are told its end in place of a parent.
fn is_ours(thread: i32) -> bool {
    let own = std::process::id().cast_signed();
    number_in_status(thread, "Tgid:") == Some(thread)
        && number_in_status(thread, "PPid:") == Some(own)
}

fn number_in_status(thread: i32, name: &str) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// Whether a program that has just begun would have had more rights, were it not traced: its file
/// is setuid or has capabilities, and the thread may gain none.
fn loses_rights(thread: i32) -> bool {
    if number_in_status(thread, "NoNewPrivs:") != Some(1) {
        return false;
    }
    let program = format!("/proc/{thread}/exe");
    let Ok(about) = fs::metadata(&program) else { return false };
    let owner = fs::metadata(format!("/proc/{thread}")).map(|own| own.uid());
    let mode = about.permissions().mode();
    (mode & 0o4000 != 0 && owner.is_ok_and(|owner| owner != about.uid()))
        || (mode & 0o2010 == 0o2010)
        || CString::new(program).is_ok_and(|program| tracing::has_capabilities(&program))
}

/// Whether a thread was stopped where a call begins or ends.
fn of_call(status: i32) -> bool {
    status >> 16 == 0 && libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80
}

/// The signal that a thread was stopped for, to be handed on.
fn delivered(status: i32) -> Option<i32> {
    let signal = libc::WSTOPSIG(status);
    let own = status >> 16 != 0 || signal == libc::SIGTRAP | 0x80;
    (!own).then_some(signal)
}

/// Why a process cannot be traced, and what to do.
fn refusal(process: i32, error: &std::io::Error) -> String {
    let tracer = number_in_status(process, "TracerPid:").filter(|tracer| *tracer > 0);
    if let Some(thread) = tracer {
        let tracer = number_in_status(thread, "Tgid:").unwrap_or(thread);
        return format!(
            "process {process} is traced already, by process {tracer}: end that first, or run as \
             root, who sees it by BPF"
        );
    }
    format!(
        "process {process} may not be traced ({error}): another user owns it, or \
         kernel.yama.ptrace_scope forbids it; run as root"
    )
}
