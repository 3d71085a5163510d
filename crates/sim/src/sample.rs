//! What the tests of all parts share: small documents, and loops around a machine.

use crate::document::{
    Dirty, Disk, DiskQueue, Document, PageCache, PolicyName, Processors, ServiceShape, Station,
};
use crate::io::End;
use crate::machine::{Machine, Request, Safety, Setting};
use crate::random::Random;

pub(crate) const MIB: u64 = 1 << 20;

/// Processors that take almost nothing, and a station with one server of a millisecond.
pub(crate) fn station(shape: ServiceShape) -> Document {
    Document {
        processors: Processors {
            count: 64,
            read_overhead_us: 0.1,
            write_overhead_us: None,
            copy_mb_s: 1e5,
        },
        cache: None,
        network: None,
        server: None,
        volume: None,
        neighbour: None,
        tier: None,
        array: None,
        disk: None,
        flash: None,
        station: Some(Station {
            capacity_bytes: 1 << 40,
            servers: 1,
            read_us: 1000.0,
            write_us: 1000.0,
            mb_s: 1e6,
            shape,
        }),
    }
}

/// A disk of 7,200 turns a minute that is equally dense everywhere, under no buffer.
pub(crate) fn disk(queue: DiskQueue) -> Document {
    Document {
        station: None,
        disk: Some(Disk {
            capacity_bytes: 1 << 40,
            cylinders: 100_000,
            rotation_ms: 60e3 / 7200.0,
            seek_track_ms: 0.8,
            seek_full_ms: 17.0,
            seek_linear_frac: 0.0,
            outer_mb_s: 150.0,
            inner_mb_s: 150.0,
            overhead_us: 100.0,
            interface_mb_s: 500.0,
            queue,
            depth: 32,
            read_buffer_bytes: 0,
            write_buffer_bytes: 0,
        }),
        ..station(ServiceShape::Constant)
    }
}

/// The same with a page cache of 1,024 pages.
pub(crate) fn cached(mut document: Document) -> Document {
    document.cache = Some(PageCache {
        page_bytes: 4096,
        capacity_bytes: 4 * MIB,
        policy: PolicyName::Lru,
        request_max_bytes: MIB,
        read_ahead: None,
        dirty: Some(Dirty {
            background_bytes: MIB / 2,
            limit_bytes: MIB,
            interval_s: 5.0,
            expire_s: 30.0,
            depth: 32,
        }),
    });
    document
}

/// A machine from a document that makes sense.
pub(crate) fn machine(document: &Document, data_bytes: u64) -> Machine {
    match Machine::new(document, Setting { data_bytes, seed: 11, start_ns: 0 }) {
        Ok(machine) => machine,
        Err(refused) => unreachable!("{refused}"),
    }
}

/// A request of worker 0 that waits for nothing but its copy.
pub(crate) fn request(from_bytes: u64, bytes: u64, write: bool) -> Request {
    Request { from_bytes, bytes, write, worker: 0, safety: Safety::None }
}

/// Keeps `slots` requests outstanding until so many have ended; the nanoseconds that it took.
pub(crate) fn closed(
    machine: &mut Machine,
    slots: u64,
    ends: u64,
    mut draw: impl FnMut(u64) -> Request,
) -> u64 {
    let mut now_ns = 0;
    let begun_ns = machine.now_ns();
    for slot in 0..slots {
        machine.submit(begun_ns, slot, &draw(slot));
    }
    for _ in 0..ends {
        let Some(End { at_ns: ended_ns, token: slot, .. }) = machine.next_end(u64::MAX) else {
            unreachable!("everything ends")
        };
        assert!(ended_ns >= now_ns, "ends come in order");
        now_ns = ended_ns;
        machine.submit(now_ns, slot, &draw(slot));
    }
    now_ns - begun_ns
}

/// Random aligned requests of one length over the data.
pub(crate) fn anywhere(data_bytes: u64, bytes: u64, read_frac: f64) -> impl FnMut(u64) -> Request {
    let mut random = Random::new(99);
    move |slot| Request {
        worker: slot as u32,
        ..request(random.below(data_bytes / bytes) * bytes, bytes, random.unit() >= read_frac)
    }
}

/// Each worker on its own way through its own part of the data.
pub(crate) fn in_a_row(bytes: u64, write: bool) -> impl FnMut(u64) -> Request {
    let mut next = std::collections::HashMap::<u64, u64>::new();
    move |slot| {
        let at = next.entry(slot).or_insert(slot << 30);
        *at += bytes;
        Request { worker: slot as u32, ..request(*at - bytes, bytes, write) }
    }
}
