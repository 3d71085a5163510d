//! Profiles of machines made of parts: the shipped ones are valid, others are refused in words.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::{Value, json};

use super::*;

fn plain_machine() -> Value {
    json!({
        "meta": {"name": "plain"},
        "survey": {"unique_bytes_max": 1u64 << 33},
        "machine": {
            "processors": {"read_overhead_us": 2.0, "copy_mb_s": 8000.0},
            "cache": {"capacity_bytes": 1u64 << 24},
            "station": {"capacity_bytes": 1u64 << 40, "servers": 4, "read_us": 100.0,
                        "write_us": 100.0, "mb_s": 500.0},
        },
    })
}

fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut document = plain_machine();
    change(&mut document);
    MachineSystem::from_value(&document).unwrap_err().message
}

#[test]
fn every_machine_is_valid_and_named_after_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/leadline/profiles/machines");
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let document: toml::Value =
            toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let system = match Profile::from_value(&serde_json::to_value(document).unwrap()) {
            Ok(Profile::Machine(system)) => system,
            Ok(Profile::Law(_)) => panic!("{name} is a law"),
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!(system.meta.name, name);
        let said = [&system.meta.title, &system.meta.source];
        assert!(said.iter().all(|text| !text.is_empty()), "{name}");
        assert!(!system.meta.assumed.is_empty() && !system.meta.facts.is_empty(), "{name}");
        found += 1;
    }
    assert!(found >= 12, "{found}");
}

#[test]
fn a_machine_is_read_back_as_it_was_written() {
    let system = MachineSystem::from_value(&plain_machine()).unwrap();
    let written = serde_json::to_value(&system).unwrap();
    assert_eq!(MachineSystem::from_value(&written).unwrap(), system);
}

#[test]
fn a_refusal_names_the_field_and_where_the_fields_are_listed() {
    assert_eq!(
        refusal(|it| it["machine"]["cache"]["polcy"] = json!("lru")),
        "simulated system: machine.cache.polcy: unknown field `polcy`, expected one of \
         `page_bytes`, `capacity_bytes`, `policy`, `request_max_bytes`, `read_ahead`, `dirty`; \
         docs/reference/machine.md lists the fields"
    );
    assert_eq!(
        refusal(|it| it["machine"]["station"]["servers"] = json!(0)),
        "simulated system: machine.station.servers is 0, it must be between 1 and 4096"
    );
    assert!(refusal(|it| it["copy"] = json!({})).contains("unknown field `copy`"));
}

#[test]
fn how_far_a_survey_may_go_is_bounded_by_what_the_machine_stores() {
    assert_eq!(
        refusal(|it| it["survey"]["unique_bytes_max"] = json!((1u64 << 40) + 1)),
        "simulated system: survey.unique_bytes_max is 1099511627777, it must be given, and at \
         most the machine's 1099511627776 bytes"
    );
    assert!(refusal(|it| it["survey"] = json!({})).contains("survey.unique_bytes_max is missing"));
    assert_eq!(
        refusal(|it| it["survey"]["size_mean_max"] = json!(1u64 << 30)),
        "simulated system: survey.size_mean_max is above 67108864 bytes, the longest mean request \
         that this machine simulates"
    );
}
