//! All integration tests of the crate in one program: each program is linked anew, and a test
//! that needs a process of its own starts one (`own_process`).
#![allow(clippy::unwrap_used, clippy::panic)]

mod arrival;
mod evidence;
mod file_test;
mod load;
mod memfs;
#[path = "../../base/tests/own_process.rs"]
mod own_process;
mod pinned;
mod popularity;
mod protocol;
mod run;
mod scratch;
mod scripted;
mod setting;
mod target;

/// A file that is no module here would be compiled by nobody.
#[test]
fn every_file_of_these_folders_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    assert_modules(&folder, "main");
    for room in ["evidence", "load", "run", "target"] {
        assert_modules(&folder.join(room), "mod");
    }
}

/// Everything in a folder is a module of the file `lister` in it, or a program of its own.
fn assert_modules(folder: &std::path::Path, lister: &str) {
    let listed = std::fs::read_to_string(folder.join(lister).with_extension("rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let own = [lister, "hot_loop"].contains(&name);
        assert!(own || listed.contains(&format!("mod {name};")), "{}", path.display());
    }
}
