//! The address streams against METHODS §1: sizes, fractions, places, the LRU stack,
//! reproducibility.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use super::*;
use leadline_wire::job::spread::Spread as Asked;
use leadline_wire::job::streams::SizeShare;
use proptest::prelude::*;

fn workload(unique_bytes: u64, size_mean: u64, read_frac: f64, seq_frac: f64) -> Workload {
    Workload {
        unique_bytes,
        size_mean,
        read_frac,
        seq_frac,
        process_num: 1,
        size_dist: SizeDist::Normal,
        queue_depth: 1,
        think_time_s: 0.0,
        access: Asked::default(),
    }
}

fn requests(workload: &Workload, granule: u64, seed: u64, number: usize) -> Vec<Request> {
    let mut stream = AccessStream::new(workload, granule, seed, 0).unwrap();
    (0..number).map(|_| stream.draw()).collect()
}

/// An LRU stack over granules: a Fenwick tree over the times of the last references.
struct LruStack {
    tree: Vec<u32>,
    last: HashMap<u64, usize>,
    now: usize,
}

impl LruStack {
    fn new(references: usize) -> Self {
        Self { tree: vec![0; references + 1], last: HashMap::new(), now: 0 }
    }

    fn add(&mut self, mut at: usize, step: i32) {
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(step);
            at += at & at.wrapping_neg();
        }
    }

    fn until(&self, mut at: usize) -> u32 {
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Position of `granule` in the stack (1 is the top), then moves it there; none the first time.
    fn touch(&mut self, granule: u64) -> Option<u64> {
        self.now += 1;
        let depth = self.last.insert(granule, self.now).map(|before| {
            let depth = self.last.len() as u64 - u64::from(self.until(before)) + 1;
            self.add(before, -1);
            depth
        });
        self.add(self.now, 1);
        depth
    }
}

fn mean_depth_frac(workload: &Workload, granule: u64, number: usize) -> f64 {
    let requests = requests(workload, granule, 3, number);
    let references: u64 = requests.iter().map(|request| request.length_bytes / granule).sum();
    let mut stack = LruStack::new(references as usize);
    let (mut sum, mut count) = (0u64, 0u64);
    for (index, request) in requests.iter().enumerate() {
        for step in 0..request.length_bytes / granule {
            let depth = stack.touch(request.offset_bytes / granule + step);
            // The first half only fills the stack.
            if let (Some(depth), true) = (depth, index > number / 2) {
                sum += depth;
                count += 1;
            }
        }
    }
    let granules = workload.unique_bytes / granule;
    sum as f64 / count as f64 / granules as f64
}

#[test]
fn mean_lru_stack_depth_is_half_of_unique_bytes() {
    for (granules, mean, seq_frac) in
        [(2048, 1, 0.0), (4096, 8, 0.0), (4099, 8, 0.5), (5000, 40, 0.0)]
    {
        let workload = workload(granules * 512, mean * 512, 0.5, seq_frac);
        let number = (granules * 40 / mean) as usize;
        let depth = mean_depth_frac(&workload, 512, number);
        assert!((depth / 0.5 - 1.0).abs() < 0.02, "{granules} {mean} {seq_frac}: {depth}");
    }
}

#[test]
fn every_granule_is_touched_as_often_as_any_other() {
    for (granules, mean) in [(1000, 7), (64, 9), (50, 20)] {
        let workload = workload(granules * 512, mean * 512, 0.5, 0.0);
        let mut counts = vec![0u64; granules as usize];
        for request in requests(&workload, 512, 5, 400_000) {
            let first = request.offset_bytes / 512;
            (first..first + request.length_bytes / 512).for_each(|at| counts[at as usize] += 1);
        }
        let mean_count = counts.iter().sum::<u64>() as f64 / granules as f64;
        let quarter = granules as usize / 4;
        for part in [&counts[..quarter], &counts[quarter..3 * quarter], &counts[3 * quarter..]] {
            let share = part.iter().sum::<u64>() as f64 / part.len() as f64 / mean_count;
            assert!((share - 1.0).abs() < 0.12, "{granules} {mean}: {share}");
        }
        if granules > 100 * mean {
            let low = counts.iter().min().copied().unwrap() as f64 / mean_count;
            let high = counts.iter().max().copied().unwrap() as f64 / mean_count;
            assert!(low > 0.93 && high < 1.07, "{low} {high}");
        }
    }
}

