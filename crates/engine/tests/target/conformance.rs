//! What every backend must do, run over each of them.

use std::os::fd::AsRawFd;

use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::measure::MeasureJob;

use crate::scratch::{Scratch, skip};
use crate::setting::{measurement, setting};
use leadline_base::buffer;
use leadline_base::clock::{now_ns, sleep_until};
use leadline_base::error::EngineError;
use leadline_base::events::Reporter;
use leadline_base::request::{Kind, Request};
use leadline_engine::access::stream::AccessStream;
use leadline_engine::backend::Wire;
use leadline_engine::backend::asynchronous::{AsyncBackend, Way};
use leadline_engine::backend::data_file::DataFile;
use leadline_engine::backend::mmap::{Mapping, MmapBackend};
use leadline_engine::backend::pread::PreadBackend;
use leadline_engine::backend::{Backend, Completion, QueueBackend};
use leadline_engine::engine::run_job;
use leadline_engine::run::phases::{self, Run};
use leadline_engine::run::worker::{Blocking, Demand, OwnCost, Probe, Queued};
use leadline_engine::target::virtual_time::{VirtualDevice, VirtualRun, simulate};
use serde_json::{Value, json};

/// The window ends when the rate is known, however little a busy host gets done.
fn job(target: Value, backend: &str, direct: bool) -> Value {
    json!({
        "version": 1, "kind": "measure", "job_id": "j", "target": target,
        "workload": {
            "unique_bytes": 4 << 20, "size_mean": 8192, "read_frac": 0.5, "seq_frac": 0.5,
            "process_num": 2,
        },
        "backend": {"name": backend, "direct": direct}, "seed": 1,
        "limits": {
            "warm_up_s_max": 0.1, "measure_s_min": 0.1, "measure_s_max": 60.0, "accuracy": 0.5,
            "total_s_max": 120.0,
        },
    })
}

fn directory(scratch: &Scratch, direct: bool) -> Value {
    on(scratch, "pread", direct)
}

pub(crate) fn on(scratch: &Scratch, backend: &str, direct: bool) -> Value {
    job(json!({"kind": "directory", "path": scratch.text()}), backend, direct)
}

pub(crate) fn null() -> Value {
    job(json!({"kind": "null"}), "null", false)
}

pub(crate) fn deep(mut job: Value, depth: u32) -> Value {
    job["workload"]["queue_depth"] = json!(depth);
    job
}

pub(crate) fn events(job: &Value) -> Vec<Value> {
    let mut lines = Vec::new();
    run_job(&job.to_string(), &mut |line| lines.push(serde_json::from_str(line).unwrap()));
    lines
}

pub(crate) fn result(job: &Value) -> Value {
    let last = events(job).pop().unwrap();
    assert_eq!(last["event"], "result", "{last}");
    last
}

pub(crate) fn synced(mut job: Value, sync: Value) -> Value {
    job["backend"]["sync"] = sync;
    job
}

fn dsync(job: Value) -> Value {
    synced(job, json!({"kind": "dsync"}))
}

fn fsync(job: Value, each: u32) -> Value {
    synced(job, json!({"kind": "fsync", "each": each}))
}

/// Every way to make a write wait for the device.
fn each_waiting(scratch: &Scratch, check: impl Fn(&str, Value)) {
    for (name, backend, direct, depth) in [
        ("pread", "pread", false, 1),
        ("pread direct", "pread", true, 1),
        ("mmap", "mmap", false, 1),
        ("uring", "uring", false, 1),
        ("uring queue", "uring", false, 8),
        ("uring direct queue", "uring", true, 8),
    ] {
        let job = || deep(on(scratch, backend, direct), depth);
        check(&format!("{name} dsync"), dsync(job()));
        check(&format!("{name} fsync"), fsync(job(), 4));
    }
}

