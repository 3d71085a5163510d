//! A server made of parts (`leadline_sim::server`) under an open loop.

use leadline_base::clock::ns_from_s;
use leadline_base::error::EngineError;
use leadline_sim::server::law::exponential;
use leadline_sim::server::{Answer, Document, End, Server};
use leadline_wire::event::load::LoadResult;
use leadline_wire::job::trial::TrialOrder;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::DRAIN_S;
use crate::load::early_abort::EarlyAbort;
use crate::load::{Limits, LoadTally, Window};

/// Arrivals have a seed of their own, so that they stay where they are when a server changes.
const ARRIVALS: u64 = 0x5851_F42D_4C95_7F2D;

/// Runs one trial in virtual time: requests at random (Poisson), counted from when they were due.
///
/// A trial that is given up ends there: what was due by then is waited for as long as always.
///
/// # Errors
/// `BadJob` when the document makes no sense.
pub fn run(document: &Document, order: &TrialOrder) -> Result<LoadResult, EngineError> {
    let refused = |refused: leadline_sim::Refused| EngineError::bad_job(refused.0);
    let mut server = Server::new(document, order.seed).map_err(refused)?;
    let from_ns = ns_from_s(document.warm_up_s);
    let to_ns = from_ns + ns_from_s(order.seconds);
    let limits = Limits::of(order.limits_ms());
    let mut tally = LoadTally::new(Window { from_ns, to_ns, limits });
    let mut arrivals = Xoshiro256PlusPlus::seed_from_u64(order.seed ^ ARRIVALS);
    let mut early_abort = EarlyAbort::new(order.abort_above_ms, from_ns);
    let mut now_ns = 0.0_f64;
    let mut ended = Ended { at_ns: to_ns, early: false };
    loop {
        now_ns += exponential(&mut arrivals) * 1e9 / order.rate_per_s;
        let due_ns = (now_ns as u64).min(to_ns);
        while let Some(end) = server.next_end(due_ns) {
            early_abort.answered(end.due_ns, end.at_ns);
            count(&mut tally, end);
        }
        if due_ns >= to_ns {
            break;
        }
        if early_abort.ends(due_ns) {
            ended = Ended { at_ns: due_ns, early: true };
            tally.cut(due_ns);
            break;
        }
        early_abort.due(due_ns);
        server.submit(due_ns);
    }
    let last_ns = ended.at_ns + ns_from_s(DRAIN_S);
    while let Some(end) = server.next_end(last_ns) {
        count(&mut tally, end);
    }
    for due_ns in server.waiting() {
        tally.unanswered(due_ns, last_ns - due_ns);
    }
    Ok(tally.finish(ended.at_ns, ended.early))
}

/// When the window ended.
struct Ended {
    at_ns: u64,
    early: bool,
}

/// Counts a request that ended. One that its client gave up never had an answer, which counts as it
/// does where the generator stops waiting.
fn count(tally: &mut LoadTally, end: End) {
    let age_ns = end.at_ns - end.due_ns;
    match end.answer {
        Answer::Answered => tally.answered(end.due_ns, age_ns),
        Answer::GivenUp => tally.unanswered(end.due_ns, age_ns),
        Answer::Refused => tally.failed(end.due_ns),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::ABORT_AFTER_S;

    /// 200 requests per second, one after the other, with more fields.
    fn server(more: &str) -> Document {
        let cores = r#"{"count": 1, "discipline": "turns", "work_ms": 5,
            "work": {"kind": "exponential"}}"#;
        serde_json::from_str(&format!(r#"{{"workers": 256, "cores": {cores} {more}}}"#)).unwrap()
    }

    fn order(rate_per_s: f64, seconds: f64) -> TrialOrder {
        TrialOrder {
            rate_per_s,
            seconds,
            seed: 7,
            limit_ms: Some(50.0),
            also_limits_ms: vec![],
            abort_above_ms: None,
        }
    }

    #[test]
    fn a_trial_is_the_window_of_an_open_loop() {
        let result = run(&server(""), &order(160.0, 3000.0)).unwrap();
        let mean_ms = result.response_ms.unwrap().mean; // M/M/1: 1/(200 - 160) s
        assert!((mean_ms / 25.0 - 1.0).abs() < 0.03, "{mean_ms}");
        let due: u64 = result.batches.iter().map(|batch| batch.due).sum();
        let over: u64 = result.batches.iter().map(|batch| batch.over).sum();
        assert_eq!((due, result.batches.len()), (result.due, 60));
        assert!((over as f64 / due as f64 / (-2f64).exp() - 1.0).abs() < 0.05); // e^(-50/25)
        assert!((result.completed_per_s / 160.0 - 1.0).abs() < 0.02);
        assert_eq!((result.warm_up_s, result.seconds, result.aborted), (5.0, 3000.0, false));
    }

    #[test]
    fn overload_shows_the_capacity_and_is_given_up() {
        let order = TrialOrder { abort_above_ms: Some(160.0), ..order(400.0, 60.0) };
        let result = run(&server(""), &order).unwrap();
        assert!(result.aborted && (result.seconds / ABORT_AFTER_S - 1.0).abs() < 0.02);
        assert!((result.completed_per_s / 200.0 - 1.0).abs() < 0.1);
        assert_eq!(result.batches.len(), 10);
        assert!(result.unanswered > 500, "{}", result.unanswered);
    }

    #[test]
    fn what_clients_give_up_counts_with_its_age_and_what_is_refused_as_failed() {
        let clients = r#", "clients": {"timeout_ms": 1, "resends": 1, "backoff_ms": 4}"#;
        let slow = server(clients);
        let result = run(&slow, &order(20.0, 60.0)).unwrap();
        // Answered within 1 ms with 1 - e^(-1/5) of two attempts; else 1 + 2 to 6 + 1 ms.
        let share = result.unanswered as f64 / result.due as f64;
        assert!((share / (-0.4f64).exp() - 1.0).abs() < 0.2, "{share}");
        assert!(result.response_ms.unwrap().max < 9.0);
        let full = Document { workers: 1, backlog: 0, ..server("") };
        let result = run(&full, &order(200.0, 60.0)).unwrap();
        // Erlang's loss formula: half are refused.
        assert!((result.failed as f64 / result.due as f64 / 0.5 - 1.0).abs() < 0.05);
    }

    #[test]
    fn every_draw_follows_the_seed() {
        let (server, order) = (server(""), order(150.0, 30.0));
        assert_eq!(run(&server, &order).unwrap(), run(&server, &order).unwrap());
        let other = TrialOrder { seed: 8, ..order.clone() };
        assert_ne!(run(&server, &order).unwrap(), run(&server, &other).unwrap());
    }
}
