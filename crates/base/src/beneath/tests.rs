//! Whatever becomes of a directory's name, its handle stays; what is not ours is not opened.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

static MADE: AtomicU32 = AtomicU32::new(0);

/// A directory of a test's own, gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("leadline-beneath-{}-{number}", std::process::id());
        let path = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pipe(path: &Path) {
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a terminated string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

#[test]
fn a_directory_moved_away_is_still_the_one_that_is_written() {
    let place = Scratch::new();
    let [run, moved, victim] = ["run", "moved", "victim"].map(|name| place.0.join(name));
    fs::create_dir(&run).unwrap();
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("data.bin"), "precious").unwrap();
    let directory = Directory::own(&run).unwrap();
    let known = directory.make("data.bin").unwrap();
    fs::rename(&run, &moved).unwrap();
    symlink(&victim, &run).unwrap();
    let mut again = directory.open_again("data.bin", Way::WRITE, &known).unwrap();
    again.write_all(b"ours").unwrap();
    directory.make("more").unwrap();
    directory.rename("more", "most").unwrap();
    assert!(directory.seen_anew().is_err(), "its name leads elsewhere");
    assert_eq!(fs::read_to_string(moved.join("data.bin")).unwrap(), "ours");
    directory.remove("data.bin").unwrap();
    assert_eq!(fs::read_to_string(victim.join("data.bin")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 1);
}

#[test]
fn a_path_with_a_link_in_it_is_no_directory_of_our_own() {
    let place = Scratch::new();
    fs::create_dir_all(place.0.join("real/run")).unwrap();
    symlink("real", place.0.join("link")).unwrap();
    let error = Directory::own(&place.0.join("link/run")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{error}");
    assert!(Directory::own(Path::new("relative")).is_err());
    // What a person named is resolved once, and then it is that directory.
    let named = Directory::named(&place.0.join("link/run")).unwrap();
    let real = Directory::own(&place.0.join("real/run")).unwrap();
    assert!(same(&named.facts().unwrap(), &real.facts().unwrap()));
}

#[test]
fn a_kernel_without_openat2_refuses_the_same() {
    let place = Scratch::new();
    fs::create_dir_all(place.0.join("real/run")).unwrap();
    symlink("real", place.0.join("link")).unwrap();
    let found = |path: &str| step_by_step(&place.0.join(path));
    assert!(same(
        &fstat(found("real/run").unwrap()).unwrap(),
        &fstat(Directory::own(&place.0.join("real/run")).unwrap()).unwrap(),
    ));
    assert_eq!(found("link/run").unwrap_err(), Errno::NOTDIR);
    assert_eq!(found("link").unwrap_err(), Errno::NOTDIR);
    assert_eq!(found("real/../real").unwrap_err(), Errno::INVAL);
    assert_eq!(found("gone").unwrap_err(), Errno::NOENT);
}

#[test]
fn nothing_foreign_is_opened() {
    let place = Scratch::new();
    let directory = Directory::own(&place.0).unwrap();
    fs::write(place.0.join("precious"), "precious").unwrap();
    symlink("precious", place.0.join("link")).unwrap();
    symlink("nowhere", place.0.join("dangling")).unwrap();
    fs::write(place.0.join("linked"), "precious").unwrap();
    fs::hard_link(place.0.join("linked"), place.0.join("second")).unwrap();
    fs::create_dir(place.0.join("folder")).unwrap();
    pipe(&place.0.join("pipe"));
    for way in [Way::READ, Way::WRITE] {
        for (name, said) in [
            ("link", "symbolic link"),
            ("dangling", "symbolic link"),
            ("second", "second name elsewhere"),
            ("pipe", "no regular file"),
            ("folder", ""),
            ("gone", "No such file"),
            ("../precious", "Invalid argument"),
            ("folder/x", "Invalid argument"),
            ("..", "Invalid argument"),
            (".", "Invalid argument"),
            ("", "Invalid argument"),
        ] {
            let error = directory.open(name, way).unwrap_err();
            assert!(error.to_string().contains(said), "{name}: {error}");
        }
    }
    for name in ["link", "dangling", "second", "pipe", "folder"] {
        assert_eq!(directory.make(name).unwrap_err().kind(), ErrorKind::AlreadyExists, "{name}");
    }
    assert!(!place.0.join("nowhere").exists(), "no link was written through");
    // A name goes, not what it leads to.
    for name in ["link", "second", "pipe"] {
        directory.remove(name).unwrap();
    }
    assert_eq!(fs::read_to_string(place.0.join("precious")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(place.0.join("linked")).unwrap(), "precious");
}

#[test]
fn a_file_in_its_place_is_not_the_same_file() {
    let place = Scratch::new();
    let directory = Directory::own(&place.0).unwrap();
    let known = directory.make("data.bin").unwrap();
    directory.remove("data.bin").unwrap();
    directory.make("data.bin").unwrap();
    let error = directory.open_again("data.bin", Way::WRITE, &known).unwrap_err();
    assert!(error.to_string().contains("replaced while"), "{error}");
    assert!(reopen(&known, Way::READ).is_ok(), "by its number it is found without a name");
}

#[test]
fn an_opened_file_waits_as_it_should() {
    let place = Scratch::new();
    let directory = Directory::own(&place.0).unwrap();
    directory.make("data.bin").unwrap();
    let file = directory.open("data.bin", Way { dsync: true, ..Way::WRITE }).unwrap();
    let flags = fcntl_getfl(&file).unwrap();
    assert!(!flags.contains(OFlags::NONBLOCK) && flags.contains(OFlags::DSYNC), "{flags:?}");
}

#[test]
fn an_input_may_be_anywhere_and_is_a_plain_file() {
    let place = Scratch::new();
    fs::write(place.0.join("data"), "mine").unwrap();
    symlink("data", place.0.join("link")).unwrap();
    let mut text = String::new();
    open_input(&place.0.join("link")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "mine");
    pipe(&place.0.join("pipe"));
    assert!(fs::metadata(place.0.join("pipe")).unwrap().file_type().is_fifo());
    for name in ["pipe", "."] {
        let error = open_input(&place.0.join(name)).unwrap_err();
        assert!(error.to_string().contains("no plain file"), "{error}");
    }
    assert!(open_device(&place.0.join("data")).is_err());
}

#[test]
fn another_users_directory_is_not_our_own() {
    if my_uid() == 0 {
        let place = Scratch::new();
        std::os::unix::fs::chown(&place.0, Some(65534), None).unwrap();
        let error = Directory::own(&place.0).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
        let parent = Directory::own(place.0.parent().unwrap()).unwrap();
        let name = place.0.file_name().unwrap().to_str().unwrap();
        assert!(parent.below(name, false).is_err());
        return;
    }
    assert!(Directory::own(Path::new("/usr")).is_err());
}