fn each_real(check: impl Fn(&str, Value)) {
    let scratch = Scratch::new("conform");
    check("null", null());
    check("null queue", deep(null(), 8));
    check("pread buffered", directory(&scratch, false));
    check("pread direct", directory(&scratch, true));
    check("mmap", on(&scratch, "mmap", false));
    check("uring buffered", on(&scratch, "uring", false));
    check("uring direct", on(&scratch, "uring", true));
    check("uring buffered queue", deep(on(&scratch, "uring", false), 8));
    check("uring direct queue", deep(on(&scratch, "uring", true), 8));
}

#[test]
fn phases_come_in_order_and_one_result_ends_them() {
    each_real(|name, job| {
        let events = events(&job);
        let phases: Vec<&str> = events
            .iter()
            .filter_map(|event| event["phase"].as_str().filter(|_| event["event"] == "phase"))
            .collect();
        assert_eq!(phases, ["prepare", "warm_up", "measure", "drain"], "{name}");
        let ends = events
            .iter()
            .filter(|event| event["event"] == "result" || event["event"] == "error")
            .count();
        assert_eq!(ends, 1, "{name}");
        assert_eq!(events.last().unwrap()["event"], "result", "{name}: {:?}", events.last());
        assert!(events.iter().all(|event| event["job_id"] == "j"), "{name}");
    });
}

#[test]
fn the_result_agrees_with_itself() {
    each_real(|name, job| agrees(name, &result(&job)));
}

/// Most requests that two workers, eight deep, can have in hand: each tells its counts a moment
/// after it has read the clock, so that what ended before the window may be told of inside it.
const IN_HAND: f64 = 16.0;

pub(crate) fn agrees(name: &str, result: &Value) {
    let number = |path: &str| {
        result
            .pointer(path)
            .and_then(Value::as_f64)
            .unwrap_or_else(|| panic!("{name}: {path} in {result}"))
    };
    let wall_s = number("/wall_s");
    let operations = number("/read/operations") + number("/write/operations");
    let bytes = number("/read/bytes") + number("/write/bytes");
    assert!(operations > 0.0, "{name}");
    assert!((number("/iops/value") * wall_s / operations - 1.0).abs() < 1e-6, "{name}");
    assert!((number("/throughput_mb_s/value") * 1e6 * wall_s / bytes - 1.0).abs() < 1e-6, "{name}");
    assert!((number("/realised/size_mean") * operations / bytes - 1.0).abs() < 1e-9, "{name}");
    assert_eq!(number("/workload_bytes/read"), number("/read/bytes"), "{name}");
    let recorded: f64 = ["read", "write"]
        .iter()
        .flat_map(|kind| result[kind]["histogram"].as_array().unwrap())
        .map(|pair| pair[1].as_f64().unwrap())
        .sum();
    assert_eq!(recorded, operations, "{name}");
    assert!(
        number("/latency_us/p50") <= number("/latency_us/p99")
            && number("/latency_us/p99_9") <= number("/latency_us/max"),
        "{name}"
    );
    assert!((0.0..=1.0).contains(&number("/io_share")), "{name}");
    assert!(wall_s >= 0.1 && number("/total_s") >= wall_s + number("/prepare_s"), "{name}");
    let slices = result["intervals"].as_array().unwrap();
    let sum = |field: &str| slices.iter().map(|slice| slice[field].as_f64().unwrap()).sum::<f64>();
    // The first slice begins after the window opened, the last ends before it closed.
    assert!(sum("seconds") <= wall_s * (1.0 + 1e-9), "{name}: {result}");
    assert!(sum("operations") <= operations + IN_HAND, "{name}: {result}");
    assert!((1..=200).contains(&slices.len()), "{name}");
}

/// Most bytes that a queue of the workloads here has in flight: on each edge of a window they may
/// have moved outside of it.
const IN_FLIGHT_BYTES: f64 = 8.0 * 65_536.0;

#[test]
fn bytes_on_a_device_are_told_and_direct_reads_come_from_it() {
    let scratch = Scratch::new("device");
    let mut job = directory(&scratch, true);
    job["workload"]["read_frac"] = json!(1.0);
    let result = result(&job);
    if result["device_bytes"].is_null() {
        let test = "target::conformance::bytes_on_a_device_are_told_and_direct_reads_come_from_it";
        return skip(test, NO_DEVICE);
    }
    let asked = result["read"]["bytes"].as_f64().unwrap();
    let moved = result["device_bytes"]["read"].as_f64().unwrap();
    assert!(moved + IN_FLIGHT_BYTES >= asked, "{moved} of {asked}");
    let cached = result["cached_share"].as_f64().unwrap() * asked;
    assert!(cached <= IN_FLIGHT_BYTES, "{cached} of {asked}");
}

