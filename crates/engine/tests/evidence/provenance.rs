//! The share from cache on counts whose truth is known.

use leadline_base::host::HostUse;
use leadline_engine::evidence::provenance::{DataPlace, Verdict, Window, judge};
use leadline_engine::evidence::residency::{Found, FoundKind, Placed};
use leadline_wire::event::measure::{CachedShareFrom, MovedBytes};
use leadline_wire::finding::{Code, Finding};

const MB: u64 = 1_000_000;

/// `reads` looked-up reads of 4 KiB, of which `hits` were found.
fn kind(reads: u64, hits: u64) -> FoundKind {
    FoundKind {
        reads,
        asked_bytes: reads * 4096,
        found_bytes: hits * 4096,
        missed_page_bytes: (reads - hits) * 4096,
    }
}

fn fetched(process: u64, device: u64) -> HostUse {
    HostUse { process: Some((process, 0)), device: Some((device, 0)), ..HostUse::default() }
}

fn disk() -> DataPlace {
    DataPlace { charged: true, ..DataPlace::default() }
}

/// What follows for 100 MB of reads.
fn verdict(place: &DataPlace, found: Found, sequential_share: f64, host: HostUse) -> Verdict {
    let (host, found) = (&host, &found);
    judge(&Window { place: Some(place), host, found, read_bytes: 100 * MB, sequential_share })
}

fn share(found: Found, sequential_share: f64, fetched_bytes: u64) -> f64 {
    let host = fetched(fetched_bytes, fetched_bytes);
    let verdict = verdict(&disk(), found, sequential_share, host);
    assert_eq!(verdict.provenance.cached_share_from, Some(CachedShareFrom::Residency));
    verdict.cached_share.unwrap()
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
}

#[test]
fn random_reads_have_the_share_found_however_much_is_fetched_beside_it() {
    let found = Found { random: kind(1000, 300), ..Found::default() };
    near(share(found, 0.0, 70 * MB), 0.3);
    near(share(found, 0.0, 700 * MB), 0.3);
}

#[test]
fn a_first_sequential_pass_is_not_cached_because_read_ahead_was_quicker() {
    let found = Found { sequential: kind(1000, 990), ..Found::default() };
    near(share(found, 1.0, 100 * MB), 0.0);
    near(share(found, 1.0, 104 * MB), 0.0);
}

#[test]
fn sequential_reads_of_a_half_cached_file_have_half() {
    let found = Found { sequential: kind(1000, 990), ..Found::default() };
    near(share(found, 1.0, 50 * MB), 0.5);
    near(share(found, 1.0, 0), 1.0);
}

#[test]
fn read_ahead_takes_nothing_from_the_random_reads_of_a_mixture() {
    // Random: 80% found. Sequential: all found, all of it brought by read-ahead.
    let found = Found { random: kind(500, 400), sequential: kind(500, 500), ..Found::default() };
    near(share(found, 0.5, 60 * MB), 0.4);
    near(share(found, 0.5, 6000 * MB), 0.4);
    // Nothing but the random misses was fetched: the sequential reads were cached all along.
    near(share(found, 0.5, 10 * MB), 0.9);
}

#[test]
fn the_page_around_a_small_random_miss_is_not_taken_for_read_ahead() {
    // 512-byte random reads, none found, each fetching its page; sequential ones all cached.
    let random = FoundKind {
        reads: 100,
        asked_bytes: 100 * 512,
        found_bytes: 0,
        missed_page_bytes: 100 * 4096,
    };
    let found = Found { random, sequential: kind(100, 100), ..Found::default() };
    near(share(found, 0.5, 400 * MB), 0.5);
}

#[test]
fn misses_that_no_device_delivered_came_from_a_cache_below() {
    let found = Found { random: kind(1000, 0), ..Found::default() };
    let verdict = verdict(&disk(), found, 0.0, fetched(100 * MB, 20 * MB));
    near(verdict.cached_share.unwrap(), 0.8);
    assert_eq!(verdict.disbelieved, None, "a buffered run may be cached");
}

