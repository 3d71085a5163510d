//! The law of service times: where a request is served, and what that costs on average.
//!
//! Everything is linear in the request's bytes, so means need the mean size only, whatever
//! distribution the access pattern draws sizes from.

use leadline_base::request::Kind;
use leadline_wire::job::backend::WriteSync;
use leadline_wire::job::workload::Workload;

use super::popularity::found_share;
use super::system::{CacheLevel, Device, HitShape, SimulatedSystem, WritePolicy};

/// Mean of `sqrt(|x - y|)` for two uniform places in (0, 1).
const MEAN_ROOT_DISTANCE: f64 = 8.0 / 15.0;

/// Nanoseconds of a request served in one place: `fixed_ns + per_byte_ns × bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub fixed_ns: f64,
    pub per_byte_ns: f64,
}

impl Cost {
    fn new(overhead_us: f64, rate_mb_s: Option<f64>) -> Self {
        Self { fixed_ns: overhead_us * 1e3, per_byte_ns: rate_mb_s.map_or(0.0, |rate| 1e3 / rate) }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            fixed_ns: self.fixed_ns + other.fixed_ns,
            per_byte_ns: self.per_byte_ns + other.per_byte_ns,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self { fixed_ns: self.fixed_ns * factor, per_byte_ns: self.per_byte_ns * factor }
    }

    pub fn of_bytes(self, bytes: f64) -> f64 {
        self.fixed_ns + self.per_byte_ns * bytes
    }
}

/// What a device request pays to reach its place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Positioning {
    /// A random request: always.
    pub seek_min_ns: f64,
    /// A random request: times the square root of the distance between two uniform places.
    pub seek_span_ns: f64,
    /// A random request: times a uniform number.
    pub rotation_ns: f64,
    /// A sequential request.
    pub sequential_ns: f64,
}

impl Positioning {
    fn mean_ns(&self, seq_frac: f64) -> f64 {
        let random =
            self.seek_min_ns + self.seek_span_ns * MEAN_ROOT_DISTANCE + self.rotation_ns / 2.0;
        seq_frac * self.sequential_ns + (1.0 - seq_frac) * random
    }
}

/// The law of reads, or of writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KindLaw {
    /// Probability that level `i` or a nearer one serves the request; never falls with `i`.
    pub reach: Vec<f64>,
    /// Cost in each level, then in the device: one more than `reach`.
    pub places: Vec<Cost>,
    /// The device's other part.
    pub positioning: Positioning,
    /// Times longer in the first level while writeback runs.
    pub flush_factor: f64,
    /// Bringing a request's bytes from the caches to the device, the positioning apart.
    pub write_out: Cost,
    /// Share of requests whose bytes an `fsync` brings there.
    pub written_out: f64,
}

impl KindLaw {
    /// Mean service time at speed one.
    pub fn mean_ns(&self, bytes_mean: f64, seq_frac: f64, flushing: bool) -> f64 {
        let mut below = 0.0;
        let mut total_ns = 0.0;
        for (level, (&reach, cost)) in self.reach.iter().zip(&self.places).enumerate() {
            let factor = if flushing && level == 0 { self.flush_factor } else { 1.0 };
            total_ns += (reach - below) * cost.of_bytes(bytes_mean) * factor;
            below = reach;
        }
        let device = self.places.last().copied().unwrap_or_default();
        let positioning_ns = self.positioning.mean_ns(seq_frac);
        total_ns
            + (1.0 - below) * (device.of_bytes(bytes_mean) + positioning_ns)
            + self.written_out * (self.write_out.of_bytes(bytes_mean) + positioning_ns)
    }
}

/// The law of one workload on one system.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Law {
    pub read: KindLaw,
    pub write: KindLaw,
    /// Requests outstanding at once.
    pub concurrency: f64,
    /// Mean bytes of a request.
    pub bytes_mean: f64,
}