const NO_DEVICE: &str = "no block device below the temporary directory (tmpfs)";

#[test]
fn writes_that_wait_are_on_the_device_when_they_are_counted() {
    let scratch = Scratch::new("waiting");
    each_waiting(&scratch, |name, mut job| {
        // One worker, one request after the other: no block is written twice before it is flushed.
        job["workload"] = json!({
            "unique_bytes": 4 << 20, "size_mean": 8192, "size_dist": "fixed", "read_frac": 0.25,
            "seq_frac": 1.0, "process_num": 1, "queue_depth": job["workload"]["queue_depth"],
        });
        let result = result(&job);
        agrees(name, &result);
        if result["device_bytes"].is_null() {
            let test =
                "target::conformance::writes_that_wait_are_on_the_device_when_they_are_counted";
            return skip(test, NO_DEVICE);
        }
        let asked = result["write"]["bytes"].as_f64().unwrap();
        let moved = result["device_bytes"]["write"].as_f64().unwrap();
        assert!(moved + IN_FLIGHT_BYTES >= asked, "{name}: {moved} of {asked}");
    });
}

/// Bytes of the file that are in its cache and not yet on the device; none where the kernel is
/// older than 6.5.
fn not_written_pages(data: &DataFile) -> Option<u64> {
    let (range, mut found) = ([0u64, 0], [0u64; 5]);
    // SAFETY: cachestat(2) reads two numbers and writes five.
    let code = unsafe {
        libc::syscall(451, data.file().as_raw_fd(), range.as_ptr(), found.as_mut_ptr(), 0)
    };
    (code == 0).then_some(found[1] + found[2])
}

/// Makes a request and waits for it.
trait Once {
    fn make(&mut self, request: &Request);
}

struct One<B>(B);
struct OfQueue<Q>(Q);

impl<B: Backend> Once for One<B> {
    fn make(&mut self, request: &Request) {
        assert_eq!(self.0.transfer(request).unwrap(), request.length_bytes);
    }
}

impl<Q: QueueBackend> Once for OfQueue<Q> {
    fn make(&mut self, request: &Request) {
        let mut done = Vec::with_capacity(1);
        self.0.prepare(0, request).unwrap();
        while done.is_empty() {
            self.0.turn(None, &mut done).unwrap();
        }
        assert_eq!(done[0].bytes, request.length_bytes);
    }
}

/// Every backend on a data file that waits as `sync` says.
fn each_waiter(data: &DataFile, sync: WriteSync) -> Vec<(&'static str, Box<dyn Once>)> {
    let file = |direct| data.reopen(direct, sync == WriteSync::Dsync {}).unwrap();
    let buffer = || buffer::allocate(1, 8192, 1).unwrap();
    let workload = measurement(&null()).workload;
    let mapping = Mapping::new(data.file(), &workload).unwrap();
    let pread = |direct| One(PreadBackend::new(file(direct), buffer().remove(0), sync));
    let queue = |way, direct| {
        let mut queue = AsyncBackend::new(way, file(direct), buffer(), direct, sync);
        queue.begin().unwrap();
        OfQueue(queue)
    };
    vec![
        ("pread", Box::new(pread(false))),
        ("pread direct", Box::new(pread(true))),
        ("uring", Box::new(queue(Way::IoUring, false))),
        ("uring direct", Box::new(queue(Way::IoUring, true))),
        ("Linux AIO", Box::new(queue(Way::LinuxAio, true))),
        ("threads", Box::new(queue(Way::Threads, false))),
        ("threads direct", Box::new(queue(Way::Threads, true))),
        ("mmap", Box::new(One(MmapBackend::new(mapping, buffer().remove(0), sync)))),
    ]
}

