//! What a survey of a simulated system must find: exact expectations and boundaries.

use leadline_base::error::EngineError;
use leadline_base::request::Kind;
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::workload::Workload;

use super::cost::Law;
use super::speed::MeanOne;
use super::system::{CacheLevel, SimulatedSystem, WritePolicy};
use super::validate::refuse;

/// Boundaries nearer to each other than this factor are one: no survey could tell them apart.
const SAME_BOUNDARY_FACTOR: f64 = 1.25;
/// A stated boundary may differ from the model's by this share.
const BOUNDARY_SLACK: f64 = 0.01;
const DRIFT_STEPS: u32 = 64;
const NOISE_STEPS: i32 = 40;

/// A boundary between two performance regions in `unique_bytes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// Where it lies.
    pub bytes: f64,
    /// Which cache ends there, and for which requests.
    pub what: String,
}

/// Expected throughput in MB/s (10^6 bytes) of a run within a window of the virtual clock.
///
/// The expectation is over everything random: requests, service times, run-to-run factor and
/// bursts. Drift and writeback are averaged over the window; an empty window means the drift at
/// `from_ns` and writeback in the long run. Exact for `think_time_s` 0; otherwise exact as long
/// as the speed changes little within one request.
pub fn expected_throughput_mb_s(
    system: &SimulatedSystem,
    workload: &Workload,
    from_ns: u64,
    to_ns: u64,
) -> f64 {
    waiting_throughput_mb_s(system, workload, WriteSync::None {}, from_ns, to_ns)
}

/// As [`expected_throughput_mb_s`], with writes that wait for the device as `sync` says. Exact
/// under `fsync` for one worker, and for several as long as the window holds many of them.
pub fn waiting_throughput_mb_s(
    system: &SimulatedSystem,
    workload: &Workload,
    sync: WriteSync,
    from_ns: u64,
    to_ns: u64,
) -> f64 {
    let (from_ns, to_ns) = (from_ns as f64, to_ns as f64);
    let law = Law::new(system, workload).waiting(sync);
    let flushing = system.flusher.as_ref().map_or(0.0, |flusher| flusher.run_frac(from_ns, to_ns));
    let speeds = Speeds { system, from_ns, to_ns };
    let rate = |flush: bool| {
        let work_ns = law.mean_ns(workload, flush);
        let asked_bytes = law.concurrency * law.bytes_mean;
        1e3 * asked_bytes * speeds.mean_rate(work_ns, workload.think_time_s * 1e9)
    };
    if flushing == 0.0 {
        return rate(false);
    }
    flushing * rate(true) + (1.0 - flushing) * rate(false)
}

/// Mean service time in ns of reads and of writes at speed one, writeback at rest.
pub fn service_means_ns(system: &SimulatedSystem, workload: &Workload) -> (f64, f64) {
    let law = Law::new(system, workload);
    let of = |kind| match kind {
        Kind::Read => law.read.mean_ns(law.bytes_mean, workload.seq_frac, false),
        Kind::Write => law.write.mean_ns(law.bytes_mean, workload.seq_frac, false),
    };
    (of(Kind::Read), of(Kind::Write))
}

/// The distribution of a system's speed over runs and over a window.
struct Speeds<'a> {
    system: &'a SimulatedSystem,
    from_ns: f64,
    to_ns: f64,
}

