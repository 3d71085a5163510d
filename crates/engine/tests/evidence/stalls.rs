//! Moments in which nothing completed, on slices made by hand.

use leadline_engine::evidence::stalls::{running, stalled, stalls};
use leadline_wire::event::measure::{Slice, Stall};

/// Slices of 10 ms with these numbers of completions.
fn slices(operations: impl IntoIterator<Item = u64>) -> Vec<Slice> {
    let slice = |(index, operations): (usize, u64)| Slice {
        start_s: index as f64 * 0.01,
        seconds: 0.01,
        operations,
        bytes: operations * 4096,
    };
    operations.into_iter().enumerate().map(slice).collect()
}

/// 3 s at `operations` per slice, but for the slices in `silent`.
fn silent(operations: u64, silent: std::ops::Range<usize>) -> Vec<Slice> {
    slices((0..300).map(|index| if silent.contains(&index) { 0 } else { operations }))
}

/// The same slices, with the one at `index` lasting `seconds`, with `operations` in it.
fn with_long_slice(mut slices: Vec<Slice>, index: usize, seconds: f64, done: u64) -> Vec<Slice> {
    slices[index].seconds = seconds;
    slices[index].operations = done;
    let mut start_s = 0.0;
    for slice in &mut slices {
        slice.start_s = start_s;
        start_s += slice.seconds;
    }
    slices
}

fn only(found: &[Stall]) -> Stall {
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

#[test]
fn a_second_without_completions_is_the_targets_stall() {
    let stall = only(&stalls(&silent(50, 120..220), 1e-3));
    assert!((stall.start_s - 1.2).abs() < 1e-9 && (stall.seconds - 1.0).abs() < 1e-9, "{stall:?}");
    assert!(!stall.generator);
}

#[test]
fn a_stall_that_lasts_to_the_end_is_named_and_so_are_two() {
    assert!((only(&stalls(&silent(50, 200..300), 1e-3)).seconds - 1.0).abs() < 1e-9);
    let two = slices((0..300).map(|index| if index % 150 < 20 { 0 } else { 9 }));
    assert_eq!(stalls(&two, 1e-3).len(), 2);
}

#[test]
fn a_gap_shorter_than_a_tenth_of_a_second_is_none() {
    assert_eq!(stalls(&silent(50, 120..129), 1e-3), []);
    assert_eq!(stalls(&silent(50, 120..131), 1e-3).len(), 1);
}

#[test]
fn a_slow_disk_with_few_requests_does_not_stall() {
    // A completion every 150 ms, once only after 450 ms; each is answered at once.
    let slow =
        slices((0..600).map(|index| u64::from(index % 15 == 0 && index != 75 && index != 90)));
    assert_eq!(stalls(&slow, 1e-3), []);
    let truly = slices((0..1200).map(|index| u64::from(index % 15 == 0 && index < 600)));
    assert_eq!(stalls(&truly, 1e-3).len(), 1);
}

#[test]
fn a_stall_over_most_of_the_window_does_not_pass_for_usual() {
    let mostly = slices((0..200).map(|index| u64::from(index % 2 == 0 && index < 50)));
    assert_eq!(stalls(&mostly, 0.02).len(), 1);
}

#[test]
fn requests_answered_all_together_do_not_stall() {
    // 64 requests complete at once every 0.4 s: none of them waited longer than usual.
    let together = slices((0..400).map(|index| if index % 40 == 39 { 64 } else { 0 }));
    assert_eq!(stalls(&together, 0.4), []);
}

#[test]
fn too_few_completions_say_nothing() {
    assert_eq!(stalls(&slices((0..300).map(|index| u64::from(index < 19))), 0.01), []);
    assert_eq!(stalls(&[], 0.01), []);
}

#[test]
fn a_slice_that_lasts_too_long_is_the_generators_stall() {
    let stall = only(&stalls(&with_long_slice(silent(50, 0..0), 100, 0.51, 50), 1e-3));
    assert!(stall.generator);
    assert!((stall.start_s - 1.0).abs() < 1e-9 && (stall.seconds - 0.51).abs() < 1e-9, "{stall:?}");
}

#[test]
fn a_stopped_generator_is_not_the_targets_stall_even_when_nothing_completed() {
    assert!(only(&stalls(&with_long_slice(silent(50, 0..0), 100, 0.51, 0), 1e-3)).generator);
}

#[test]
fn a_late_controlling_thread_over_running_issuers_is_no_stall() {
    assert_eq!(stalls(&with_long_slice(silent(50, 0..0), 100, 0.51, 2400), 1e-3), []);
}

#[test]
fn what_ran_is_what_is_left_without_the_stalls() {
    let window = with_long_slice(silent(50, 120..220), 20, 0.3, 50);
    let found = stalls(&window, 1e-3);
    assert_eq!(found.len(), 2);
    let ran = running(&window, &found);
    assert_eq!(ran.len(), 300 - 100 - 1);
    assert!(ran.iter().all(|slice| slice.operations == 50 && slice.seconds == 0.01));
}

#[test]
fn it_is_said_whose_stall_it_was() {
    let stall = |generator| Stall { start_s: 2.314, seconds: 1.0249, generator };
    assert_eq!(stalled(&stall(false)).values["target_s"], 1.0249.into());
    assert_eq!(stalled(&stall(true)).values["own_s"], 1.0249.into());
}
