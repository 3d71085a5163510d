//! Who is watched from when to when, by ptrace: a thread traces, another listens.

#![forbid(unsafe_code)]

use std::sync::atomic::Ordering;
use std::thread::{scope, sleep};

use leadline_trace::Refused;

use crate::report::{Beside, Captured, Paths, finish};
use crate::session::{LOOK, Listener, Order, Taker, Target, Way};
use crate::start::Command;
use crate::stops::{Followed, Shared, Tracer};
use crate::system::tracing::{Wakeable, own_number};
use crate::totals::with_descendants;
use crate::watch::{members_of, require_group, require_process};

/// What is watched.
pub struct By<'a> {
    pub target: &'a Target,
    pub command: Option<&'a Command>,
    pub keep_paths: bool,
}

/// Watches by ptrace.
///
/// # Errors
///
/// It is not allowed, or cannot be described.
pub fn by_ptrace(
    asked: &By<'_>,
    mut taker: Taker,
    mut listener: Listener<'_>,
    no_bpf: Option<String>,
) -> Result<Captured, Refused> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Refused(
            "programs are watched on x86-64 alone: record with strace there, and give that with \
             --trace"
                .into(),
        ));
    }
    let shared = Shared::default();
    let wakeable = Wakeable::new();
    let followed = scope(|scope| {
        let tracing = scope.spawn(|| follow(asked, &mut taker, &shared));
        while !tracing.is_finished() {
            sleep(LOOK);
            if shared.stop.load(Ordering::Relaxed) {
                wakeable.wake(shared.tracer.load(Ordering::Relaxed));
            }
            let requests = shared.requests.load(Ordering::Relaxed);
            let bytes = shared.bytes.load(Ordering::Relaxed);
            if let Order::Stop { signal, theirs } = listener.hear(requests, bytes) {
                if asked.command.is_some() && !theirs {
                    shared.send(signal);
                }
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
        tracing.join().unwrap_or_else(|_| Err(Refused("the tracer failed".into())))
    })?;
    let heard = (listener.began.elapsed().as_secs_f64(), listener.stopped);
    let (seen, live, not_kept) = taker.end()?;
    let beside = Beside {
        way: Way::Ptrace,
        no_bpf,
        not_kept,
        lost: 0,
        other: (0, 0),
        counted: followed.counted,
        edge_bytes: 0,
        mapped_bytes: None,
        calls_of_32_bits: followed.foreign,
        rights_lost: followed.rights_lost,
        threads_missed: 0,
        left_running: 0,
        ended: followed.ended,
    };
    let paths = followed.paths.unwrap_or_else(Paths::default);
    let files = paths.told(&seen.uses, asked.keep_paths);
    finish(seen, live, beside, files, heard)
}

fn follow(asked: &By<'_>, taker: &mut Taker, shared: &Shared) -> Result<Followed, Refused> {
    shared.tracer.store(own_number(), Ordering::Relaxed);
    let tracer = Tracer::new(taker, shared, asked.keep_paths);
    match (asked.target, asked.command) {
        (Target::Process(process), _) => {
            require_process(*process)?;
            tracer.processes(&with_descendants(*process))
        }
        (Target::Group(folder), _) => {
            require_group(folder)?;
            tracer.processes(&members_of(folder))
        }
        (Target::Command(_), Some(command)) => {
            command.require_no_more_rights()?;
            tracer.command(command)
        }
        (Target::Command(_), None) => Err(Refused("no command is given".into())),
    }
}
