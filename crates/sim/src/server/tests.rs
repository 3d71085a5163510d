//! Servers of few parts against their closed cases, and each part at its work.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::random::Random;

const MS: u64 = 1_000_000;
const EXPONENTIAL: Law = Law::Exponential {};

/// Processors that all share, under as many workers as anybody could want.
fn cores(count: u32, work_ms: f64, work: Law) -> Document {
    Document {
        workers: 4096,
        backlog: 1_000_000,
        cores: Cores { count, discipline: Discipline::Shared, work_ms, work },
        cache: None,
        storage: None,
        lock: None,
        pool: None,
        collector: None,
        clients: None,
        batch: None,
        speed: Speed::default(),
        warm_up_s: 5.0,
        set_up_s: 10.0,
    }
}

fn storage(channels: u32, io_ms: f64) -> Storage {
    Storage { channels, io_ms, io: EXPONENTIAL, degraded_share: 0.0, degraded_factor: 1.0 }
}

/// What came of so many seconds of requests at random.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    due: u64,
    answered: u64,
    given_up: u64,
    refused: u64,
    waiting: u64,
    sum_ns: u64,
    longest_ns: u64,
}

impl Seen {
    /// Counts what ends before then; when the last did.
    fn take(&mut self, server: &mut Server, mut before_ns: u64, until_ns: u64) -> u64 {
        while let Some(end) = server.next_end(until_ns) {
            assert!(before_ns <= end.at_ns && end.at_ns <= until_ns, "ends come in order");
            before_ns = end.at_ns;
            match end.answer {
                Answer::Answered => {
                    self.answered += 1;
                    self.sum_ns += end.at_ns - end.due_ns;
                    self.longest_ns = self.longest_ns.max(end.at_ns - end.due_ns);
                }
                Answer::GivenUp => self.given_up += 1,
                Answer::Refused => self.refused += 1,
            }
        }
        before_ns
    }

    fn mean_ms(&self) -> f64 {
        self.sum_ns as f64 / self.answered as f64 / MS as f64
    }
}

fn run_with(document: &Document, rate_per_s: f64, seconds: f64, seed: u64) -> Seen {
    let mut server = Server::new(document, seed).unwrap();
    let mut arrivals = Random::new(seed + 1000);
    let (mut seen, mut at, mut before_ns) = (Seen::default(), 0.0_f64, 0);
    while at < seconds * 1e9 {
        at += arrivals.exponential() * 1e9 / rate_per_s;
        before_ns = seen.take(&mut server, before_ns, at as u64);
        server.submit(at as u64);
        seen.due += 1;
    }
    seen.take(&mut server, before_ns, at as u64);
    seen.waiting = server.waiting().count() as u64;
    let ended = seen.answered + seen.given_up + seen.refused;
    assert_eq!(seen.due, ended + seen.waiting, "nothing is lost and nothing ends twice");
    seen
}

fn run(document: &Document, rate_per_s: f64, seconds: f64) -> Seen {
    run_with(document, rate_per_s, seconds, 7)
}

#[track_caller]
fn near(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() < within, "found {found}, expected {expected}");
}

/// What it answers per second of four times what it can take.
fn capacity_per_s(document: &Document, rate_per_s: f64, seconds: f64) -> f64 {
    run(document, rate_per_s, seconds).answered as f64 / seconds
}

/// Mean response of M/M/c in milliseconds (Erlang C).
fn m_m_c_ms(servers: u32, service_ms: f64, rate_per_s: f64) -> f64 {
    let load = rate_per_s * service_ms / 1e3;
    let (mut term, mut sum) = (1.0, 0.0);
    for busy in 1..=servers {
        sum += term;
        term *= load / f64::from(busy);
    }
    let rho = load / f64::from(servers);
    let waits = term / (1.0 - rho) / (sum + term / (1.0 - rho));
    service_ms + waits * service_ms / (f64::from(servers) * (1.0 - rho))
}

#[test]
fn processors_taken_in_turns_are_m_m_c() {
    for (count, rate_per_s) in [(1, 160.0), (4, 640.0)] {
        let mut document = cores(count, 5.0, EXPONENTIAL);
        document.cores.discipline = Discipline::Turns;
        let found = run(&document, rate_per_s, 4000.0).mean_ms();
        near(found, m_m_c_ms(count, 5.0, rate_per_s), 0.03);
    }
    near(m_m_c_ms(4, 10.0, 320.0), 10.0 + 596.4 / 80.0, 1e-4); // tables: C(4, 3.2) = 0.5964
}

