//! Any text as a job: it is refused with one error event, or it survives being written and read.

#![no_main]

use leadline_engine::engine::run_job;
use leadline_engine::file_test::FileTestJob;
use leadline_engine::load::nfs::NfsLoadJob;
use leadline_engine::wire::job::Job;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(job) = FileTestJob::parse(&text) {
        assert_file_test_survives(&job); // never run: it would write where it says
        return;
    }
    if let Ok(job) = NfsLoadJob::parse(&text) {
        assert_nfs_load_survives(&job); // never run: it would call the server it names
        return;
    }
    match Job::parse(&text) {
        Ok(job) => assert_survives(&job),
        Err(_) => assert_refused(&text),
    }
});

fn assert_survives(job: &Job) {
    let written = serde_json::to_string(job).expect("a job can be written");
    let read = Job::parse(&written).expect("a written job can be read");
    assert_eq!(job, &read, "{written}");
}

fn assert_file_test_survives(job: &FileTestJob) {
    let written = serde_json::to_string(job).expect("a job can be written");
    let read = FileTestJob::parse(&written).expect("a written job can be read");
    assert_eq!(job, &read, "{written}");
}

fn assert_nfs_load_survives(job: &NfsLoadJob) {
    let written = serde_json::to_string(job).expect("a job can be written");
    let read = NfsLoadJob::parse(&written).expect("a written job can be read");
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
