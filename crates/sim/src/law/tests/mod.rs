//! The model against its own truth, with a small request generator of the tests' own.
#![allow(clippy::unwrap_used, clippy::panic)]

mod profiles;
mod runs;
mod time;
mod validation;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::spread::Spread;
use leadline_wire::job::workload::{SizeDist, Workload};
use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use leadline_base::request::{Kind, Request};

use super::{SimulatedRun, SimulatedSystem};

const NS_PER_S: u64 = 1_000_000_000;

fn workload(unique_bytes: f64, size_mean: u64) -> Workload {
    Workload {
        unique_bytes: unique_bytes as u64,
        size_mean,
        read_frac: 0.5,
        seq_frac: 0.5,
        process_num: 1,
        size_dist: SizeDist::Normal,
        queue_depth: 1,
        think_time_s: 0.0,
        access: Spread::default(),
    }
}

/// One cache over one disk; tests add to it.
fn plain_system() -> Value {
    json!({
        "meta": {"name": "plain"},
        "copy": {"read_overhead_us": 100.0, "read_mb_s": 100.0},
        "cache": [{"name": "page cache", "read_capacity_bytes": 10_000_000}],
        "device": {"capacity_bytes": 1_000_000_000, "seek_min_ms": 0.2, "seek_span_ms": 1.0,
                   "rotation_ms": 1.0, "read_mb_s": 20.0},
    })
}

fn read(document: &Value) -> SimulatedSystem {
    SimulatedSystem::from_value(document).unwrap()
}

fn message(document: &Value) -> String {
    SimulatedSystem::from_value(document).unwrap_err().message
}

/// Requests as a workload asks for them; sizes uniform around the mean.
struct Requests {
    workload: Workload,
    rng: Xoshiro256PlusPlus,
}

impl Requests {
    fn new(workload: &Workload, seed: u64) -> Self {
        Self { workload: workload.clone(), rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    fn draw(&mut self) -> Request {
        let mean = self.workload.size_mean.min(self.workload.unique_bytes);
        let length_bytes = self.rng.random_range(mean / 2..=mean + mean.div_ceil(2));
        let is_read = self.rng.random::<f64>() < self.workload.read_frac;
        Request {
            offset_bytes: 0,
            length_bytes,
            kind: if is_read { Kind::Read } else { Kind::Write },
            sequential: self.rng.random::<f64>() < self.workload.seq_frac,
            stream: 0,
            piece_end_bytes: 0,
        }
    }
}

/// Throughput in MB/s of a run of `workers × queue depth` slots from `from_ns` until `to_ns`.
/// A request that is under way at the end counts by the share of it that is done.
fn throughput(
    system: &SimulatedSystem,
    workload: &Workload,
    seed: u64,
    from_ns: u64,
    to_ns: u64,
) -> f64 {
    let mut requests = Requests::new(workload, seed ^ 0xABCD);
    let mut run = SimulatedRun::new(system, workload, seed, from_ns);
    let slots = u64::from(workload.process_num * workload.queue_depth);
    let mut due: BinaryHeap<_> = (0..slots).map(|slot| Reverse((from_ns, slot))).collect();
    let think_ns = (workload.think_time_s * NS_PER_S as f64) as u64;
    let mut bytes = 0.0;
    while let Some(Reverse((now_ns, slot))) = due.pop() {
        if now_ns >= to_ns {
            break;
        }
        let request = requests.draw();
        let taken_ns = run.service_ns(now_ns, &request);
        let inside = ((to_ns - now_ns) as f64 / taken_ns as f64).min(1.0);
        bytes += request.length_bytes as f64 * inside;
        due.push(Reverse((now_ns + taken_ns + think_ns, slot)));
    }
    1e3 * bytes / (to_ns - from_ns) as f64
}
