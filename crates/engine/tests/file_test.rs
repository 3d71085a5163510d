//! KM83's four programs on plain files, and the documents of such a job.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;

use leadline_engine::engine::run_job;
use leadline_engine::error::ErrorKind;
use leadline_engine::file_test::FileTestJob;
use leadline_engine::job::Job;
use leadline_engine::wire::text::Text;
use serde_json::{Value, json};

use crate::pinned::Pinned;
use crate::scratch::{Scratch, skip};

const FILE_BYTES: u64 = 4 << 20;

fn examples(kind: &str) -> Vec<(String, String)> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples/file_tests").join(kind);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())).collect()
}

fn job(drives: &Value, tests: &[&str], timing: &str) -> Value {
    json!({
        "version": 1, "kind": "file_test", "job_id": "cell", "drives": drives, "tests": tests,
        "file_bytes": FILE_BYTES, "runs": 2, "timing": timing, "seed": 1, "total_s_max": 60.0,
    })
}

fn last_event(job: &Value) -> Value {
    let mut lines = Vec::new();
    run_job(&job.to_string(), &mut |line| lines.push(line.to_owned()));
    serde_json::from_str(lines.last().unwrap()).unwrap()
}

/// A folder on the file system of the build, which takes direct I/O where /tmp may not.
fn on_disk(name: &str) -> Scratch {
    Scratch::within(Path::new(env!("CARGO_TARGET_TMPDIR")), name).unwrap()
}

#[test]
fn the_examples_are_read_and_the_invalid_ones_refused() {
    for (name, text) in examples("valid") {
        let read = Job::read(&Text::new(&text));
        assert!(matches!(read, Ok(Job::FileTest(_))), "{name}");
        let job = FileTestJob::parse(&text).unwrap();
        let again = FileTestJob::parse(&serde_json::to_string(&job).unwrap()).unwrap();
        assert_eq!(again, job, "{name}");
    }
    let invalid = examples("invalid");
    assert!(invalid.len() >= 10);
    for (name, text) in invalid {
        let error = FileTestJob::parse(&text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadJob, "{name}");
        assert!(error.message.len() > 20, "{name}: {error}");
    }
}

#[test]
fn the_programs_run_on_all_drives_at_once_and_leave_no_file() {
    let (one, two) = (on_disk("files-a"), on_disk("files-b"));
    let raw = one.path().join("raw.bin");
    fs::write(&raw, vec![7; FILE_BYTES as usize]).unwrap();
    let drives = json!([
        {"directory": one.text(), "raw": raw}, {"directory": two.text(), "raw": raw},
    ]);
    let tests = ["write_4096", "write_8192", "rewrite_8192", "read_8192"];
    let result = last_event(&job(&drives, &tests, "drive"));
    assert_eq!(result["event"], "result", "{result}");
    let (_, example) = examples("events").pop().unwrap();
    let example: Value = serde_json::from_str(&example).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&result), keys(&example));
    let example = &example["tests"][0]["runs"][0];
    for (number, name) in tests.iter().enumerate() {
        let test = &result["tests"][number];
        assert_eq!(test["test"], *name);
        let runs = test["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2);
        for run in runs {
            assert_eq!(keys(run), keys(example));
            assert_eq!(keys(&run["drives"][1]), keys(&example["drives"][0]));
            assert_eq!(run["raw"]["bytes"], 2 * FILE_BYTES);
            for drive in run["drives"].as_array().unwrap() {
                assert!(drive["seconds"].as_f64() <= run["seconds"].as_f64());
                let waited = drive["sync_s"].as_f64().unwrap() > 0.0;
                assert_eq!(waited, *name != "read_8192", "{name}: {drive}");
            }
        }
    }
    assert!(!one.path().join("file.bin").exists() && !two.path().join("file.bin").exists());
}

#[test]
fn a_read_begins_uncached_for_the_drive_and_cached_as_the_paper_has_it() {
    let test = "file_test::a_read_begins_uncached_for_the_drive_and_cached_as_the_paper_has_it";
    let place = on_disk("files-cold");
    let drives = json!([{"directory": place.text()}]);
    let shares = |timing: &str| {
        let (path, bytes) = (place.path().join("file.bin"), vec![7; FILE_BYTES as usize]);
        fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        // The file is there and has its length, so the job reads it as it finds it.
        let pinned = (timing == "program").then(|| Pinned::new(&file, FILE_BYTES)).transpose();
        let result = last_event(&job(&drives, &["read_8192"], timing));
        let reads = &result["tests"][0]["runs"];
        let run = |number: usize| &reads[number]["drives"][0];
        pinned.map(|_| [run(0), run(1)].map(|run| run["cached_share"].as_f64()))
    };
    let drive = shares("drive").unwrap();
    if drive[0].is_none() {
        return skip(test, "what a file has in the cache is not told here");
    }
    assert_eq!(drive, [Some(0.0); 2]);
    match shares("program") {
        Ok(shares) => assert_eq!(shares, [Some(1.0); 2]),
        Err(reason) => skip(test, &reason),
    }
}

