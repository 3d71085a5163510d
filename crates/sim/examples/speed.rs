//! Requests a second of host time on machines whose cache holds 10^5 pages: each line a case.
//!
//!     cargo run --release -p leadline-sim --example speed

use std::time::Instant;

use leadline_sim::{
    Dirty, Document, Flash, Machine, PageCache, PolicyName, Processors, Refused, Request, Safety,
    Setting,
};

const PAGES: u64 = 100_000;
const PAGE_BYTES: u64 = 4096;
const REQUESTS: u64 = 2_000_000;
const SLOTS: u64 = 8;

fn document(policy: PolicyName) -> Document {
    let cache = PageCache {
        page_bytes: PAGE_BYTES,
        capacity_bytes: PAGES * PAGE_BYTES,
        policy,
        request_max_bytes: 1 << 20,
        read_ahead: None,
        dirty: Some(Dirty {
            background_bytes: PAGES * PAGE_BYTES / 10,
            limit_bytes: PAGES * PAGE_BYTES / 5,
            interval_s: 5.0,
            expire_s: 30.0,
            depth: 32,
        }),
    };
    let flash = Flash {
        capacity_bytes: 1 << 38,
        channels: 4,
        dies_per_channel: 4,
        planes: 4,
        page_bytes: 16 << 10,
        read_us: 55.0,
        program_us: 1000.0,
        channel_mb_s: 1200.0,
        interface_mb_s: 3400.0,
        overhead_us: 12.0,
        write_buffer_bytes: 32 << 20,
        power_safe: false,
        slc: None,
        spare_frac: 0.1,
        aged_frac: 0.0,
    };
    let processors =
        Processors { count: 8, read_overhead_us: 1.5, write_overhead_us: None, copy_mb_s: 9000.0 };
    Document {
        processors,
        cache: Some(cache),
        network: None,
        server: None,
        volume: None,
        neighbour: None,
        tier: None,
        array: None,
        disk: None,
        flash: Some(flash),
        station: None,
    }
}

/// Numbers that look random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 29)
}

fn million_per_s(policy: PolicyName, pages: u64, writes: bool) -> Result<f64, Refused> {
    let setting = Setting { data_bytes: pages * PAGE_BYTES, seed: 1, start_ns: 0 };
    let mut machine = Machine::new(&document(policy), setting)?;
    let mut state = 7;
    let mut draw = |slot: u64| Request {
        from_bytes: next(&mut state) % pages * PAGE_BYTES,
        bytes: PAGE_BYTES,
        write: writes && next(&mut state).is_multiple_of(2),
        worker: slot as u32,
        safety: Safety::None,
    };
    let began = Instant::now();
    machine.warm(PAGE_BYTES, || draw(0));
    let warm_s = began.elapsed().as_secs_f64();
    for slot in 0..SLOTS {
        machine.submit(0, slot, &draw(slot));
    }
    let began = Instant::now();
    for _ in 0..REQUESTS {
        if let Some(end) = machine.next_end(u64::MAX) {
            machine.submit(end.at_ns, end.token, &draw(end.token));
        }
    }
    let per_s = REQUESTS as f64 / began.elapsed().as_secs_f64();
    println!(
        "{policy:?}, {pages} pages{}: {:.2} million requests/s; warm in {warm_s:.3} s",
        if writes { ", half writes" } else { "" },
        per_s * 1e-6
    );
    Ok(per_s)
}

fn main() -> Result<(), Refused> {
    for policy in [
        PolicyName::Lru,
        PolicyName::Clock,
        PolicyName::TwoLists,
        PolicyName::TwoQueues,
        PolicyName::Arc,
    ] {
        million_per_s(policy, PAGES / 2, false)?;
        million_per_s(policy, 4 * PAGES, false)?;
    }
    million_per_s(PolicyName::TwoLists, PAGES / 2, true)?;
    million_per_s(PolicyName::TwoLists, 15 * PAGES, false)?;
    Ok(())
}
