//! Che's approximation by itself; against real address streams it is held by the engine's tests.

use leadline_wire::job::workload::SizeDist;

use super::*;

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

#[test]
fn what_is_used_evenly_is_found_by_its_share_and_what_fits_always() {
    let bytes = (BLOCKS * BLOCK_BYTES) as f64;
    for access in [Spread::Uniform {}, Spread::Zipf { theta: 0.0 }] {
        let found = found_share(&workload(access), 0.3 * bytes);
        assert!((found - 0.3).abs() < 1e-6, "{found}");
    }
    let skewed = workload(Spread::Zipf { theta: 1.2 });
    assert_eq!(found_share(&skewed, bytes).to_bits(), 1.0_f64.to_bits());
}

#[test]
fn groups_of_ranks_are_as_the_ranks_are() {
    for theta in [0.5, 1.0, 1.000_000_000_1, 2.0] {
        let groups = ranks(theta, 1e6);
        let number: f64 = groups.iter().map(|group| group.number).sum();
        assert!((number - 1e6).abs() < 0.5, "{theta}: {number}");
        let total: f64 = (1..=1_000_000).map(|rank| f64::from(rank).powf(-theta)).sum();
        let first = groups[0].probability * total;
        assert!((first - 1.0).abs() < 1e-4, "{theta}: {first}");
    }
}
