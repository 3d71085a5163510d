//! Who is watched from when to when, by BPF.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::Error;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use leadline_trace::Refused;

use crate::bpf::Watching;
use crate::report::{Beside, Captured, Ended, Paths, finish};
use crate::session::{Asked, Hear, LOOK, Listener, Order, Taker, Target, Way};
use crate::start::Command;
use crate::system::child::{self, Beginning};
use crate::totals::{Totals, threads_of, with_descendants};
use crate::traced::{By, by_ptrace};

/// Between two looks at who has come to a control group, and what was counted.
const MEMBERS: Duration = Duration::from_millis(100);

const MEMBERS_FILE: &str = "cgroup.procs";

/// Watches until there is nobody left, or somebody wants an end.
///
/// # Errors
///
/// What was asked for cannot be watched, or not be described, in a sentence that says what to do.
pub fn capture(asked: Asked, hear: Hear<'_>) -> Result<Captured, Refused> {
    let Asked { target, way, seconds, keep_paths, keep } = asked;
    let command = match &target {
        Target::Command(words) => Some(Command::found(words)?),
        _ => None,
    };
    let taker = Taker::new(keep);
    let listener = Listener::new(seconds, hear);
    let asked = By { target: &target, command: command.as_ref(), keep_paths };
    if way == Some(Way::Ptrace) {
        return by_ptrace(&asked, taker, listener, None);
    }
    match Watching::new() {
        Ok(watching) => by_bpf(&asked, watching, taker, listener),
        Err(error) if way == Some(Way::Bpf) => Err(Refused(format!(
            "BPF is refused: {error}; run as root, or leave --way out: it is stopped at each call \
             then (ptrace)"
        ))),
        Err(error) if command.is_none() => Err(Refused(format!(
            "BPF is refused: {error}; run as root, or ask for --way ptrace, which stops what runs \
             there at every call"
        ))),
        Err(error) => by_ptrace(&asked, taker, listener, Some(error.to_string())),
    }
}

fn by_bpf(
    asked: &By<'_>,
    watching: Watching,
    taker: Taker,
    listener: Listener<'_>,
) -> Result<Captured, Refused> {
    let mut own = ByBpf {
        watching,
        taker,
        listener,
        paths: Paths::default(),
        keep_paths: asked.keep_paths,
        members: Members::default(),
    };
    let (ended, counted) = match (asked.target, asked.command) {
        (Target::Process(process), _) => own.process(*process)?,
        (Target::Group(folder), _) => own.group(folder)?,
        (Target::Command(_), Some(command)) => own.command(command)?,
        (Target::Command(_), None) => return Err(Refused("no command is given".into())),
    };
    own.end(ended, counted)
}

/// Runs a command without looking; how many seconds it took, how it ended, and by which signal
/// somebody stopped it.
///
/// # Errors
///
/// It cannot be started.
pub fn run_unwatched(
    words: &[OsString],
    hear: Hear<'_>,
) -> Result<(f64, Ended, Option<i32>), Refused> {
    let command = Command::found(words)?;
    let mut listener = Listener::new(None, hear);
    let waiting = start(&command)?;
    listener.began = Instant::now();
    let process = waiting.go();
    while !child::has_ended(process) {
        sleep(LOOK);
        pass_on(&mut listener, (0, 0), process);
    }
    let wall_s = listener.began.elapsed().as_secs_f64();
    Ok((wall_s, child::reap(process).into(), listener.stopped))
}

/// A child that waits.
fn start(command: &Command) -> Result<child::Waiting, Refused> {
    let beginning = Beginning {
        program: &command.program,
        arguments: &command.arguments,
        environment: &command.environment,
        filter: None,
    };
    child::Waiting::new(&beginning).map_err(failed)
}

fn failed(error: Error) -> Refused {
    Refused(format!("the command cannot be started: {error}"))
}

/// Sends the command a signal that it has not got itself.
fn pass_on(listener: &mut Listener<'_>, so_far: (u64, u64), process: i32) {
    if let Order::Stop { signal, theirs: false } = listener.hear(so_far.0, so_far.1) {
        child::send(process, signal);
    }
}

type Counted = (Option<child::Ended>, Option<Totals>);

struct ByBpf<'a> {
    watching: Watching,
    taker: Taker,
    listener: Listener<'a>,
    paths: Paths,
    keep_paths: bool,
    members: Members,
}

