//! Policies against what is known of them on paper.

use super::*;
use crate::random::Random;

const ALL: [PolicyName; 5] = [
    PolicyName::Lru,
    PolicyName::Clock,
    PolicyName::TwoLists,
    PolicyName::TwoQueues,
    PolicyName::Arc,
];

fn use_page(cache: &mut Cache, page: u64) -> bool {
    if cache.touch(page).is_some() {
        return true;
    }
    cache.insert(page, true);
    false
}

/// Share of hits of the second half of `uses`.
fn hits(cache: &mut Cache, uses: u32, mut draw: impl FnMut() -> u64) -> f64 {
    let mut found = 0;
    for number in 0..uses {
        let hit = use_page(cache, draw());
        found += u32::from(hit && number >= uses / 2);
    }
    f64::from(found) / f64::from(uses - uses / 2)
}

#[test]
fn under_uniform_use_every_policy_finds_the_share_that_fits() {
    for policy in ALL {
        let (mut cache, mut random) = (Cache::new(policy, 1000, 4096, 0), Random::new(5));
        let share = hits(&mut cache, 400_000, || random.below(4000));
        assert!((share - 0.25).abs() < 0.004, "{policy:?}: {share}");
        assert_eq!(cache.resident(), 1000, "{policy:?}");
    }
}

#[test]
fn what_fits_stays_under_every_policy() {
    for policy in ALL {
        let (mut cache, mut random) = (Cache::new(policy, 1000, 4096, 0), Random::new(6));
        let share = hits(&mut cache, 200_000, || random.below(1000));
        assert!(share > 0.9999, "{policy:?}: {share}");
    }
}

/// Che, Tung & Wang 2002: a page stays for the same time `t` after its use, whatever page it is.
fn che(weights: &[f64], capacity: f64) -> f64 {
    let held = |t: f64| weights.iter().map(|p| 1.0 - (-p * t).exp()).sum::<f64>();
    let (mut low, mut high) = (1.0, 1e9);
    while high / low > 1.0 + 1e-9 {
        let middle = f64::sqrt(low * high);
        if held(middle) < capacity { low = middle } else { high = middle }
    }
    weights.iter().map(|p| p * (1.0 - (-p * low).exp())).sum()
}

#[test]
fn lru_under_zipf_is_as_che_says() {
    let raw: Vec<f64> = (1..=20_000).map(|rank| 1.0 / f64::from(rank).powf(0.8)).collect();
    let total: f64 = raw.iter().sum();
    let weights: Vec<f64> = raw.iter().map(|weight| weight / total).collect();
    let mut sums = Vec::with_capacity(weights.len());
    let mut sum = 0.0;
    for weight in &weights {
        sum += weight;
        sums.push(sum);
    }
    for capacity in [500, 4000] {
        let (mut cache, mut random) =
            (Cache::new(PolicyName::Lru, capacity, 4096, 0), Random::new(8));
        let share = hits(&mut cache, 400_000, || {
            let uniform = random.unit();
            sums.partition_point(|&sum| sum < uniform) as u64
        });
        let expected = che(&weights, capacity as f64);
        assert!((share - expected).abs() < 0.005, "{capacity}: {share}, Che says {expected}");
    }
}

/// Share of hits on 500 pages used half of the time, in a memory of 1,000, while a scan passes.
fn hot_hits_beside_a_scan(policy: PolicyName) -> f64 {
    let (mut cache, mut random) = (Cache::new(policy, 1000, 4096, 0), Random::new(9));
    let (mut next, mut found, mut asked) = (1_000_000, 0, 0);
    for number in 0..200_000 {
        if random.below(4) > 0 {
            next += 1;
            use_page(&mut cache, next);
            continue;
        }
        let hit = use_page(&mut cache, random.below(500));
        if number > 100_000 {
            asked += 1;
            found += u32::from(hit);
        }
    }
    f64::from(found) / f64::from(asked)
}

#[test]
fn a_scan_washes_out_lru_and_not_those_made_against_it() {
    assert!(hot_hits_beside_a_scan(PolicyName::Lru) < 0.6);
    for policy in [PolicyName::TwoLists, PolicyName::TwoQueues, PolicyName::Arc] {
        let share = hot_hits_beside_a_scan(policy);
        assert!(share > 0.9, "{policy:?}: {share}");
    }
}

#[test]
fn a_new_working_set_is_activated_when_it_comes_back() {
    let mut cache = Cache::new(PolicyName::TwoLists, 1000, 4096, 0);
    let mut random = Random::new(10);
    hits(&mut cache, 50_000, || random.below(900));
    // Another 900 pages: the inactive list alone is too short for them.
    let share = hits(&mut cache, 100_000, || 10_000 + random.below(900));
    assert!(share > 0.999, "{share}");
}

#[test]
fn what_goes_dirty_is_said_to_be_dirty() {
    for policy in ALL {
        let mut cache = Cache::new(policy, 16, 4096, 0);
        for page in 0..16 {
            let (slot, _) = cache.insert(page, true);
            cache.page_mut(slot).dirty = page % 2 == 0;
        }
        let mut gone = Vec::new();
        for page in 100..200 {
            gone.extend(cache.insert(page, true).1.filter(|evicted| evicted.number < 16));
        }
        assert_eq!(gone.len(), 16, "{policy:?}");
        assert!(
            gone.iter().all(|evicted| evicted.dirty == (evicted.number % 2 == 0)),
            "{policy:?}"
        );
        let (slot, _) = cache.insert(0, true);
        assert!(!cache.page(slot).dirty, "{policy:?}: it comes back clean");
    }
}
