//! What the ranks found, and what that makes of all of them together.

use std::collections::BTreeMap;

use leadline_base::error::EngineError;
use leadline_wire::event::stream::{PhaseResult, StreamResult};
use leadline_wire::job::stream::StreamJob;
use serde::{Deserialize, Serialize};

use super::kernel::Share;
use crate::records::Summary;
use crate::transpose::fingerprint::Fingerprint;

/// What a rank saw of input and output. The output of all ranks is right when what they made is
/// what they read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Records that keep their order, or have to be in order of their keys.
    Records {
        /// Of this rank's share of the input that belongs into the output.
        input: Box<Summary>,
        /// Of its part of the output.
        output: Box<Summary>,
        /// Whether the output has to be in order.
        in_order: bool,
    },
    /// Blocks at their places in the output.
    Blocks {
        /// As they should be, from this rank's share of the input.
        input: Fingerprint,
        /// As they are in its part.
        output: Fingerprint,
    },
}

/// One rank's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Length of the whole input.
    bytes_in: u64,
    /// Length of this rank's part.
    bytes_out: u64,
    /// How often its share crosses memory.
    passes: u32,
    phases: Vec<PhaseResult>,
    not_measurable: BTreeMap<String, String>,
    memory_peak_bytes: u64,
    verify_s: f64,
    proof: Proof,
}

/// A counter of the memory bus counts for the machine, and ranks share one.
const NOT_OF_ONE_RANK: &str = "the memory bus is counted for a whole machine, and its ranks begin and \
    end at different times";

impl Answer {
    /// Of a rank whose phases are over and whose part was read back.
    #[must_use]
    pub fn of(
        share: &Share,
        (bytes_in, bytes_out): (u64, u64),
        (passes, phases): (u32, &[PhaseResult]),
        (proof, verify_s): (Proof, f64),
    ) -> Self {
        let mut result = StreamResult::new(&share.job);
        share.watch().settle(phases.to_vec(), &mut result);
        Self {
            bytes_in,
            bytes_out,
            passes,
            phases: result.phases,
            not_measurable: result.not_measurable,
            memory_peak_bytes: result.memory_peak_bytes,
            verify_s,
            proof,
        }
    }
}

/// The result of all ranks, which answer in their order.
///
/// # Errors
/// `Io` when the output is not what the input should have become.
pub fn merge(job: &StreamJob, answers: &[Answer]) -> Result<StreamResult, EngineError> {
    let Some((first, rest)) = answers.split_first() else {
        return Err(EngineError::fault("no rank has answered"));
    };
    let mut result = StreamResult::new(job);
    result.check = prove(answers)?.map(|summary| summary.to_result());
    result.verified = true;
    result.bytes_in = first.bytes_in;
    result.phases.clone_from(&first.phases);
    result.not_measurable.clone_from(&first.not_measurable);
    for answer in rest {
        if answer.phases.len() != result.phases.len() {
            return Err(EngineError::fault("the ranks had different phases"));
        }
        for (sum, phase) in result.phases.iter_mut().zip(&answer.phases) {
            join(sum, phase);
            if answer.passes > first.passes {
                sum.name.clone_from(&phase.name);
            }
        }
        result.not_measurable.extend(answer.not_measurable.clone());
    }
    for phase in &mut result.phases {
        phase.memory_bus_bytes = None;
    }
    let bus = "memory_bus_bytes".to_owned();
    result.not_measurable.entry(bus).or_insert_with(|| NOT_OF_ONE_RANK.to_owned());
    result.passes = answers.iter().map(|answer| answer.passes).max().unwrap_or(1);
    result.bytes_out = answers.iter().map(|answer| answer.bytes_out).sum();
    result.memory_peak_bytes = answers.iter().map(|answer| answer.memory_peak_bytes).sum();
    result.verify_s = answers.iter().map(|answer| answer.verify_s).fold(0.0, f64::max);
    result.seconds = result.phases.iter().map(|phase| phase.seconds).sum();
    Ok(result)
}

/// Adds a rank's phase to that of the others; all began at the same time.
fn join(sum: &mut PhaseResult, phase: &PhaseResult) {
    let (seconds, first, last) = (
        sum.seconds.max(phase.seconds),
        sum.first_done_s.min(phase.first_done_s),
        sum.last_done_s.max(phase.last_done_s),
    );
    crate::phases::add_turn(sum, phase);
    (sum.seconds, sum.first_done_s, sum.last_done_s) = (seconds, first, last);
}

