//! Any JSON as a simulated system: it is refused, or it survives being written and read, and its
//! truth can be told; a machine made of parts also serves requests, whatever its numbers are.

use leadline_sim::law::{SimulatedSystem, truth};
use leadline_sim::{Machine, MachineSystem, Profile, Request, Safety, Setting};
use serde_json::Value;

/// Requests, each of a few pages: enough to fill the smallest memories.
const REQUESTS: u64 = 300;
const SLOTS: u64 = 8;

/// Tries these bytes.
pub fn profile(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    match Profile::from_value(&document) {
        Ok(Profile::Law(system)) => law(&system),
        Ok(Profile::Machine(system)) => machine(&system),
        Err(_) => {}
    }
}

fn law(system: &SimulatedSystem) {
    let written = serde_json::to_value(system).expect("a system can be written");
    let read = SimulatedSystem::from_value(&written).expect("a written system can be read");
    assert_eq!(*system, read, "{written}");
    for boundary in truth::boundaries(system) {
        assert!(boundary.bytes.is_finite() && boundary.bytes > 0.0, "{boundary:?}");
    }
}

fn machine(system: &MachineSystem) {
    let written = serde_json::to_value(system).expect("a machine can be written");
    let read = MachineSystem::from_value(&written).expect("a written machine can be read");
    assert_eq!(*system, read, "{written}");
    let data_bytes = system.machine.capacity_bytes().min(1 << 20);
    let setting = Setting { data_bytes, seed: 1, start_ns: 5 };
    let mut document = system.machine.clone();
    let tier = document.tier.as_mut().map(|tier| &mut tier.flash);
    for drive in document.flash.iter_mut().chain(tier) {
        drive.aged_frac = drive.aged_frac.min(0.02); // bounded, but long in a build like this
    }
    let mut machine = Machine::new(&document, setting).expect("it was checked");
    let draw = |number: u64| {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bytes = (mixed % 40_000 + 1).min(data_bytes);
        Request {
            from_bytes: (mixed >> 20) % (data_bytes - bytes + 1),
            bytes,
            write: mixed & 1 == 0,
            worker: (number % SLOTS) as u32,
            safety: [Safety::None, Safety::Through, Safety::Flush][(mixed >> 9) as usize % 3],
        }
    };
    let mut number = 0;
    machine.warm(40_000, || {
        number += 1;
        draw(number)
    });
    for slot in 0..SLOTS {
        machine.submit(5, slot, &draw(slot));
    }
    let mut before_ns = 5;
    for number in 0..REQUESTS {
        // A neighbour may make a million requests while nothing else ends.
        let Some(end) = machine.next_end(before_ns + 100_000_000) else { break };
        assert!(end.at_ns >= before_ns, "ends come in order");
        before_ns = end.at_ns;
        machine.submit(end.at_ns, end.token, &draw(number));
    }
}
