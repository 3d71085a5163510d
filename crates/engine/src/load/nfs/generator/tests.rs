//! What is the generator's own doing, and what the server's.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn order() -> LoadOrder {
    LoadOrder {
        rate_per_s: 100.0,
        seconds: 60.0,
        warm_up_s: 5.0,
        seed: 1,
        connections: 1,
        stable: None,
        limit_ms: None,
        abort_above_ms: Some(100.0),
    }
}

fn books() -> Books {
    Books::new(&order(), false, "server".to_owned())
}

/// A hundred calls, each sent `late_ns` after it was due and answered `response_ns` after that.
fn after_calls(late_ns: u64, response_ns: u64, free_from_ns: u64) -> Offered {
    let mut books = books();
    for call in 0..100 {
        let due_ns = 6 * SECOND + call * 10 * MS;
        books.sent(due_ns, due_ns + late_ns, free_from_ns, 1);
        let asked = Asked { due_ns, bytes: 0, procedure: 0 };
        books.answered(asked, Said::Done(&[]), due_ns + response_ns).unwrap();
    }
    books.close(&Ended { at_ns: 65 * SECOND, aborted: false }, &order(), 0.5)
}

#[test]
fn a_generator_that_sends_late_says_so() {
    let late = after_calls(5 * MS, 20 * MS, 0);
    assert!((late.generator.sent_late_ms_mean - 5.0).abs() < 1e-9);
    assert!((late.load.sent_late_ms_p99.unwrap() - 5.0).abs() < 0.05);
    assert!(late.generator.fell_short.unwrap().contains("5.0 ms late in the mean"));
    assert!((late.load.response_ms.unwrap().mean - 20.0).abs() < 1e-9, "from when it was due");
}

#[test]
fn a_little_lateness_is_none() {
    assert_eq!(after_calls(MS / 2, MS, 0).generator.fell_short, None, "under a millisecond");
    assert_eq!(after_calls(3 * MS, 40 * MS, 0).generator.fell_short, None, "under a tenth");
}

#[test]
fn what_the_server_held_back_is_not_the_generators() {
    let held = after_calls(500 * MS, 600 * MS, 20 * SECOND);
    assert_eq!((held.generator.held, held.load.sent_late_ms_p99), (100, None));
    assert_eq!(held.generator.fell_short, None);
}

#[test]
fn a_load_is_hopeless_by_the_ages_of_what_waits_too() {
    let mut books = books();
    for call in 0..100 {
        let due_ns = 6 * SECOND + call * 50 * MS;
        books.sent(due_ns, due_ns, 0, 1);
        if call >= 10 {
            let asked = Asked { due_ns, bytes: 0, procedure: 0 };
            books.answered(asked, Said::Done(&[]), due_ns + MS).unwrap();
        }
    }
    // Ten of a hundred wait since 6 s: at 15 s their ages alone are 0.9 s in the mean.
    assert!(!books.hopeless(&order(), 15 * SECOND - 1), "not before ten seconds");
    assert!(books.hopeless(&order(), 15 * SECOND));
    let patient = LoadOrder { abort_above_ms: Some(1000.0), ..order() };
    assert!(!books.hopeless(&patient, 15 * SECOND));
    assert!(!books.hopeless(&LoadOrder { abort_above_ms: None, ..order() }, 60 * SECOND));
}

#[test]
fn the_warm_up_counts_nowhere() {
    let mut books = books();
    books.sent(4 * SECOND, 5 * SECOND, 0, 1);
    let asked = Asked { due_ns: 4 * SECOND, bytes: 0, procedure: 0 };
    books.answered(asked, Said::Done(&[]), 4 * SECOND + MS).unwrap();
    books.unanswered(4 * SECOND, 0, 60 * SECOND);
    let offered = books.close(&Ended { at_ns: 65 * SECOND, aborted: false }, &order(), 0.5);
    assert_eq!((offered.load.due, offered.load.unanswered, offered.operations.len()), (0, 0, 0));
    assert_eq!(offered.load.sent_late_ms_p99, None);
}