#[test]
fn a_file_of_another_length_is_made_anew_before_it_is_read_or_written_over() {
    let place = on_disk("files-length");
    fs::write(place.path().join("file.bin"), "short").unwrap();
    let drives = json!([{"directory": place.text()}]);
    let result = last_event(&job(&drives, &["rewrite_8192"], "drive"));
    assert_eq!(result["event"], "result", "{result}");
}

#[test]
fn what_is_written_does_not_compress() {
    let place = on_disk("files-content");
    let file = place.path().join("file.bin");
    fs::write(&file, vec![0; FILE_BYTES as usize]).unwrap();
    let mut kept = File::open(&file).unwrap(); // the job removes the name at the end
    let drives = json!([{"directory": place.text()}]);
    last_event(&job(&drives, &["rewrite_8192"], "drive"));
    let mut bytes = Vec::new();
    kept.read_to_end(&mut bytes).unwrap();
    let mut counts = [0u32; 256];
    bytes[..1 << 20].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    assert!(counts.iter().all(|count| (3600..4600).contains(count)), "{counts:?}");
    assert_ne!(bytes[..8192], bytes[8192..16_384]);
}

#[test]
fn what_lies_in_the_files_place_is_not_followed_nor_written() {
    let place = Scratch::new("files-foreign");
    let precious = place.path().join("precious");
    let bytes = vec![7; FILE_BYTES as usize];
    let drives = json!([{"directory": place.text()}]);
    type Lay<'a> = &'a dyn Fn(&Path);
    let lays: [(&str, Lay); 3] = [
        ("symbolic link", &|file| symlink(&precious, file).unwrap()),
        ("second name", &|file| fs::hard_link(&precious, file).unwrap()),
        ("no regular file", &|file| {
            let name = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
            // SAFETY: a terminated string.
            assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        }),
    ];
    for (said, lay) in lays {
        fs::write(&precious, &bytes).unwrap();
        let file = place.path().join("file.bin");
        lay(&file);
        for test in ["rewrite_8192", "read_8192"] {
            let error = last_event(&job(&drives, &[test], "drive"));
            assert!(error["message"].as_str().unwrap().contains(said), "{test}: {error}");
        }
        // A program that makes its file takes the name away, and only the name.
        let written = last_event(&job(&drives, &["write_8192"], "drive"));
        assert_eq!(written["event"], "result", "{written}");
        assert!(fs::read(&precious).unwrap() == bytes, "{said}: written");
        assert!(!file.exists());
    }
}

#[test]
fn a_raw_file_is_ours_and_a_device_is_a_device() {
    let place = on_disk("files-raw");
    let precious = place.path().join("precious");
    fs::write(&precious, vec![7; FILE_BYTES as usize]).unwrap();
    symlink(&precious, place.path().join("raw-0.bin")).unwrap();
    for (raw, said) in [
        (place.path().join("raw-0.bin"), "symbolic link"),
        (Path::new("/dev/null").into(), "no block device"),
        (place.path().join("gone/raw-0.bin"), "No such file"),
    ] {
        let drives = json!([{"directory": place.text(), "raw": raw}]);
        let error = last_event(&job(&drives, &["write_8192"], "drive"));
        assert_eq!(error["kind"], "target", "{error}");
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
    assert!(fs::read(&precious).unwrap() == vec![7; FILE_BYTES as usize]);
}

#[test]
fn a_job_that_cannot_be_done_says_why() {
    let place = Scratch::new("files-refused");
    let gone = json!([{"directory": place.path().join("gone")}]);
    let error = last_event(&job(&gone, &["write_8192"], "drive"));
    assert_eq!((&error["event"], &error["kind"]), (&json!("error"), &json!("target")), "{error}");
    let mount = json!([{
        "directory": place.text(), "mount": {"device": "/dev/null", "type": "ext4"},
    }]);
    let error = last_event(&job(&mount, &["write_8192"], "drive"));
    assert_eq!((&error["event"], &error["kind"]), (&json!("error"), &json!("target")), "{error}");
    let mut late = job(&json!([{"directory": place.text()}]), &["write_8192"], "drive");
    late["total_s_max"] = json!(0.02);
    late["file_bytes"] = json!(4_u64 << 30);
    let error = last_event(&late);
    assert!(error["message"].as_str().unwrap().contains("time of this file test"), "{error}");
}
