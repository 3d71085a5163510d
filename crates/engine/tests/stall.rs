//! A target that stalls for a second, on the real file system and the real clock: an open loop's
//! p99 shows it, a closed loop's does not (coordinated omission).
#![allow(clippy::unwrap_used, missing_docs)]

mod scratch;
mod setting;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leadline_engine::access::AccessStream;
use leadline_engine::backend::pread::PreadBackend;
use leadline_engine::backend::uring::UringBackend;
use leadline_engine::backend::{Backend, Completion, QueueBackend};
use leadline_engine::buffer;
use leadline_engine::clock::{now_ns, sleep_until};
use leadline_engine::data_file::DataFile;
use leadline_engine::error::EngineError;
use leadline_engine::events::Reporter;
use leadline_engine::job::{Job, Request, WriteSync};
use leadline_engine::offered::due_spans;
use leadline_engine::phases::{self, Run};
use leadline_engine::worker::{Blocking, Demand, Issue, OwnCost, Probe, Queued};
use scratch::Scratch;
use serde_json::{Value, json};
use setting::setting;

const STALL: Duration = Duration::from_secs(1);
const RATE_PER_S: f64 = 400.0;

/// Any backend that once, half a second into the run, does nothing for a second.
struct StallOnce<B> {
    inner: B,
    stalls_at_ns: u64,
}

impl<B> StallOnce<B> {
    fn new(inner: B) -> Self {
        Self { inner, stalls_at_ns: now_ns() + 500_000_000 }
    }

    fn perhaps(&mut self) {
        if now_ns() >= self.stalls_at_ns {
            self.stalls_at_ns = u64::MAX;
            std::thread::sleep(STALL);
        }
    }
}

impl<B: Backend> Backend for StallOnce<B> {
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        self.perhaps();
        self.inner.transfer(request)
    }
}

impl<B: QueueBackend> QueueBackend for StallOnce<B> {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.inner.begin()
    }

    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        self.inner.prepare(slot, request)
    }

    fn turn(
        &mut self,
        patience_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        let now = now_ns();
        let stalls_until_ns = self.stalls_at_ns.saturating_add(STALL.as_nanos() as u64);
        if (self.stalls_at_ns..stalls_until_ns).contains(&now) {
            // The target keeps what it was asked; the issuer need wait no longer than it wants to.
            let left_ns = stalls_until_ns - now;
            sleep_until(now + patience_ns.map_or(left_ns, |patience_ns| patience_ns.min(left_ns)));
            return Ok(());
        }
        self.inner.turn(patience_ns, done)
    }
}

fn job(arrivals: Value) -> Job {
    let text = json!({
        "version": 1, "job_id": "j", "target": {"kind": "null"},
        "workload": {
            "unique_bytes": 4 << 20, "size_mean": 4096, "size_dist": "fixed", "read_frac": 1.0,
            "seq_frac": 0.0, "process_num": 1,
        },
        "backend": {"name": "null"}, "seed": 1, "arrivals": arrivals,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 2.5, "measure_s_max": 2.5, "accuracy": 0.0,
            "total_s_max": 20.0,
        },
    });
    Job::parse(&text.to_string()).unwrap()
}

fn run<I: Issue>(job: &Job, issuer: impl Fn(Demand) -> I) -> Run {
    let stream = AccessStream::new(&job.workload, 4096, 1, 0).unwrap();
    let issuer = issuer(Demand::new(job, stream, Probe::default(), OwnCost::default()));
    phases::run(vec![issuer], &setting(job), &mut Reporter::new("j", &mut |_: &str| {})).unwrap()
}

/// One test at a time: issuers are pinned, so two runs would share one processor and each would make
/// the other's generator late.
static MACHINE: Mutex<()> = Mutex::new(());

/// Runs the job on both ways of waiting.
fn each(job: &Job, check: impl Fn(&str, Run)) {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new("stall");
    let data = DataFile::open(scratch.text()).unwrap();
    data.extend(4 << 20, u64::MAX, &mut |_| {}).unwrap();
    let file = || data.reopen(false, false).unwrap();
    let buffers = |count| buffer::allocate(count, 4096, 1).unwrap();
    let pread = |demand| {
        let backend = PreadBackend::new(file(), buffers(1).remove(0), WriteSync::None);
        Blocking::new(StallOnce::new(backend), demand)
    };
    check("pread", run(job, pread));
    let uring = |demand| {
        let backend = UringBackend::new(file(), buffers(4), false, WriteSync::None);
        Queued::new(StallOnce::new(backend), demand, 4)
    };
    check("uring", run(job, uring));
}

#[test]
fn an_open_loop_shows_a_stall_in_p99_and_who_was_to_blame() {
    each(&job(json!({"kind": "constant", "rate_per_s": RATE_PER_S})), |name, run| {
        let open = run.tally.open.as_ref().unwrap();
        // 400 of the 1000 requests of the window became due during the stall; a hundredth of all
        // waited for at least 970 ms of it.
        let p99_ms = open.due_to_completed.quantile_ns(0.99) / 1e6;
        assert!(p99_ms > 900.0, "{name}: {p99_ms}");
        // A busy machine makes the generator late too, and it says so; the stall's are the target's.
        assert!(open.late_target > 300, "{name}: {}", open.late_target);
        assert!(open.late_generator < open.late_target / 2, "{name}: {}", open.late_generator);
        let (late, felt) = due_spans(&run.tally).unwrap();
        assert!(serde_json::to_value(late).unwrap()["p99"].as_f64().unwrap() > 9e5, "{name}");
        assert!(serde_json::to_value(felt).unwrap()["max"].as_f64().unwrap() > 9e5, "{name}");
        // It caught up after the stall, so the rate itself was kept.
        assert!(run.offered.unwrap().fell_short.is_none(), "{name}: {:?}", run.offered);
    });
}

#[test]
fn a_closed_loop_hides_the_same_stall_from_p99() {
    let mut asked = job(json!({"kind": "closed"}));
    asked.workload.think_time_s = 1.0 / RATE_PER_S;
    each(&asked, |name, run| {
        let latency = &run.tally.read.latency;
        assert!(latency.quantile_ns(0.99) < 1e8, "{name}: {}", latency.quantile_ns(0.99));
        assert!(latency.max_ns() > 900_000_000, "{name}");
    });
}
