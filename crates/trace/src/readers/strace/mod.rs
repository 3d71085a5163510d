//! What strace writes (strace(1)), best with `-f -y -ttt -T`: bytes are what the calls returned,
//! offsets are kept track of call by call, times are seconds.
//!
//! Files are told apart by path and by descriptor, over fork, dup and exec. Pipes, sockets and what
//! lies under /dev, /proc and /sys is no storage and left out. Data that moves without a call that
//! says where (mmap, io_uring, libaio) is counted as not seen.

mod calls;
mod descriptors;
pub mod line;

use std::io::Read;

use crate::hash::ByNumber;
use crate::names::Names;
use crate::readers::{NO_TIMES, Noted};
use crate::record::{Refused, Sink};
use crate::source::Source;
use calls::{Call, Calls};
use line::{Line, Stage, Time};

/// A clock that goes back by more than this has passed midnight.
const HALF_A_DAY_NS: u64 = 12 * 3600 * 1_000_000_000;

/// A call that has begun.
struct Begun {
    arguments: Vec<u8>,
    at_ns: u64,
}

/// Reads all lines; those of signals and exits are passed over.
pub fn read(source: &mut Source<'_, impl Read>, sink: &mut impl Sink) -> Result<Noted, Refused> {
    let mut processes = Names::of("processes");
    let mut begun: ByNumber<u32, Begun> = ByNumber::default();
    let mut clock = Clock::default();
    let mut calls = Calls::new();
    source.lines(|text| {
        let Some(line) = line::parse(text) else {
            let (pid, time, rest) = line::beginning(text);
            clock.read(time);
            if rest.starts_with(b"+++ ") {
                calls.descriptors.end(processes.number(pid)?);
            }
            return Ok(says_no_call(rest));
        };
        let at_ns = clock.read(line.time);
        let process = processes.number(line.pid)?;
        match line.stage {
            Stage::Unfinished => {
                calls.expect(process, line.name, line.arguments);
                begun.insert(process, Begun { arguments: line.arguments.to_vec(), at_ns });
            }
            Stage::Whole => {
                calls.expect(process, line.name, line.arguments);
                calls.take(
                    &call_of(&line, process, at_ns, line.arguments),
                    &mut processes,
                    sink,
                )?;
            }
            Stage::Resumed => {
                let Some(Begun { mut arguments, at_ns }) = begun.remove(&process) else {
                    return Ok(true); // it had begun before the trace
                };
                arguments.extend_from_slice(line.arguments);
                calls.take(&call_of(&line, process, at_ns, &arguments), &mut processes, sink)?;
            }
        }
        calls.descriptors.require_few()?;
        Ok(true)
    })?;
    if !clock.said {
        calls.note(NO_TIMES);
    }
    let unseen = calls.unseen();
    Ok(Noted { files: calls.descriptors.files.len(), processes: processes.len(), unseen })
}

fn call_of<'a>(line: &Line<'a>, process: u32, at_ns: u64, arguments: &'a [u8]) -> Call<'a> {
    let returned = line::number(line.returned);
    let Line { name, took_ns, .. } = *line;
    Call { process, at_ns, took_ns, name, text: arguments, returned, result: line.returned }
}

/// Signals, exits, and what strace says of itself.
fn says_no_call(rest: &[u8]) -> bool {
    [&b"+++"[..], b"---", b"strace:", b"<...", b"????"].iter().any(|sign| rest.starts_with(sign))
        || rest.windows(12).any(|signs| signs == b"<unfinished ")
}

/// Time since the trace's own beginning, however lines say it.
#[derive(Default)]
struct Clock {
    said: bool,
    now_ns: u64,
    days_ns: u64,
}

impl Clock {
    fn read(&mut self, time: Time) -> u64 {
        self.said |= time != Time::Unsaid;
        match time {
            Time::Unsaid => {}
            Time::Absolute(ns) => self.now_ns = ns,
            Time::Since(ns) => self.now_ns = self.now_ns.saturating_add(ns),
            Time::OfDay(ns) => {
                if (ns + self.days_ns).saturating_add(HALF_A_DAY_NS) < self.now_ns {
                    self.days_ns += 2 * HALF_A_DAY_NS;
                }
                self.now_ns = ns + self.days_ns;
            }
        }
        self.now_ns
    }
}