/// Holds what was made against what was read; of records, a summary of the output.
fn prove(answers: &[Answer]) -> Result<Option<Summary>, EngineError> {
    let (mut read, mut made, mut must_be_in_order) = (Summary::default(), None, false);
    let (mut wanted, mut found) = (Fingerprint::default(), Fingerprint::default());
    for answer in answers {
        match &answer.proof {
            Proof::Records { input, output, in_order } => {
                read.append(input);
                made.get_or_insert_with(Summary::default).append(output);
                must_be_in_order |= in_order;
            }
            Proof::Blocks { input, output } => {
                wanted.join(*input);
                found.join(*output);
            }
        }
    }
    if wanted != found {
        return Err(EngineError::io(
            "the output is not the input transposed, although every block was written: memory or a \
             disk has changed data; nothing was named, so look at the kernel log and start again",
        ));
    }
    if let Some(made) = &made {
        made.same_records_as(&read)?;
        if must_be_in_order {
            made.must_be_in_order()?;
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use leadline_wire::job::Job;

    const JOB: &str = r#"{"version": 1, "kind": "stream", "job_id": "j", "kernel": {"name": "sort"},
        "input": "/a", "output": {"path": "/b"}, "memory_bytes": 33554432, "threads": 1,
        "io": {"read": "uring", "read_direct": true, "write_direct": true, "depth": 8}, "seed": 1,
        "total_s_max": 60}"#;

    fn job() -> StreamJob {
        let Job::Stream(job) = Job::read(JOB).unwrap() else { unreachable!("it says so") };
        *job
    }

    fn record(key: u8) -> [u8; 100] {
        [key; 100]
    }

    fn answer(input: &[u8], output: &[u8], phase: PhaseResult) -> Answer {
        let summary = |keys: &[u8]| {
            let records: Vec<_> = keys.iter().map(|key| record(*key)).collect();
            Box::new(Summary::of(records.as_flattened()).unwrap())
        };
        Answer {
            bytes_in: 600,
            bytes_out: 100 * output.len() as u64,
            passes: 1,
            phases: vec![phase],
            not_measurable: BTreeMap::new(),
            memory_peak_bytes: 10,
            verify_s: 0.5,
            proof: Proof::Records {
                input: summary(input),
                output: summary(output),
                in_order: true,
            },
        }
    }

    fn merged(parts: [(&[u8], &[u8]); 2]) -> Result<StreamResult, EngineError> {
        let job = job();
        let answers = parts.map(|(input, output)| answer(input, output, PhaseResult::default()));
        merge(&job, &answers)
    }

    #[test]
    fn records_may_change_ranks_and_nothing_else() {
        let right = merged([(&[5, 1, 9], &[1, 2, 5]), (&[7, 2, 8], &[7, 8, 9])]).unwrap();
        assert!(right.verified);
        assert_eq!((right.bytes_out, right.check.unwrap().records), (600, 6));
    }

    #[test]
    fn what_is_wrong_with_the_whole_is_found_although_every_part_is_right() {
        let message = |parts| merged(parts).unwrap_err().message;
        let swapped = message([(&[5, 1, 9], &[7, 8, 9]), (&[7, 2, 8], &[1, 2, 5])]);
        assert!(swapped.contains("record 3"), "{swapped}");
        let lost = message([(&[5, 1, 9], &[1, 2]), (&[7, 2, 8], &[7, 8, 9])]);
        assert!(lost.contains("5 records and should hold 6"), "{lost}");
        let changed = message([(&[5, 1, 9], &[1, 2, 6]), (&[7, 2, 8], &[7, 8, 9])]);
        assert!(changed.contains("checksum"), "{changed}");
    }

    #[test]
    fn a_block_at_another_place_is_found() {
        let job = job();
        let block = [3; crate::transpose::BLOCK_BYTES];
        let placed = |position| {
            let mut sum = Fingerprint::default();
            sum.add(&block, position);
            sum
        };
        let with = |output| Answer {
            proof: Proof::Blocks { input: placed(4), output },
            ..answer(&[], &[], PhaseResult::default())
        };
        assert!(merge(&job, &[with(placed(4))]).unwrap().check.is_none());
        assert!(merge(&job, &[with(placed(5))]).is_err());
    }

    #[test]
    fn ranks_work_side_by_side() {
        let job = job();
        let phase = |seconds, bytes_read| PhaseResult {
            name: "read".to_owned(),
            seconds,
            bytes_read,
            cpu_user_s: 1.0,
            first_done_s: seconds,
            last_done_s: seconds,
            memory_bus_bytes: Some(5),
            ..PhaseResult::default()
        };
        let answers = [answer(&[1], &[1], phase(2.0, 100)), answer(&[2], &[2], phase(3.0, 200))];
        let whole = merge(&job, &answers).unwrap();
        let sum = &whole.phases[0];
        assert_eq!((sum.seconds, sum.first_done_s, sum.last_done_s), (3.0, 2.0, 3.0));
        assert_eq!((sum.bytes_read, sum.cpu_user_s, whole.seconds), (300, 2.0, 3.0));
        assert_eq!((whole.memory_peak_bytes, sum.memory_bus_bytes), (20, None));
        assert!(whole.not_measurable["memory_bus_bytes"].contains("whole machine"));
    }
}