#[test]
fn a_write_that_waited_leaves_nothing_to_write() {
    let scratch = Scratch::new("dirty");
    let data = DataFile::open(scratch.text()).unwrap();
    data.extend(4 << 20, u64::MAX, &mut |_| {}).unwrap();
    data.file().sync_all().unwrap();
    if not_written_pages(&data).is_none() {
        let test = "target::conformance::a_write_that_waited_leaves_nothing_to_write";
        return skip(test, "this kernel has no cachestat (it came with Linux 6.5)");
    }
    let fsync = |data_only| WriteSync::Fsync { each: 4, data_only };
    for (sync, each) in [(WriteSync::Dsync {}, 1), (fsync(false), 4), (fsync(true), 4)] {
        for (name, mut backend) in each_waiter(&data, sync) {
            for number in 1..=8 {
                let offset_bytes = number * 65_536;
                let kind = Kind::Write;
                let write = Request {
                    offset_bytes,
                    length_bytes: 8192,
                    kind,
                    sequential: false,
                    stream: 0,
                    piece_end_bytes: 0,
                };
                backend.make(&write);
                // A read between takes nobody's turn.
                backend.make(&Request { kind: Kind::Read, ..write });
                if number % each == 0 {
                    assert_eq!(not_written_pages(&data), Some(0), "{name}, {sync:?}, {number}");
                }
            }
        }
    }
}

#[test]
fn nothing_waits_for_nothing() {
    let error = events(&dsync(null())).pop().unwrap();
    assert_eq!((&error["event"], &error["kind"]), (&json!("error"), &json!("bad_job")));
    assert!(error["message"].as_str().unwrap().contains("backend.sync"), "{error}");
}

#[test]
fn a_job_that_makes_no_sense_is_refused_by_every_backend() {
    each_real(|name, mut job| {
        job["workload"]["queue_depth"] = json!(0);
        let error = events(&job).pop().unwrap();
        assert_eq!(
            (&error["event"], &error["kind"]),
            (&json!("error"), &json!("bad_job")),
            "{name}"
        );
        assert!(
            error["message"].as_str().unwrap().contains("workload.queue_depth is 0"),
            "{error}"
        );
    });
}

#[test]
fn unique_bytes_below_a_request_still_runs() {
    each_real(|name, mut job| {
        job["workload"]["unique_bytes"] = json!(5000);
        job["workload"]["size_mean"] = json!(1 << 20);
        let result = result(&job);
        let most = result["realised"]["size_mean"].as_f64().unwrap();
        assert!(most == 4608.0, "{name}: {most}");
        assert!(result["findings"].to_string().contains("size_above_data"), "{name}");
    });
}

#[test]
fn thinking_issuers_ask_no_sooner_than_they_have_thought() {
    let scratch = Scratch::new("think");
    for mut job in [directory(&scratch, false), deep(on(&scratch, "uring", false), 4)] {
        let slots = job["workload"]["queue_depth"].as_f64().unwrap_or(1.0) * 2.0;
        job["workload"]["think_time_s"] = json!(0.002);
        let result = result(&job);
        agrees("thinking", &result);
        let number = |path: &str| result.pointer(path).and_then(Value::as_f64).unwrap();
        let operations = number("/read/operations") + number("/write/operations");
        assert!(operations <= slots * (number("/wall_s") / 0.002 + 1.0), "{result}");
    }
}

#[test]
fn an_open_loop_has_the_requests_of_its_schedule_on_every_backend() {
    each_real(|name, mut job| {
        job["arrivals"] = json!({"kind": "constant", "rate_per_s": 500.0});
        let result = result(&job);
        let number = |path: &str| result.pointer(path).and_then(Value::as_f64).unwrap();
        let due = number("/offered/due");
        assert!((due - 500.0 * number("/wall_s")).abs() <= 1.0, "{name}: {result}");
        assert!(
            number("/spans_us/due_to_completed/max")
                >= number("/spans_us/submitted_to_completed/max"),
            "{name}"
        );
        assert!(result["spans_us"]["due_to_submitted"].is_object(), "{name}");
        assert_eq!(result["latency_us"], result["spans_us"]["due_to_completed"], "{name}");
    });
}

