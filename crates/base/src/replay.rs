//! What a replay of a trace makes, step by step, and the file in which its steps come to the engine.

#![forbid(unsafe_code)]

use std::io::{Error, Read, Write};

const BEGINNING: &[u8; 16] = b"leadline replay\n";

/// Most steps of a replay: they are kept in memory.
pub const STEPS_MAX: u64 = 1 << 24;
/// Most files of a replay.
pub const FILES_MAX: u64 = 1 << 17;
/// Most requests at a time.
pub const LANES_MAX: u64 = 1024;
/// Stands for every file, in a step that waits for all that was written.
pub const ALL_FILES: u32 = u32::MAX;
/// Stands for the folder of all files, in a step that waits until its entries are on the device.
pub const FOLDER: u32 = u32::MAX - 1;

/// What a step does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Waits until a file and all that is known of it are on the device.
    Fsync,
    /// Waits until a file's data are.
    Fdatasync,
    /// Has the kernel begin to write bytes back, and waits for nothing; 0 bytes are all to the end.
    BeginWriteback,
    /// Lets go of all that a file holds: what is dirty of it is never written back.
    Remove,
}

/// Acts as they are written; [`Act::BeginWriteback`] is an [`Act::Fdatasync`] with a length, which is
/// one more than its bytes, and [`Act::Remove`] an [`Act::Fsync`] with one.
const ACTS: [Act; 4] = [Act::Read, Act::Write, Act::Fsync, Act::Fdatasync];

/// One request of a replay, or one wait for the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// When it began in the trace, in nanoseconds from the first; 0 where that says no times.
    pub at_ns: u64,
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes to move, or to write back; 0 of a wait.
    pub length_bytes: u64,
    /// Pages of memory that a read touches first: each is a page fault.
    pub fresh_pages: u32,
    /// Which file, from 0, or [`ALL_FILES`].
    pub file: u32,
    /// So many steps of the lane `after_lane` come first: they ended before this one on its file.
    pub after_steps: u32,
    /// The lane that is waited for, where `after_steps` is not 0.
    pub after_lane: u16,
    /// Whose turn it is; the steps of a lane follow one another.
    pub lane: u16,
    /// What it does.
    pub act: Act,
}

/// All of a replay.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Steps {
    /// Bytes of each file before the first step: what is read, or written over, without having been
    /// written before.
    pub initial_bytes: Vec<u64>,
    /// Requests at a time at most.
    pub lanes: u16,
    /// In the order of the trace.
    pub steps: Vec<Step>,
}

impl Steps {
    /// Writes them as [`Self::read`] reads them: a few bytes for each, because most go on where the
    /// last of their file ended and are as long.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, to: &mut impl Write) -> Result<(), Error> {
        to.write_all(BEGINNING)?;
        for count in [self.initial_bytes.len(), usize::from(self.lanes), self.steps.len()] {
            write_number(to, count as u64)?;
        }
        for bytes in &self.initial_bytes {
            write_number(to, *bytes)?;
        }
        let mut before = Before::of(self.initial_bytes.len(), self.lanes);
        for step in &self.steps {
            before.write(to, step)?;
            before.go_on(step);
        }
        Ok(())
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the system; `Other` for what is no replay, or has a step that is none of it.
    pub fn read(from: &mut impl Read) -> Result<Self, Error> {
        let mut beginning = [0; BEGINNING.len()];
        from.read_exact(&mut beginning)?;
        if &beginning != BEGINNING {
            return Err(foreign());
        }
        let (files, lanes, steps) = (read_number(from)?, read_number(from)?, read_number(from)?);
        if files > FILES_MAX || !(1..=LANES_MAX).contains(&lanes) || steps > STEPS_MAX {
            return Err(foreign());
        }
        let initial_bytes = (0..files).map(|_| read_number(from)).collect::<Result<Vec<_>, _>>()?;
        let mut found = Self { initial_bytes, lanes: lanes as u16, steps: Vec::new() };
        let mut before = Before::of(files as usize, found.lanes);
        for _ in 0..steps {
            let step = before.read(from)?;
            let waits = matches!(step.act, Act::Fsync | Act::Fdatasync);
            let file = match step.file {
                ALL_FILES | FOLDER => waits,
                file => u64::from(file) < files,
            };
            if !file || step.lane >= found.lanes || step.after_lane >= found.lanes {
                return Err(foreign());
            }
            before.go_on(&step);
            found.steps.push(step);
        }
        Ok(found)
    }
}

fn foreign() -> Error {
    Error::other("it holds no steps of a replay")
}

