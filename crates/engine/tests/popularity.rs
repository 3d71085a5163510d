//! Che's approximation against an LRU stack fed by the engine's own address streams.

use std::collections::{BTreeMap, HashMap};

use leadline_engine::access::stream::AccessStream;
use leadline_sim::law::found_share;
use leadline_wire::job::spread::{Spread, Zone};
use leadline_wire::job::workload::{SizeDist, Workload};

const BLOCKS: u64 = 5000;
const BLOCK_BYTES: u64 = 4096;

fn workload(access: Spread) -> Workload {
    Workload {
        unique_bytes: BLOCKS * BLOCK_BYTES,
        size_mean: BLOCK_BYTES,
        read_frac: 1.0,
        seq_frac: 0.0,
        process_num: 1,
        size_dist: SizeDist::Fixed,
        queue_depth: 1,
        think_time_s: 0.0,
        access,
    }
}

/// Share of the second half of the requests that an LRU cache of so many blocks finds.
fn simulated(workload: &Workload, held: usize) -> f64 {
    let mut stream = AccessStream::new(workload, 512, 31, 0).unwrap();
    let (mut by_use, mut last) = (BTreeMap::new(), HashMap::new());
    let (requests, mut found) = (400_000_u64, 0_u64);
    for now in 0..requests {
        let block = stream.draw().offset_bytes / BLOCK_BYTES;
        if let Some(before) = last.insert(block, now) {
            by_use.remove(&before);
            found += u64::from(now >= requests / 2);
        }
        by_use.insert(now, block);
        if by_use.len() > held
            && let Some((_, oldest)) = by_use.pop_first()
        {
            last.remove(&oldest);
        }
    }
    2.0 * found as f64 / requests as f64
}

#[test]
fn an_lru_cache_finds_what_che_says() {
    let zone = |(access_frac, size_frac)| Zone { access_frac, size_frac };
    let zoned = Spread::Zoned { zones: [(0.6, 0.1), (0.3, 0.2), (0.1, 0.7)].map(zone).to_vec() };
    let zipf = |theta| Spread::Zipf { theta };
    for access in [zipf(0.0), zipf(0.7), zipf(1.0), zipf(1.3), zoned] {
        let workload = workload(access);
        for held in [250, 2500] {
            let said = found_share(&workload, (held as u64 * BLOCK_BYTES) as f64);
            let seen = simulated(&workload, held);
            let (at, kind) = (held as u64, &workload.access);
            assert!((said - seen).abs() < 0.006, "{kind:?} {at}: Che {said}, the stack {seen}");
        }
    }
}
