//! One line of the wire, from its text to its last event, whoever runs the job.

#![forbid(unsafe_code)]

use leadline_wire::job::Job;

use crate::error::EngineError;
use crate::events::Reporter;

/// Reads a job and runs it, or says why it is none, under the text's own job id; `emit` is handed
/// every event, one JSON document without line end each.
pub fn answer(text: &str, emit: &mut dyn FnMut(&str), run: impl FnOnce(&Job, &mut Reporter)) {
    match Job::read(text) {
        Ok(job) => run(&job, &mut Reporter::new(job.job_id(), emit)),
        Err(refused) => Reporter::new(&refused.job_id.clone(), emit).error(&refused.into()),
    }
}

/// Runs the job that a line of bytes holds; one that is no UTF-8 is answered with an error.
pub fn answer_bytes(
    line: &[u8],
    emit: &mut dyn FnMut(&str),
    run: impl FnOnce(&Job, &mut Reporter),
) {
    match std::str::from_utf8(line) {
        Ok(text) => answer(text, emit, run),
        Err(error) => {
            // Read only to find whose it is: what it asks for, a path say, would be another's.
            let near = Job::read(&String::from_utf8_lossy(line));
            let job_id = near.map_or_else(|refused| refused.job_id, |job| job.job_id().to_owned());
            let why = format!("the job is no text in UTF-8: {error}; send it as JSON in UTF-8");
            Reporter::new(&job_id, emit).error(&EngineError::bad_job(why));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_that_is_no_text_is_answered_with_an_error_of_its_own_job() {
        for (line, job_id) in [
            (&b"{\"job_id\": \"it\", \"target\": \"/a\xff\"}"[..], "it"),
            (&b"\xff\xfe\x00"[..], ""),
        ] {
            let mut said = Vec::new();
            let run = |_: &Job, _: &mut Reporter| unreachable!("it is no job");
            answer_bytes(line, &mut |event| said.push(event.to_owned()), run);
            let [last] = &said[..] else { unreachable!("{said:?}") };
            let event: serde_json::Value = serde_json::from_str(last).unwrap();
            assert_eq!((&event["event"], &event["kind"]), (&"error".into(), &"bad_job".into()));
            assert_eq!(event["job_id"], job_id);
            assert!(event["message"].as_str().unwrap().contains("no text in UTF-8"), "{last}");
        }
    }
}
