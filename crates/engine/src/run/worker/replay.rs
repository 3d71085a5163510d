//! A lane of a replay: its steps, one after the other, each as soon as the one before has ended or at
//! its own time.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

use leadline_base::buffer::BufferSlice;
use leadline_base::clock::sleep_until;
use leadline_base::error::EngineError;
use leadline_base::replay::{ALL_FILES, Act, FOLDER, Step};
use leadline_base::request::{Kind, Request};
use rustix::io::Errno;

use crate::backend::data_file::begin_writeback;
use crate::run::recorder::Tally;
use crate::run::worker::pace::wait_until;
use crate::run::worker::{Context, Issue, STOPPED, Signals, WARMING};
use crate::target::replay::Files;

/// Between two looks whether another lane is so far.
const LOOK_NS: u64 = 20_000;

/// One lane.
pub(crate) struct Lane<'a> {
    /// Which it is.
    pub lane: u16,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Where all files are.
    pub files: &'a Files,
    /// Steps that each lane has done.
    pub done: &'a [AtomicU32],
    /// From and to which bytes are moved.
    pub buffer: BufferSlice,
    /// Whether steps wait for their time in the trace.
    pub at_times: bool,
    /// Files that it has open.
    pub open: Open,
}

/// Files that a lane has open, the one opened first in front; each with the end of its last request.
pub(crate) struct Open {
    files: VecDeque<(u32, File, u64)>,
    most: usize,
}

impl Open {
    /// None yet, and never more than `most`.
    pub fn new(most: usize) -> Self {
        Self { files: VecDeque::with_capacity(most), most }
    }

    fn place(&mut self, file: u32, files: &Files) -> Result<usize, EngineError> {
        if let Some(place) = self.files.iter().rposition(|(number, ..)| *number == file) {
            return Ok(place);
        }
        if self.files.len() == self.most {
            self.files.pop_front();
        }
        self.files.push_back((file, files.open(file)?, 0));
        Ok(self.files.len() - 1)
    }

    fn close(&mut self, file: u32) {
        self.files.retain(|(number, ..)| *number != file);
    }
}

impl Lane<'_> {
    /// Waits until it is a step's turn; false when the run was over first.
    fn wait(&self, step: &Step, opened_ns: u64, signals: &Signals) -> bool {
        if step.after_steps > 0 {
            let other = &self.done[usize::from(step.after_lane)];
            while other.load(Ordering::Acquire) < step.after_steps {
                if signals.stage() == STOPPED {
                    return false;
                }
                sleep_until(signals.clock.now_ns() + LOOK_NS);
            }
        }
        !self.at_times || wait_until(opened_ns + step.at_ns, signals, signals.clock)
    }

    /// Makes a step; returns the bytes moved.
    fn make(&mut self, step: &Step, place: Option<usize>) -> Result<u64, EngineError> {
        let failed = |error: Errno| self.files.failed(step, &error.into());
        if step.act == Act::Remove {
            self.open.close(step.file);
            return self.files.remove(step.file).map(|()| 0);
        }
        let Some(place) = place else { return self.files.sync(step.file).map(|()| 0) };
        let file = &self.open.files[place].1;
        match step.act {
            Act::Remove => Ok(0),
            Act::Fsync => rustix::fs::fsync(file).map(|()| 0).map_err(failed),
            Act::Fdatasync => rustix::fs::fdatasync(file).map(|()| 0).map_err(failed),
            Act::BeginWriteback => begin_writeback(file, step.offset_bytes, step.length_bytes)
                .map(|()| 0)
                .map_err(|error| self.files.failed(step, &error)),
            Act::Read | Act::Write => {
                let mut moved = 0;
                while moved < step.length_bytes {
                    let left = usize::try_from(step.length_bytes - moved).unwrap_or(usize::MAX);
                    let length = left.min(self.buffer.len());
                    let offset = step.offset_bytes + moved;
                    if step.act == Act::Write {
                        self.buffer.renew(length);
                    }
                    let bytes = &mut self.buffer.as_mut_slice()[..length];
                    let once = match step.act {
                        Act::Read => rustix::io::pread(file, bytes, offset),
                        _ => rustix::io::pwrite(file, bytes, offset),
                    };
                    match once {
                        Ok(0) => break, // the file ends here: another lane was to write more
                        Ok(count) => moved += count as u64,
                        Err(Errno::INTR) => {}
                        Err(error) => return Err(failed(error)),
                    }
                }
                Ok(moved)
            }
        }
    }

    /// Counts a step that ended within the window.
    fn count(
        &mut self,
        tally: &mut Tally,
        step: &Step,
        place: Option<usize>,
        times: [u64; 2],
        moved: u64,
    ) {
        let response_ns = times[1] - times[0];
        let kind = match step.act {
            Act::Read => Kind::Read,
            Act::Write => Kind::Write,
            _ => {
                tally.sync.latency.record(response_ns);
                return;
            }
        };
        let mut sequential = false;
        if let Some((_, _, end_bytes)) = place.and_then(|place| self.open.files.get_mut(place)) {
            sequential = *end_bytes == step.offset_bytes;
            *end_bytes = step.offset_bytes + moved;
        }
        let request = Request {
            offset_bytes: step.offset_bytes,
            length_bytes: moved,
            kind,
            sequential,
            ..Request::NONE
        };
        tally.record(&request, response_ns);
    }
}

impl Issue for Lane<'_> {
    fn issue(mut self, context: &Context) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let mut tally = Tally::default();
        while signals.stage() == WARMING {
            sleep_until(clock.now_ns() + LOOK_NS);
        }
        let opened_ns = signals.opened_ns();
        let mut free_ns = opened_ns;
        for (index, step) in std::mem::take(&mut self.steps).iter().enumerate() {
            let place = match step.file {
                ALL_FILES | FOLDER => None,
                _ if step.act == Act::Remove => None,
                file => Some(self.open.place(file, self.files)?),
            };
            if !self.wait(step, opened_ns, signals) {
                break;
            }
            if step.fresh_pages > 0 {
                self.buffer.give_back(step.fresh_pages as usize);
            }
            let began_ns = clock.now_ns();
            let moved = self.make(step, place)?;
            let ended_ns = clock.now_ns().max(began_ns);
            self.done[usize::from(self.lane)].store(index as u32 + 1, Ordering::Release);
            // A call about a file or its folder is no request, and the run ends after so many of these.
            let is_request = step.act != Act::Remove && step.file != FOLDER;
            context.live.add(u64::from(is_request), moved);
            // What lies between two steps is no target's: files are opened there.
            tally.think_ns += began_ns.min(signals.closed_ns()).saturating_sub(free_ns);
            free_ns = ended_ns;
            if signals.stage() == STOPPED && ended_ns > signals.closed_ns() {
                tally.edge_ns += signals.closed_ns().saturating_sub(began_ns) as i64;
                break;
            }
            if is_request {
                self.count(&mut tally, step, place, [began_ns, ended_ns], moved);
            } else {
                tally.think_ns += ended_ns - began_ns;
            }
        }
        signals.wait_for_close();
        tally.think_ns += signals.closed_ns().saturating_sub(free_ns);
        Ok(tally)
    }
}
