//! What data are: new in each write, and of the content that is asked for.

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::target::conformance::{events, null, on, result};

/// Every backend and both ways to a file, over and over the whole of it.
fn each_writer(scratch: &Scratch, check: impl Fn(&str, Value)) {
    for (backend, direct, depth) in [
        ("pread", false, 1),
        ("pread", true, 1),
        ("mmap", false, 1),
        ("uring", false, 8),
        ("uring", true, 8),
    ] {
        let mut job = on(scratch, backend, direct);
        job["workload"] = json!({
            "unique_bytes": 4 << 20, "size_mean": 16384, "size_dist": "fixed", "read_frac": 0.25,
            "seq_frac": 1.0, "process_num": 2, "queue_depth": depth,
        });
        check(&format!("{backend}, direct {direct}"), job);
    }
}

fn distinct_pages(content: &[u8]) -> usize {
    content.chunks(4096).collect::<HashSet<_>>().len()
}

#[test]
fn no_page_is_written_twice() {
    let scratch = Scratch::new("renewed");
    each_writer(&scratch, |name, job| {
        let written = result(&job)["write"]["operations"].as_f64().unwrap();
        assert!(written > 0.0, "{name}");
        let content = fs::read(scratch.path().join("data.bin")).unwrap();
        assert_eq!(distinct_pages(&content), content.len() / 4096, "{name}");
    });
}

#[test]
fn what_is_laid_out_and_written_is_of_the_content_asked_for() {
    each_writer(&Scratch::new("unused"), |name, mut job| {
        let scratch = Scratch::new("content");
        job["target"]["path"] = json!(scratch.text());
        job["backend"]["content"] = json!({"compress": 4.0, "dedup": 0.0});
        assert!(result(&job)["write"]["operations"].as_f64().unwrap() > 0.0, "{name}");
        let content = fs::read(scratch.path().join("data.bin")).unwrap();
        assert_eq!(distinct_pages(&content), content.len() / 4096, "{name}");
        for chunk in content.chunks(512) {
            let (random, zeros) = chunk.split_at(123);
            assert!(zeros.iter().all(|byte| *byte == 0), "{name}");
            assert!(random.iter().filter(|byte| **byte == 0).count() < 20, "{name}: {random:?}");
        }
    });
}

#[test]
fn content_is_of_data_that_are_there() {
    let mut job = null();
    job["backend"]["content"] = json!({"compress": 2.0, "dedup": 0.0});
    let error = events(&job).pop().unwrap();
    assert_eq!((&error["event"], &error["kind"]), (&json!("error"), &json!("bad_job")));
    assert!(error["message"].as_str().unwrap().contains("backend.content"), "{error}");
}
