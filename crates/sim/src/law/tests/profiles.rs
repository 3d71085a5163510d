//! The shipped profiles: all valid, and those of the papers' machines say what the papers say.

use std::path::PathBuf;

use super::super::truth::{boundaries, expected_throughput_mb_s};
use super::*;

const KIB: u64 = 1024;
const NAMES: [&str; 26] = [
    "alpha-axp-3000",
    "alpha-axp-3000-cancelling",
    "bursty",
    "convex-c240",
    "convex-c240-cp93",
    "credit-cliff",
    "decstation-5000-sprite",
    "decstation-5000-ultrix",
    "drifting",
    "four-level",
    "hp-720-dux",
    "hp-730",
    "hp-730-hpux9",
    "hp-730-hpux9-unflushed",
    "ibm-3090",
    "no-cache",
    "noisy",
    "rs6000-550",
    "smooth-slope",
    "solbourne-5e905",
    "sparcstation-10",
    "sparcstation-1plus",
    "sparcstation-1plus-nfs",
    "three-level",
    "two-level",
    "write-through",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/leadline/profiles")
}

fn profile(name: &str) -> SimulatedSystem {
    let text = std::fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap();
    let document: toml::Value = toml::from_str(&text).unwrap();
    match SimulatedSystem::from_value(&serde_json::to_value(document).unwrap()) {
        Ok(system) => system,
        Err(error) => panic!("{name}: {error}"),
    }
}

fn rate(system: &SimulatedSystem, change: impl FnOnce(&mut Workload), unique_mb: f64) -> f64 {
    let mut workload = workload(unique_mb * 1e6, 32 * KIB);
    change(&mut workload);
    expected_throughput_mb_s(system, &workload, 0, 0)
}

/// Reads only against writes only.
fn reads_over_writes(system: &SimulatedSystem, unique_mb: f64) -> f64 {
    rate(system, |w| w.read_frac = 1.0, unique_mb) / rate(system, |w| w.read_frac = 0.0, unique_mb)
}

fn assert_between(value: f64, low: f64, high: f64) {
    assert!(value > low && value < high, "{value} is not between {low} and {high}");
}

#[test]
fn every_profile_is_valid_and_named_after_its_file() {
    let mut found: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    found.sort();
    assert_eq!(found, NAMES);
    for name in NAMES {
        let system = profile(name);
        assert_eq!(system.meta.name, name);
        assert!(!system.meta.title.is_empty() && !system.meta.assumed.is_empty(), "{name}");
        assert!(system.truth.is_some(), "{name} states no truth");
        assert!(system.noise.run_to_run_cv > 0.0, "{name} has no noise");
    }
}

#[test]
fn every_boundary_can_be_seen() {
    for name in NAMES {
        let system = profile(name);
        let at: Vec<f64> =
            boundaries(&system).iter().map(|boundary| boundary.bytes / 1e6).collect();
        let end = system.survey.unique_bytes_max.unwrap() as f64 / 1e6;
        let mut edges = vec![at.first().unwrap_or(&1.0) / 3.0];
        edges.extend(&at);
        edges.push(end);
        for three in edges.windows(3) {
            assert!(three[2] / three[1] >= 3.0, "{name}: {at:?} end at {end}");
            let before = rate(&system, |_| (), (three[0] * three[1]).sqrt());
            let after = rate(&system, |_| (), three[2] * 0.7);
            // Under NFS writes take most of the time, cached or not: half reads show little.
            let least = if name == "sparcstation-1plus-nfs" { 1.25 } else { 1.6 };
            assert!(before / after >= least, "{name}: {before} and {after} around {}", three[1]);
        }
    }
}

/// CP94 Fig. 7: focal points 12 and 42 MB at 20 KB; CP93 Table 3: 2.2 and 0.4 MB/s.
#[test]
fn figure_7_sparcstation() {
    let system = profile("sparcstation-1plus");
    let at_20_kb = |change: fn(&mut Workload), unique_mb| {
        rate(
            &system,
            |w| {
                w.size_mean = 20_000;
                change(w);
            },
            unique_mb,
        )
    };
    assert_between(at_20_kb(|_| (), 12.0), 2.1, 2.3);
    assert_between(at_20_kb(|_| (), 42.0), 0.35, 0.45);
    assert_between(reads_over_writes(&system, 12.0), 1.1, 1.5);
    let sequential = |mb| at_20_kb(|w| w.seq_frac = 1.0, mb) / at_20_kb(|w| w.seq_frac = 0.0, mb);
    assert_between(sequential(12.0), 0.999, 1.001);
    assert_between(sequential(42.0), 1.3, 3.0);
    let bigger = |mb| at_20_kb(|w| w.size_mean = 200_000, mb) / at_20_kb(|_| (), mb);
    assert!(bigger(42.0) > bigger(12.0) && bigger(12.0) > 1.1);
    assert_between(rate(&system, |w| w.size_mean = 1_000_000, 12.0), 2.5, 3.0);
}

