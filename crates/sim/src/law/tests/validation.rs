//! A bad document gives one message that names the field, its value and its range.

use super::*;

/// Set `/a/b` to a value, or remove it when the value is null.
fn changed(pointer: &str, value: Value) -> Value {
    let mut document = json!({
        "meta": {"name": "x"}, "survey": {}, "noise": {},
        "copy": {"read_overhead_us": 1.0, "read_mb_s": 1.0},
        "cache": [{"name": "a", "read_capacity_bytes": 1000},
                  {"name": "b", "read_capacity_bytes": 4000}],
        "flusher": {"period_s": 30.0, "run_s": 3.0, "slow_factor": 2.0},
        "network": {"latency_us": 1.0, "mb_s": 1.0},
        "device": {"capacity_bytes": 100_000, "read_mb_s": 1.0},
        "growth": {"reference_bytes": 1000, "exponent": 0.1},
        "drift": {"rate_per_hour": 0.1},
        "bursts": {"mean_slow_s": 1.0, "mean_normal_s": 1.0, "slow_factor": 2.0},
    });
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(key);
    } else {
        parent.insert(key.to_owned(), value);
    }
    document
}

#[test]
fn values_out_of_range_are_named_with_their_range() {
    for (pointer, value, words) in [
        ("/meta/name", json!("Big Iron"), "meta.name is \"Big Iron\""),
        ("/copy/read_mb_s", json!(0), "copy.read_mb_s is 0, it must be between 0.001 and"),
        ("/copy/read_overhead_us", json!(-1), "copy.read_overhead_us is -1, it must be"),
        ("/copy/processors", json!(0), "copy.processors is 0, it must be between 1 and 4096"),
        ("/cache/0/read_capacity_bytes", json!(0), "cache[0].read_capacity_bytes is 0, it must"),
        ("/cache/1/read_capacity_bytes", json!(900), "it must be above the 1000 of the level"),
        ("/cache/0/write_capacity_bytes", json!(2000), "between 512 and 1000 bytes"),
        ("/cache/0/shape", json!("smeared"), "cache[0].smear_width is missing"),
        ("/cache/0/smear_width", json!(0.1), "left out unless the shape is \"smeared\""),
        ("/cache/0/channels", json!(0), "cache[0].channels is 0"),
        ("/device/disks", json!(0), "device.disks is 0"),
        ("/device/channels", json!(2), "device.channels is 2, it must be between 1 and 1"),
        ("/device/capacity_bytes", json!(0), "device.capacity_bytes is 0"),
        ("/device/write_penalty", json!(0.5), "device.write_penalty is 0.5"),
        ("/device/seek_min_ms", json!(-3.0), "device.seek_min_ms is -3"),
        ("/flusher/run_s", json!(31), "flusher.run_s is 31, it must be between 0 and 30 seconds"),
        ("/network/after_level", json!(3), "network.after_level is 3, it must be between 0 and 2"),
        ("/growth/exponent", json!(3), "growth.exponent is 3, it must be between 0 and 2"),
        ("/noise/service_cv", json!(-0.1), "noise.service_cv is -0.1"),
        ("/drift/rate_per_hour", json!(-1), "drift.rate_per_hour is -1, it must be between -0.9"),
        ("/drift/rate_per_hour", Value::Null, "drift.rate_per_hour is missing"),
        ("/drift/factor", json!(0.5), "drift.factor is 0.5, it must be left out"),
        ("/drift", json!({"shape": "step", "factor": 0.5}), "drift.at_s is missing"),
        ("/drift", json!({"shape": "step", "at_s": 1, "factor": 0}), "drift.factor is 0, it must"),
        ("/bursts/slow_factor", json!(0.5), "bursts.slow_factor is 0.5"),
        ("/survey/process_num_max", json!(5000), "survey.process_num_max is 5000"),
    ] {
        let text = message(&changed(pointer, value));
        assert!(text.starts_with("simulated system: ") && text.contains(words), "{text}");
    }
}

#[test]
fn wrong_types_and_names_are_found_by_their_place() {
    for (pointer, value, words) in [
        ("/device/read_mb_s", Value::Null, "device: missing field `read_mb_s`"),
        ("/device", Value::Null, "missing field `device`"),
        ("/device/disks", json!("three"), "device.disks: invalid type: string \"three\""),
        ("/cache/1/raed_mb_s", json!(1), "cache[1].raed_mb_s: unknown field `raed_mb_s`"),
        ("/cache/0/write_policy", json!("none"), "unknown variant `none`, expected `write_back`"),
        ("/disc", json!({}), "unknown field `disc`"),
    ] {
        let text = message(&changed(pointer, value));
        assert!(text.contains(words) && text.contains("docs/reference/profile.md"), "{text}");
    }
}

#[test]
fn a_stated_truth_must_agree_with_the_model() {
    let stated = |regions: u32, boundaries: &[u64]| {
        changed("/truth", json!({"regions": regions, "boundaries_bytes": boundaries}))
    };
    assert!(SimulatedSystem::from_value(&stated(3, &[1000, 4000])).is_ok());
    assert!(message(&stated(2, &[1000, 4000])).contains("truth.regions is 2, it must be 3"));
    assert!(message(&stated(2, &[1000])).contains("the model's boundaries are [1000, 4000]"));
    assert!(message(&stated(3, &[1000, 4100])).contains("truth.boundaries_bytes is [1000, 4100]"));
}

#[test]
fn a_flusher_needs_a_cache() {
    let text = message(&changed("/cache", json!([])));
    assert!(text.contains("[flusher] is given without any cache level"), "{text}");
}

#[test]
fn a_document_survives_being_written_and_read() {
    let system = read(&changed("/truth", json!({"regions": 3, "boundaries_bytes": [1000, 4000]})));
    assert_eq!(read(&serde_json::to_value(&system).unwrap()), system);
}