#[test]
fn a_closed_loop_has_no_due_time() {
    each_real(|name, job| {
        let result = result(&job);
        assert!(result["offered"].is_null(), "{name}");
        assert!(result["spans_us"]["due_to_submitted"].is_null(), "{name}");
        assert_eq!(result["latency_us"], result["spans_us"]["submitted_to_completed"], "{name}");
    });
}

#[test]
fn a_run_near_the_generators_ceiling_is_marked() {
    let mut job = null();
    for (ceiling_iops, bound) in [(1.0, true), (1e12, false)] {
        job["ceiling_iops"] = json!(ceiling_iops);
        let result = result(&job);
        assert_eq!(result["generator"]["bound"], json!(bound));
        assert_eq!(result["findings"].to_string().contains("generator_bound"), bound);
    }
}

#[test]
fn a_file_shortened_while_measured_is_an_io_error() {
    for backend in ["pread", "uring", "mmap"] {
        let scratch = Scratch::new("short");
        let mut job = on(&scratch, backend, false);
        job["workload"]["read_frac"] = json!(1.0);
        job["limits"]["warm_up_s_max"] = json!(0.0);
        job["limits"]["measure_s_min"] = json!(60.0); // the error ends it
        let path = scratch.path().join("data.bin");
        let mut last = Value::Null;
        run_job(&job.to_string(), &mut |line| {
            let event: Value = serde_json::from_str(line).unwrap();
            if event["phase"] == "measure" {
                std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
            }
            last = event;
        });
        assert_eq!((&last["event"], &last["kind"]), (&json!("error"), &json!("io")), "{backend}");
        assert!(last["message"].as_str().unwrap().contains("shortened"), "{backend}: {last}");
    }
}

/// A backend whose requests are so long that many straddle the edges of the window.
struct Sleeper;

impl Backend for Sleeper {
    fn transfer(&mut self, request: &Request) -> Result<u64, EngineError> {
        std::thread::sleep(std::time::Duration::from_millis(60));
        Ok(request.length_bytes)
    }
}

/// The same with four slots, each of which takes 60 ms.
struct SleepyQueue {
    due: [Option<(u64, u64)>; 4],
}

impl QueueBackend for SleepyQueue {
    fn prepare(&mut self, slot: usize, request: &Request) -> Result<(), EngineError> {
        self.due[slot] = Some((now_ns() + 60_000_000, request.length_bytes));
        Ok(())
    }

    fn turn(&mut self, _: Option<u64>, done: &mut Vec<Completion>) -> Result<(), EngineError> {
        sleep_until(self.due.iter().flatten().map(|due| due.0).min().unwrap());
        for (slot, due) in self.due.iter_mut().enumerate() {
            if let Some((_, bytes)) = due.take_if(|due| due.0 <= now_ns()) {
                done.push(Completion { slot, bytes, wire: Wire::default() });
            }
        }
        Ok(())
    }
}

fn streams(job: &MeasureJob) -> impl Iterator<Item = AccessStream> {
    (0..8).map(|process| AccessStream::new(&job.workload, 512, 1, process).unwrap())
}

#[test]
fn requests_across_the_edges_count_with_their_part_inside() {
    let mut job = null();
    job["workload"]["process_num"] = json!(8);
    job["limits"]["warm_up_s_max"] = json!(0.1);
    let job = measurement(&job);
    let mut ignore = |_: &str| {};
    let demand = |stream| Demand::new(&job, stream, Probe::default(), OwnCost::default());
    let workers = streams(&job).map(|stream| Blocking::new(Sleeper, demand(stream))).collect();
    let run = phases::run(workers, &setting(&job), &mut Reporter::new("j", &mut ignore)).unwrap();
    assert_accounted(&run, 8.0);
    let queue = |stream| Queued::new(SleepyQueue { due: [None; 4] }, demand(stream), 4);
    let queues = streams(&job).map(queue).collect();
    let run = phases::run(queues, &setting(&job), &mut Reporter::new("j", &mut ignore)).unwrap();
    assert_accounted(&run, 32.0);
}

