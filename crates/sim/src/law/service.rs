//! One run of one workload on a simulated system.

use leadline_base::request::{Kind, Request};
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::workload::Workload;
use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::cost::{KindLaw, Law};
use super::speed::{Episodes, MeanOne};
use super::system::{Drift, Flusher, SimulatedSystem};

/// Seeds of a run's independent streams are the run's seed xor one of these.
const RUN_STREAM: u64 = 0x52_55_4e;
const BURST_STREAM: u64 = 0x42_55_52_53_54;

/// A run: answers how long each request takes, the same for the same seed.
#[derive(Clone, Debug)]
pub struct SimulatedRun {
    law: Law,
    rng: Xoshiro256PlusPlus,
    service_noise: MeanOne,
    /// Speed of this run against the average one.
    run_speed: f64,
    drift: Option<Drift>,
    flusher: Option<Flusher>,
    episodes: Option<Episodes>,
    resident_bytes: u64,
    device_read_bytes: u64,
    device_written_bytes: u64,
    dirty: Option<Dirty>,
}

/// What the caches absorbed since the last `fsync`, whoever wrote it.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    each: u32,
    writes: u32,
    write_out_ns: f64,
    bytes: u64,
}

impl SimulatedRun {
    /// A run that starts at `clock_start_ns` of the absolute virtual clock.
    pub fn new(
        system: &SimulatedSystem,
        workload: &Workload,
        run_seed: u64,
        clock_start_ns: u64,
    ) -> Self {
        let mut run_rng = Xoshiro256PlusPlus::seed_from_u64(run_seed ^ RUN_STREAM);
        let resident_bytes = system.cache.first().map_or(0, |level| level.read_capacity_bytes);
        Self {
            law: Law::new(system, workload),
            rng: Xoshiro256PlusPlus::seed_from_u64(run_seed),
            service_noise: MeanOne::new(system.noise.service_cv),
            run_speed: MeanOne::new(system.noise.run_to_run_cv).draw(&mut run_rng),
            drift: system.drift.clone(),
            flusher: system.flusher.clone(),
            episodes: system.bursts.as_ref().map(|bursts| {
                Episodes::new(bursts, run_seed ^ BURST_STREAM, clock_start_ns as f64)
            }),
            resident_bytes: resident_bytes.min(workload.unique_bytes),
            device_read_bytes: 0,
            device_written_bytes: 0,
            dirty: None,
        }
    }

    /// The same run with writes that wait for the device as `sync` says.
    ///
    /// The caches keep count of writes, not of blocks: an `fsync` writes out each of them, although
    /// some may have written the same block. It comes after every `each` writes of all workers.
    #[must_use]
    pub fn waiting(mut self, sync: WriteSync) -> Self {
        self.law = self.law.waiting(sync);
        if let WriteSync::Fsync { each, .. } = sync {
            self.dirty = Some(Dirty { each, writes: 0, write_out_ns: 0.0, bytes: 0 });
        }
        self
    }

    /// Nanoseconds that the worker waits for this request, at least one.
    ///
    /// All workers of a run call it in the order of their virtual times; `now_ns` is the absolute
    /// virtual clock and never falls from one call to the next.
    pub fn service_ns(&mut self, now_ns: u64, request: &Request) -> u64 {
        let now_ns = now_ns as f64;
        let law = match request.kind {
            Kind::Read => &self.law.read,
            Kind::Write => &self.law.write,
        };
        let place = place_of(law, self.rng.random());
        let mut work_ns = law.places[place].of_bytes(request.length_bytes as f64);
        if place == law.reach.len() {
            work_ns += positioning_ns(law, request.sequential, &mut self.rng);
        }
        let cached = place == 0 && !law.reach.is_empty();
        let flushing = cached
            && request.kind == Kind::Write
            && self.flusher.as_ref().is_some_and(|flusher| flusher.runs_at(now_ns));
        if flushing {
            work_ns *= law.flush_factor;
        }
        if !cached || flushing {
            self.count_device_bytes(request);
        }
        if request.kind == Kind::Write {
            work_ns += self.fsync_ns(place, request);
        }
        if !self.service_noise.is_constant() {
            work_ns *= self.service_noise.draw(&mut self.rng);
        }
        self.elapse_ns(now_ns, work_ns)
    }

    /// What the write that was served in `place` waits for an `fsync`: nothing until its turn.
    fn fsync_ns(&mut self, place: usize, request: &Request) -> f64 {
        let Some(dirty) = &mut self.dirty else { return 0.0 };
        let law = &self.law.write;
        if place < law.reach.len() {
            dirty.write_out_ns += law.write_out.of_bytes(request.length_bytes as f64)
                + positioning_ns(law, request.sequential, &mut self.rng);
            dirty.bytes += if place == 0 { request.length_bytes } else { 0 };
        }
        dirty.writes += 1;
        if dirty.writes < dirty.each {
            return 0.0;
        }
        self.device_written_bytes += dirty.bytes;
        let waited_ns = dirty.write_out_ns;
        *dirty = Dirty { writes: 0, write_out_ns: 0.0, bytes: 0, ..*dirty };
        waited_ns
    }

    fn elapse_ns(&mut self, now_ns: f64, work_ns: f64) -> u64 {
        let mut speed = self.run_speed;
        if let Some(drift) = &self.drift {
            speed *= drift.speed_at(now_ns);
        }
        let mut taken_ns = work_ns / speed;
        if let Some(episodes) = &mut self.episodes {
            taken_ns = episodes.elapse(now_ns, taken_ns);
        }
        (taken_ns.round() as u64).max(1)
    }

    fn count_device_bytes(&mut self, request: &Request) {
        match request.kind {
            Kind::Read => self.device_read_bytes += request.length_bytes,
            Kind::Write => self.device_written_bytes += request.length_bytes,
        }
    }

    /// Bytes of the workload's data that the first cache level holds; the model starts warm.
    pub fn cache_resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// Bytes read and written so far below the first cache level, which is the host's memory.
    pub fn device_bytes(&self) -> (u64, u64) {
        (self.device_read_bytes, self.device_written_bytes)
    }
}

/// The level that serves, or the device, which comes after the last level.
fn place_of(law: &KindLaw, uniform: f64) -> usize {
    law.reach.iter().position(|&reach| uniform < reach).unwrap_or(law.reach.len())
}

fn positioning_ns(law: &KindLaw, sequential: bool, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let to = &law.positioning;
    if sequential {
        return to.sequential_ns;
    }
    let (here, there, turn): (f64, f64, f64) = rng.random();
    to.seek_min_ns + to.seek_span_ns * (here - there).abs().sqrt() + to.rotation_ns * turn
}
