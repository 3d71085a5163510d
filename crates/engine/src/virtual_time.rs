//! A run in virtual time: the same requests, phases and records as a real run, on a device whose
//! answers are computed instead of waited for.
//!
//! Issuers are served in the order in which they become free, so a device sees requests at
//! times that never run backwards. A simulated system begins in the steady state of its cache,
//! so there is no pass to fill it; the warm-up still has to pass the test of steadiness.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::access::AccessStream;
use crate::assemble::{Finished, assemble};
use crate::backend::simulated::{SimulatedRun, SimulatedSystem, truth};
use crate::clock::{ns_from_s, s_from_ns};
use crate::controller::{Controller, Decision};
use crate::engine::streams;
use crate::error::EngineError;
use crate::events::{Phase, Reporter};
use crate::host::{CpuTime, HostUse};
use crate::job::{Job, Request, SMALLEST_TRANSFER_BYTES, Target};
use crate::recorder::{Slice, Tally};
use crate::result::{EngineResult, SimulatedFacts};

/// A device that answers in virtual time.
pub trait VirtualDevice {
    /// Nanoseconds that the issuer waits for a request made at `now_ns`.
    fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64;
    /// Bytes read from and written to what lies behind the file cache, so far.
    fn device_bytes(&self) -> (u64, u64);
    /// Bytes the file cache holds.
    fn cache_resident_bytes(&self) -> u64;
}

impl VirtualDevice for SimulatedRun {
    fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64 {
        Self::service_ns(self, now_ns, request)
    }

    fn device_bytes(&self) -> (u64, u64) {
        Self::device_bytes(self)
    }

    fn cache_resident_bytes(&self) -> u64 {
        Self::cache_resident_bytes(self)
    }
}

/// Requests after which a window ends whatever accuracy it has reached: a bound on real time. The result warns
/// by itself when the asked accuracy was not reached.
const OPERATIONS_MAX: u64 = 100_000;

/// A slice holds at least this many requests on the average, so that its rate means something.
const OPERATIONS_PER_SLICE: f64 = 20.0;

/// At most this many slices to a phase, so that judging them stays cheap.
const SLICES_PER_PHASE: f64 = 250.0;

/// Requests that calibrate the length of a slice.
const CALIBRATION: u32 = 64;

/// Runs the job on the simulated system in its target.
pub(crate) fn run(job: &Job, reporter: &mut Reporter) -> Result<EngineResult, EngineError> {
    let Target::Simulated { system, clock_s, run_seed } = &job.target else {
        return Err(EngineError::fault("only a simulated target runs in virtual time"));
    };
    let system = SimulatedSystem::from_value(system)?;
    let began_ns = ns_from_s(*clock_s);
    reporter.phase(Phase::Prepare, 0);
    let slice_ns = slice_ns(job, &system, *run_seed, began_ns)?;
    let device = SimulatedRun::new(&system, &job.workload, *run_seed, began_ns);
    let streams = streams(job, SMALLEST_TRANSFER_BYTES)?;
    let played = Player::new(job, device, streams, began_ns, slice_ns).play(reporter)?;
    let facts = SimulatedFacts {
        truth_mb_s: truth::expected_throughput_mb_s(
            &system,
            &job.workload,
            played.opened_ns,
            played.closed_ns,
        ),
        clock_s: s_from_ns(played.closed_ns),
    };
    assemble(Finished {
        job,
        tally: &played.tally,
        controller: &played.controller,
        wall_s: s_from_ns(played.closed_ns - played.opened_ns),
        total_s: s_from_ns(played.closed_ns - began_ns),
        prepare_s: 0.0,
        host: played.host,
        own_allowance_s: 0.0,
        simulated: Some(facts),
        warnings: Vec::new(),
    })
}