fn assert_accounted(run: &Run, slots: f64) {
    let window_ns = (run.window.closed_ns - run.window.opened_ns) as f64;
    // Whatever kept a worker is counted as its own, so that nothing is missing on a busy host.
    let accounted = (run.tally.waiting_ns() + run.tally.own_ns as f64) / (slots * window_ns);
    assert!((accounted - 1.0).abs() < 1e-9, "{accounted}");
}

/// A disk that takes a fixed time for each request, whoever asks.
struct Metronome {
    service_ns: u64,
    last_ns: u64,
    read_bytes: u64,
}

impl VirtualDevice for Metronome {
    fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64 {
        assert!(now_ns >= self.last_ns, "requests come in the order of the virtual clock");
        self.last_ns = now_ns;
        self.read_bytes += request.length_bytes;
        self.service_ns
    }

    fn cache_resident_bytes(&self) -> u64 {
        0
    }

    fn device_bytes(&self) -> (u64, u64) {
        (self.read_bytes, 0)
    }
}

fn virtual_run(workload: Value, service_ns: u64, limits: Value) -> VirtualRun {
    let mut job = job(json!({"kind": "simulated", "system": {}}), "simulated", false);
    job["workload"] = workload;
    job["limits"] = limits;
    let job = measurement(&job);
    let mut ignore = |_: &str| {};
    let mut device = Metronome { service_ns, last_ns: 0, read_bytes: 0 };
    simulate(&mut device, &job, 1_000_000_000, &mut Reporter::new("j", &mut ignore)).unwrap()
}

fn limits(warm_up_s_max: f64, measure_s_max: f64, accuracy: f64) -> Value {
    json!({
        "warm_up_s_max": warm_up_s_max, "measure_s_min": 0.0, "measure_s_max": measure_s_max,
        "accuracy": accuracy, "total_s_max": 1e6,
    })
}

#[test]
fn virtual_time_counts_exactly_what_the_device_allows() {
    for (processes, depth, think_s) in [(1, 1, 0.0), (7, 1, 0.0), (3, 4, 0.0), (5, 1, 0.05)] {
        let workload = json!({"unique_bytes": 1 << 20, "size_mean": 4096, "read_frac": 1.0, "seq_frac": 0.0,
            "size_dist": "fixed", "process_num": processes, "queue_depth": depth, "think_time_s": think_s});
        let run = virtual_run(workload, 10_000_000, limits(60.0, 600.0, 0.0));
        let wall_s = (run.closed_ns - run.opened_ns) as f64 * 1e-9;
        let wanted = f64::from(processes * depth) / (0.01 + think_s);
        let told = run.tally.operations() as f64 / wall_s;
        assert!(
            (told / wanted - 1.0).abs() < 0.01,
            "{processes} {depth} {think_s}: {told} for {wanted}"
        );
        let waiting = run.tally.waiting_ns() * 1e-9 + run.tally.think_ns as f64 * 1e-9;
        assert!(
            (waiting / wall_s / f64::from(processes * depth) - 1.0).abs() < 1e-9,
            "Little's law is exact here"
        );
        assert_eq!(run.tally.read.latency.max_ns(), 10_000_000);
        assert_eq!(run.controller.steady(), Some(true));
    }
}

#[test]
fn a_slow_virtual_disk_ends_at_its_time_and_a_fast_one_at_its_count() {
    let workload = json!({"unique_bytes": 1 << 20, "size_mean": 4096, "read_frac": 1.0,
        "seq_frac": 0.0, "process_num": 1});
    let slow = virtual_run(workload.clone(), 30_000_000, limits(1.0, 5.0, 0.0));
    assert!(!slow.capped);
    assert!((5.0..5.5).contains(&((slow.closed_ns - slow.opened_ns) as f64 * 1e-9)), "{slow:?}");
    let fast = virtual_run(workload, 1_000, limits(1.0, 3600.0, 0.0));
    assert!(fast.capped);
}
