//! What the tally of an open loop makes of moments it is told.
#![allow(clippy::unwrap_used, missing_docs)]

use leadline_engine::arrival::ArrivalStream;
use leadline_engine::job::{Arrivals, Kind, Request};
use leadline_engine::offered::{due_spans, missed_rate, offered};
use leadline_engine::recorder::{OpenTally, Passage, Tally, Window};
use leadline_engine::result::FellShort;

const MS_NS: u64 = 1_000_000;
const WINDOW: Window = Window { opened_ns: 10_000 * MS_NS, closed_ns: 11_000 * MS_NS };
const EVERY_MS: Arrivals = Arrivals::Constant { rate_per_s: 1000.0 };
const READ: Request =
    Request { offset_bytes: 0, length_bytes: 512, kind: Kind::Read, sequential: false };

fn open(tally: &Tally) -> &OpenTally {
    tally.open.as_ref().unwrap()
}

/// One slot that serves a request every millisecond, 0.1 ms each. `delay_ns` is what the generator
/// adds before sending a ticket, `service_ns` what the target takes for it.
fn one_slot(delay_ns: impl Fn(u64) -> u64, service_ns: impl Fn(u64) -> u64) -> Tally {
    let mut tally = Tally::of(&EVERY_MS);
    let mut schedule = ArrivalStream::new(&EVERY_MS, 1).unwrap();
    let untouched = schedule.clone();
    let start_ns = WINDOW.opened_ns - 1000 * MS_NS;
    let (mut free_ns, mut behind_ns, mut ticket) = (start_ns, 0, 0);
    loop {
        let due_ns = start_ns + schedule.next_due_ns();
        let submitted_ns = due_ns.max(free_ns) + delay_ns(ticket);
        let completed_ns = submitted_ns + service_ns(ticket);
        let passage = Passage { due_ns, free_ns, behind_ns, submitted_ns };
        ticket += 1;
        if completed_ns > WINDOW.closed_ns || submitted_ns >= WINDOW.closed_ns {
            tally.finish_open(&READ, &passage, completed_ns, WINDOW);
            tally.cut_untaken(untouched, ticket, start_ns, WINDOW);
            return tally;
        }
        if completed_ns >= WINDOW.opened_ns {
            tally.record_open(&READ, &passage, completed_ns, WINDOW.opened_ns);
        }
        (free_ns, behind_ns) = (completed_ns, passage.generator_ns());
    }
}

fn short_by(tally: &Tally) -> Option<FellShort> {
    offered(1000.0, 1000, 1.0, tally).unwrap().fell_short
}

fn accounted(tally: &Tally) -> f64 {
    tally.waiting_ns() + (tally.idle_ns() + tally.own_ns) as f64
}

#[test]
fn spans_run_from_due_over_sent_to_done() {
    let mut tally = Tally::of(&EVERY_MS);
    let due_ns = WINDOW.opened_ns + 5 * MS_NS;
    let (free_ns, submitted_ns) = (due_ns - 2 * MS_NS, due_ns + 30);
    let passage = Passage { due_ns, free_ns, behind_ns: 0, submitted_ns };
    tally.record_open(&READ, &passage, due_ns + 100, WINDOW.opened_ns);
    let open = open(&tally);
    assert_eq!(open.due_to_submitted.max_ns(), 30);
    assert_eq!(open.submitted_to_completed.max_ns(), 70);
    assert_eq!(open.due_to_completed.max_ns(), 100);
    assert_eq!(tally.read.latency.max_ns(), 100, "the headline counts from when it was due");
    assert_eq!((tally.waiting_ns(), tally.idle_ns(), tally.own_ns), (70.0, 2 * MS_NS, 30));
    assert!(due_spans(&tally).is_some() && due_spans(&Tally::default()).is_none());
}

#[test]
fn a_closed_loop_offers_nothing() {
    assert!(Tally::of(&Arrivals::Closed).open.is_none());
    assert!(offered(1.0, 1, 1.0, &Tally::default()).is_none());
}

#[test]
fn a_slots_time_is_accounted_for_whatever_it_does_at_the_edges() {
    let wall_ns = (WINDOW.closed_ns - WINDOW.opened_ns) as f64;
    for (delay_ns, service_ns) in
        [(0, 100_000), (30_000, 400_000), (0, 3 * MS_NS + 7), (2 * MS_NS + 1, 300_001)]
    {
        let tally = one_slot(|_| delay_ns, |_| service_ns);
        assert_eq!(accounted(&tally), wall_ns, "{delay_ns} {service_ns}");
    }
    for (at, long_ns) in [(1990, 500 * MS_NS), (999, 400 * MS_NS), (1999, 50)] {
        let stalled = one_slot(|_| 0, |ticket| if ticket == at { long_ns } else { 100_000 });
        assert_eq!(accounted(&stalled), wall_ns, "{at} {long_ns}");
        let held = one_slot(|ticket| if ticket == at { long_ns } else { 0 }, |_| 100_000);
        assert_eq!(accounted(&held), wall_ns, "{at} {long_ns}");
    }
    let mut free = Tally::of(&EVERY_MS);
    free.cut_free(WINDOW.opened_ns - 5, WINDOW);
    assert_eq!(accounted(&free), wall_ns);
}