impl Law {
    pub fn new(system: &SimulatedSystem, workload: &Workload) -> Self {
        let concurrency = f64::from(workload.process_num) * f64::from(workload.queue_depth);
        Self {
            read: kind_law(system, workload, Kind::Read, concurrency),
            write: kind_law(system, workload, Kind::Write, concurrency),
            concurrency,
            bytes_mean: workload.size_mean.min(workload.unique_bytes) as f64,
        }
    }

    /// The law of writes that wait for the device: under `O_DSYNC` no cache absorbs one; an `fsync`
    /// brings out every write that a cache absorbed since the one before.
    #[must_use]
    pub fn waiting(mut self, sync: WriteSync) -> Self {
        match sync {
            WriteSync::None {} => {}
            WriteSync::Dsync {} => self.write.reach.fill(0.0),
            WriteSync::Fsync { .. } => {
                self.write.written_out = self.write.reach.last().copied().unwrap_or_default();
            }
        }
        self
    }

    /// Mean service time over reads and writes at speed one.
    pub fn mean_ns(&self, workload: &Workload, flushing: bool) -> f64 {
        let of = |kind: &KindLaw| kind.mean_ns(self.bytes_mean, workload.seq_frac, flushing);
        workload.read_frac * of(&self.read) + (1.0 - workload.read_frac) * of(&self.write)
    }
}

fn kind_law(
    system: &SimulatedSystem,
    workload: &Workload,
    kind: Kind,
    concurrency: f64,
) -> KindLaw {
    let growth = growth_factor(system, workload.unique_bytes);
    let copy = copy_cost(system, kind, concurrency);
    let mut reach = Vec::with_capacity(system.cache.len());
    let mut places = Vec::with_capacity(system.cache.len() + 1);
    let mut reached: f64 = 0.0;
    for (index, level) in system.cache.iter().enumerate() {
        reached = reached.max(hit_probability(level, workload, kind));
        reach.push(reached);
        let served = level_cost(level, kind).times(stretch(concurrency, f64::from(level.channels)));
        let hop = network_cost(system, index, concurrency);
        places.push(copy.plus(served).plus(hop).times(growth));
    }
    let (device, positioning) = device_cost(&system.device, workload, kind, concurrency, growth);
    let hop = network_cost(system, system.cache.len(), concurrency);
    let write_out = hop.times(growth).plus(device);
    places.push(copy.plus(hop).times(growth).plus(device));
    let flush_factor = match (&system.flusher, kind) {
        (Some(flusher), Kind::Write) => flusher.slow_factor,
        _ => 1.0,
    };
    KindLaw { reach, places, positioning, flush_factor, write_out, written_out: 0.0 }
}

fn growth_factor(system: &SimulatedSystem, unique_bytes: u64) -> f64 {
    system.growth.as_ref().map_or(1.0, |growth| {
        (unique_bytes as f64 / growth.reference_bytes as f64).powf(growth.exponent)
    })
}

/// How much longer a request takes when `concurrency` of them share `servers` equal servers:
/// the balanced closed product-form network, throughput `servers × n / (n + servers - 1)`.
fn stretch(concurrency: f64, servers: f64) -> f64 {
    (concurrency + servers - 1.0) / servers
}

fn copy_cost(system: &SimulatedSystem, kind: Kind, concurrency: f64) -> Cost {
    let copy = &system.copy;
    let shared = (concurrency / f64::from(copy.processors)).max(1.0);
    let cost = match kind {
        Kind::Read => Cost::new(copy.read_overhead_us, Some(copy.read_mb_s)),
        Kind::Write => Cost::new(
            copy.write_overhead_us.unwrap_or(copy.read_overhead_us),
            Some(copy.write_mb_s.unwrap_or(copy.read_mb_s)),
        ),
    };
    cost.times(shared)
}