/// Realised mean and CV of lengths in granules.
fn realised(requests: &[Request], granule: u64) -> (f64, f64) {
    let number = requests.len() as f64;
    let lengths = requests.iter().map(|request| (request.length_bytes / granule) as f64);
    let mean = lengths.clone().sum::<f64>() / number;
    let variance = lengths.map(|length| (length - mean).powi(2)).sum::<f64>() / number;
    (mean, variance.sqrt() / mean)
}

#[test]
fn mean_and_cv_of_sizes_are_those_derived() {
    // Means from one granule to far above unique_bytes, unique_bytes from a few granules to
    // terabytes.
    let cases = [
        (1 << 20, 2.0),
        (1 << 20, 3.7),
        (1 << 20, 8.0),
        (1 << 20, 100.0),
        (1 << 32, 40_000.0),
        (1 << 14, 8.0),
        (1 << 14, 16.0),
        (1 << 14, 20.0),
        (1 << 20, 1500.0),
        (3 * 512, 1.5),
    ];
    for (unique_bytes, mean) in cases {
        let workload = workload(unique_bytes, (mean * 512.0) as u64, 0.5, 0.3);
        let stream = AccessStream::new(&workload, 512, 1, 0).unwrap();
        let (realised_mean, cv) = realised(&requests(&workload, 512, 1, 300_000), 512);
        assert!((stream.sizes().mean() / mean - 1.0).abs() < 1e-3, "{unique_bytes} {mean}");
        assert!(
            (realised_mean / mean - 1.0).abs() < 0.01,
            "{unique_bytes} {mean}: {realised_mean}"
        );
        let derived = stream.sizes().cut_cv();
        assert!((cv / derived - 1.0).abs() < 0.01, "{unique_bytes} {mean}: {cv} for {derived}");
    }
}

#[test]
fn the_cv_far_from_both_ends_is_the_one_derived_in_the_docs() {
    let stream = AccessStream::new(&workload(1 << 40, 1 << 20, 0.5, 0.5), 512, 1, 0).unwrap();
    assert!((stream.sizes().cut_cv() - 0.6163).abs() < 2e-4, "{}", stream.sizes().cut_cv());
}

const CV_ONE: [SizeDist; 2] = [SizeDist::Exponential, SizeDist::Lognormal];

#[test]
fn sizes_with_a_cv_of_one_have_it_and_the_mean_asked_for() {
    for (unique_bytes, mean) in [
        (1 << 30, 1.05),
        (1 << 30, 2.5),
        (1 << 30, 8.0),
        (1 << 30, 15.0),
        (1 << 32, 40.0),
        (1 << 32, 100.0),
        (1 << 40, 40_000.0),
        (1 << 14, 20.0),
    ] {
        for size_dist in CV_ONE {
            let what = format!("{size_dist:?} {unique_bytes} {mean}");
            let workload = Workload {
                size_dist,
                ..workload(unique_bytes, (mean * 512.0_f64).round() as u64, 0.5, 0.0)
            };
            let mean = workload.size_mean as f64 / 512.0;
            let stream = AccessStream::new(&workload, 512, 1, 0).unwrap();
            assert!((stream.sizes().mean() / mean - 1.0).abs() < 1e-3, "{what}");
            let (seen, cv) = realised(&requests(&workload, 512, 1, 300_000), 512);
            assert!((seen / mean - 1.0).abs() < 0.01, "{what}: {seen}");
            let derived = stream.sizes().cut_cv();
            assert!((cv / derived - 1.0).abs() < 0.02, "{what}: {cv} for {derived}");
        }
    }
}

#[test]
fn far_from_both_ends_their_cv_is_one_and_the_tail_is_the_laws() {
    for (size_dist, beyond_5_means) in CV_ONE.into_iter().zip([0.006_738, 0.009_402]) {
        let workload = Workload { size_dist, ..workload(1 << 40, 1 << 20, 0.5, 0.0) };
        let stream = AccessStream::new(&workload, 512, 1, 0).unwrap();
        assert!((stream.sizes().cut_cv() - 1.0).abs() < 2e-3, "{}", stream.sizes().cut_cv());
        let drawn = requests(&workload, 512, 4, 400_000);
        let long = drawn.iter().filter(|request| request.length_bytes > 5 << 20).count();
        let share = long as f64 / 400_000.0;
        assert!((share / beyond_5_means - 1.0).abs() < 0.06, "{share} for {beyond_5_means}");
        let usual = stream.sizes().usual_most() * 512;
        let above = drawn.iter().filter(|request| request.length_bytes > usual).count();
        assert!(above < 16, "{above} of 400,000 are longer than is usual");
    }
}

