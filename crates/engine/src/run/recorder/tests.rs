//! What the tallies, and that of an open loop above all, make of moments they are told.

#![allow(clippy::unwrap_used)]

use leadline_wire::event::measure::FellShort;

use super::*;
use crate::run::offered::{due_spans, missed_rate, offered};

const MS_NS: u64 = 1_000_000;
const WINDOW: Window = Window { opened_ns: 10_000 * MS_NS, closed_ns: 11_000 * MS_NS };
const EVERY_MS: Arrivals = Arrivals::Constant { rate_per_s: 1000.0 };
const READ: Request = Request {
    offset_bytes: 0,
    length_bytes: 512,
    kind: Kind::Read,
    sequential: false,
    stream: 0,
    ..Request::NONE
};

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
    assert!(Tally::of(&Arrivals::Closed {}).open.is_none());
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
    let found = missed_rate(&offered, 1.0).unwrap();
    assert!(offered.late_generator > 100 && offered.missed > 100, "{offered:?}");
    assert_eq!(found.values["late_requests"], offered.late_generator.into());
    assert_eq!(found.values["unsent_requests"], offered.missed.into());
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

fn request(kind: Kind, length_bytes: u64, sequential: bool) -> Request {
    Request { offset_bytes: 0, length_bytes, kind, sequential, stream: 0, ..Request::NONE }
}

/// A passage by its moments in milliseconds from the opening; nobody was behind.
fn passage(due_ms: i64, free_ms: i64, submitted_ms: i64) -> Passage {
    let at = |ms: i64| WINDOW.opened_ns.strict_add_signed(ms * MS_NS as i64);
    Passage {
        due_ns: at(due_ms),
        free_ns: at(free_ms),
        behind_ns: 0,
        submitted_ns: at(submitted_ms),
    }
}

#[test]
fn a_request_counts_with_its_kind_its_length_and_its_square() {
    let mut tally = Tally::default();
    tally.record(&request(Kind::Read, 3, true), 100);
    tally.record(&request(Kind::Read, 4, false), 30);
    tally.record(&request(Kind::Write, 7, true), 1000);
    assert_eq!((tally.read.bytes, tally.write.bytes, tally.bytes()), (7, 7, 14));
    assert_eq!((tally.read.latency.sum_ns(), tally.write.latency.sum_ns()), (130, 1000));
    assert_eq!((tally.operations(), tally.sequential), (3, 2));
    assert_eq!(tally.length_squares, 9.0 + 16.0 + 49.0);
    assert_eq!((tally.waiting_ns(), tally.idle_ns()), (1130.0, 0));
    tally.edge_ns = -130;
    assert_eq!(tally.waiting_ns(), 1000.0);
    tally.edge_ns = -2000;
    assert_eq!(tally.waiting_ns(), 0.0, "no time is negative");
}

/// Late for the target, late for the generator.
fn late(passages: &[Passage]) -> (u64, u64) {
    let mut tally = Tally::of(&EVERY_MS);
    for passage in passages {
        tally.record_open(&READ, passage, passage.submitted_ns + 1, WINDOW.opened_ns);
    }
    (open(&tally).late_target, open(&tally).late_generator)
}

#[test]
fn a_request_is_late_by_more_than_a_millisecond_if_due_within_the_window() {
    assert_eq!(late(&[passage(5, 0, 6)]), (0, 0), "a millisecond is none");
    let just = Passage { submitted_ns: passage(5, 0, 6).submitted_ns + 1, ..passage(5, 0, 6) };
    assert_eq!(late(&[just]), (0, 1));
    assert_eq!(late(&[passage(0, 0, 2)]), (0, 1), "due as the window opened");
    assert_eq!(late(&[passage(-1, -1, 2)]), (0, 0), "due before");
    assert_eq!(late(&[passage(5, 9, 9)]), (1, 0), "its slot was busy");
    assert_eq!(late(&[passage(5, 7, 9)]), (1, 0), "half of it each is the target's");
    assert_eq!(late(&[passage(5, 6, 9)]), (0, 1));
}