/// Length of a slice: long enough for some requests, short enough for some slices.
fn slice_ns(
    job: &Job,
    system: &SimulatedSystem,
    run_seed: u64,
    began_ns: u64,
) -> Result<u64, EngineError> {
    let mut device = SimulatedRun::new(system, &job.workload, run_seed, began_ns);
    let mut stream = AccessStream::new(&job.workload, SMALLEST_TRANSFER_BYTES, job.seed, 0)?;
    let mut total_ns = 0;
    for _ in 0..CALIBRATION {
        total_ns += device.service_ns(began_ns, &stream.draw());
    }
    let mean_s = s_from_ns(total_ns) / f64::from(CALIBRATION) + job.workload.think_time_s;
    let per_slice_s = OPERATIONS_PER_SLICE * mean_s / f64::from(job.workload.process_num);
    let longest_s = job.limits.measure_s_max.max(job.limits.warm_up_s_max);
    Ok(ns_from_s(per_slice_s.max(longest_s / SLICES_PER_PHASE)).max(1))
}

/// A request on its way; ordered by when it completes, then by who made it.
type InFlight = Reverse<(u64, usize)>;

/// What a run in virtual time left behind.
struct Played {
    tally: Tally,
    controller: Controller,
    opened_ns: u64,
    closed_ns: u64,
    host: HostUse,
}

/// One run: the issuers, the device, and the window.
struct Player<D> {
    device: D,
    streams: Vec<AccessStream>,
    pending: Vec<(u64, Request)>,
    queue: BinaryHeap<InFlight>,
    controller: Controller,
    tally: Tally,
    slice: Slice,
    slice_ns: u64,
    slice_end_ns: u64,
    think_ns: u64,
    opened_ns: Option<u64>,
    device_before: (u64, u64),
    began_ns: u64,
    operations: u64,
}

impl<D: VirtualDevice> Player<D> {
    fn new(job: &Job, device: D, streams: Vec<AccessStream>, began_ns: u64, slice_ns: u64) -> Self {
        let mut limits = job.limits;
        limits.measure_s_max = limits.measure_s_max.min(limits.total_s_max);
        Self {
            device,
            pending: Vec::with_capacity(streams.len()),
            queue: BinaryHeap::with_capacity(streams.len()),
            streams,
            controller: Controller::new(limits, 0.0),
            tally: Tally::default(),
            slice: Slice::default(),
            slice_ns,
            slice_end_ns: began_ns + slice_ns,
            think_ns: ns_from_s(job.workload.think_time_s),
            opened_ns: None,
            device_before: (0, 0),
            began_ns,
            operations: 0,
        }
    }

    fn play(mut self, reporter: &mut Reporter) -> Result<Played, EngineError> {
        reporter.phase(Phase::WarmUp, 0);
        for issuer in 0..self.streams.len() {
            let request = self.streams[issuer].draw();
            self.pending.push((self.began_ns, request));
            self.send(issuer, self.began_ns, request);
        }
        while let Some(Reverse((ended_ns, issuer))) = self.queue.pop() {
            while ended_ns >= self.slice_end_ns {
                if self.end_slice(reporter) {
                    self.queue.push(Reverse((ended_ns, issuer)));
                    return self.finish(reporter);
                }
            }
            self.complete(issuer, ended_ns);
            let request = self.streams[issuer].draw();
            self.send(issuer, ended_ns + self.think_ns, request);
        }
        Err(EngineError::fault("a simulated run had no issuers"))
    }

    fn send(&mut self, issuer: usize, at_ns: u64, request: Request) {
        let service_ns = self.device.service_ns(at_ns, &request);
        self.pending[issuer] = (at_ns, request);
        self.queue.push(Reverse((at_ns + service_ns, issuer)));
    }

    fn complete(&mut self, issuer: usize, ended_ns: u64) {
        let (began_ns, request) = self.pending[issuer];
        self.slice.operations += 1;
        self.slice.bytes += request.length_bytes;
        self.operations += 1;
        if let Some(opened_ns) = self.opened_ns {
            self.tally.record(&request, ended_ns - began_ns);
            self.tally.edge_ns -= opened_ns.saturating_sub(began_ns) as i64;
            let thought_from_ns = began_ns.saturating_sub(self.think_ns).max(opened_ns);
            self.tally.think_ns += began_ns.saturating_sub(thought_from_ns);
        }
    }

