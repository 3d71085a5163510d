//! Whether an output holds the input's records in order, before it gets its name.

use leadline_engine::error::EngineError;

use crate::chunks::Chunks;
use crate::data_set::Input;
use crate::job::StreamJob;
use crate::memory::Memory;
use crate::records::Summary;

/// Reads both, and says what the output is.
///
/// # Errors
/// `Io` when the output is not in order, or has other records than the input.
pub fn verify(
    input: &Input,
    output: &Input,
    memory: &Memory,
    job: &StreamJob,
) -> Result<Summary, EngineError> {
    let found = summary_of(output, memory, job)?;
    found.must_be_in_order()?;
    found.same_records_as(&summary_of(input, memory, job)?)?;
    Ok(found)
}

/// The summary of a data set, by all threads of the job.
fn summary_of(data_set: &Input, memory: &Memory, job: &StreamJob) -> Result<Summary, EngineError> {
    let portions = data_set.portions(job.threads as usize);
    let summarise = |mut chunks: Chunks| {
        let mut summary = Summary::default();
        while let Some((_, bytes)) = chunks.next()? {
            summary.add(bytes)?;
        }
        Ok(summary)
    };
    let mut lanes = Vec::new();
    for range in portions {
        lanes.push(Chunks::new(data_set, range, memory, &job.io)?);
    }
    let summaries: Vec<Result<Summary, EngineError>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            lanes.into_iter().map(|chunks| scope.spawn(move || summarise(chunks))).collect();
        let defect = |_| Err(EngineError::fault("a thread of the check ended in a panic"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(defect)).collect()
    });
    let mut whole = Summary::default();
    for summary in summaries {
        whole.append(&summary?);
    }
    Ok(whole)
}
