//! The schemas under protocol/ are what the types say. `make schemas` writes them anew.

use std::fs::{read_dir, read_to_string, write};
use std::path::{Path, PathBuf};

use leadline_wire::schema;

pub fn protocol() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol")
}

#[test]
fn every_schema_is_what_the_types_say() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    for (name, said) in schema::files() {
        let path = protocol().join(name);
        if update {
            write(&path, &said).unwrap();
        }
        let stored = read_to_string(&path).unwrap_or_default();
        // Not assert_eq, which would print both.
        assert!(stored == said, "{name} is not what the types say: run make schemas");
    }
}

#[test]
fn there_is_no_schema_that_was_written_by_hand() {
    let made = schema::files().map(|(name, _)| name);
    for entry in read_dir(protocol()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".json") || made.contains(&name.as_str()), "{name}");
    }
}
