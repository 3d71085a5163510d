//! A file that is not really written is refused by name, before a read of it is believed.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::scratch::{Scratch, skip};
use leadline_base::error::ErrorKind;
use leadline_base::host::FileSystem;
use leadline_engine::backend::data_file::{DATA_FILE_NAME, DataFile};
use leadline_engine::engine::run_job;
use leadline_engine::evidence::extents::{Written, check_written};
use serde_json::{Value, json};

const LENGTH: u64 = 4 << 20;

fn laid_out(directory: &str) -> DataFile {
    let data = DataFile::open(directory).unwrap();
    assert_eq!(data.extend(LENGTH, u64::MAX, &mut |_| {}).unwrap(), LENGTH);
    data
}

fn allocate(file: &File, mode: i32, from: u64, length: u64) {
    // SAFETY: a valid descriptor.
    let code = unsafe {
        libc::fallocate(file.as_raw_fd(), mode, from as libc::off_t, length as libc::off_t)
    };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
    file.sync_all().unwrap();
}

/// Whether the directory lies in memory, where there are no extents to look at.
fn skipped(test: &str, directory: &Path) -> bool {
    let memory = FileSystem::of(&File::open(directory).unwrap()).and_then(FileSystem::memory);
    if let Some(name) = memory {
        skip(test, &format!("{} is {name}", directory.display()));
    }
    memory.is_some()
}

fn refused(file: &File, length: u64) -> String {
    let error = check_written(file, length, false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Target);
    error.message
}

#[test]
fn a_file_that_was_laid_out_is_believed() {
    let scratch = Scratch::new("written");
    if skipped("extents::a_file_that_was_laid_out_is_believed", scratch.path()) {
        return;
    }
    let data = laid_out(scratch.text());
    assert_eq!(check_written(data.file(), LENGTH, false).unwrap(), Written::default());
    assert_eq!(data.extend(LENGTH, u64::MAX, &mut |_| {}).unwrap(), 0, "nothing more to write");
}

#[test]
fn a_file_that_only_has_a_length_is_a_sparse_file() {
    let scratch = Scratch::new("sparse");
    let file = File::create(scratch.path().join("file")).unwrap();
    file.set_len(LENGTH).unwrap();
    let message = refused(&file, LENGTH);
    assert!(message.starts_with("sparse file: 4194304 of the first 4194304 bytes"), "{message}");
    assert!(message.contains("the first at byte 0"), "{message}");
}

#[test]
fn a_hole_punched_in_the_middle_is_found_where_it_is() {
    let scratch = Scratch::new("punched");
    let data = laid_out(scratch.text());
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    allocate(data.file(), mode, 1 << 20, 8192);
    let message = refused(data.file(), LENGTH);
    assert!(message.starts_with("sparse file: 8192 of the first"), "{message}");
    assert!(message.contains("the first at byte 1048576"), "{message}");
    assert!(check_written(data.file(), 1 << 20, false).is_ok(), "the hole is not in this range");
    assert!(refused(data.file(), (1 << 20) + 4096).starts_with("sparse file: 4096 of"));
}

#[test]
fn a_reserved_end_is_an_unwritten_extent() {
    let scratch = Scratch::new("reserved");
    if skipped("extents::a_reserved_end_is_an_unwritten_extent", scratch.path()) {
        return;
    }
    let data = laid_out(scratch.text());
    allocate(data.file(), 0, LENGTH, 1 << 20);
    assert!(check_written(data.file(), LENGTH, false).is_ok());
    let message = refused(data.file(), LENGTH + (1 << 20));
    assert!(message.starts_with("unwritten extent: 1048576 of the first 5242880"), "{message}");
    assert!(message.contains("the first at byte 4194304"), "{message}");
}

#[test]
fn a_file_in_hundreds_of_pieces_is_looked_at_to_its_end() {
    let scratch = Scratch::new("pieces");
    if skipped("extents::a_file_in_hundreds_of_pieces_is_looked_at_to_its_end", scratch.path()) {
        return;
    }
    let file = File::create(scratch.path().join("file")).unwrap();
    allocate(&file, 0, 0, LENGTH);
    // Every second block written: a thousand extents in turn, more than one call of the map holds.
    let blocks = LENGTH / 4096;
    for block in (0..blocks).step_by(2) {
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 4096], block * 4096).unwrap();
    }
    file.sync_all().unwrap();
    let message = refused(&file, LENGTH);
    assert!(message.starts_with("unwritten extent: 2097152 of the first 4194304"), "{message}");
}

#[test]
fn where_there_is_no_map_holes_are_found_and_the_rest_is_said() {
    let Ok(scratch) = Scratch::within(Path::new("/dev/shm"), "holes") else {
        return skip(
            "extents::where_there_is_no_map_holes_are_found_and_the_rest_is_said",
            "no /dev/shm",
        );
    };
    let mut file = File::create_new(scratch.path().join("file")).unwrap();
    file.write_all(&[7; 1 << 16]).unwrap();
    let unchecked = check_written(&file, 1 << 16, false).unwrap().unchecked;
    assert!(unchecked[0].starts_with("unwritten extents of the data file"), "{unchecked:?}");
    file.set_len(1 << 17).unwrap();
    assert!(check_written(&file, 1 << 16, false).is_ok());
    let message = refused(&file, 1 << 17);
    assert!(message.starts_with("sparse file: 65536 of the first 131072"), "{message}");
    assert!(message.contains("the first at byte 65536"), "{message}");
}

fn last_event(scratch: &Scratch, warm_up_s_max: f64) -> Value {
    let job = json!({
        "version": 1, "kind": "measure", "job_id": "j",
        "target": {"kind": "directory", "path": scratch.text()},
        "workload": {"unique_bytes": LENGTH, "size_mean": 4096, "read_frac": 0.5, "seq_frac": 0.0,
            "process_num": 1},
        "backend": {"name": "pread", "direct": false}, "seed": 1,
        "limits": {
            "warm_up_s_max": warm_up_s_max, "measure_s_min": 0.1, "measure_s_max": 10.0, "accuracy": 0.5,
            "total_s_max": 20.0,
        },
    });
    let mut last = Value::Null;
    run_job(&job.to_string(), &mut |line| last = serde_json::from_str(line).unwrap());
    last
}

#[test]
fn a_job_on_a_data_file_with_holes_is_refused() {
    let scratch = Scratch::new("job");
    File::create(scratch.path().join(DATA_FILE_NAME)).unwrap().set_len(LENGTH).unwrap();
    let error = last_event(&scratch, 0.1);
    assert_eq!(error["event"], "error", "{error}");
    assert!(error["message"].as_str().unwrap().starts_with("sparse file: "), "{error}");
}

#[test]
fn a_job_says_what_it_wrote_before_and_during_the_workload() {
    let scratch = Scratch::new("wear");
    let result = last_event(&scratch, 10.0); // it ends when it is steady, so having written
    assert_eq!(result["written_bytes"]["layout"], LENGTH, "{result}");
    let during = result["written_bytes"]["workload"].as_u64().unwrap();
    assert!(during > result["write"]["bytes"].as_u64().unwrap(), "warm-up wrote too: {result}");
    let again = last_event(&scratch, 0.1);
    assert_eq!(again["written_bytes"]["layout"], 0, "{again}");
}
