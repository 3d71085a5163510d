//! Mixtures against what was asked: weights, sizes, reads, regions, and each kind of place.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use serde_json::{Value, json};

use super::*;

const DRAWS: usize = 200_000;

fn job(streams: &Value, processes: u32) -> MeasureJob {
    let document = json!({
        "version": 1,
        "job_id": "mixture",
        "target": {"kind": "null"},
        "workload": {
            "unique_bytes": 64 << 20, "size_mean": 4096, "read_frac": 0.5, "seq_frac": 0.0,
            "process_num": processes,
        },
        "backend": {"name": "null"},
        "seed": 5,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 0.1, "measure_s_max": 0.1, "accuracy": 0.1,
            "total_s_max": 10.0,
        },
        "streams": streams,
    });
    let job: MeasureJob = serde_json::from_value(document).unwrap();
    job.validate().unwrap();
    job
}

fn stream(places: Value, from_mib: u64, mib: u64, sizes: Value) -> Value {
    json!({
        "weight": 1.0, "read_frac": 1.0, "from_bytes": from_mib << 20, "unique_bytes": mib << 20,
        "sizes": sizes, "places": places,
    })
}

fn pages(bytes: u64) -> Value {
    json!([{"bytes": bytes, "weight": 1.0}])
}

fn drawn(job: &MeasureJob, process: u32, number: usize) -> Vec<Request> {
    let mut stream = MixedStream::new(job, 512, job.seed, process).unwrap();
    (0..number).map(|_| stream.draw()).collect()
}

/// A share that was drawn lies within five standard errors of the one asked.
fn near(seen: usize, of: usize, asked: f64) {
    let (seen, of) = (seen as f64, of as f64);
    let error = (asked * (1.0 - asked) / of).sqrt();
    assert!((seen / of - asked).abs() < 5.0 * error.max(1e-9), "{} is not {asked}", seen / of);
}

#[test]
fn weights_sizes_reads_and_regions_are_those_asked() {
    let sizes = json!([
        {"bytes": 4096, "weight": 5.0}, {"bytes": 512, "weight": 2.0}, {"bytes": 65536, "weight": 3.0}
    ]);
    let mut one = stream(json!({"kind": "uniform", "seq_frac": 0.25}), 0, 32, sizes);
    one["weight"] = json!(3.0);
    one["read_frac"] = json!(0.7);
    let mut other = stream(json!({"kind": "uniform", "seq_frac": 0.0}), 16, 48, pages(8192));
    other["read_frac"] = json!(0.0);
    let requests = drawn(&job(&json!([one, other]), 1), 0, DRAWS);
    let of = |which| requests.iter().filter(move |each| each.stream == which);
    let first = of(0).count();
    near(first, DRAWS, 0.75);
    near(of(0).filter(|each| each.kind == Kind::Read).count(), first, 0.7);
    near(of(0).filter(|each| each.sequential).count(), first, 0.25);
    for (bytes, share) in [(4096, 0.5), (512, 0.2), (65536, 0.3)] {
        near(of(0).filter(|each| each.length_bytes == bytes).count(), first, share);
    }
    assert!(of(0).all(|each| each.offset_bytes + each.length_bytes <= 32 << 20));
    assert!(of(1).all(|each| each.kind == Kind::Write && each.length_bytes == 8192));
    let span = (16 << 20)..=(64 << 20);
    assert!(of(1).all(|each| span.contains(&each.offset_bytes)
        && span.contains(&(each.offset_bytes + each.length_bytes))));
    let eighths = 8;
    for eighth in 0..eighths {
        let within = |each: &&Request| (each.offset_bytes - (16 << 20)) / (6 << 20) == eighth;
        near(of(1).filter(within).count(), DRAWS - first, 1.0 / eighths as f64);
    }
}