#[test]
fn shared_processors_take_no_notice_of_the_law_of_work() {
    // M/G/1-PS: s/(1 - rho), whatever the law; taken in turns it would be 5 + 10·(1 + cv²) ms.
    for work in [Law::Constant {}, EXPONENTIAL, Law::Lognormal { cv: 3.0 }] {
        let found = run(&cores(1, 5.0, work), 160.0, 4000.0).mean_ms();
        near(found, 25.0, 0.05);
    }
    // Nobody is on two at once: as M/M/4 with an exponential law, whatever the write mode.
    let found = run(&cores(4, 5.0, EXPONENTIAL), 640.0, 4000.0).mean_ms();
    near(found, m_m_c_ms(4, 5.0, 640.0), 0.03);
}

#[test]
fn a_pool_is_m_m_c_of_its_connections() {
    let mut document = cores(64, 0.0, Law::Constant {});
    document.pool = Some(Pool { connections: 6, query_ms: 10.0, query: EXPONENTIAL });
    near(run(&document, 500.0, 4000.0).mean_ms(), m_m_c_ms(6, 10.0, 500.0), 0.03);
}

#[test]
fn workers_hold_a_request_from_its_work_to_its_answer() {
    // Eight workers, who each need 20 ms for one: half of it on processors that are always free.
    let mut document = cores(64, 10.0, Law::Constant {});
    document.pool = Some(Pool { connections: 64, query_ms: 10.0, query: Law::Constant {} });
    document.workers = 8;
    near(capacity_per_s(&document, 1600.0, 20.0), 400.0, 0.02);
    document.backlog = 100;
    let seen = run(&document, 1600.0, 20.0);
    assert!(seen.refused > 20_000 && (106..=108).contains(&seen.waiting), "{seen:?}");
    // Those waiting are answered after those before them: 12.5 turns of 20 ms.
    near(seen.longest_ns as f64 / MS as f64, 270.0, 0.04);
}

#[test]
fn writers_are_one_at_a_time_however_many_channels_the_storage_has() {
    let mut document = cores(64, 0.0, Law::Constant {});
    document.storage = Some(storage(64, 8.0));
    document.cache = Some(Cache { hit_frac: 1.0, cold_share: 0.0, cold_hit_frac: 0.0 });
    document.lock = Some(Lock { write_share: 0.25, stripes: 1 });
    // A quarter of 400 per second is M/M/1 at 0.8, the others take no time.
    near(run(&document, 400.0, 4000.0).mean_ms(), 0.25 * m_m_c_ms(1, 8.0, 100.0), 0.04);
    document.lock = Some(Lock { write_share: 1.0, stripes: 4 });
    near(capacity_per_s(&document, 2000.0, 50.0), 500.0, 0.03);
}

#[test]
fn a_cache_keeps_reads_from_the_storage_except_where_it_stays_cold() {
    let mut document = cores(64, 0.0, Law::Constant {});
    document.storage = Some(storage(2, 10.0));
    document.cache = Some(Cache { hit_frac: 0.75, cold_share: 0.0, cold_hit_frac: 0.0 });
    near(run(&document, 640.0, 3000.0).mean_ms(), 0.25 * m_m_c_ms(2, 10.0, 160.0), 0.04);
    let cold = |cold_share| Cache { hit_frac: 1.0, cold_share, cold_hit_frac: 0.0 };
    document.cache = Some(cold(0.3));
    let stored = |seed| u32::from(run_with(&document, 20.0, 5.0, seed).sum_ns > 0);
    let trials: u32 = (0..400).map(stored).sum();
    assert!((95..145).contains(&trials), "{trials} of 400 were cold");
}

#[test]
fn a_degraded_storage_takes_longer_for_a_whole_trial() {
    let mut document = cores(64, 0.0, Law::Constant {});
    let degraded = Storage { degraded_share: 0.5, degraded_factor: 3.0, ..storage(64, 10.0) };
    document.storage = Some(Storage { io: Law::Constant {}, ..degraded });
    let means: Vec<f64> =
        (0..100).map(|seed| run_with(&document, 50.0, 2.0, seed).mean_ms()).collect();
    let slow = means.iter().filter(|mean| (**mean - 30.0).abs() < 1e-6).count();
    let fast = means.iter().filter(|mean| (**mean - 10.0).abs() < 1e-6).count();
    assert!(slow + fast == 100 && (35..65).contains(&slow), "{slow}");
}

