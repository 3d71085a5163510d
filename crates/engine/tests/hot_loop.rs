//! The hot loop allocates nothing: a counting allocator watches every worker between its hundredth
//! request and its last. The allocator is the whole program's, hence a program of its own.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // the other program of tests has more use for it
mod scratch;
#[allow(dead_code)] // as above
mod scripted;
mod setting;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use leadline_base::buffer;
use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_base::request::Request;
use leadline_engine::access::mixture::MixedStream;
use leadline_engine::access::stream::AccessStream;
use leadline_engine::backend::asynchronous::{AsyncBackend, Way};
use leadline_engine::backend::data_file::DataFile;
use leadline_engine::backend::mmap::{Mapping, MmapBackend};
use leadline_engine::backend::nfs::queue::{Durability, NfsQueue};
use leadline_engine::backend::null::{NullBackend, NullQueue};
use leadline_engine::backend::pread::PreadBackend;
use leadline_engine::backend::{Backend, Completion, QueueBackend};
use leadline_engine::evidence::residency::Residency;
use leadline_engine::run::phases;
use leadline_engine::run::worker::{Blocking, Demand, Issue, OwnCost, Probe, Queued};
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::measure::MeasureJob;
use scratch::Scratch;
use serde_json::{Value, json};
use setting::{measurement, setting};

struct Counting;

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    if WATCHED.try_with(Cell::get).unwrap_or(false) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TURNS_BEFORE: u32 = 100;

/// Requests within the window.
const TURNS_MEASURED: u32 = 1500;

/// How a watched backend ends its run: a count, unlike a time, is the same on a busy host.
const ENOUGH: &str = "enough requests were watched";

/// Whether the window is open.
static MEASURING: AtomicBool = AtomicBool::new(false);

/// Any backend, watched from its hundredth request to the last in its window.
struct Watched<B> {
    inner: B,
    turns: u32,
    measured: u32,
}

impl<B> Watched<B> {
    fn new(inner: B) -> Self {
        Self { inner, turns: 0, measured: 0 }
    }

    fn turn(&mut self) -> Result<(), EngineError> {
        self.turns += 1;
        self.measured += u32::from(MEASURING.load(Ordering::Relaxed));
        WATCHED.set(self.turns >= TURNS_BEFORE);
        if self.turns > TURNS_BEFORE && self.measured > TURNS_MEASURED {
            WATCHED.set(false);
            return Err(EngineError::io(ENOUGH));
        }
        Ok(())
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        WATCHED.set(false);
    }
}

impl<B: Backend> Backend for Watched<B> {
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        self.turn()?;
        self.inner.transfer(request)
    }
}

impl<B: QueueBackend> QueueBackend for Watched<B> {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.inner.begin()
    }

    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        self.turn()?;
        self.inner.prepare(slot, request)
    }

    fn turn(
        &mut self,
        timeout_ns: Option<u64>,
        done: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        self.inner.turn(timeout_ns, done)
    }
}

fn job(arrivals: &Value) -> MeasureJob {
    // What a trial of the workbench keeps, too.
    let load = (arrivals["kind"] != "closed").then(|| json!({"limits_ms": [1.0, 2.0]}));
    let text = json!({
        "version": 1, "kind": "measure", "job_id": "j", "target": {"kind": "null"},
        "workload": {
            "unique_bytes": 4 << 20, "size_mean": 8192, "read_frac": 0.5, "seq_frac": 0.5,
            "process_num": 1,
        },
        "backend": {"name": "null"}, "seed": 1, "arrivals": arrivals,
        "load": load,
        // It ends by the number of requests.
        "limits": {
            "warm_up_s_max": 0.02, "measure_s_min": 600.0, "measure_s_max": 600.0, "accuracy": 0.5,
            "total_s_max": 900.0,
        },
    });
    measurement(&text)
}

/// The same with a stream of each kind of places.
fn mixture(arrivals: &Value) -> MeasureJob {
    let sizes = json!([{"bytes": 4096, "weight": 1.0}, {"bytes": 8192, "weight": 2.0}]);
    let stream = |places: Value| {
        json!({
            "weight": 1.0, "read_frac": 0.5, "from_bytes": 0, "unique_bytes": 4 << 20,
            "sizes": sizes, "places": places,
        })
    };
    let mut job = job(arrivals);
    let streams = json!([
        stream(json!({"kind": "uniform", "seq_frac": 0.5})),
        stream(json!({"kind": "loop", "scattered": false})),
        stream(json!({"kind": "once", "scattered": true})),
        stream(json!({"kind": "moving", "window_bytes": 1 << 20, "fresh_frac": 0.1})),
    ]);
    job.streams = serde_json::from_value(streams).unwrap();
    job
}