#[test]
fn a_histogram_has_its_sizes_as_often_as_it_says_and_no_others() {
    let size = |bytes, weight| SizeShare { bytes, weight };
    let sizes = vec![size(4096, 60.0), size(16_384, 30.0), size(65_536, 10.0)];
    let workload =
        Workload { size_dist: SizeDist::Histogram(sizes), ..workload(1 << 30, 13_926, 0.5, 0.0) };
    let drawn = requests(&workload, 512, 5, 100_000);
    let share = |bytes| {
        drawn.iter().filter(|request| request.length_bytes == bytes).count() as f64 / 100_000.0
    };
    for (bytes, wanted) in [(4096, 0.6), (16_384, 0.3), (65_536, 0.1)] {
        assert!((share(bytes) - wanted).abs() < 0.005, "{bytes}: {}", share(bytes));
    }
    let (mean, cv) = realised(&drawn, 512);
    let sizes = sizes_of(&workload, 512).unwrap();
    assert!((sizes.mean() * 512.0 - 13_926.4).abs() < 1e-6);
    assert!((mean / sizes.mean() - 1.0).abs() < 0.01, "{mean}");
    assert!((cv / sizes.cut_cv() - 1.0).abs() < 0.01, "{cv} for {}", sizes.cut_cv());
    let refused = sizes_of(&workload, 8192).unwrap_err().message;
    assert!(
        refused.starts_with("workload.size_dist has a size of 4096; it must be a"),
        "{refused}"
    );
}

#[test]
fn smallest_and_largest_means_leave_one_size() {
    for (unique_bytes, size_mean, length) in
        [(1 << 20, 512, 512), (4096, 4096, 4096), (5000, 1 << 30, 4608)]
    {
        let requests = requests(&workload(unique_bytes, size_mean, 0.5, 0.5), 512, 1, 1000);
        assert!(requests.iter().all(|request| request.length_bytes == length), "{unique_bytes}");
    }
    let mut fixed = workload(1 << 20, 65_536, 0.5, 0.5);
    fixed.size_dist = SizeDist::Fixed;
    let requests = requests(&fixed, 512, 1, 1000);
    assert!(
        requests
            .iter()
            .all(|request| request.length_bytes == 65_536 && request.offset_bytes % 65_536 == 0)
    );
}

#[test]
fn fractions_come_out_as_asked() {
    for (read_frac, seq_frac) in [(0.0, 1.0), (0.5, 0.5), (0.9, 0.1), (0.25, 0.0), (1.0, 0.75)] {
        let requests = requests(&workload(1 << 24, 8192, read_frac, seq_frac), 512, 9, 200_000);
        let share = |test: &dyn Fn(&Request) -> bool| {
            requests.iter().filter(|request| test(request)).count() as f64 / 200_000.0
        };
        assert!(
            (share(&|request| request.kind == Kind::Read) - read_frac).abs()
                < 0.01 * read_frac.max(0.5)
        );
        assert!((share(&|request| request.sequential) - seq_frac).abs() < 0.01 * seq_frac.max(0.5));
    }
}

#[test]
fn a_sequential_request_starts_where_the_last_one_ended_or_wraps_whole() {
    let requests = requests(&workload(1 << 18, 8192, 0.5, 0.8), 512, 2, 20_000);
    let mut wraps = 0;
    for pair in requests.windows(2).filter(|pair| pair[1].sequential) {
        let end = pair[0].offset_bytes + pair[0].length_bytes;
        if end + pair[1].length_bytes <= 1 << 18 {
            assert_eq!(pair[1].offset_bytes, end);
        } else {
            assert_eq!(pair[1].offset_bytes, 0);
            wraps += 1;
        }
    }
    assert!(wraps > 100, "{wraps}");
}

