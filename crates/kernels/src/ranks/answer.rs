//! What the ranks found, and what that makes of all of them together.

use std::collections::BTreeMap;

use leadline_engine::error::EngineError;
use serde::{Deserialize, Serialize};

use super::kernel::Share;
use crate::job::StreamJob;
use crate::records::Summary;
use crate::result::{PhaseResult, StreamResult};
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
