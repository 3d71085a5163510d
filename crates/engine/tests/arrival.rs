//! The schedule of an open loop against the distributions it states.

use leadline_engine::access::arrival::ArrivalStream;
use leadline_engine::access::stream::AccessStream;
use leadline_wire::job::measure::Arrivals;
use leadline_wire::job::spread::Spread;
use leadline_wire::job::workload::{SizeDist, Workload};

const HOUR_NS: u64 = 3_600_000_000_000;
const FIRST_OF_SEED_1: [u64; 3] = [16_971, 602_925, 10_070_445_726];

fn constant(rate_per_s: f64) -> ArrivalStream {
    ArrivalStream::new(&Arrivals::Constant { rate_per_s }, 1).unwrap()
}

fn poisson(rate_per_s: f64, seed: u64) -> ArrivalStream {
    ArrivalStream::new(&Arrivals::Poisson { rate_per_s }, seed).unwrap()
}

/// `number` gaps in units of the mean gap.
fn gaps(rate_per_s: f64, seed: u64, number: usize) -> Vec<f64> {
    let mut stream = poisson(rate_per_s, seed);
    let mut before_ns = 0;
    (0..number)
        .map(|_| {
            let due_ns = stream.next_due_ns();
            let gap_ns = due_ns.checked_sub(before_ns).unwrap();
            before_ns = due_ns;
            gap_ns as f64 * rate_per_s * 1e-9
        })
        .collect()
}

#[test]
fn a_closed_loop_has_no_schedule() {
    assert!(ArrivalStream::new(&Arrivals::Closed {}, 1).is_none());
}

#[test]
fn a_constant_rate_is_exact_to_the_nanosecond_after_hours() {
    for rate in [3u64, 7, 1000, 48_611, 999_983] {
        let mut stream = constant(rate as f64);
        for index in 0..1000u64 {
            let exact = u128::from(index) * 1_000_000_000 * 2 / u128::from(rate);
            let told = u128::from(stream.next_due_ns()) * 2;
            assert!(told.abs_diff(exact) <= 1, "{index} at {rate}: {told} for {exact}");
        }
        let ticket = rate * 3600 * 24 + 1;
        let exact = u128::from(ticket) * 1_000_000_000 / u128::from(rate);
        let told = u128::from(stream.due_of(ticket));
        assert!(told.abs_diff(exact) <= 1, "{ticket} at {rate}: {told} for {exact}");
    }
}

#[test]
fn gaps_of_a_poisson_process_have_the_mean_and_the_variance_of_the_exponential() {
    let number = 400_000;
    let gaps = gaps(20_000.0, 11, number);
    let mean = gaps.iter().sum::<f64>() / number as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / number as f64;
    // Standard errors: 1/sqrt(n) of the mean, sqrt(8/n) of the variance (fourth moment 9).
    let n = number as f64;
    assert!((mean - 1.0).abs() < 4.0 / n.sqrt(), "{mean}");
    assert!((variance - 1.0).abs() < 4.0 * (8.0 / n).sqrt(), "{variance}");
}

#[test]
fn gaps_of_a_poisson_process_pass_kolmogorov_and_smirnov_against_the_exponential() {
    let mut gaps = gaps(500.0, 12, 100_000);
    gaps.sort_unstable_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let distance = (0u32..)
        .zip(&gaps)
        .map(|(rank, gap)| {
            let (below, law) = (f64::from(rank) / n, 1.0 - (-gap).exp());
            (law - below).abs().max((below + 1.0 / n - law).abs())
        })
        .fold(0.0, f64::max);
    assert!(distance * n.sqrt() < 1.63, "{}: the 1% point is 1.63", distance * n.sqrt());
}

#[test]
fn gaps_of_a_poisson_process_do_not_follow_from_the_one_before() {
    let gaps = gaps(1000.0, 13, 200_000);
    let products = gaps.windows(2).map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0)).sum::<f64>();
    let correlation = products / gaps.len() as f64;
    assert!(correlation.abs() < 4.0 / (gaps.len() as f64).sqrt(), "{correlation}");
}

#[test]
fn a_seed_gives_one_schedule_and_another_seed_another() {
    let first = |seed| {
        let mut stream = poisson(1000.0, seed);
        [stream.next_due_ns(), stream.next_due_ns(), stream.due_of(9999)]
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    // Written down once: the schedule of a seed is part of a survey's plan and must not drift.
    assert_eq!(first(1), FIRST_OF_SEED_1);
}

#[test]
fn issuers_that_replay_their_own_clone_agree_on_every_ticket() {
    for whole in [constant(7.0), poisson(7.0, 3)] {
        let (mut every, mut mine, mut yours) = (whole.clone(), whole.clone(), whole);
        for ticket in 0..5000u64 {
            let due_ns = every.next_due_ns();
            let told = match ticket % 7 {
                0 | 3 => mine.due_of(ticket),
                _ => yours.due_of(ticket),
            };
            assert_eq!(told, due_ns, "ticket {ticket}");
        }
        assert_eq!(mine.due_of(5000), every.next_due_ns());
        assert_eq!(yours.due_of(4000), yours.due_of(4999), "tickets never go back");
    }
}

#[test]
fn due_between_counts_the_window_with_its_first_nanosecond_and_without_its_last() {
    let stream = constant(1000.0);
    assert_eq!(stream.due_between(0, 1_000_000_000), 1000);
    assert_eq!(stream.due_between(1_000_000, 2_000_000), 1);
    assert_eq!(stream.due_between(1_000_001, 2_000_000), 0);
    assert_eq!(stream.due_between(1_000_000, 2_000_001), 2);
    let random = poisson(50.0, 4);
    let parts = random.due_between(0, HOUR_NS / 3) + random.due_between(HOUR_NS / 3, HOUR_NS);
    let whole = random.due_between(0, HOUR_NS);
    assert_eq!(whole, parts);
    assert!((whole as f64 - 180_000.0).abs() < 4.0 * 180_000f64.sqrt(), "{whole}");
}

#[test]
fn the_schedule_has_a_seed_of_its_own_that_is_no_workers() {
    let workload = Workload {
        unique_bytes: 1 << 40,
        size_mean: 512,
        read_frac: 1.0,
        seq_frac: 0.0,
        process_num: 1024,
        size_dist: SizeDist::Fixed,
        queue_depth: 1,
        think_time_s: 0.0,
        access: Spread::default(),
    };
    // The generators' states cannot be seen; what they draw must not move together.
    let gaps = gaps(1000.0, 5, 20_000);
    for process in [0, 1, 1023] {
        let mut addresses = AccessStream::new(&workload, 512, 5, process).unwrap();
        let products: f64 = gaps
            .iter()
            .map(|gap| (addresses.draw().offset_bytes as f64 / (1u64 << 39) as f64 - 1.0) * gap)
            .sum();
        let n = gaps.len() as f64;
        assert!((products / n).abs() < 4.0 * (2.0 / 3.0 / n).sqrt(), "process {process}");
    }
}
