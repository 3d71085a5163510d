//! Inputs that make sense, those that were once found to do harm, and some of both with harms
//! drawn from a fixed seed: what must hold holds for each. Coverage leads nowhere here; that is
//! what `make fuzz` is for.

#![allow(clippy::expect_used)] // a test

use std::path::{Path, PathBuf};
use std::process::Command;

use leadline_fuzz_checks::{histogram, job, layout, nfs, profile, reply, server, trace};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SEED: u64 = 2026;
const HARMED: usize = 2000;
/// Each is a conversation over real connections.
const HARMED_TALKS: usize = 200;
/// Each runs a simulation.
const HARMED_SYSTEMS: usize = 100;
const HARMS_MOST: usize = 4;
const LENGTH_MAX: usize = 16_384;

/// Inputs of a target, of which there are some: what `fuzz/seeds.py` writes for it.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("seeds-of-{target}"));
    let status = Command::new("python3").arg(root.join("fuzz/seeds.py")).arg(&folder).status();
    assert!(status.expect("python3 is there").success());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder.join(target))
        .expect("it was written")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    paths.sort();
    let found: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect();
    assert!(!found.is_empty());
    found
}

/// Every seed, and so many with harms done to them.
fn inputs(target: &str, harmed: usize) -> Vec<Vec<u8>> {
    let seeds = seeds(target);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut all = seeds.clone();
    all.extend((0..harmed).map(|_| harm(&mut chance, &seeds)));
    all
}

fn harm(chance: &mut Xoshiro256PlusPlus, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = seeds[below(chance, seeds.len())].clone();
    for _ in 0..=below(chance, HARMS_MOST) {
        let at = below(chance, data.len() + 1);
        let until = (at + 1 + below(chance, 16)).min(data.len());
        match below(chance, 6) {
            0 if at < data.len() => data[at] ^= 1 << below(chance, 8),
            1 if at < data.len() => data[at] = chance.next_u64() as u8,
            2 => drop(data.drain(at.min(until)..until)),
            3 => data.insert(at, chance.next_u64() as u8),
            4 => {
                let other = &seeds[below(chance, seeds.len())];
                let from = below(chance, other.len() + 1);
                let to = (from + below(chance, 64)).min(other.len());
                data.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                let piece = data[at.min(until)..until].to_vec();
                data.splice(at..at, piece.repeat(1 << below(chance, 6)));
            }
        }
    }
    data.truncate(LENGTH_MAX);
    data
}

fn below(chance: &mut Xoshiro256PlusPlus, end: usize) -> usize {
    (chance.next_u64() % end as u64) as usize
}

#[test]
fn any_text_as_a_job_is_refused_or_survives() {
    inputs("job", HARMED).iter().for_each(|input| job::job(input));
}

#[test]
fn any_text_as_a_layout_is_refused_or_holds_all_its_bytes() {
    inputs("layout", HARMED).iter().for_each(|input| layout::layout(input));
}

#[test]
fn any_bytes_as_an_answer_of_a_server_are_understood_or_refused() {
    inputs("reply", HARMED).iter().for_each(|input| reply::reply(input));
}

#[test]
fn any_bytes_as_a_server_end_the_conversation() {
    inputs("nfs", HARMED_TALKS).iter().for_each(|input| nfs::nfs(input));
}

#[test]
fn any_text_as_a_simulated_system_is_refused_or_serves() {
    inputs("profile", HARMED_SYSTEMS).iter().for_each(|input| profile::profile(input));
}

#[test]
fn any_text_as_a_simulated_server_is_refused_or_serves() {
    inputs("server", HARMED_SYSTEMS).iter().for_each(|input| server::server(input));
}

#[test]
fn any_bytes_as_a_trace_are_refused_or_add_up() {
    inputs("trace", HARMED).iter().for_each(|input| trace::trace(input));
}

#[test]
fn any_two_lists_of_response_times_make_one_histogram() {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(SEED);
    for _ in 0..HARMED {
        let mut drawn = |most| -> Vec<(u64, u8)> {
            (0..below(&mut chance, most))
                .map(|_| (chance.next_u64(), chance.next_u64() as u8))
                .collect()
        };
        let (left, right) = (drawn(40), drawn(40));
        histogram::histogram(&left, &right, chance.next_u64() as u16);
    }
}