impl ByBpf<'_> {
    /// Takes what has come.
    fn look(&mut self) {
        let Self { watching, taker, .. } = self;
        watching.drain(|call| taker.take(call));
        taker.look_at_memory(|| processes_of(watching.threads()));
        if self.keep_paths {
            self.paths.look(&self.taker.seen.uses);
        }
    }

    fn so_far(&self) -> (u64, u64) {
        let seen = &self.taker.seen;
        (seen.requests, seen.bytes.read + seen.bytes.written)
    }

    fn command(&mut self, command: &Command) -> Result<Counted, Refused> {
        let orphans = child::Orphans::adopt();
        let waiting = start(command)?;
        self.watching.watch(waiting.process().cast_unsigned()).map_err(failed)?;
        self.listener.began = Instant::now();
        let process = waiting.go();
        let mut counted = Totals::default();
        while !child::has_ended(process) {
            sleep(LOOK);
            self.look();
            counted = counted.sum(last_words(&orphans, process));
            let so_far = self.so_far();
            pass_on(&mut self.listener, so_far, process);
        }
        self.look();
        let own = Totals::of(process);
        let ended = child::reap(process);
        counted = counted.sum(last_words(&orphans, process));
        let running = processes_of(self.watching.threads());
        let others = running.iter().filter_map(|process| Totals::of(*process));
        counted = others.fold(counted, Totals::sum);
        Ok((Some(ended), own.map(|own| own.sum(counted))))
    }

    fn process(&mut self, process: i32) -> Result<Counted, Refused> {
        require_process(process)?;
        self.until_stopped(|| with_descendants(process), || true, false)
    }

    fn group(&mut self, folder: &Path) -> Result<Counted, Refused> {
        require_group(folder)?;
        self.until_stopped(|| members_of(folder), || folder.join(MEMBERS_FILE).exists(), true)
    }

    /// Watches those that `who` tells, once or again and again, as long as it is `there`.
    fn until_stopped(
        &mut self,
        who: impl Fn() -> Vec<i32>,
        there: impl Fn() -> bool,
        always: bool,
    ) -> Result<Counted, Refused> {
        let first = who();
        self.join(&first)?;
        // Threads that were begun meanwhile by those that were not watched yet.
        self.join(&who())?;
        self.members.settle();
        let mut looked = Instant::now();
        loop {
            sleep(LOOK);
            self.look();
            if looked.elapsed() >= MEMBERS {
                looked = Instant::now();
                if always {
                    self.join(&who())?;
                    self.members.settle();
                }
                self.members.count();
                if !there() || (!always && !anyone_left(&self.watching)) {
                    break;
                }
            }
            let (requests, bytes) = self.so_far();
            if self.listener.hear(requests, bytes) != Order::GoOn {
                break;
            }
        }
        let counted = self.members.end(&processes_of(self.watching.threads()));
        self.look();
        self.members.look_back();
        Ok((None, counted))
    }

    fn join(&mut self, processes: &[i32]) -> Result<(), Refused> {
        for process in processes {
            self.members.join(*process);
            for thread in threads_of(*process) {
                note(&self.watching, thread.cast_unsigned()).map_err(|error| {
                    Refused(format!("process {process} cannot be watched: {error}"))
                })?;
            }
        }
        Ok(())
    }

    fn end(
        self,
        ended: Option<child::Ended>,
        counted: Option<Totals>,
    ) -> Result<Captured, Refused> {
        let sums = self.watching.sums();
        let pages = self.watching.mapped();
        let left_running = processes_of(self.watching.threads()).len() as u64;
        let heard = (self.listener.began.elapsed().as_secs_f64(), self.listener.stopped);
        let (seen, live, not_kept) = self.taker.end()?;
        let beside = Beside {
            way: Way::Bpf,
            no_bpf: None,
            not_kept,
            lost: sums.lost,
            other: (sums.other_read, sums.other_written),
            counted,
            edge_bytes: self.members.edge.bytes(),
            mapped_bytes: pages.map(|pages| seen.mapped_bytes(&pages)),
            calls_of_32_bits: sums.of_32_bits,
            rights_lost: 0,
            threads_missed: sums.too_many,
            left_running,
            ended,
        };
        let files = self.paths.told(&seen.uses, self.keep_paths);
        finish(seen, live, beside, files, heard)
    }
}

