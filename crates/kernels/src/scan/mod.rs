//! Records of a range of keys (AD98 §4.1): read, select, write.
//!
//! Threads each scan an independent portion of the input and write a part of the output of their
//! own. Reading and writing are phases apart: everybody reads until somebody's matches fill the
//! memory, then everybody writes; the turns of a phase are added up.

#![forbid(unsafe_code)]

pub mod key_range;
pub mod matches;
pub mod portion;
pub mod verify;

use std::ops::Range;

use leadline_base::error::EngineError;
use leadline_base::events::{Phase, Reporter};
use leadline_wire::event::stream::{PhaseResult, StreamResult};
use leadline_wire::job::stream::{Io, Kernel, StreamJob};

use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::output::{Output, OutputPart};
use crate::phases::{JobWatch, Moved, PhaseWatch, add_turn};
use crate::records::whole_records;
use crate::thread_group;
use key_range::KeyRange;
use portion::Portion;
use verify::Verifier;

/// Runs a scan.
///
/// # Errors
/// `BadJob` when the range or the memory makes no sense, `Target` when input or output refuse, `Io`
/// when moving bytes fails or the output is found wrong; then it has no name.
pub fn run(job: &StreamJob, reporter: &mut Reporter) -> Result<StreamResult, EngineError> {
    let (Kernel::Scan { low, high }, Some(path), Some(spec)) =
        (&job.kernel, &job.input, &job.output)
    else {
        return Err(EngineError::bad_job("a scan needs an input, an output and a range of keys"));
    };
    let keys = KeyRange::parse(low, high.as_deref())?;
    let verifier = Verifier::parse(low, high.as_deref())?;
    let deadline = Deadline::of(job);
    let watch = JobWatch::open();
    let input = Input::open(path, &job.io)?;
    if whole_records(input.bytes())? == 0 {
        return Err(EngineError::target(format!(
            "{path} is empty: there are no records to scan; make some with `leadline stream \
             generate`"
        )));
    }
    let ranges = portions(&input, job.threads as usize);
    let output = Output::create_parts(spec, &vec![0; ranges.len()], &job.io)?;
    let memory = Memory::of(job)?;
    let mut scan = Scan { keys, io: job.io, deadline, watch: &watch, output, phases: Vec::new() };
    let written = scan.run(&input, &ranges, &memory, reporter)?;
    let Scan { output, phases, .. } = scan;

    let mut result = StreamResult::new(job);
    (result.bytes_in, result.bytes_out) = (input.bytes(), written.iter().sum());
    watch.settle(phases, &mut result);
    reporter.phase(Phase::Drain, watch.elapsed_ns());
    let verification = watch.start("verify");
    let summary = verifier.verify(
        (&input, &ranges),
        (&output.as_input()?, &written),
        &memory,
        (&job.io, &deadline),
    )?;
    result.verify_s = verification.elapsed_s();
    result.verified = true;
    result.check = Some(summary.to_result());
    output.publish()?;
    Ok(result)
}

/// As many portions as threads, but none of them empty.
fn portions(input: &Input, threads: usize) -> Vec<Range<u64>> {
    let mut ranges = input.portions(threads);
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// A scan under way.
pub(crate) struct Scan<'a> {
    pub keys: KeyRange,
    pub io: Io,
    pub deadline: Deadline,
    pub watch: &'a JobWatch,
    pub output: Output,
    /// `read` and `write`, once there were turns of them.
    pub phases: Vec<PhaseResult>,
}

impl Scan<'_> {
    /// Reads and writes in turns until all is read; how much each portion has written.
    pub fn run(
        &mut self,
        input: &Input,
        ranges: &[Range<u64>],
        memory: &Memory,
        reporter: &mut Reporter,
    ) -> Result<Vec<u64>, EngineError> {
        // Opening begins to read ahead, so it belongs to the first turn.
        let mut reading = self.watch.start("read");
        let mut portions = Portion::open_all(input, ranges, memory, &self.io)?;
        reporter.phase(Phase::Measure, self.watch.elapsed_ns());
        loop {
            self.read(&mut portions, reading)?;
            self.write(&mut portions)?;
            if portions.iter().all(Portion::is_read) {
                return Ok(portions.iter().map(Portion::bytes_written).collect());
            }
            reporter.progress(sum(&portions, Portion::bytes_read) as f64 / input.bytes() as f64);
            reading = self.watch.start("read");
        }
    }

    fn read(&mut self, portions: &mut [Portion], phase: PhaseWatch<'_>) -> Result<(), EngineError> {
        let read = sum(portions, Portion::bytes_read);
        let copied = sum(portions, Portion::bytes_copied);
        let keys = &self.keys;
        let answers = thread_group::work(&mut *portions, &self.deadline, |portion, watch| {
            portion.read(keys, watch)
        })?;
        let moved = Moved {
            bytes_read: sum(portions, Portion::bytes_read) - read,
            copied_bytes: sum(portions, Portion::bytes_copied) - copied,
            ..Moved::default()
        };
        let dones = answers.dones(&phase);
        self.settle(phase.finish(moved, &dones));
        Ok(())
    }

    fn write(&mut self, portions: &mut [Portion]) -> Result<(), EngineError> {
        let phase = self.watch.start("write");
        let written = sum(portions, Portion::bytes_written);
        let mut parts: Vec<OutputPart> = Vec::new();
        for (number, portion) in portions.iter().enumerate() {
            self.output.set_len(number, portion.bytes_to_be())?;
            parts.push(self.output.part(number)?);
        }
        let io = &self.io;
        let members = portions.iter_mut().zip(&parts);
        let answers = thread_group::work(members, &self.deadline, |(portion, part), watch| {
            portion.write(part, io, watch)
        })?;
        let bytes_written = sum(portions, Portion::bytes_written) - written;
        let dones = answers.dones(&phase);
        self.settle(phase.finish(Moved { bytes_written, ..Moved::default() }, &dones));
        Ok(())
    }

    /// Adds a turn to its phase.
    fn settle(&mut self, turn: PhaseResult) {
        match self.phases.iter_mut().find(|phase| phase.name == turn.name) {
            Some(phase) => add_turn(phase, &turn),
            None => self.phases.push(turn),
        }
    }
}

fn sum(portions: &[Portion], of: fn(&Portion) -> u64) -> u64 {
    portions.iter().map(of).sum()
}
