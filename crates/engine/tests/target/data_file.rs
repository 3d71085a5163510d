//! The data file: really written, private, and nobody else's.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::scratch::Scratch;
use leadline_base::error::ErrorKind;
use leadline_engine::backend::data_file::{DATA_FILE_NAME, DataFile};

fn laid_out(scratch: &Scratch, bytes: u64) -> DataFile {
    let data = DataFile::open(scratch.text()).unwrap();
    data.extend(bytes, u64::MAX, &mut |_| {}).unwrap();
    data
}

fn content(scratch: &Scratch) -> Vec<u8> {
    fs::read(scratch.path().join(DATA_FILE_NAME)).unwrap()
}

#[test]
fn it_is_written_whole_without_holes_and_private() {
    let scratch = Scratch::new("whole");
    let mut shares = Vec::new();
    let data = DataFile::open(scratch.text()).unwrap();
    data.extend(9_000_000, u64::MAX, &mut |share| shares.push(share)).unwrap();
    let facts = data.file().metadata().unwrap();
    assert_eq!(facts.len(), 9_000_000u64.next_multiple_of(4096));
    assert!(facts.blocks() * 512 >= facts.len(), "{} blocks", facts.blocks());
    // SAFETY: a valid descriptor.
    let hole = unsafe { libc::lseek(data.file().as_raw_fd(), 0, libc::SEEK_HOLE) };
    assert_eq!(hole as u64, facts.len());
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    assert_eq!(shares.last(), Some(&1.0));
    assert!(shares.is_sorted());
}

#[test]
fn its_content_does_not_compress() {
    let scratch = Scratch::new("content");
    laid_out(&scratch, 9 << 20);
    let content = content(&scratch);
    let mut counts = [0f64; 256];
    content.iter().for_each(|byte| counts[usize::from(*byte)] += 1.0);
    let entropy: f64 =
        counts.iter().map(|count| count / content.len() as f64).map(|p| -p * p.log2()).sum();
    assert!(entropy > 7.999, "{entropy} bits per byte");
    let blocks: std::collections::HashSet<&[u8]> = content.chunks(4096).collect();
    assert_eq!(blocks.len(), content.len() / 4096, "no two blocks are alike");
}

#[test]
fn it_grows_and_keeps_what_it_has() {
    let scratch = Scratch::new("grows");
    laid_out(&scratch, 1 << 20);
    let before = content(&scratch);
    laid_out(&scratch, 2 << 20);
    assert_eq!(content(&scratch)[..before.len()], before);
    laid_out(&scratch, 4096);
    assert_eq!(content(&scratch).len(), 2 << 20, "it never shrinks by itself");
}

#[test]
fn a_time_limit_during_layout_leaves_the_file_as_it_was() {
    let scratch = Scratch::new("limit");
    let data = laid_out(&scratch, 1 << 20);
    let error = data.extend(1 << 30, 0, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Target);
    assert!(error.message.contains("the time limit ended during layout"), "{error}");
    assert_eq!(data.length_bytes().unwrap(), 1 << 20);
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let scratch = Scratch::new("link");
    let elsewhere = scratch.path().join("precious");
    fs::write(&elsewhere, "precious").unwrap();
    symlink(&elsewhere, scratch.path().join(DATA_FILE_NAME)).unwrap();
    let error = DataFile::open(scratch.text()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Target);
    assert!(error.message.contains("symbolic link"), "{error}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
}

#[test]
fn a_file_with_a_second_name_or_no_file_at_all_is_refused() {
    let scratch = Scratch::new("names");
    let precious = scratch.path().join("precious");
    File::create(&precious).unwrap();
    fs::hard_link(&precious, scratch.path().join(DATA_FILE_NAME)).unwrap();
    let error = DataFile::open(scratch.text()).unwrap_err();
    assert!(error.message.contains("second name"), "{error}");
    fs::remove_file(scratch.path().join(DATA_FILE_NAME)).unwrap();
    fs::create_dir(scratch.path().join(DATA_FILE_NAME)).unwrap();
    assert_eq!(DataFile::open(scratch.text()).unwrap_err().kind, ErrorKind::Target);
}

#[test]
fn a_missing_directory_is_said_plainly() {
    let error = DataFile::open("/nowhere/at/all").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Target);
    assert!(error.message.contains("the run directory is not there"), "{error}");
}
