//! Skewed places against their laws: counts by chi-square on fixed seeds, and where blocks lie.

#![allow(clippy::unwrap_used)]

use leadline_wire::job::spread::{Spread as Asked, Zone};
use leadline_wire::job::workload::{SizeDist, Workload};
use proptest::prelude::*;

use super::*;
use crate::access::stream::AccessStream;

const BLOCK_BYTES: u64 = 4096;

fn workload(blocks: u64, access: Asked) -> Workload {
    Workload {
        unique_bytes: blocks * BLOCK_BYTES,
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

/// How often each block is asked for, by rank.
fn counts(blocks: u64, access: Asked, seed: u64, number: usize) -> Vec<f64> {
    let mut stream = AccessStream::new(&workload(blocks, access), 512, seed, 0).unwrap();
    let mut by_block = vec![0.0; blocks as usize];
    for _ in 0..number {
        by_block[(stream.draw().offset_bytes / BLOCK_BYTES) as usize] += 1.0;
    }
    let stride = scattering_stride(blocks);
    (0..blocks).map(|rank| by_block[(rank * stride % blocks) as usize]).collect()
}

fn zipf(theta: f64, blocks: u64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=blocks).map(|rank| (rank as f64).powf(-theta)).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// Deviations of chi-square from its mean in standard deviations; neighbours with less than ten
/// expected are one.
fn chi_square(found: &[f64], shares: &[f64]) -> f64 {
    let number: f64 = found.iter().sum();
    let (mut square, mut freedom) = (0.0, -1.0);
    let (mut seen, mut expected) = (0.0, 0.0);
    for (at, (count, share)) in found.iter().zip(shares).enumerate() {
        seen += count;
        expected += share * number;
        if expected >= 10.0 || at + 1 == found.len() {
            square += (seen - expected) * (seen - expected) / expected.max(1.0);
            freedom += 1.0;
            (seen, expected) = (0.0, 0.0);
        }
    }
    (square - freedom) / f64::sqrt(2.0 * freedom)
}

#[test]
fn ranks_are_as_frequent_as_zipf_says_and_not_as_a_nearby_exponent_says() {
    for (theta, blocks) in [(0.0, 500), (0.6, 1000), (1.0, 1000), (1.2, 5000), (2.5, 1000)] {
        let found = counts(blocks, Asked::Zipf { theta }, 11, 400_000);
        let off = chi_square(&found, &zipf(theta, blocks));
        assert!(off.abs() < 4.0, "{theta}: {off}");
        let nearby = chi_square(&found, &zipf(theta + 0.05, blocks));
        assert!(nearby > 10.0, "{theta}: the test would not see {}: {nearby}", theta + 0.05);
    }
}

#[test]
fn every_block_has_one_rank_and_the_hottest_are_far_apart() {
    for blocks in [1, 2, 3, 10, 1000, 65_536, 99_991] {
        let stride = scattering_stride(blocks);
        let at = |rank: u64| rank * stride % blocks;
        let mut all: Vec<u64> = (0..blocks).map(at).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..blocks), "{blocks}");
        for hottest in [2, 5, 20, 100].into_iter().filter(|hottest| hottest * hottest <= blocks) {
            let mut places: Vec<u64> = (0..hottest).map(at).collect();
            places.sort_unstable();
            let gaps = places.windows(2).map(|pair| pair[1] - pair[0]);
            let nearest = gaps.min().unwrap();
            assert!(3 * nearest * hottest >= blocks, "{blocks}: {hottest} are {nearest} apart");
        }
    }
}

fn zones() -> Vec<Zone> {
    let zone = |(access_frac, size_frac)| Zone { access_frac, size_frac };
    [(0.6, 0.1), (0.3, 0.2), (0.1, 0.7)].map(zone).to_vec()
}

#[test]
fn zones_have_their_shares_and_their_places() {
    let blocks = 1000;
    let access = Asked::Zoned { zones: zones() };
    let mut stream = AccessStream::new(&workload(blocks, access), 512, 12, 0).unwrap();
    let mut found = vec![0.0; blocks as usize];
    for _ in 0..400_000 {
        found[(stream.draw().offset_bytes / BLOCK_BYTES) as usize] += 1.0;
    }
    let share = |block: u64| match block {
        0..100 => 0.6 / 100.0,
        100..300 => 0.3 / 200.0,
        _ => 0.1 / 700.0,
    };
    let shares: Vec<f64> = (0..blocks).map(share).collect();
    let off = chi_square(&found, &shares);
    assert!(off.abs() < 4.0, "{off}");
    let even = vec![1.0 / blocks as f64; blocks as usize];
    assert!(chi_square(&found, &even) > 10.0);
}

#[test]
fn sizes_of_many_kinds_keep_a_zones_share_of_the_requests() {
    let mut asked = workload(100_000, Asked::Zoned { zones: zones() });
    asked.size_dist = SizeDist::Lognormal;
    let mut stream = AccessStream::new(&asked, 512, 13, 0).unwrap();
    let hot = (0..200_000).filter(|_| stream.draw().offset_bytes < asked.unique_bytes / 10).count();
    assert!((hot as f64 / 200_000.0 - 0.6).abs() < 0.005, "{hot}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        rng_seed: proptest::test_runner::RngSeed::Fixed(21),
        ..ProptestConfig::default()
    })]

    #[test]
    fn skewed_requests_stay_within_unique_bytes(
        unique_bytes in 512u64..(1 << 48),
        size_mean in 512u64..(1 << 50),
        theta in 0.0f64..=10.0,
        zoned in any::<bool>(),
        fixed in any::<bool>(),
        seq_frac in 0.0f64..=1.0,
        seed in any::<u64>(),
    ) {
        let access = if zoned { Asked::Zoned { zones: zones() } } else { Asked::Zipf { theta } };
        let mut asked = workload(1, access);
        asked.unique_bytes = unique_bytes;
        asked.size_mean = if fixed { size_mean / 512 * 512 } else { size_mean };
        asked.size_dist = if fixed { SizeDist::Fixed } else { SizeDist::Exponential };
        asked.seq_frac = seq_frac;
        let mut stream = AccessStream::new(&asked, 512, seed, 0).unwrap();
        for _ in 0..200 {
            let request = stream.draw();
            prop_assert!(request.length_bytes >= 512);
            prop_assert_eq!(request.offset_bytes % 512, 0);
            prop_assert!(request.offset_bytes + request.length_bytes <= unique_bytes);
        }
    }
}