/// What the next step is told by the difference to.
struct Before {
    last: Step,
    /// Of each lane, the file of its last step.
    files: Vec<u32>,
    /// Of each file, where its last step ended.
    ends: Vec<u64>,
}

/// Bits of a step's first byte, above its act: what is as expected is left out.
const OTHER_LANE: u8 = 1 << 2;
const OTHER_FILE: u8 = 1 << 3;
const ELSEWHERE: u8 = 1 << 4;
const OTHER_LENGTH: u8 = 1 << 5;
const AFTER: u8 = 1 << 6;
const FRESH: u8 = 1 << 7;

impl Before {
    fn of(files: usize, lanes: u16) -> Self {
        let last = Step {
            at_ns: 0,
            offset_bytes: 0,
            length_bytes: 0,
            fresh_pages: 0,
            file: 0,
            after_steps: 0,
            after_lane: 0,
            lane: 0,
            act: Act::Read,
        };
        Self { last, files: vec![0; usize::from(lanes)], ends: vec![0; files] }
    }

    /// Where a file's next step begins if it goes on; 0 of all files, which no step is in.
    fn end(&self, file: u32) -> u64 {
        self.ends.get(file as usize).copied().unwrap_or_default()
    }

    fn go_on(&mut self, step: &Step) {
        self.last = *step;
        self.files[usize::from(step.lane)] = step.file;
        if let Some(end) = self.ends.get_mut(step.file as usize) {
            *end = step.offset_bytes.wrapping_add(step.length_bytes);
        }
    }

    fn write(&self, to: &mut impl Write, step: &Step) -> Result<(), Error> {
        let end = self.end(step.file);
        let (act, length_bytes) = match step.act {
            Act::BeginWriteback => (Act::Fdatasync, step.length_bytes.wrapping_add(1)),
            Act::Remove => (Act::Fsync, 1),
            act @ (Act::Fsync | Act::Fdatasync) => (act, 0),
            act => (act, step.length_bytes),
        };
        let parts = [
            (OTHER_LANE, step.lane != self.last.lane, u64::from(step.lane)),
            (OTHER_FILE, step.file != self.files[usize::from(step.lane)], u64::from(step.file)),
            (ELSEWHERE, step.offset_bytes != end, zigzag(step.offset_bytes.wrapping_sub(end))),
            (OTHER_LENGTH, length_bytes != self.last.length_bytes, length_bytes),
            (AFTER, step.after_steps > 0, u64::from(step.after_steps)),
            (FRESH, step.fresh_pages > 0, u64::from(step.fresh_pages)),
        ];
        let place = ACTS.iter().position(|each| *each == act).unwrap_or_default() as u8;
        let head = parts.iter().filter(|part| part.1).fold(place, |head, part| head | part.0);
        to.write_all(&[head])?;
        for (_, _, number) in parts.iter().filter(|part| part.1) {
            write_number(to, *number)?;
        }
        if step.after_steps > 0 {
            write_number(to, u64::from(step.after_lane))?;
        }
        write_number(to, zigzag(step.at_ns.wrapping_sub(self.last.at_ns)))
    }

    fn read(&self, from: &mut impl Read) -> Result<Step, Error> {
        let mut head = [0];
        from.read_exact(&mut head)?;
        let mut part = |bit: u8| {
            let is_there = head[0] & bit != 0;
            is_there.then(|| read_number(from)).transpose()
        };
        let lane = part(OTHER_LANE)?.unwrap_or(u64::from(self.last.lane));
        let usual = self.files.get(lane as usize).copied().ok_or_else(foreign)?;
        let file = part(OTHER_FILE)?.unwrap_or(u64::from(usual));
        let file = u32::try_from(file).map_err(|_| foreign())?;
        let moved = part(ELSEWHERE)?.map_or(0, unzigzag);
        let length_bytes = part(OTHER_LENGTH)?.unwrap_or(self.last.length_bytes);
        let (act, length_bytes) = match ACTS[usize::from(head[0] & 3)] {
            Act::Fdatasync if length_bytes > 0 => (Act::BeginWriteback, length_bytes - 1),
            Act::Fsync if length_bytes > 0 => (Act::Remove, 0),
            act => (act, length_bytes),
        };
        let after_steps = u32::try_from(part(AFTER)?.unwrap_or(0)).map_err(|_| foreign())?;
        let fresh_pages = u32::try_from(part(FRESH)?.unwrap_or(0)).map_err(|_| foreign())?;
        let after_lane = if after_steps > 0 { read_number(from)? } else { 0 };
        Ok(Step {
            at_ns: self.last.at_ns.wrapping_add(unzigzag(read_number(from)?)),
            offset_bytes: self.end(file).wrapping_add(moved),
            length_bytes,
            fresh_pages,
            file,
            after_steps,
            after_lane: u16::try_from(after_lane).map_err(|_| foreign())?,
            lane: lane as u16,
            act,
        })
    }
}

