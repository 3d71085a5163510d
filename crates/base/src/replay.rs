//! What a replay of a trace makes, step by step, and the file in which its steps come to the engine.

#![forbid(unsafe_code)]

use std::io::{Error, Read, Write};

const BEGINNING: &[u8; 16] = b"leadline replay\n";
const STEP_BYTES: usize = 40;

/// Most steps of a replay: they are kept in memory.
pub const STEPS_MAX: u64 = 1 << 24;
/// Most files of a replay.
pub const FILES_MAX: u64 = 1 << 17;
/// Most requests at a time.
pub const LANES_MAX: u64 = 1024;
/// Stands for every file, in a step that waits for all that was written.
pub const ALL_FILES: u32 = u32::MAX;

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
}

const ACTS: [Act; 4] = [Act::Read, Act::Write, Act::Fsync, Act::Fdatasync];

/// One request of a replay, or one wait for the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step {
    /// When it began in the trace, in nanoseconds from the first; 0 where that says no times.
    pub at_ns: u64,
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes to move; 0 of a wait.
    pub length_bytes: u64,
    /// Which file, from 0, or [`ALL_FILES`].
    pub file: u32,
    /// So many steps of the lane `after_lane` come first: another wrote what this one reads.
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
    /// Writes them as [`Self::read`] reads them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, to: &mut impl Write) -> Result<(), Error> {
        to.write_all(BEGINNING)?;
        for number in [self.initial_bytes.len(), usize::from(self.lanes), self.steps.len()] {
            to.write_all(&(number as u64).to_le_bytes())?;
        }
        for bytes in &self.initial_bytes {
            to.write_all(&bytes.to_le_bytes())?;
        }
        self.steps.iter().try_for_each(|step| to.write_all(&bytes_of(step)))
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the system; `Other` for what is no replay, or has a step that is none of it.
    pub fn read(from: &mut impl Read) -> Result<Self, Error> {
        let foreign = || Error::other("it holds no steps of a replay");
        let mut beginning = [0; BEGINNING.len()];
        from.read_exact(&mut beginning)?;
        let (files, lanes, steps) = (number(from)?, number(from)?, number(from)?);
        let fits = files <= FILES_MAX && (1..=LANES_MAX).contains(&lanes) && steps <= STEPS_MAX;
        if &beginning != BEGINNING || !fits {
            return Err(foreign());
        }
        let initial_bytes = (0..files).map(|_| number(from)).collect::<Result<Vec<_>, _>>()?;
        let mut found = Self { initial_bytes, lanes: lanes as u16, steps: Vec::new() };
        let mut bytes = [0; STEP_BYTES];
        for _ in 0..steps {
            from.read_exact(&mut bytes)?;
            let step = step_of(&bytes).ok_or_else(foreign)?;
            let file = step.file == ALL_FILES || u64::from(step.file) < files;
            let lane = step.lane < found.lanes && step.after_lane < found.lanes;
            let waits = matches!(step.act, Act::Fsync | Act::Fdatasync);
            if !file || !lane || (step.file == ALL_FILES && !waits) {
                return Err(foreign());
            }
            found.steps.push(step);
        }
        Ok(found)
    }
}

fn number(from: &mut impl Read) -> Result<u64, Error> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn bytes_of(step: &Step) -> [u8; STEP_BYTES] {
    let act = ACTS.iter().position(|act| *act == step.act).unwrap_or_default() as u32;
    let mut bytes = [0; STEP_BYTES];
    let parts: [&[u8]; 8] = [
        &step.at_ns.to_le_bytes(),
        &step.offset_bytes.to_le_bytes(),
        &step.length_bytes.to_le_bytes(),
        &step.file.to_le_bytes(),
        &step.after_steps.to_le_bytes(),
        &step.after_lane.to_le_bytes(),
        &step.lane.to_le_bytes(),
        &act.to_le_bytes(),
    ];
    let mut at = 0;
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    bytes
}

fn step_of(bytes: &[u8; STEP_BYTES]) -> Option<Step> {
    let part = |at: usize, length: usize| {
        let mut whole = [0; 8];
        whole[..length].copy_from_slice(&bytes[at..at + length]);
        u64::from_le_bytes(whole)
    };
    Some(Step {
        at_ns: part(0, 8),
        offset_bytes: part(8, 8),
        length_bytes: part(16, 8),
        file: part(24, 4) as u32,
        after_steps: part(28, 4) as u32,
        after_lane: part(32, 2) as u16,
        lane: part(34, 2) as u16,
        act: *ACTS.get(part(36, 4) as usize)?,
    })
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
                step(Act::Fsync, 1, 1),
                step(Act::Fdatasync, ALL_FILES, 0),
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
    fn what_is_cut_short_or_of_no_file_or_lane_is_refused() {
        let whole = written(&steps());
        for length in 0..whole.len() {
            assert!(Steps::read(&mut &whole[..length]).is_err(), "{length}");
        }
        let mut wrong = [steps(), steps(), steps(), steps()];
        wrong[0].steps[0].file = 2;
        wrong[1].steps[0].lane = 2;
        wrong[2].steps[0].after_lane = 2;
        wrong[3].steps[0].file = ALL_FILES;
        for each in wrong {
            assert!(Steps::read(&mut &written(&each)[..]).is_err(), "{each:?}");
        }
        let mut foreign = whole;
        foreign[0] = b'L';
        assert!(Steps::read(&mut &foreign[..]).is_err());
    }
}