#[test]
fn a_generator_that_sends_late_is_named() {
    // The target would serve ten times the rate; each request is sent 1.2 ms after its slot could.
    let tally = one_slot(|_| 1_200_000, |_| 100_000);
    let offered = offered(1000.0, 1000, 1.0, &tally).unwrap();
    assert_eq!(offered.fell_short, Some(FellShort::Generator), "{offered:?}");
    assert_eq!(offered.late_target, 0, "{offered:?}");
    let reason = missed_rate(&offered, 1.0).unwrap();
    assert!(reason.starts_with("missed rate: "), "{reason}");
    assert!(offered.late_generator > 100 && offered.missed > 100, "{offered:?}");
    let late = format!(
        "the generator fell short: it sent {} requests late and {} not at all",
        offered.late_generator, offered.missed
    );
    assert!(reason.contains(&late), "{reason}");
}

#[test]
fn what_queues_up_behind_a_late_generator_is_not_the_targets_fault() {
    let late = |ticket| if ticket == 1500 { 80 * MS_NS } else { 0 };
    let tally = one_slot(late, |_| 100_000);
    let open = open(&tally);
    assert_eq!(open.late_target, 0, "{} by the generator", open.late_generator);
    assert!(open.late_generator > 80, "{}", open.late_generator);
    assert_eq!(short_by(&tally), None, "it caught up");
}

#[test]
fn what_queues_up_behind_a_slow_target_is_not_the_generators_fault() {
    let tally = one_slot(|_| 2000, |ticket| if ticket == 1500 { 80 * MS_NS } else { 100_000 });
    let open = open(&tally);
    assert_eq!(open.late_generator, 0, "{} by the target", open.late_target);
    assert!(open.late_target > 80, "{}", open.late_target);
}

#[test]
fn requests_nobody_took_count_with_whoever_keeps_the_slots_at_the_end() {
    let end = |ticket, long_ns| if ticket == 1900 { long_ns } else { 0 };
    let stalled = one_slot(|_| 0, |ticket| 100_000 + end(ticket, 1000 * MS_NS));
    assert_eq!(short_by(&stalled), Some(FellShort::Target));
    let asleep = one_slot(|ticket| end(ticket, 1000 * MS_NS), |_| 100_000);
    assert_eq!(short_by(&asleep), Some(FellShort::Generator));
    for tally in [&stalled, &asleep] {
        assert!((99..=100).contains(&open(tally).missed), "{}", open(tally).missed);
        assert_eq!(open(tally).due_to_completed.max_ns(), 100 * MS_NS, "its age at the end");
        assert_eq!(open(tally).due_to_completed.count(), 1000, "none of those due is left out");
    }
}

#[test]
fn requests_due_before_the_window_wait_on_but_are_not_missed_in_it() {
    let tally = one_slot(|_| 0, |_| 3 * MS_NS);
    assert_eq!(open(&tally).missed, 1000, "none of those due in the window was sent");
    assert!(open(&tally).due_to_completed.max_ns() > 1000 * MS_NS, "older ones show their age");
}

#[test]
fn a_request_sent_after_the_window_closed_was_not_in_flight() {
    let (due_ns, free_ns) = (WINDOW.closed_ns - 7, WINDOW.closed_ns - 9);
    let passage = Passage { due_ns, free_ns, behind_ns: 0, submitted_ns: WINDOW.closed_ns + 5 };
    let mut tally = Tally::of(&EVERY_MS);
    tally.cut_in_flight(&passage, WINDOW);
    assert_eq!((open(&tally).in_flight_closed, open(&tally).missed), (0, 1));
    assert_eq!((open(&tally).idle_ns, tally.own_ns, tally.waiting_ns()), (2, 7, 0.0));
}

#[test]
fn issuers_merge_to_the_whole() {
    let (left, right) = (one_slot(|_| 1_300_000, |_| 9), one_slot(|_| 0, |_| 1_300_000));
    let mut merged = Tally::default();
    merged.merge(&left);
    merged.merge(&right);
    assert_eq!(accounted(&merged), accounted(&left) + accounted(&right));
    let sum = |of: fn(&OpenTally) -> u64| of(open(&left)) + of(open(&right));
    let fields: [fn(&OpenTally) -> u64; 9] = [
        |open| open.due_to_submitted.count(),
        |open| open.submitted_to_completed.count(),
        |open| open.due_to_completed.count(),
        |open| open.late_target,
        |open| open.late_generator,
        |open| open.missed,
        |open| open.in_flight_opened,
        |open| open.in_flight_closed,
        |open| open.kept_by_target + 1000 * open.kept_by_generator,
    ];
    for (index, field) in fields.into_iter().enumerate() {
        assert_eq!(field(open(&merged)), sum(field), "field {index}");
    }
    let tested = fields.map(|field| sum(field) > 0);
    assert!(tested.iter().all(|field| *field), "every field is put to the test: {tested:?}");
}
