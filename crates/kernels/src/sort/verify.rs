//! Whether an output holds the input's records in order, before it gets its name.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_wire::job::stream::StreamJob;

use crate::chunks::Chunks;
use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::records::Summary;
use crate::thread_group;

/// Reads both, and says what the output is.
///
/// # Errors
/// `Io` when the output is not in order, or has other records than the input.
pub fn verify(
    input: &Input,
    output: &Input,
    with: (&Memory, &Deadline),
    job: &StreamJob,
) -> Result<Summary, EngineError> {
    let found = summary_of(output, with, job)?;
    found.must_be_in_order()?;
    found.same_records_as(&summary_of(input, with, job)?)?;
    Ok(found)
}

/// The summary of a data set, by all threads of the job.
fn summary_of(
    data_set: &Input,
    (memory, deadline): (&Memory, &Deadline),
    job: &StreamJob,
) -> Result<Summary, EngineError> {
    let mut parts = Vec::new();
    for range in data_set.portions(job.threads as usize) {
        parts.push(Chunks::new(data_set, range, memory, &job.io)?);
    }
    let summaries = thread_group::work(parts, deadline, |mut chunks: Chunks, watch| {
        let mut summary = Summary::default();
        while let Some((_, bytes)) = chunks.next()? {
            watch.check()?;
            summary.add(bytes)?;
        }
        Ok(summary)
    })?;
    let mut whole = Summary::default();
    for summary in &summaries.of {
        whole.append(summary);
    }
    Ok(whole)
}
