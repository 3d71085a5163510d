//! All integration tests of the crate in one program: each program is linked anew.
#![allow(clippy::unwrap_used, clippy::panic)]

mod examples;
mod ranges;
mod schemas;

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
