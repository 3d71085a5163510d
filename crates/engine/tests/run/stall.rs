//! A target that stalls for a second, on the real file system and the real clock: an open loop's
//! p99 shows it (coordinated omission). What a closed loop makes of it, and who is to blame, is held
//! in virtual time (`open_loop`) and on made-up moments (`recorder`).

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::measure::MeasureJob;

use crate::scratch::Scratch;
use crate::setting::{measurement, setting};
use leadline_base::buffer;
use leadline_base::clock::{now_ns, sleep_until};
use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_base::request::Request;
use leadline_engine::access::stream::AccessStream;
use leadline_engine::backend::asynchronous::{AsyncBackend, Way};
use leadline_engine::backend::data_file::DataFile;
use leadline_engine::backend::pread::PreadBackend;
use leadline_engine::backend::{Backend, Completion, QueueBackend};
use leadline_engine::run::offered::due_spans;
use leadline_engine::run::phases::{self, Run};
use leadline_engine::run::worker::{Blocking, Demand, Issue, OwnCost, Probe, Queued};
use serde_json::{Value, json};

const STALL: Duration = Duration::from_secs(1);
const RATE_PER_S: f64 = 400.0;

/// Any backend that once, when the window has opened, does nothing for a second.
struct StallOnce<'a, B> {
    inner: B,
    measuring: &'a AtomicBool,
    until_ns: Option<u64>,
}

impl<'a, B> StallOnce<'a, B> {
    fn new(inner: B, measuring: &'a AtomicBool) -> Self {
        Self { inner, measuring, until_ns: None }
    }

    /// Until when it does nothing, if it has begun to.
    fn until_ns(&mut self) -> Option<u64> {
        if self.until_ns.is_none() && self.measuring.load(SeqCst) {
            self.until_ns = Some(now_ns() + STALL.as_nanos() as u64);
        }
        self.until_ns
    }
}

impl<B: Backend> Backend for StallOnce<'_, B> {
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        self.until_ns().into_iter().for_each(sleep_until);
        self.inner.transfer(request)
    }
}

impl<B: QueueBackend> QueueBackend for StallOnce<'_, B> {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.inner.begin()
    }

    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        self.inner.prepare(slot, request)
    }

    fn turn(
        &mut self,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        let now = now_ns();
        if let Some(until_ns) = self.until_ns().filter(|until_ns| now < *until_ns) {
            // The target keeps what it was asked; the worker need wait no longer than it wants to.
            let left_ns = until_ns - now;
            sleep_until(now + timeout_ns.map_or(left_ns, |timeout_ns| timeout_ns.min(left_ns)));
            return Ok(());
        }
        self.inner.turn(timeout_ns, done)
    }
}

fn job(arrivals: Value) -> MeasureJob {
    let text = json!({
        "version": 1, "kind": "measure", "job_id": "j", "target": {"kind": "null"},
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
    measurement(&text)
}

fn run<I: Issue>(
    job: &MeasureJob,
    measuring: &AtomicBool,
    worker: impl FnOnce(Demand) -> I,
) -> Run {
    let stream = AccessStream::new(&job.workload, 4096, 1, 0).unwrap();
    let worker = worker(Demand::new(job, stream, Probe::default(), OwnCost::default()));
    let mut told = |event: &str| {
        measuring.fetch_or(event.contains(r#""phase":"measure""#), SeqCst);
    };
    phases::run(vec![worker], &setting(job), &mut Reporter::new("j", &mut told)).unwrap()
}

/// The 400 requests that become due during the stall are answered after it, or count with their age
/// when the window closes: whatever else a busy host adds, a hundredth of all waited for 0.9 s.
fn shows_the_stall(name: &str, run: &Run) {
    let open = run.tally.open.as_ref().unwrap();
    let p99_ms = open.due_to_completed.quantile_ns(0.99) / 1e6;
    assert!(p99_ms > 900.0, "{name}: {p99_ms}");
    assert!(open.late_target + open.late_generator + open.missed > 300, "{name}: {open:?}");
    let (late, felt) = due_spans(&run.tally).unwrap();
    for spans in [serde_json::to_value(late).unwrap(), serde_json::to_value(felt).unwrap()] {
        assert!(spans["max"].as_f64().unwrap() > 9e5, "{name}: {spans}");
    }
}

#[test]
fn an_open_loop_shows_a_stall_in_its_p99() {
    let job = job(json!({"kind": "constant", "rate_per_s": RATE_PER_S}));
    let scratch = Scratch::new("stall");
    let data = DataFile::open(scratch.text()).unwrap();
    data.extend(4 << 20, u64::MAX, &mut |_| {}).unwrap();
    let file = || data.reopen(false, false).unwrap();
    let buffers = |count| buffer::allocate(count, 4096, 1).unwrap();
    let measuring = AtomicBool::new(false);
    let pread = PreadBackend::new(file(), buffers(1).remove(0), WriteSync::None {});
    let pread = StallOnce::new(pread, &measuring);
    shows_the_stall("pread", &run(&job, &measuring, |demand| Blocking::new(pread, demand)));
    measuring.store(false, SeqCst);
    let uring = AsyncBackend::new(Way::IoUring, file(), buffers(4), false, WriteSync::None {});
    let uring = StallOnce::new(uring, &measuring);
    shows_the_stall("uring", &run(&job, &measuring, |demand| Queued::new(uring, demand, 4)));
}
