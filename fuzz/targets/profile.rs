//! Any JSON as a simulated system: it is refused, or it survives being written and read, and its
//! truth can be told.

#![no_main]

use leadline_engine::backend::simulated::{SimulatedSystem, truth};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    let Ok(system) = SimulatedSystem::from_value(&document) else { return };
    let written = serde_json::to_value(&system).expect("a system can be written");
    let read = SimulatedSystem::from_value(&written).expect("a written system can be read");
    assert_eq!(system, read, "{written}");
    for border in truth::borders(&system) {
        assert!(border.bytes.is_finite() && border.bytes > 0.0, "{border:?}");
    }
});