#[test]
fn a_collector_takes_the_time_that_it_stands_still() {
    let collector = Collector {
        kind: Collecting::Stopping,
        heap_mb: 100.0,
        live_mb: 20.0,
        allocates_mb: 0.5,
        ms_per_live_mb: 5.0,
        begin_frac: 0.7,
        cores_frac: 0.25,
        assist_frac: 0.0,
    };
    let mut document = cores(1, 5.0, Law::Constant {});
    document.workers = 1;
    document.collector = Some(collector.clone());
    // 20.5 MB live: 159 requests of 5 ms, one overshoots, then 102.5 ms for nobody.
    let turn_s = (160.0 * 5.0 + 102.5) / 1e3;
    near(capacity_per_s(&document, 800.0, 200.0), 160.0 / turn_s, 0.02);
    // Longer pauses where more requests are under way.
    document.workers = 64;
    let crowd = capacity_per_s(&document, 800.0, 200.0);
    let turn_s = (97.0 * 5.0 + 52.0 * 5.0) / 1e3;
    near(crowd, 97.0 / turn_s, 0.03);
    // Nobody is answered while all stands still, also who is at another server then.
    document.pool = Some(Pool { connections: 64, query_ms: 1.0, query: Law::Constant {} });
    document.cores.work_ms = 0.0;
    let pause = run(&document, 200.0, 20.0);
    assert!(pause.longest_ns > 100 * MS, "{pause:?}");
}

#[test]
fn a_concurrent_collector_takes_its_part_of_the_processors() {
    let mut document = cores(4, 5.0, EXPONENTIAL);
    let collector = Collector {
        kind: Collecting::Concurrent,
        heap_mb: 1e6,
        live_mb: 10.0,
        allocates_mb: 1e-3,
        ms_per_live_mb: 1e6,
        begin_frac: 0.0,
        cores_frac: 0.5,
        assist_frac: 0.0,
    };
    document.collector = Some(collector.clone()); // for ever, from the first request on
    near(capacity_per_s(&document, 1600.0, 50.0), 400.0, 0.03);
    document.collector = Some(Collector { assist_frac: 1.0, ..collector });
    near(capacity_per_s(&document, 1600.0, 50.0), 200.0, 0.04);
}

#[test]
fn retries_add_load_and_a_server_that_was_tipped_over_stays_there() {
    let mut document = cores(1, 5.0, EXPONENTIAL);
    document.cores.discipline = Discipline::Turns;
    let before = run(&document, 150.0, 600.0);
    assert!(before.mean_ms() < 25.0, "{}", before.mean_ms());
    // A client waits for 1 s: P(R > 1 s) = e^-50, so nothing changes as long as all goes well.
    document.clients = Some(Clients { timeout_ms: 1000.0, resends: 3, backoff_ms: 0.0 });
    let calm = run(&document, 150.0, 600.0);
    assert_eq!((calm.given_up, calm.answered), (0, before.answered));
    // A batch job takes nearly all of the processor for some seconds, and every attempt that it
    // makes late is work for nothing: without retries the server recovers, with them it does not.
    let batch = Batch { mean_busy_s: 10.0, mean_idle_s: 300.0, cores_frac: 0.95, ios_per_s: 0.0 };
    document.batch = Some(batch);
    let tipped = run(&document, 150.0, 2000.0);
    document.clients = None;
    let recovered = run(&document, 150.0, 2000.0);
    assert!(recovered.waiting < 2000, "{recovered:?}");
    assert!(tipped.given_up > tipped.due / 5, "{tipped:?}");
}

#[test]
fn a_client_takes_the_answer_to_its_last_attempt_only() {
    let mut document = cores(64, 30.0, Law::Constant {});
    document.clients = Some(Clients { timeout_ms: 20.0, resends: 2, backoff_ms: 40.0 });
    let seen = run(&document, 10.0, 100.0);
    // Every attempt takes 30 ms, so nobody is answered within 20, however often it tries.
    assert_eq!(seen.answered, 0);
    assert!(seen.given_up > 900, "{seen:?}");
    document.clients = Some(Clients { timeout_ms: 35.0, resends: 2, backoff_ms: 40.0 });
    let seen = run(&document, 10.0, 100.0);
    assert_eq!((seen.given_up, seen.longest_ns), (0, 30 * MS));
}