    /// Hands the slice to the controller; true when the run is over.
    fn end_slice(&mut self, reporter: &mut Reporter) -> bool {
        let ended_ns = self.slice_end_ns;
        let slice = Slice { seconds: s_from_ns(self.slice_ns), ..std::mem::take(&mut self.slice) };
        self.slice_end_ns += self.slice_ns;
        match self.controller.push(slice) {
            Decision::Continue => self.opened_ns.is_some() && self.operations >= OPERATIONS_MAX,
            Decision::Measure => {
                self.opened_ns = Some(ended_ns);
                self.device_before = self.device.device_bytes();
                self.operations = 0;
                reporter.phase(Phase::Measure, ended_ns - self.began_ns);
                false
            }
            Decision::Stop => true,
        }
    }

    fn finish(mut self, reporter: &mut Reporter) -> Result<Played, EngineError> {
        let closed_ns = self.slice_end_ns - self.slice_ns;
        let opened_ns = self.opened_ns.unwrap_or(self.began_ns);
        for (began_ns, _) in &self.pending {
            let inside_ns = closed_ns.saturating_sub((*began_ns).max(opened_ns));
            self.tally.edge_ns += inside_ns as i64;
            let thought_from_ns = began_ns.saturating_sub(self.think_ns).max(opened_ns);
            let thought_to_ns = (*began_ns).min(closed_ns);
            self.tally.think_ns += thought_to_ns.saturating_sub(thought_from_ns);
        }
        reporter.phase(Phase::Drain, closed_ns - self.began_ns);
        let after = self.device.device_bytes();
        let before = self.device_before;
        Ok(Played {
            tally: self.tally,
            controller: self.controller,
            opened_ns,
            closed_ns,
            host: HostUse {
                cpu: CpuTime::default(),
                foreign_s: None,
                device: Some((after.0 - before.0, after.1 - before.1)),
                cache_resident_bytes: Some(self.device.cache_resident_bytes()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::engine::run_job;

    /// Runs a job on a system of one disk that needs exactly 10 ms a request, whatever it is.
    fn result(process_num: u32, think_time_s: f64) -> serde_json::Value {
        let job = serde_json::json!({
            "version": 1, "job_id": "j", "seed": 5,
            "target": {"kind": "simulated", "clock_s": 100.0, "run_seed": 3, "system": {
                "meta": {"name": "clockwork"},
                "copy": {"read_overhead_us": 1.0, "read_mb_s": 1000.0, "processors": 64},
                "device": {"disks": 1, "capacity_bytes": 1_000_000_000_000_u64,
                    "read_overhead_us": 10000.0, "read_mb_s": 1e5},
            }},
            "workload": {"unique_bytes": 1 << 30, "size_mean": 4096, "read_frac": 0.5,
                "seq_frac": 0.5, "process_num": process_num, "size_dist": "fixed",
                "think_time_s": think_time_s},
            "backend": {"name": "simulated"},
            "limits": {"warm_up_s_max": 10.0, "measure_s_min": 5.0, "measure_s_max": 60.0,
                "accuracy": 0.001, "total_s_max": 100.0},
        });
        let mut last = String::new();
        run_job(&job.to_string(), &mut |line| last = line.to_owned());
        serde_json::from_str(&last).unwrap()
    }

    #[test]
    fn littles_law_holds_exactly_with_and_without_thinking() {
        for (process_num, think_time_s) in [(1, 0.0), (4, 0.0), (3, 0.05)] {
            let result = result(process_num, think_time_s);
            assert_eq!(result["event"], "result", "{result}");
            assert!(result["littles_law_error_frac"].as_f64().unwrap() < 1e-6, "{result}");
        }
    }

    #[test]
    fn the_clock_goes_on_from_where_it_was_set() {
        let result = result(1, 0.0);
        let clock_s = result["simulated"]["clock_s"].as_f64().unwrap();
        let total_s = result["total_s"].as_f64().unwrap();
        assert!((clock_s - 100.0 - total_s).abs() < 1e-6, "{result}");
    }
}
