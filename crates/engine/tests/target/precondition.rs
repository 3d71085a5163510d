//! Preconditioning: when it stops, and that it never writes more than it may.

use std::os::unix::fs::FileExt;

use leadline_wire::event::measure::Preconditioned;
use leadline_wire::job::measure::MeasureJob;

use crate::scratch::Scratch;
use crate::setting::measurement;
use leadline_base::error::EngineError;
use leadline_engine::backend::data_file::DataFile;
use leadline_engine::target::precondition::{
    Plan, Writable, is_plateau, no_plateau, precondition, until_plateau,
};
use serde_json::json;

const MIB: u64 = 1 << 20;

/// A device in virtual time whose rate follows from the bytes it has taken.
struct Device<F> {
    now_ns: u64,
    taken_bytes: u64,
    rate_mb_s: F,
}

impl<F: Fn(u64) -> f64> Writable for Device<F> {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn write(&mut self) -> Result<(), EngineError> {
        self.now_ns += (65_536e3 / (self.rate_mb_s)(self.taken_bytes)) as u64;
        self.taken_bytes += 65_536;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// What becomes of a device over a file of 256 MiB.
fn preconditioned(
    bytes_max: u64,
    deadline_ns: u64,
    rate_mb_s: impl Fn(u64) -> f64,
) -> Preconditioned {
    let mut device = Device { now_ns: 0, taken_bytes: 0, rate_mb_s };
    let plan = Plan::new(65_536, 256 * MIB, bytes_max, deadline_ns);
    let done = until_plateau(&mut device, &plan, &mut |_| {}).unwrap();
    assert_eq!(done.bytes, device.taken_bytes);
    assert_eq!(done.bytes, done.rounds.iter().map(|round| round.bytes).sum::<u64>());
    assert!(done.bytes <= bytes_max, "{done:?}");
    done
}

#[test]
fn five_rounds_within_a_fifth_and_without_a_trend_are_a_plateau() {
    assert!(is_plateau(&[900.0, 101.0, 99.0, 100.0, 102.0, 98.0]));
    assert!(is_plateau(&[91.0, 109.0, 100.0, 109.0, 91.0]), "range 18%, no slope");
    assert!(!is_plateau(&[89.0, 111.0, 100.0, 111.0, 89.0]), "range 22%");
    assert!(!is_plateau(&[106.0, 103.0, 100.0, 97.0, 94.0]), "range 12%, but all of it a trend");
    assert!(!is_plateau(&[94.0, 97.0, 100.0, 103.0, 106.0]));
    assert!(!is_plateau(&[100.0; 4]));
    assert!(!is_plateau(&[0.0; 5]));
}

#[test]
fn a_steady_device_is_done_after_five_rounds() {
    let done = preconditioned(4096 * MIB, u64::MAX, |_| 200.0);
    assert!(done.plateau);
    assert_eq!(done.rounds.len(), 5);
    assert_eq!(done.bytes, 5 * 64 * MIB);
}

#[test]
fn a_device_with_burst_credits_is_written_until_they_are_spent() {
    let credits = |taken| if taken < 300 * MIB { 400.0 - taken as f64 / 2e6 } else { 80.0 };
    let done = preconditioned(4096 * MIB, u64::MAX, credits);
    assert!(done.plateau);
    assert!(done.bytes >= (300 + 4 * 64) * MIB, "{done:?}");
    assert!((done.rounds.last().unwrap().throughput_mb_s / 80.0 - 1.0).abs() < 0.02, "{done:?}");
}

#[test]
fn a_device_that_never_settles_is_written_no_more_than_allowed() {
    let swings = |taken: u64| if (taken / (64 * MIB)).is_multiple_of(2) { 300.0 } else { 100.0 };
    for bytes_max in [1, 65_535, 65_536, 500_000, 64 * MIB, 100 * MIB + 1] {
        // Its bound is checked on the way.
        preconditioned(bytes_max, u64::MAX, swings);
    }
    let done = preconditioned(2000 * MIB, u64::MAX, swings);
    assert!(!done.plateau, "{done:?}");
    assert!(done.bytes + 64 * MIB > 2000 * MIB, "a whole round more would have fitted: {done:?}");
}

#[test]
fn a_device_that_turns_fast_at_the_end_is_still_written_no_more_than_allowed() {
    let turns = |taken: u64| match taken / (64 * MIB) {
        60.. => 9000.0,
        round if round.is_multiple_of(2) => 300.0,
        _ => 100.0,
    };
    let done = preconditioned(4096 * MIB, u64::MAX, turns);
    assert!(done.bytes > 4032 * MIB, "the last round wants more than is left: {done:?}");
}

#[test]
fn the_jobs_time_ends_it() {
    let done = preconditioned(4096 * MIB, 1_000_000_000, |taken| 100.0 + taken as f64 / 1e6);
    assert!(!done.plateau);
    assert!((done.seconds - 1.0).abs() < 0.01, "{done:?}");
}

#[test]
fn rounds_of_a_fast_device_grow_to_a_fifth_of_a_second_where_the_bytes_allow() {
    let fast = preconditioned(64 << 30, u64::MAX, |_| 2000.0);
    assert!((fast.rounds[0].bytes as f64 / 400e6 - 1.0).abs() < 0.01, "{fast:?}");
    let bounded = preconditioned(1024 * MIB, u64::MAX, |_| 2000.0);
    assert_eq!(bounded.rounds[0].bytes, 128 * MIB);
}

#[test]
fn eight_rounds_always_fit() {
    let swings = |taken: u64| if (taken / 65_536).is_multiple_of(2) { 1e6 } else { 1.0 };
    for bytes_max in [8 * 65_536, MIB, 10 * MIB, 100 * MIB, 1 << 30] {
        let plan = Plan::new(65_536, 256 * MIB, bytes_max, u64::MAX);
        assert!(8 * plan.round_bytes_max.max(plan.round_bytes) <= bytes_max, "{plan:?}");
    }
    assert!(preconditioned(8 * 65_536, u64::MAX, swings).rounds.len() <= 8);
}

fn job(scratch: &Scratch, direct: bool, bytes_max: u64) -> MeasureJob {
    let job = json!({
        "version": 1, "kind": "measure", "job_id": "j",
        "target": {"kind": "directory", "path": scratch.text()},
        "workload": {
            "unique_bytes": 2 * MIB, "size_mean": 20_000, "read_frac": 1.0, "seq_frac": 0.0,
            "process_num": 1,
        },
        "backend": {"name": "pread", "direct": direct}, "seed": 5,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 0.1, "measure_s_max": 0.2, "accuracy": 0.5,
            "total_s_max": 20.0,
        },
        "precondition": {"bytes_max": bytes_max},
    });
    measurement(&job)
}

/// Bytes the kernel says this thread has passed to `write` calls.
fn written_by_this_thread() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn a_real_file_is_written_within_the_bytes_allowed_and_keeps_its_length() {
    for direct in [false, true] {
        let scratch = Scratch::new("precondition");
        let data = DataFile::open(scratch.text()).unwrap();
        data.extend(2 * MIB, u64::MAX, &mut |_| {}).unwrap();
        let mut before = vec![0; 2 << 20];
        data.file().read_exact_at(&mut before, 0).unwrap();
        let (bytes_max, io_before) = (3 * MIB + 1000, written_by_this_thread());
        let job = job(&scratch, direct, bytes_max);
        let done = precondition(&job, &data, 4096, u64::MAX, &mut |_| {}).unwrap().unwrap();
        let told = written_by_this_thread() - io_before;
        assert_eq!(told, done.bytes, "direct {direct}");
        assert!((MIB..=bytes_max).contains(&done.bytes), "direct {direct}: {done:?}");
        assert_eq!(data.length_bytes().unwrap(), 2 * MIB);
        let mut after = vec![0; 2 << 20];
        data.file().read_exact_at(&mut after, 0).unwrap();
        let pages = before.chunks(4096).zip(after.chunks(4096));
        let changed = pages.filter(|(old, new)| old != new).count();
        assert!((150..=512).contains(&changed), "direct {direct}: {changed} of 512 pages");
    }
}

#[test]
fn a_job_that_does_not_ask_is_not_preconditioned() {
    let scratch = Scratch::new("unasked");
    let data = DataFile::open(scratch.text()).unwrap();
    let job = MeasureJob { precondition: None, ..job(&scratch, false, MIB) };
    assert_eq!(precondition(&job, &data, 512, u64::MAX, &mut |_| {}).unwrap(), None);
    assert_eq!(data.length_bytes().unwrap(), 0);
}

#[test]
fn it_is_said_how_much_more_would_be_tried() {
    let swings = |taken: u64| if (taken / (64 * MIB)).is_multiple_of(2) { 300.0 } else { 100.0 };
    let short = preconditioned(4096 * MIB, u64::MAX, swings);
    let found = no_plateau(&short, 4096 * MIB).unwrap();
    assert_eq!(found.values["written_bytes"], (4096 * MIB).into());
    assert_eq!(found.values["more_bytes"], (8192 * MIB).into());
    let late = preconditioned(4096 * MIB, 2_000_000_000, swings);
    let found = no_plateau(&late, 4096 * MIB).unwrap();
    assert!(!found.values.contains_key("more_bytes"), "the job's time was up");
    let steady = preconditioned(4096 * MIB, u64::MAX, |_| 200.0);
    assert_eq!(no_plateau(&steady, 4096 * MIB), None);
}
