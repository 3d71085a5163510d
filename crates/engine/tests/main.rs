//! All integration tests of the crate in one program: each program is linked anew, and a test
//! that needs a process of its own starts one (`own_process`).
#![allow(clippy::unwrap_used, clippy::panic)]

mod arrival;
mod cached_disk;
mod conformance;
mod data_file;
mod extents;
mod file_test;
mod full_disk;
mod levels;
mod memfs;
mod nfs;
mod nfs_load;
mod nfs_load_generator;
mod nfs_queue;
mod open_loop;
mod open_loop_result;
mod own_process;
mod pinned;
mod precondition;
mod protocol;
mod provenance;
mod residency;
mod scratch;
mod scripted;
mod setting;
mod stall;
mod stalls;

/// A file that is no module here would be compiled by nobody.
#[test]
fn every_file_of_this_folder_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let own = ["main", "hot_loop"].contains(&name);
        assert!(own || listed.contains(&format!("mod {name};")), "{}", path.display());
    }
}