/// FNV-1a over everything in the requests.
fn digest(requests: &[Request]) -> u64 {
    let words = requests.iter().flat_map(|request| {
        [
            request.offset_bytes,
            request.length_bytes,
            u64::from(request.kind == Kind::Read),
            u64::from(request.sequential),
        ]
    });
    words.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn a_seed_gives_the_same_addresses_in_every_process_and_on_every_machine() {
    let workload = workload(3 << 30, 32_768, 0.7, 0.4);
    let stream = |process| {
        let mut stream = AccessStream::new(&workload, 512, 42, process).unwrap();
        digest(&(0..10_000).map(|_| stream.draw()).collect::<Vec<_>>())
    };
    assert_eq!((stream(0), stream(7)), (11_608_187_222_578_175_816, 16_422_072_703_635_392_446));
}

fn fixed_seed(cases: u32) -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(20);
    ProptestConfig { cases, rng_seed, ..ProptestConfig::default() }
}

fn any_bytes(most: u32) -> impl Strategy<Value = u64> {
    (9..=most).prop_flat_map(|octave| (1u64 << octave)..(1u64 << (octave + 1)))
}

proptest! {
    #![proptest_config(fixed_seed(300))]

    #[test]
    fn requests_stay_within_unique_bytes_over_the_whole_range(
        unique_bytes in any_bytes(48),
        size_mean in any_bytes(50),
        read_frac in 0.0f64..=1.0,
        seq_frac in 0.0f64..=1.0,
        large_granule in any::<bool>(),
        fixed in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let granule = if large_granule { 4096 } else { 512 };
        let (unique_bytes, size_mean) = (unique_bytes.max(granule), size_mean.max(granule));
        let mut workload = workload(unique_bytes, size_mean, read_frac, seq_frac);
        if fixed {
            workload.size_dist = SizeDist::Fixed;
            workload.size_mean -= workload.size_mean % granule;
        }
        let drawn = requests(&workload, granule, seed, 300);
        for request in &drawn {
            prop_assert!(request.length_bytes >= granule);
            prop_assert_eq!(request.length_bytes % granule, 0);
            prop_assert_eq!(request.offset_bytes % granule, 0);
            prop_assert!(request.offset_bytes + request.length_bytes <= workload.unique_bytes);
        }
        prop_assert_eq!(&drawn, &requests(&workload, granule, seed, 300));
    }

    #[test]
    fn the_derived_mean_is_the_one_asked_over_the_whole_range(
        unique_bytes in any_bytes(48),
        size_mean in any_bytes(50),
    ) {
        let workload = workload(unique_bytes, size_mean, 0.5, 0.5);
        let stream = AccessStream::new(&workload, 512, 1, 0).unwrap();
        let granules = (unique_bytes / 512) as f64;
        let wanted = (size_mean as f64 / 512.0).min(granules);
        prop_assert!((stream.sizes().mean() / wanted - 1.0).abs() < 1e-3);
        prop_assert!((0.0..0.62).contains(&stream.sizes().cut_cv()));
    }
}

#[test]
fn processes_have_threads_of_addresses_of_their_own() {
    let workload = workload(1 << 30, 4096, 0.5, 1.0);
    let first =
        |process| AccessStream::new(&workload, 512, 1, process).unwrap().draw().offset_bytes;
    let mut places: Vec<u64> = (0..100).map(first).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 100);
}

#[test]
fn a_size_below_the_granule_or_a_fixed_one_off_it_is_refused_by_name() {
    let refusal = |unique_bytes, size_mean, size_dist| {
        let workload = Workload { size_dist, ..workload(unique_bytes, size_mean, 0.5, 0.5) };
        sizes_of(&workload, 512).map_err(|error| error.message)
    };
    for (unique_bytes, size_mean, size_dist, named) in [
        (511, 512, SizeDist::Normal, "workload.unique_bytes is 511"),
        (512, 511, SizeDist::Normal, "workload.size_mean is 511"),
        (4096, 700, SizeDist::Fixed, "workload.size_mean is 700; a fixed size must be a multiple"),
    ] {
        assert!(refusal(unique_bytes, size_mean, size_dist).unwrap_err().starts_with(named));
    }
    assert!(refusal(512, 512, SizeDist::Fixed).is_ok());
    assert!(refusal(4096, 1024, SizeDist::Fixed).is_ok());
    assert!(refusal(4096, 700, SizeDist::Normal).is_ok());
}

#[test]
fn unit_intervals_are_evenly_filled() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut tenths = [0; 10];
    for _ in 0..10_000 {
        tenths[(unit_interval(&mut random) * 10.0) as usize] += 1; // 1 would be the eleventh
    }
    // Six standard deviations of 30.
    assert!(tenths.iter().all(|count| (820..1180).contains(count)), "{tenths:?}");
}
