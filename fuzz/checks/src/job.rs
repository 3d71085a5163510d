//! Any text as a job: it is refused with one error event, or it survives being written and read.

use leadline_engine::engine::run_job;
use leadline_wire::job::Job;

// Nothing that is read is run: it would write where it says, or call the server it names.
/// Tries these bytes.
pub fn job(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Job::read(&text) {
        Ok(job) => assert_survives(&job),
        Err(_) => assert_refused(&text),
    }
}

fn assert_survives(job: &Job) {
    let written = serde_json::to_string(job).expect("a job can be written");
    let read = Job::read(&written).expect("a written job can be read");
    assert_eq!(job, &read, "{written}");
}

fn assert_refused(text: &str) {
    let mut events = Vec::new();
    run_job(text, &mut |line| events.push(line.to_owned()));
    assert_eq!(events.len(), 1, "{events:?}");
    let event: serde_json::Value = serde_json::from_str(&events[0]).expect("an event is JSON");
    assert_eq!(event["event"], "error");
    assert_eq!(event["kind"], "bad_job");
    assert!(!events[0].contains('\n'), "an event is one line");
}