/// CP94 Figs. 8, 18, 19: three plateaus, reads faster than writes only on the middle one.
#[test]
fn figures_8_18_19_sprite() {
    let system = profile("decstation-5000-sprite");
    assert_eq!(boundaries(&system).len(), 2);
    assert_between(reads_over_writes(&system, 2.0), 0.99, 1.01);
    assert_between(reads_over_writes(&system, 15.0), 5.0, 20.0);
    assert_between(reads_over_writes(&system, 36.0), 0.7, 0.95);
    for (low_mb, high_mb) in [(0.5, 3.0), (8.0, 15.0), (27.0, 60.0)] {
        let fall = rate(&system, |_| (), low_mb) / rate(&system, |_| (), high_mb);
        assert_between(fall, 0.99, 1.1);
    }
    assert_between(rate(&system, |_| (), 2.0), 6.4, 7.0);
    assert_between(rate(&system, |_| (), 36.0), 0.45, 0.55);
}

/// CP94 Figs. 10 and 20: a cache of 3 MB, up to 30 MB/s for large accesses.
#[test]
fn figures_10_20_hp_730() {
    let system = profile("hp-730");
    assert_between(boundaries(&system)[0].bytes, 2.7e6, 3.3e6);
    assert_between(rate(&system, |w| w.size_mean = 500_000, 1.8), 28.0, 31.0);
    assert_between(rate(&system, |_| (), 8.0), 0.9, 1.2);
    assert_between(reads_over_writes(&system, 8.0), 1.4, 2.8);
}

/// CP94 Figs. 9(a), 10, 21: 800 MB cache; sizes still pay at 1 MB on the disks.
#[test]
fn figures_9_21_convex() {
    let system = profile("convex-c240");
    assert_between(boundaries(&system)[0].bytes, 7.2e8, 8.8e8);
    assert_between(rate(&system, |w| w.size_mean = 120_000, 450.0), 7.5, 9.0);
    assert_between(rate(&system, |w| w.size_mean = 120_000, 1376.0), 3.8, 4.8);
    let of_size = |size| rate(&system, |w| w.size_mean = size, 1376.0);
    assert_between(of_size(1_000_000), 9.0, 11.0);
    assert!(of_size(1_000_000) > 1.1 * of_size(500_000));
    assert!(of_size(1_200_000) > 1.02 * of_size(1_000_000));
    assert_between(rate(&system, |w| w.size_mean = 4_000_000, 450.0), 24.0, 27.0);
}

/// CP94 Figs. 9(b), 22: writes at disk speed inside the cache, a gradual curve.
#[test]
fn figures_9_22_solbourne() {
    let system = profile("solbourne-5e905");
    assert_between(boundaries(&system)[0].bytes, 2.7e8, 3.3e8);
    let writes = |mb| rate(&system, |w| w.read_frac = 0.0, mb);
    assert!(reads_over_writes(&system, 180.0) > 5.0);
    assert_between(writes(180.0) / writes(540.0), 1.0, 1.1);
    assert_between(rate(&system, |_| (), 150.0) / rate(&system, |_| (), 2400.0), 1.8, 2.6);
}

/// METHODS §2: a smooth slope has no boundary to chop at.
#[test]
fn the_smooth_slope_falls_evenly() {
    let system = profile("smooth-slope");
    assert!(boundaries(&system).is_empty());
    let steps: Vec<f64> = (0..8)
        .map(|step| 4_f64.powi(step))
        .map(|mb| rate(&system, |_| (), mb * 4.0) / rate(&system, |_| (), mb))
        .collect();
    assert!(steps.iter().all(|step| (step - steps[0]).abs() < 1e-3), "{steps:?}");
    assert_between(rate(&system, |_| (), 1.0) / rate(&system, |_| (), 68_000.0), 2.0, 4.0);
}

#[test]
fn noise_drift_and_bursts_are_where_the_names_say() {
    assert!(profile("noisy").noise.run_to_run_cv >= 0.1);
    let drifting = profile("drifting");
    let workload = workload(2e7, 32 * KIB);
    let at = |hours: u64| {
        let now_ns = hours * 3600 * NS_PER_S;
        expected_throughput_mb_s(&drifting, &workload, now_ns, now_ns)
    };
    assert_between(at(1) / at(0), 0.899, 0.901);
    let cliff = profile("credit-cliff").drift.unwrap();
    assert_eq!((cliff.at_s, cliff.factor), (Some(5400.0), Some(0.6)));
    assert!(profile("bursty").bursts.is_some());
}