/// A difference of either sign, small where it is near to nothing.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (((difference as i64) >> 63) as u64)
}

fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Seven bits in a byte, the least first; the eighth says that more come (LEB128).
fn write_number(to: &mut impl Write, mut number: u64) -> Result<(), Error> {
    while number > 127 {
        to.write_all(&[(number & 127) as u8 | 128])?;
        number >>= 7;
    }
    to.write_all(&[number as u8])
}

fn read_number(from: &mut impl Read) -> Result<u64, Error> {
    let (mut number, mut byte) = (0, [0]);
    for place in 0..10 {
        from.read_exact(&mut byte)?;
        number |= u64::from(byte[0] & 127) << (7 * place);
        if byte[0] < 128 {
            return Ok(number);
        }
    }
    Err(foreign())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn steps() -> Steps {
        let step = |act, file, lane| Step {
            at_ns: 7,
            offset_bytes: 1 << 40,
            length_bytes: 4096,
            fresh_pages: 300,
            file,
            after_steps: 3,
            after_lane: 1,
            lane,
            act,
        };
        Steps {
            initial_bytes: vec![5, 0],
            lanes: 2,
            steps: vec![
                step(Act::Read, 0, 0),
                step(Act::Write, 1, 1),
                step(Act::BeginWriteback, 1, 1),
                Step { length_bytes: 0, ..step(Act::BeginWriteback, 1, 1) },
                Step { length_bytes: 0, ..step(Act::Fsync, 1, 1) },
                Step { length_bytes: 0, ..step(Act::Remove, 1, 1) },
                Step { length_bytes: 0, ..step(Act::Fdatasync, ALL_FILES, 0) },
                Step { length_bytes: 0, ..step(Act::Fsync, FOLDER, 0) },
            ],
        }
    }

    fn written(steps: &Steps) -> Vec<u8> {
        let mut bytes = Vec::new();
        steps.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn steps_are_read_as_they_were_written() {
        assert_eq!(Steps::read(&mut &written(&steps())[..]).unwrap(), steps());
    }

    #[test]
    fn numbers_and_differences_of_any_size_come_back() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number).unwrap();
            assert_eq!(read_number(&mut &bytes[..]).unwrap(), number);
            assert_eq!(unzigzag(zigzag(number)), number);
        }
        assert_eq!((zigzag(u64::MAX), zigzag(1)), (1, 2), "one less is as near as one more");
        assert!(read_number(&mut &[128; 11][..]).is_err());
    }

    #[test]
    fn a_step_that_goes_on_takes_three_bytes() {
        let step = |number: u64| Step {
            offset_bytes: 4096 * number,
            at_ns: 9 * number,
            ..steps().steps[0]
        };
        let steps = (0..1000).map(|number| Step {
            after_steps: 0,
            after_lane: 0,
            fresh_pages: 0,
            ..step(number)
        });
        let all = Steps { initial_bytes: vec![0; 1], lanes: 1, steps: steps.collect() };
        assert!(written(&all).len() < 3 * 1000 + 100, "{}", written(&all).len());
        assert_eq!(Steps::read(&mut &written(&all)[..]).unwrap(), all);
    }

    #[test]
    fn what_is_cut_short_or_of_no_file_or_lane_is_refused() {
        let whole = written(&steps());
        for length in 0..whole.len() {
            assert!(Steps::read(&mut &whole[..length]).is_err(), "{length}");
        }
        let mut fewer_lanes = whole.clone();
        fewer_lanes[BEGINNING.len() + 1] = 1;
        assert!(Steps::read(&mut &fewer_lanes[..]).is_err());
        let mut wrong = [steps(), steps(), steps()];
        wrong[0].steps[0].file = 2;
        wrong[1].steps[0].after_lane = 2;
        wrong[2].steps[2].file = ALL_FILES;
        for each in wrong {
            assert!(Steps::read(&mut &written(&each)[..]).is_err(), "{each:?}");
        }
        let mut foreign = whole;
        foreign[0] = b'L';
        assert!(Steps::read(&mut &foreign[..]).is_err());
    }
}