#[test]
fn each_kind_is_scaled_to_all_of_its_reads_not_to_those_looked_up() {
    // Ten times as many random reads were looked up as there were in truth.
    let found = Found { random: kind(1000, 1000), sequential: kind(100, 0), ..Found::default() };
    near(share(found, 0.5, 50 * MB), 0.5);
    // Without a lookup of its own a kind is taken to be like the other.
    let found = Found { random: kind(1000, 500), ..Found::default() };
    let verdict = verdict(&disk(), found, 0.5, fetched(50 * MB, 50 * MB));
    near(verdict.provenance.found_share.unwrap(), 0.5);
}

#[test]
fn reads_at_random_places_say_by_themselves_what_the_cache_held() {
    // Read-ahead brought every byte of the sequential ones, and more than they asked for.
    let placed = Placed { requests: 2000, asked_bytes: 2000 * 4096, found_bytes: 600 * 4096 };
    let found = Found { random: kind(1000, 300), sequential: kind(1000, 1000), placed };
    let provenance = verdict(&disk(), found, 0.5, fetched(400 * MB, 400 * MB)).provenance;
    near(provenance.found_random_share.unwrap(), 0.3);
    near(provenance.found_share.unwrap(), 0.65);
    assert_eq!(provenance.probed_random, 2000, "writes too");
    let found = Found { sequential: kind(1000, 1000), ..Found::default() };
    let provenance = verdict(&disk(), found, 1.0, fetched(400 * MB, 400 * MB)).provenance;
    assert_eq!((provenance.probed_random, provenance.found_random_share), (0, None));
}

#[test]
fn without_lookups_the_counters_alone_say_it() {
    let verdict = verdict(&disk(), Found::default(), 0.5, fetched(40 * MB, 60 * MB));
    near(verdict.cached_share.unwrap(), 0.6);
    assert_eq!(verdict.provenance.cached_share_from, Some(CachedShareFrom::Device));
    assert_eq!(verdict.provenance.process_bytes, Some(MovedBytes { read: 40 * MB, write: 0 }));
    assert_eq!(verdict.provenance.found_share, None);
}

#[test]
fn a_share_that_cannot_be_known_is_not_guessed() {
    let unknown = DataPlace::default();
    let host = HostUse { process: Some((0, 0)), ..HostUse::default() };
    let blind = verdict(&unknown, Found::default(), 0.0, host);
    assert_eq!((blind.cached_share, blind.provenance.cached_share_from), (None, None));
    assert!(blind.provenance.unchecked[0].starts_with("the share from cache: "));
    let found = Found { random: kind(100, 50), sequential: kind(100, 100), ..Found::default() };
    let mixed = verdict(&unknown, found, 0.5, host);
    assert_eq!(mixed.cached_share, None);
    assert!(mixed.provenance.unchecked[0].contains("read-ahead"), "{mixed:?}");
    near(mixed.provenance.found_share.unwrap(), 0.75);
    let random = Found { random: kind(100, 50), ..Found::default() };
    near(verdict(&unknown, random, 0.0, host).cached_share.unwrap(), 0.5);
}

#[test]
fn direct_reads_that_no_device_delivered_are_named_with_their_numbers() {
    let below = vec!["loop0: a cache".to_owned()];
    let direct =
        DataPlace { direct: true, charged: true, caches_below: below, ..DataPlace::default() };
    let cached = verdict(&direct, Found::default(), 0.0, fetched(100 * MB, 25 * MB));
    let found = Finding::new(Code::CachedDiskNumber)
        .with("asked_bytes", 100 * MB)
        .with("device_bytes", 25 * MB)
        .with("cached_frac", 0.75)
        .with("caches", "loop0: a cache".to_owned());
    assert_eq!(cached.disbelieved, Some(found));
    let honest = verdict(&direct, Found::default(), 0.0, fetched(100 * MB, 95 * MB));
    assert_eq!(honest.disbelieved, None);
    let other = verdict(&direct, Found::default(), 0.0, fetched(0, 500 * MB));
    assert!(other.disbelieved.is_some(), "another program's reads are not ours");
}

#[test]
fn a_simulated_system_has_its_own_device_and_nothing_else() {
    let host = HostUse { device: Some((30 * MB, 0)), ..HostUse::default() };
    let found = &Found::default();
    let host = &host;
    let window = Window { place: None, host, found, read_bytes: 100 * MB, sequential_share: 0.0 };
    near(judge(&window).cached_share.unwrap(), 0.7);
    let nothing = judge(&Window { read_bytes: 0, ..window });
    assert_eq!((nothing.cached_share, nothing.disbelieved), (None, None));
}