#[test]
fn a_slot_that_was_sent_late_before_is_the_generators_fault_to_that_extent() {
    let behind = Passage { behind_ns: 3 * MS_NS, ..passage(5, 9, 9) };
    assert_eq!(behind.generator_ns(), 3 * MS_NS);
    assert_eq!(Passage { behind_ns: 9 * MS_NS, ..behind }.generator_ns(), 4 * MS_NS, "all of it");
    assert_eq!(late(&[behind]), (0, 1));
}

#[test]
fn only_what_was_sent_before_the_opening_was_in_flight_then() {
    let mut tally = Tally::of(&EVERY_MS);
    for submitted_ms in [-1, 0, 1] {
        let passage = passage(-1, -1, submitted_ms);
        tally.record_open(&READ, &passage, WINDOW.opened_ns + 2 * MS_NS, WINDOW.opened_ns);
    }
    assert_eq!(open(&tally).in_flight_opened, 1);
    assert_eq!(tally.edge_ns, -(MS_NS as i64), "a millisecond of the first lies before it");
    assert_eq!(tally.own_ns, MS_NS, "of the last, what lies within");
}

#[test]
fn a_request_done_as_the_window_closes_is_counted_and_one_done_later_is_in_flight() {
    let (sent, closed_ns) = (passage(990, 980, 991), WINDOW.closed_ns);
    for (completed_ns, done, in_flight) in
        [(closed_ns, 1, 0), (closed_ns + 1, 0, 1), (WINDOW.opened_ns, 1, 0)]
    {
        let mut tally = Tally::of(&EVERY_MS);
        tally.finish_open(&READ, &sent, completed_ns, WINDOW);
        assert_eq!((tally.operations(), open(&tally).in_flight_closed), (done, in_flight));
    }
    let mut before = Tally::of(&EVERY_MS);
    before.finish_open(&READ, &passage(-9, -9, -8), WINDOW.opened_ns - 1, WINDOW);
    assert_eq!((before.operations(), open(&before).in_flight_closed), (0, 0));
}

#[test]
fn what_is_cut_counts_with_its_part_within_the_window() {
    let mut flying = Tally::of(&EVERY_MS);
    flying.cut_in_flight(&passage(990, 980, 992), WINDOW);
    let found = open(&flying);
    assert_eq!((flying.edge_ns, flying.own_ns), (8 * MS_NS as i64, 2 * MS_NS));
    assert_eq!((found.idle_ns, found.in_flight_closed, found.missed), (10 * MS_NS, 1, 0));
    assert_eq!(found.due_to_completed.max_ns(), 10 * MS_NS, "its age");
    assert_eq!((found.kept_by_target, found.kept_by_generator), (1, 0));

    let mut at_the_end = Tally::of(&EVERY_MS);
    at_the_end.cut_in_flight(&passage(990, 980, 1000), WINDOW);
    assert_eq!((open(&at_the_end).in_flight_closed, open(&at_the_end).missed), (0, 1));

    let mut held = Tally::of(&EVERY_MS);
    held.cut_held(&passage(990, 980, 0), WINDOW);
    let found = open(&held);
    assert_eq!((held.own_ns, found.idle_ns, found.missed), (10 * MS_NS, 10 * MS_NS, 1));
    assert_eq!((found.kept_by_target, found.kept_by_generator), (0, 1));
    assert_eq!(found.due_to_submitted.max_ns(), 10 * MS_NS);

    let mut not_due = Tally::of(&EVERY_MS);
    not_due.cut_held(&passage(1000, 980, 0), WINDOW);
    assert_eq!((open(&not_due).idle_ns, open(&not_due).missed), (20 * MS_NS, 0));
}

#[test]
fn a_slot_kept_half_by_each_is_the_targets() {
    for (free_ms, by_generator) in [(995, 0), (994, 1), (999, 0)] {
        let mut tally = Tally::of(&EVERY_MS);
        tally.cut_held(&passage(990, free_ms, 0), WINDOW);
        let found = open(&tally);
        assert_eq!(
            (found.kept_by_target, found.kept_by_generator),
            (1 - by_generator, by_generator)
        );
    }
}