impl Speeds<'_> {
    /// Mean over the speed of `1 / (work / speed + think)`.
    fn mean_rate(&self, work_ns: f64, think_ns: f64) -> f64 {
        if think_ns == 0.0 {
            let drift = &self.system.drift;
            let drifting = drift.as_ref().map_or(1.0, |d| d.mean_speed(self.from_ns, self.to_ns));
            let bursting = self.system.bursts.as_ref().map_or(1.0, |bursts| bursts.mean_speed());
            return drifting * bursting / work_ns;
        }
        let mut total = 0.0;
        for drift in self.drift_speeds() {
            for (burst, burst_share) in self.burst_speeds() {
                for (run, run_share) in self.run_speeds() {
                    let rate = 1.0 / (work_ns / (drift * burst * run) + think_ns);
                    total += burst_share * run_share * rate / f64::from(DRIFT_STEPS);
                }
            }
        }
        total
    }

    fn drift_speeds(&self) -> Vec<f64> {
        let length_ns = (self.to_ns - self.from_ns).max(0.0);
        let middle = |step: u32| (f64::from(step) + 0.5) / f64::from(DRIFT_STEPS);
        let speed = |at_ns| self.system.drift.as_ref().map_or(1.0, |drift| drift.speed_at(at_ns));
        (0..DRIFT_STEPS).map(|step| speed(self.from_ns + middle(step) * length_ns)).collect()
    }

    fn burst_speeds(&self) -> Vec<(f64, f64)> {
        self.system.bursts.as_ref().map_or_else(
            || vec![(1.0, 1.0)],
            |bursts| {
                let slow = bursts.slow_frac();
                vec![(1.0 / bursts.slow_factor, slow), (1.0, 1.0 - slow)]
            },
        )
    }

    /// Trapezoids over the normal law within five standard deviations.
    fn run_speeds(&self) -> Vec<(f64, f64)> {
        let noise = MeanOne::new(self.system.noise.run_to_run_cv);
        if noise.is_constant() {
            return vec![(1.0, 1.0)];
        }
        let points = (-NOISE_STEPS..=NOISE_STEPS).map(|step| f64::from(step) * 0.125);
        let weighted: Vec<(f64, f64)> =
            points.map(|z| (noise.at(z), (-0.5 * z * z).exp())).collect();
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        weighted.into_iter().map(|(speed, weight)| (speed, weight / total)).collect()
    }
}

/// The boundaries between performance regions, ascending: where a cache ends for reads or for writes.
///
/// A capacity's boundary lies where the working set equal it, whatever the shape of its hits.
pub fn boundaries(system: &SimulatedSystem) -> Vec<Boundary> {
    let mut ends: Vec<(u64, String)> = system.cache.iter().flat_map(level_ends).collect();
    ends.sort();
    let mut merged: Vec<(Vec<u64>, String)> = Vec::new();
    for (bytes, what) in ends {
        match merged.last_mut() {
            Some((group, text)) if near(group[0], bytes) => {
                group.push(bytes);
                *text = format!("{text}; {what}");
            }
            _ => merged.push((vec![bytes], what)),
        }
    }
    merged
        .into_iter()
        .map(|(group, what)| Boundary { bytes: geometric_mean(&group), what })
        .collect()
}

/// Checks what a profile states as its truth against the model.
pub(crate) fn check_stated(system: &SimulatedSystem) -> Result<(), EngineError> {
    let Some(stated) = &system.truth else { return Ok(()) };
    let count = stated.boundaries_bytes.len();
    if stated.regions as usize != count + 1 {
        return Err(refuse(format!(
            "truth.regions is {}, it must be {}, one more than the {count} boundaries stated",
            stated.regions,
            count + 1
        )));
    }
    let found = boundaries(system);
    let agrees = |(stated, found): (&u64, &Boundary)| {
        (*stated as f64 / found.bytes - 1.0).abs() <= BOUNDARY_SLACK
    };
    if found.len() == count && stated.boundaries_bytes.iter().zip(&found).all(agrees) {
        return Ok(());
    }
    let model: Vec<u64> = found.iter().map(|boundary| boundary.bytes.round() as u64).collect();
    Err(refuse(format!(
        "truth.boundaries_bytes is {:?}, but the model's boundaries are {model:?}; correct one of them \
         or leave [truth] out",
        stated.boundaries_bytes
    )))
}

fn level_ends(level: &CacheLevel) -> Vec<(u64, String)> {
    let (read, write) = (level.read_capacity_bytes, level.write_capacity_bytes());
    match level.write_policy {
        WritePolicy::WriteThrough => vec![(read, format!("{} ends for reads", level.name))],
        WritePolicy::WriteBack if read == write => vec![(read, format!("{} ends", level.name))],
        WritePolicy::WriteBack => vec![
            (write, format!("{} ends for writes", level.name)),
            (read, format!("{} ends for reads", level.name)),
        ],
    }
}

fn near(smaller: u64, larger: u64) -> bool {
    (larger as f64) < smaller as f64 * SAME_BOUNDARY_FACTOR
}

fn geometric_mean(values: &[u64]) -> f64 {
    if let [only] = values {
        return *only as f64;
    }
    let logs: f64 = values.iter().map(|&value| (value as f64).ln()).sum();
    (logs / values.len() as f64).exp()
}
