//! What a cache of a share of the data serves when some places are asked for more than others.
//!
//! Che, Tung and Wang 2002: under independent requests a block stays in an LRU cache for about the
//! same time `t` after its last use, whichever block it is. So block `i`, asked for with
//! probability `p`, is there with probability `1 − exp(−p t)`; `t` is where these add up to what the
//! cache holds, and requests find it with probability `Σ p (1 − exp(−p t))`. The error is far below
//! a percent from a few hundred blocks on (Fricker, Robert and Roberts 2012).

use leadline_wire::job::spread::Spread;
use leadline_wire::job::workload::Workload;

/// Ranks taken one by one; those beyond in groups whose last rank is this much above the first.
const RANKS_ALONE: f64 = 256.0;
const GROUP_FACTOR: f64 = 1.02;

/// Blocks that are asked for alike.
struct Group {
    number: f64,
    /// Of a request, that it is for one certain block of them.
    probability: f64,
}

/// The share of random requests that an LRU cache of `capacity_bytes` finds, at most 1.
#[must_use]
pub fn found_share(workload: &Workload, capacity_bytes: f64) -> f64 {
    let share = capacity_bytes / workload.unique_bytes as f64;
    if share >= 1.0 {
        return 1.0;
    }
    let blocks = (workload.unique_bytes as f64 / workload.size_mean as f64).floor().max(1.0);
    let groups = match &workload.access {
        Spread::Uniform {} => return share,
        Spread::Zipf { theta } => ranks(*theta, blocks),
        Spread::Zoned { zones } => {
            let group = |zone: &leadline_wire::job::spread::Zone| {
                let number = blocks * zone.size_frac;
                Group { number, probability: zone.access_frac / number }
            };
            zones.iter().map(group).collect()
        }
    };
    found(&groups, share * blocks)
}

fn found(groups: &[Group], held: f64) -> f64 {
    let sum =
        |of: &dyn Fn(&Group) -> f64| groups.iter().map(|group| group.number * of(group)).sum();
    let there = |group: &Group, t: f64| -(-group.probability * t).exp_m1();
    let (mut low, mut high) = (0.0_f64, 200.0_f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        let total: f64 = sum(&|group| there(group, middle.exp()));
        if total < held {
            low = middle;
        } else {
            high = middle;
        }
    }
    sum(&|group| group.probability * there(group, low.exp()))
}

/// Ranks 1 to `blocks` under an exponent.
fn ranks(theta: f64, blocks: f64) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut first = 1.0;
    while first <= blocks {
        let last =
            if first < RANKS_ALONE { first } else { (first * GROUP_FACTOR).floor().min(blocks) };
        let number = last - first + 1.0;
        groups.push(Group { number, probability: weight(theta, first, last) / number });
        first = last + 1.0;
    }
    let total: f64 = groups.iter().map(|group| group.number * group.probability).sum();
    groups.iter_mut().for_each(|group| group.probability /= total);
    groups
}

/// `Σ r^−theta` from `first` to `last`: of several by the integral between their outer edges.
fn weight(theta: f64, first: f64, last: f64) -> f64 {
    if first >= last {
        return first.powf(-theta);
    }
    let (low, high) = (first - 0.5, last + 0.5);
    // Near 1 the difference of powers loses its digits; the logarithm is its limit.
    if (theta - 1.0).abs() < 1e-9 {
        return (high / low).ln();
    }
    (high.powf(1.0 - theta) - low.powf(1.0 - theta)) / (1.0 - theta)
}

#[cfg(test)]
mod tests;