#[test]
fn batch_jobs_take_their_part_of_processors_and_storage_while_they_run() {
    let mut document = cores(1, 5.0, EXPONENTIAL);
    document.batch =
        Some(Batch { mean_busy_s: 1.0, mean_idle_s: 3.0, cores_frac: 0.4, ios_per_s: 0.0 });
    near(capacity_per_s(&document, 800.0, 1000.0), 200.0 * (1.0 - 0.25 * 0.4), 0.02);
    let mut document = cores(64, 0.0, Law::Constant {});
    document.storage = Some(storage(1, 5.0));
    document.batch =
        Some(Batch { mean_busy_s: 1.0, mean_idle_s: 1e-3, cores_frac: 0.0, ios_per_s: 80.0 });
    // A job that comes back at once: 80 of its requests are served beside those of the clients.
    near(run(&document, 80.0, 3000.0).mean_ms(), m_m_c_ms(1, 5.0, 160.0), 0.05);
}

#[test]
fn speed_differs_from_trial_to_trial_and_drifts_within_one() {
    let mut document = cores(1, 5.0, Law::Constant {});
    document.workers = 1;
    let per_s = |document: &Document, seed| {
        let seen = run_with(document, 400.0, 10.0, seed);
        (seen.answered as f64 / 10.0 / 200.0).ln()
    };
    let sd = |document: &Document| {
        let logs: Vec<f64> = (0..300).map(|seed| per_s(document, seed)).collect();
        (logs.iter().map(|log| log * log).sum::<f64>() / 300.0).sqrt()
    };
    document.speed.between_trials_sd = 0.1;
    near(sd(&document), 0.1, 0.15);
    document.speed =
        Speed { drift_sd: 0.1, drift_memory_s: 1e4, between_trials_sd: 0.0, ..Speed::default() };
    near(sd(&document), 0.1, 0.15);
    // Ten seconds of a drift with a memory of one: sd times √(2/10), less some for the ends.
    document.speed.drift_memory_s = 1.0;
    near(sd(&document), 0.1 * (0.2f64 * 0.9).sqrt(), 0.15);
    document.speed = Speed { cold_frac: 1.0, cold_s: 5.0, ..Speed::default() };
    // Work of a second takes 1 + e^(-t/5): mean over 10 s of 1/(1 + e^(-t/5)) by hand.
    let done = (1.0 + 2f64.exp()).ln() - 2f64.ln();
    near(per_s(&document, 1).exp(), done / 2.0, 0.02);
}

#[test]
fn a_seed_gives_the_same_run() {
    let mut document = cores(2, 5.0, Law::Lognormal { cv: 1.5 });
    document.storage = Some(storage(2, 5.0));
    document.lock = Some(Lock { write_share: 0.2, stripes: 2 });
    document.clients = Some(Clients { timeout_ms: 50.0, resends: 2, backoff_ms: 10.0 });
    document.speed.drift_sd = 0.1;
    assert_eq!(run_with(&document, 200.0, 20.0, 3), run_with(&document, 200.0, 20.0, 3));
    assert_ne!(run_with(&document, 200.0, 20.0, 3), run_with(&document, 200.0, 20.0, 4));
}

#[test]
fn nonsense_is_refused_by_name() {
    let told = |document: &Document| document.validate().map_or_else(|no| no.0, |()| String::new());
    let mut document = cores(0, 5.0, EXPONENTIAL);
    assert_eq!(told(&document), "cores.count is 0; it must be between 1 and 4096");
    document = cores(1, 0.0, EXPONENTIAL);
    assert!(told(&document).contains("no time at all"), "{}", told(&document));
    document = cores(1, 5.0, Law::Lognormal { cv: -1.0 });
    assert!(told(&document).starts_with("cores.work.cv is -1"), "{}", told(&document));
    document = cores(1, 5.0, EXPONENTIAL);
    document.lock = Some(Lock { write_share: 0.5, stripes: 1 });
    assert_eq!(told(&document), "lock is given without a storage");
    document.storage = Some(storage(1, 5.0));
    assert_eq!(told(&document), "");
    assert!(Server::new(&cores(1, 5.0, Law::Lognormal { cv: 99.0 }), 1).is_err());
}