#[test]
fn tickets_nobody_took_are_missed_if_due_within_the_window() {
    let schedule = || ArrivalStream::new(&EVERY_MS, 1).unwrap();
    let mut late = Tally::of(&EVERY_MS);
    late.cut_untaken(schedule(), 0, WINDOW.closed_ns - 5 * MS_NS, WINDOW);
    assert_eq!(open(&late).missed, 5, "the sixth is due as the window closes");
    assert_eq!(open(&late).due_to_completed.sum_ns(), (5 + 4 + 3 + 2 + 1) * MS_NS);
    let mut all = Tally::of(&EVERY_MS);
    all.cut_untaken(schedule(), 3, WINDOW.opened_ns - 5 * MS_NS, WINDOW);
    assert_eq!(open(&all).missed, 1000, "the first of them is due as it opens");
    assert_eq!(open(&all).due_to_submitted.count(), 1002, "older ones show their age");
    let mut none = Tally::of(&EVERY_MS);
    none.cut_untaken(schedule(), 5, WINDOW.closed_ns - 5 * MS_NS, WINDOW);
    assert_eq!(open(&none).due_to_submitted.count(), 0);
}

fn connection(segments: u64, verifier: Option<u8>, restarted: bool) -> Connection {
    let verifier = verifier.map(|byte| [byte; 8]);
    let (writes, stable_writes) = (10 * segments, 3 * segments);
    Connection { retransmitted_segments: segments, verifier, restarted, writes, stable_writes }
}

#[test]
fn connections_add_up_and_two_verifiers_are_a_restart() {
    let merged = |mut mine: Connection, theirs: Connection| {
        mine.merge(&theirs);
        mine
    };
    let one = connection(1, Some(7), false);
    assert_eq!(merged(one, connection(2, Some(7), false)), connection(3, Some(7), false));
    assert_eq!(merged(one, connection(2, Some(8), false)), connection(3, Some(7), true));
    assert_eq!(merged(one, connection(2, None, true)), connection(3, Some(7), true));
    assert_eq!(merged(connection(2, None, true), one), connection(3, Some(7), true));
    let restarted = connection(2, Some(7), true);
    assert_eq!(merged(restarted, one), connection(3, Some(7), true), "and stays one");
    assert_eq!(merged(restarted, connection(1, Some(7), true)), connection(3, Some(7), true));
    assert_eq!(merged(restarted, connection(1, Some(8), false)), connection(3, Some(7), true));
}

#[test]
fn tallies_merge_field_by_field() {
    let one = |factor: u64, lost: Option<&str>| {
        let mut tally = Tally::default();
        tally.record(&request(Kind::Read, 3 * factor, true), 5 * factor);
        tally.record(&request(Kind::Write, 7 * factor, false), 11 * factor);
        tally.edge_ns = -13 * factor as i64;
        (tally.own_ns, tally.think_ns) = (17 * factor, 19 * factor);
        tally.found.record(&request(Kind::Read, 4096 * factor, false), 4096);
        tally.wire = Wire { sent: 23 * factor, received: 29 * factor };
        tally.connection = Some(connection(factor, None, false));
        let why = |why: &str| Lost { why: why.to_owned(), requests: 31 * factor };
        tally.lost = lost.map(why);
        tally
    };
    let mut both = one(1, None);
    both.merge(&one(2, Some("cut")));
    assert_eq!((both.read.bytes, both.write.bytes), (9, 21));
    assert_eq!((both.read.latency.sum_ns(), both.write.latency.sum_ns()), (15, 33));
    assert_eq!((both.sequential, both.length_squares), (2, 9.0 + 49.0 + 36.0 + 196.0));
    assert_eq!((both.edge_ns, both.own_ns, both.think_ns), (-39, 51, 57));
    assert_eq!(both.found.reads(), 2);
    assert_eq!(both.wire, Wire { sent: 69, received: 87 });
    assert_eq!(both.connection, Some(connection(3, None, false)));
    assert_eq!(both.lost, Some(Lost { why: "cut".to_owned(), requests: 62 }));
    both.merge(&one(1, Some("silent")));
    assert_eq!(both.lost, Some(Lost { why: "cut".to_owned(), requests: 93 }), "the first reason");
    both.merge(&one(1, None));
    assert_eq!(both.lost.map(|lost| lost.requests), Some(93));
}