/// Processes of threads, those that have not ended.
pub fn processes_of(threads: impl IntoIterator<Item = u32>) -> Vec<i32> {
    let mut all: Vec<i32> = threads.into_iter().filter_map(process_of).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a watched thread lives. The kernel may skip a program, also the one that forgets a thread
/// as it ends: what the map holds is not enough.
fn anyone_left(watching: &Watching) -> bool {
    watching.threads().into_iter().any(|thread| process_of(thread).is_some())
}

/// Watches a thread that was there a moment ago. One that ended before it was noted is told of by
/// nobody any more, and its number may become a stranger's; a zombie has ended, too.
fn note(watching: &Watching, thread: u32) -> Result<(), Error> {
    watching.watch(thread)?;
    if process_of(thread).is_none() {
        watching.forget(thread);
    }
    Ok(())
}

/// What was counted of those that have ended after their parents.
fn last_words(orphans: &child::Orphans, command: i32) -> Totals {
    let mut counted = Totals::default();
    while let Some(gone) = orphans.gone(command) {
        counted = counted.sum(Totals::of(gone).unwrap_or_default());
        child::reap(gone);
    }
    counted
}

/// The process of a thread; None where it has ended.
fn process_of(thread: u32) -> Option<i32> {
    let told = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let field = |name| told.lines().find_map(|line| line.strip_prefix(name));
    let ends = field("State:")?.trim_start().starts_with('Z');
    (!ends).then(|| field("Tgid:")?.trim().parse().ok())?
}

/// # Errors
///
/// There is no such process, or it is this one.
pub fn require_process(process: i32) -> Result<(), Refused> {
    let own = std::process::id().cast_signed();
    if process == own || !Path::new(&format!("/proc/{process}/stat")).exists() {
        return Err(Refused(format!(
            "there is no process {process} to be watched: look for it with `pgrep -a NAME`"
        )));
    }
    Ok(())
}

/// # Errors
///
/// It is no folder of a control group.
pub fn require_group(folder: &Path) -> Result<(), Refused> {
    if !folder.join(MEMBERS_FILE).exists() {
        return Err(Refused(format!(
            "{} is no control group: give its folder, such as /sys/fs/cgroup/NAME \
             (/proc/PID/cgroup says that of a process)",
            folder.display()
        )));
    }
    Ok(())
}

/// Processes of a control group and of those below it.
pub fn members_of(folder: &Path) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let told = fs::read_to_string(folder.join(MEMBERS_FILE)).unwrap_or_default();
    let numbers = told.lines().filter_map(|line| line.trim().parse().ok());
    let mut all: Vec<i32> = numbers.filter(|process| *process != own && *process > 0).collect();
    for below in fs::read_dir(folder).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(members_of(&below.path()));
        }
    }
    all
}

/// What the kernel counted of those that were there before.
#[derive(Default)]
pub struct Members {
    before: BTreeMap<i32, Totals>,
    last: BTreeMap<i32, Totals>,
    settled: BTreeSet<i32>,
    /// Counted while watching began or ended: each of these may have been seen or not.
    edge: Totals,
}

impl Members {
    /// A process is watched from now on.
    pub fn join(&mut self, process: i32) {
        if let Some(now) = Totals::of(process) {
            self.before.entry(process).or_insert(now);
        }
    }

    /// All threads of those that joined are watched from now on.
    pub fn settle(&mut self) {
        for (process, before) in &self.before {
            if self.settled.insert(*process) {
                let now = Totals::of(*process).unwrap_or(*before);
                self.edge = self.edge.sum(now.beyond(*before));
            }
        }
    }

    /// The last calls have been looked at, and none is from now on.
    pub fn look_back(&mut self) {
        for (process, last) in &self.last {
            let now = Totals::of(*process).unwrap_or(*last);
            self.edge = self.edge.sum(now.beyond(*last));
        }
    }

    /// What is counted by now: some may be gone soon.
    pub fn count(&mut self) {
        for process in self.before.keys() {
            if let Some(now) = Totals::of(*process) {
                self.last.insert(*process, now);
            }
        }
    }

    /// What was counted meanwhile; None where somebody has gone and took it along.
    pub fn end(&mut self, running: &[i32]) -> Option<Totals> {
        self.count();
        let gone = self.before.keys().any(|process| Totals::of(*process).is_none());
        let own = self
            .before
            .iter()
            .filter_map(|(process, before)| Some(self.last.get(process)?.beyond(*before)));
        let newer = running.iter().filter(|process| !self.before.contains_key(process));
        let newer = newer.filter_map(|process| Totals::of(*process));
        (!gone).then(|| own.chain(newer).fold(Totals::default(), Totals::sum))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_read_while_watching_begins_or_ends_is_no_error_of_either_side() {
        let own = std::process::id().cast_signed();
        let read = || fs::read("/proc/self/maps").unwrap().len() as u64;
        let mut members = Members::default();
        members.join(own);
        let first = read();
        members.settle();
        let so_far = members.edge.bytes();
        assert!(so_far >= first);
        read();
        members.settle();
        assert_eq!(members.edge.bytes(), so_far, "it was watched by then");
        members.count();
        let last = read();
        members.look_back();
        assert!(members.edge.bytes() >= so_far + last);
    }

    #[test]
    fn who_ended_between_the_list_and_its_note_is_watched_no_longer() {
        let watching = match Watching::new() {
            Ok(watching) => watching,
            Err(error) => {
                let test = "watch::who_ended_between_the_list_and_its_note_is_watched_no_longer";
                return eprintln!("\nSKIPPED [rust] {test}: BPF is refused ({error})");
            }
        };
        let mut reaped = Command::new("true").spawn().unwrap();
        reaped.wait().unwrap();
        let mut zombie = Command::new("true").spawn().unwrap();
        while process_of(zombie.id()).is_some() {
            sleep(LOOK);
        }
        let mut living = Command::new("sleep").arg("60").spawn().unwrap();
        for process in [&reaped, &zombie, &living] {
            note(&watching, process.id()).unwrap();
        }
        assert_eq!(watching.threads(), [living.id()]);
        assert!(anyone_left(&watching));
        living.kill().unwrap();
        living.wait().unwrap();
        watching.watch(zombie.id()).unwrap(); // as if its end had been missed
        assert!(!anyone_left(&watching));
        zombie.wait().unwrap();
    }
}