/// Allocations of one worker while it was watched, from its warm-up to the last of the requests
/// that it makes in its window.
fn allocations<I: Issue>(job: &MeasureJob, worker: I) -> u64 {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    MEASURING.store(false, Ordering::Relaxed);
    let mut told = |event: &str| {
        MEASURING.fetch_or(event.contains(r#""phase":"measure""#), Ordering::Relaxed);
    };
    let ended = phases::run(vec![worker], &setting(job), &mut Reporter::new("j", &mut told));
    assert_eq!(ended.unwrap_err().message, ENOUGH);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// Allocates once a request.
struct Careless;

impl Backend for Careless {
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        Ok(std::hint::black_box(vec![request.length_bytes; 1])[0])
    }
}

/// One test, because the count is the program's.
#[test]
fn no_backend_allocates_between_its_hundredth_request_and_its_last() {
    let scratch = Scratch::new("hot");
    let data = DataFile::open(scratch.text()).unwrap();
    data.extend(4 << 20, u64::MAX, &mut |_| {}).unwrap();
    let buffers = |count| buffer::allocate(count, 16_384, 1).unwrap();
    let file = |direct| -> File { data.reopen(direct, false).unwrap() };
    for arrivals in [json!({"kind": "closed"}), json!({"kind": "poisson", "rate_per_s": 50_000.0})]
    {
        let job = job(&arrivals);
        let demand = || {
            let stream = AccessStream::new(&job.workload, data.direct_block_bytes(), 1, 0).unwrap();
            let residency = Residency::new(data.file());
            let probe =
                residency.map_or_else(|_| Probe::default(), |view| Probe::new(view, 8192.0));
            Demand::new(&job, stream, probe, OwnCost::default())
        };
        let check = |name: &str, found: u64| assert_eq!(found, 0, "{name}, {arrivals}");
        let careless = Blocking::new(Watched::new(Careless), demand());
        assert!(allocations(&job, careless) > 100, "the count means something");
        let null = Blocking::new(Watched::new(NullBackend), demand());
        check("null", allocations(&job, null));
        let null = Queued::new(Watched::new(NullQueue::new(8)), demand(), 8);
        check("null queue", allocations(&job, null));
        let several = mixture(&arrivals);
        let mixed = || {
            let stream = MixedStream::new(&several, data.direct_block_bytes(), 1, 0).unwrap();
            Demand::new(&several, stream, Probe::default(), OwnCost::default())
        };
        let null = Blocking::new(Watched::new(NullBackend), mixed());
        check("several streams", allocations(&several, null));
        let null = Queued::new(Watched::new(NullQueue::new(8)), mixed(), 8);
        check("several streams, queue", allocations(&several, null));
        for direct in [false, true] {
            let pread = PreadBackend::new(file(direct), buffers(1).remove(0), WriteSync::None {});
            let pread = Blocking::new(Watched::new(pread), demand());
            check("pread", allocations(&job, pread));
            let other = if direct { Way::LinuxAio } else { Way::Threads };
            for way in [Way::IoUring, other] {
                let (file, buffers) = (file(direct), buffers(8));
                let queue = AsyncBackend::new(way, file, buffers, direct, WriteSync::None {});
                let queue = Queued::new(Watched::new(queue), demand(), 8);
                check("queue", allocations(&job, queue));
            }
        }
        let server = scripted::start();
        let nfs = NfsQueue::connect(&server.remote, buffers(8), Durability::UNSTABLE).unwrap();
        let nfs = Queued::new(Watched::new(nfs), demand(), 8);
        check("nfs", allocations(&job, nfs));
        let waiting = WriteSync::Fsync { each: 32, data_only: false };
        let pread = PreadBackend::new(file(false), buffers(1).remove(0), waiting);
        let pread = Blocking::new(Watched::new(pread), demand());
        check("pread with fsync", allocations(&job, pread));
        let uring = AsyncBackend::new(Way::IoUring, file(false), buffers(8), false, waiting);
        let uring = Queued::new(Watched::new(uring), demand(), 8);
        check("uring with fsync", allocations(&job, uring));
        let mapping = Mapping::new(data.file(), &job.workload).unwrap();
        let mmap = MmapBackend::new(mapping, buffers(1).remove(0), WriteSync::None {});
        let mmap = Blocking::new(Watched::new(mmap), demand());
        check("mmap", allocations(&job, mmap));
    }
}