#[test]
fn a_sequential_request_goes_on_where_its_own_stream_ended() {
    let uniform = json!({"kind": "uniform", "seq_frac": 0.5});
    let both =
        json!([stream(uniform.clone(), 0, 32, pages(4096)), stream(uniform, 32, 32, pages(4096))]);
    let mut ends = [0, 0];
    let mut gone_on = 0;
    for request in drawn(&job(&both, 1), 0, 10_000) {
        let end = &mut ends[usize::from(request.stream)];
        if request.sequential && request.offset_bytes != [0, 32 << 20][usize::from(request.stream)]
        {
            assert!(*end == request.offset_bytes || *end == 0);
            gone_on += 1;
        }
        *end = request.offset_bytes + request.length_bytes;
    }
    assert!(gone_on > 4000);
}

#[test]
fn a_loop_comes_to_every_place_before_any_again_in_or_out_of_order() {
    for scattered in [false, true] {
        let asked = stream(json!({"kind": "loop", "scattered": scattered}), 8, 4, pages(4096));
        let job = job(&json!([asked]), 1);
        let mut source = MixedStream::new(&job, 512, 1, 0).unwrap();
        let round: Vec<u64> = (0..1024).map(|_| source.draw().offset_bytes).collect();
        let again: Vec<u64> = (0..1024).map(|_| source.draw().offset_bytes).collect();
        assert_eq!(round, again);
        assert_eq!(round.iter().collect::<HashSet<_>>().len(), 1024);
        assert!(round.iter().all(|at| (8 << 20..12 << 20).contains(at)));
        let neighbours = round.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
        assert_eq!(neighbours, if scattered { 0 } else { 1023 });
        source.draw();
        assert_eq!(source.rounds().collect::<Vec<_>>(), [2]);
    }
}

#[test]
fn pieces_are_gone_through_in_order_one_after_the_other_or_by_turns() {
    for at_once in [1, 3] {
        let pieces = json!({"bytes": 64 << 10, "at_once": at_once});
        let places = json!({"kind": "once", "scattered": false, "pieces": pieces});
        let job = job(&json!([stream(places, 8, 4, pages(4096))]), 1);
        let requests = drawn(&job, 0, 1024);
        let mut next = vec![];
        for request in &requests {
            let at = request.offset_bytes;
            match next.iter().position(|&end| end == at) {
                Some(which) => next[which] = at + 4096,
                None => next.push(at + 4096),
            }
            assert_eq!(request.sequential, !at.is_multiple_of(64 << 10), "{at}");
        }
        let places: HashSet<u64> = requests.iter().map(|each| each.offset_bytes).collect();
        assert!(
            requests.iter().all(|each| each.piece_end_bytes == (each.offset_bytes | 0xffff) + 1)
        );
        // Whoever comes to the end of the data first is in his next piece, which is used again.
        assert!(places.len() > 1024 - 16 * at_once, "{}", places.len());
        let first: Vec<&Request> = requests.iter().take(48).collect();
        let within: HashSet<u64> = first.iter().map(|each| each.offset_bytes >> 16).collect();
        assert!(within.len() >= at_once && within.len() <= 3 + at_once, "{}", within.len());
        let changes =
            requests.windows(2).filter(|two| two[1].offset_bytes != two[0].offset_bytes + 4096);
        let changed = changes.count();
        assert!(if at_once == 1 { changed == 0 } else { changed > 500 }, "{changed}");
    }
}

#[test]
fn pieces_are_as_long_as_their_requests_and_begin_with_a_page() {
    let sizes = json!([{"bytes": 1536, "weight": 3.0}, {"bytes": 30720, "weight": 1.0}]);
    let pieces = json!({"bytes": 13248, "at_once": 1}); // one and a half requests
    let places = json!({"kind": "once", "scattered": false, "pieces": pieces});
    let job = job(&json!([stream(places, 0, 64, sizes)]), 1);
    let mut source = MixedStream::new(&job, 512, 7, 0).unwrap();
    let mut end = 0;
    let (mut begun, mut used) = (0, 0);
    let mut drawn = 0;
    while source.rounds().sum::<u64>() == 0 {
        let request = source.draw();
        drawn += 1;
        if request.sequential {
            assert_eq!(request.offset_bytes, end);
        } else {
            begun += 1;
            assert!(request.offset_bytes.is_multiple_of(4096), "{}", request.offset_bytes);
            assert!(request.offset_bytes >= end || request.offset_bytes == 0);
            assert!(request.offset_bytes < end + 4096, "no room is lost but to the page's end");
        }
        end = request.offset_bytes + request.length_bytes;
        assert!(end <= request.piece_end_bytes && request.piece_end_bytes <= 64 << 20);
        used += request.length_bytes;
    }
    near(drawn - begun, drawn, 1.0 / 3.0);
    assert!(used > 48 << 20, "{used}");
}

