//! All integration tests of the crate in one program: each program is linked anew, and a test
//! that needs a process of its own starts one (`own_process`).
#![allow(clippy::unwrap_used, clippy::panic)]

mod kernel_job;
mod lanes;
mod memory_limit;
#[path = "../../base/tests/own_process.rs"]
mod own_process;
mod protocol;
mod records;
mod scan;
mod sort;
mod sort_memory;
mod transpose;

/// A file that is no module here would be compiled by nobody.
#[test]
fn every_file_of_this_folder_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let own = name == "main";
        assert!(own || listed.contains(&format!("mod {name};")), "{}", path.display());
    }
}