fn level_cost(level: &CacheLevel, kind: Kind) -> Cost {
    match kind {
        Kind::Read => Cost::new(level.read_overhead_us, level.read_mb_s),
        Kind::Write => Cost::new(level.write_overhead_us, level.write_mb_s.or(level.read_mb_s)),
    }
}

fn network_cost(system: &SimulatedSystem, place: usize, concurrency: f64) -> Cost {
    match &system.network {
        Some(hop) if place >= hop.after_level as usize => {
            let wire = Cost::new(0.0, Some(hop.mb_s)).times(concurrency);
            wire.plus(Cost::new(hop.latency_us, None))
        }
        _ => Cost::default(),
    }
}

/// Share of requests that this level, or a nearer one, would serve.
fn hit_probability(level: &CacheLevel, workload: &Workload, kind: Kind) -> f64 {
    let capacity_bytes = match (kind, level.write_policy) {
        (Kind::Write, WritePolicy::WriteThrough) => return 0.0,
        (Kind::Write, WritePolicy::WriteBack) => level.write_capacity_bytes(),
        (Kind::Read, _) => level.read_capacity_bytes,
    };
    let touched = workload.unique_bytes as f64 / capacity_bytes as f64;
    let cyclic = if touched <= 1.0 { 1.0 } else { 0.0 };
    // Skew makes a cache as good as one that holds that share of evenly used data.
    let touched = if workload.access.is_skewed() && touched > 1.0 {
        found_share(workload, capacity_bytes as f64).recip()
    } else {
        touched
    };
    let scattered = match level.shape {
        HitShape::Uniform => touched.recip().min(1.0),
        HitShape::Step => cyclic,
        HitShape::Smeared => 1.0 / (1.0 + touched.powf(1.0 / level.smear_width.unwrap_or(0.1))),
    };
    let requests_per_pass = workload.unique_bytes as f64 / workload.size_mean as f64;
    let whole_pass = workload.seq_frac.powf(requests_per_pass.max(1.0));
    whole_pass * cyclic + (1.0 - whole_pass) * scattered
}

/// Disks that a request of the workload's mean size occupies: the mean of
/// `clamp(size / stripe unit, 1, disks)` over exponential sizes (coefficient of variation 1).
pub(super) fn disks_used(device: &Device, size_mean: f64) -> f64 {
    let disks = f64::from(device.disks);
    device.stripe_unit_bytes.map_or(1.0, |unit| {
        let units = size_mean / unit as f64;
        1.0 + units * ((-1.0 / units).exp() - (-disks / units).exp())
    })
}

fn device_cost(
    device: &Device,
    workload: &Workload,
    kind: Kind,
    concurrency: f64,
    growth: f64,
) -> (Cost, Positioning) {
    let used = disks_used(device, workload.size_mean.min(workload.unique_bytes) as f64);
    let at_once = f64::from(device.channels.unwrap_or(device.disks));
    let servers = at_once.min(f64::from(device.disks) / used);
    let mut factor = growth * stretch(concurrency, servers);
    let (overhead_us, rate_mb_s) = match kind {
        Kind::Read => (device.read_overhead_us, device.read_mb_s),
        Kind::Write => (device.write_overhead_us, device.write_mb_s.unwrap_or(device.read_mb_s)),
    };
    if kind == Kind::Write {
        factor *= device.write_penalty;
    }
    let cost = Cost::new(overhead_us, Some(rate_mb_s * used)).times(factor);
    if kind == Kind::Write && device.log_structured {
        return (cost, Positioning::default());
    }
    let span = (workload.unique_bytes as f64 / device.capacity_bytes as f64).min(1.0);
    let positioning = Positioning {
        seek_min_ns: device.seek_min_ms * 1e6 * factor,
        seek_span_ns: device.seek_span_ms * 1e6 * factor * span.sqrt(),
        rotation_ns: device.rotation_ms * 1e6 * factor,
        sequential_ns: device.sequential_penalty_us * 1e3 * factor,
    };
    (cost, positioning)
}