#[test]
fn places_of_data_used_once_are_as_many_as_requests_have_room() {
    let sizes = json!([{"bytes": 4096, "weight": 15.0}, {"bytes": 65536, "weight": 1.0}]);
    let job = job(&json!([stream(json!({"kind": "once", "scattered": true}), 0, 8, sizes)]), 1);
    let mut source = MixedStream::new(&job, 512, 7, 0).unwrap();
    let drawn = (0..).take_while(|_| {
        let request = source.draw();
        assert!(request.offset_bytes + request.length_bytes <= 8 << 20);
        source.rounds().sum::<u64>() == 0
    });
    // 7936 bytes are 15.5 granules of 512: a place has 16.
    assert_eq!(drawn.count(), (8 << 20) / 8192 - 1, "of the mean size");
}

#[test]
fn issuers_walk_through_parts_of_their_own() {
    let asked = stream(json!({"kind": "once", "scattered": false}), 0, 16, pages(16384));
    let job = job(&json!([asked]), 4);
    let all: Vec<Request> = (0..4).flat_map(|process| drawn(&job, process, 256)).collect();
    let places: HashSet<u64> = all.iter().map(|each| each.offset_bytes).collect();
    assert_eq!(places.len(), 1024);
    assert_eq!(places.iter().max(), Some(&((16 << 20) - 16384)));
}

#[test]
fn issuers_share_data_that_are_too_short_for_parts() {
    let asked = stream(json!({"kind": "loop", "scattered": false}), 0, 1, pages(1 << 20));
    let job = job(&json!([asked]), 3);
    for process in 0..3 {
        assert!(drawn(&job, process, 3).iter().all(|each| each.offset_bytes == 0));
    }
}

#[test]
fn a_window_moves_on_by_its_share_of_what_was_asked() {
    let places = json!({"kind": "moving", "window_bytes": 1 << 20, "fresh_frac": 0.25});
    let requests = drawn(&job(&json!([stream(places, 0, 64, pages(4096))]), 1), 0, 8_000);
    for (turn, request) in requests.iter().enumerate() {
        let from = turn as u64 * 1024 / 512 * 512;
        assert!(request.offset_bytes + 512 > from && request.offset_bytes <= from + (1 << 20));
    }
    let last = requests.last().unwrap().offset_bytes;
    assert!(last > 7 << 20);
}

#[test]
fn a_seed_gives_the_same_requests_and_processes_differ() {
    let asked = json!([stream(json!({"kind": "uniform", "seq_frac": 0.0}), 0, 64, pages(4096))]);
    let job = job(&asked, 2);
    assert_eq!(drawn(&job, 0, 100), drawn(&job, 0, 100));
    assert_ne!(drawn(&job, 0, 100), drawn(&job, 1, 100));
}

#[test]
fn data_without_a_whole_block_for_a_request_are_refused_by_name() {
    let mut asked = stream(json!({"kind": "loop", "scattered": false}), 0, 1, pages(4096));
    asked["from_bytes"] = json!(512);
    asked["unique_bytes"] = json!(4096);
    let job = job(&json!([asked]), 1);
    assert!(MixedStream::new(&job, 512, 1, 0).is_ok());
    let refused = MixedStream::new(&job, 4096, 1, 0).unwrap_err();
    assert!(refused.message.contains("streams[0] has 4096 bytes of data"), "{}", refused.message);
}

#[test]
fn a_size_below_the_targets_smallest_transfer_is_refused_by_name() {
    let asked = json!([stream(json!({"kind": "uniform", "seq_frac": 0.0}), 0, 64, pages(512))]);
    let refused = MixedStream::new(&job(&asked, 1), 4096, 1, 0).unwrap_err();
    assert!(refused.message.contains("streams[0] has a size of 512"), "{}", refused.message);
}
