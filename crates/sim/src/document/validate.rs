//! Ranges: wide enough for every machine that is, narrow enough that each ends in bounded time and
//! memory.

use std::ops::RangeInclusive;

use super::{
    Array, ArrayKind, Disk, Document, Flash, Neighbour, Network, PageCache, Server, Station, Tier,
    Volume,
};
use super::{Processors, Refused};

type Check = Result<(), Refused>;

const OVERHEAD_US: RangeInclusive<f64> = 0.05..=1e6;
const TIME_US: RangeInclusive<f64> = 0.0..=1e8;
const TIME_MS: RangeInclusive<f64> = 0.0..=1e5;
const SECONDS: RangeInclusive<f64> = 1e-3..=1e6;
const RATE_MB_S: RangeInclusive<f64> = 1e-3..=1e6;
const BYTES: RangeInclusive<f64> = 4096.0..=1e17;
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
const COUNT: RangeInclusive<f64> = 1.0..=4096.0;
const MEMBERS_MAX: f64 = 64.0;
/// A drive's chips, planes counted.
const PLANES_MAX: u64 = 4096;
/// Pages one memory may hold: some 40 bytes each in the host's.
const PAGES_MAX: u64 = 1 << 22;
/// Pages of one request to what lies below.
const REQUEST_PAGES_MAX: u64 = 1 << 14;
const BUCKETS_MAX: usize = 8;

pub(super) fn check(machine: &Document) -> Check {
    processors(&machine.processors)?;
    maybe(machine.cache.as_ref(), |cache| page_cache("machine.cache", cache))?;
    maybe(machine.network.as_ref(), network)?;
    maybe(machine.server.as_ref(), server)?;
    maybe(machine.volume.as_ref(), volume)?;
    maybe(machine.neighbour.as_ref(), neighbour)?;
    maybe(machine.tier.as_ref(), tier)?;
    maybe(machine.array.as_ref(), array)?;
    maybe(machine.disk.as_ref(), disk)?;
    maybe(machine.flash.as_ref(), |drive| flash("machine.flash", drive))?;
    maybe(machine.station.as_ref(), station)?;
    whole(machine)
}

/// What no part can say by itself.
fn whole(machine: &Document) -> Check {
    let given = [machine.disk.is_some(), machine.flash.is_some(), machine.station.is_some()];
    let count = given.iter().filter(|&&is| is).count();
    if count != 1 {
        return Err(Refused(format!(
            "machine has {count} of the tables disk, flash and station, it must have exactly one: \
             what lies at the bottom"
        )));
    }
    if machine.server.is_some() && machine.network.is_none() {
        return Err(Refused("machine.server is given without machine.network to it".to_owned()));
    }
    within("the machine's capacity", machine.capacity_bytes() as f64, &BYTES, "bytes")
}

fn maybe<T>(part: Option<&T>, check: impl Fn(&T) -> Check) -> Check {
    part.map_or(Ok(()), check)
}

fn within(field: &str, value: f64, range: &RangeInclusive<f64>, unit: &str) -> Check {
    if range.contains(&value) {
        return Ok(());
    }
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let (low, high) = (range.start(), range.end());
    Err(Refused(format!("{field} is {value}, it must be between {low} and {high}{unit}")))
}

fn bytes(field: &str, value: u64, low: u64, high: u64) -> Check {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Refused(format!("{field} is {value}, it must be between {low} and {high} bytes")))
}

fn processors(it: &Processors) -> Check {
    within("machine.processors.count", f64::from(it.count), &COUNT, "")?;
    let (read, write) = (it.read_overhead_us, it.write_overhead_us);
    within("machine.processors.read_overhead_us", read, &OVERHEAD_US, "microseconds")?;
    let write = write.unwrap_or(read);
    within("machine.processors.write_overhead_us", write, &OVERHEAD_US, "microseconds")?;
    within("machine.processors.copy_mb_s", it.copy_mb_s, &RATE_MB_S, "MB/s")
}

fn page_cache(path: &str, cache: &PageCache) -> Check {
    let page = cache.page_bytes;
    bytes(&format!("{path}.page_bytes"), page, 512, 1 << 22)?;
    if !page.is_power_of_two() {
        return Err(Refused(format!("{path}.page_bytes is {page}, it must be a power of two")));
    }
    let capacity = cache.capacity_bytes;
    bytes(&format!("{path}.capacity_bytes"), capacity, 16 * page, PAGES_MAX * page)?;
    let request = cache.request_max_bytes;
    bytes(&format!("{path}.request_max_bytes"), request, page, REQUEST_PAGES_MAX * page)?;
    if let Some(ahead) = &cache.read_ahead {
        let max = ahead.max_bytes;
        let most = capacity.min(REQUEST_PAGES_MAX * page);
        bytes(&format!("{path}.read_ahead.max_bytes"), max, page, most)?;
        bytes(&format!("{path}.read_ahead.initial_bytes"), ahead.initial_bytes, page, max)?;
    }
    let Some(dirty) = &cache.dirty else { return Ok(()) };
    let path = format!("{path}.dirty");
    bytes(&format!("{path}.limit_bytes"), dirty.limit_bytes, page, capacity)?;
    bytes(&format!("{path}.background_bytes"), dirty.background_bytes, 0, dirty.limit_bytes)?;
    within(&format!("{path}.interval_s"), dirty.interval_s, &SECONDS, "seconds")?;
    within(&format!("{path}.expire_s"), dirty.expire_s, &SECONDS, "seconds")?;
    within(&format!("{path}.depth"), f64::from(dirty.depth), &COUNT, "")
}

fn network(it: &Network) -> Check {
    within("machine.network.latency_us", it.latency_us, &TIME_US, "microseconds")?;
    within("machine.network.mb_s", it.mb_s, &RATE_MB_S, "MB/s")?;
    within("machine.network.window", f64::from(it.window), &(1.0..=65_536.0), "requests")?;
    within("machine.network.loss_frac", it.loss_frac, &(0.0..=0.5), "")?;
    within("machine.network.retransmit_ms", it.retransmit_ms, &(0.01..=1e5), "milliseconds")
}

fn server(it: &Server) -> Check {
    within("machine.server.threads", f64::from(it.threads), &COUNT, "")?;
    within("machine.server.overhead_us", it.overhead_us, &TIME_US, "microseconds")?;
    maybe(it.cache.as_ref(), |cache| page_cache("machine.server.cache", cache))
}

fn volume(it: &Volume) -> Check {
    within("machine.volume.latency_us", it.latency_us, &TIME_US, "microseconds")?;
    within("machine.volume.latency_cv", it.latency_cv, &(0.0..=5.0), "")?;
    if it.buckets.len() > BUCKETS_MAX {
        return Err(Refused(format!(
            "machine.volume.buckets has {} entries, it may have {BUCKETS_MAX} at most",
            it.buckets.len()
        )));
    }
    for (index, bucket) in it.buckets.iter().enumerate() {
        let path = format!("machine.volume.buckets[{index}]");
        within(&format!("{path}.per_s"), bucket.per_s, &(0.1..=1e12), "tokens")?;
        within(&format!("{path}.depth"), bucket.depth, &(1.0..=1e15), "tokens")?;
        within(&format!("{path}.begin_frac"), bucket.begin_frac, &SHARE, "")?;
        bytes(&format!("{path}.unit_bytes"), bucket.unit_bytes, 512, 1 << 30)?;
    }
    Ok(())
}

fn neighbour(it: &Neighbour) -> Check {
    within("machine.neighbour.mean_busy_s", it.mean_busy_s, &SECONDS, "seconds")?;
    within("machine.neighbour.mean_idle_s", it.mean_idle_s, &SECONDS, "seconds")?;
    within("machine.neighbour.requests_per_s", it.requests_per_s, &(0.0..=1e6), "")?;
    bytes("machine.neighbour.size_bytes", it.size_bytes, 512, 1 << 24)?;
    within("machine.neighbour.read_frac", it.read_frac, &SHARE, "")?;
    within("machine.neighbour.processor_frac", it.processor_frac, &(0.0..=0.99), "")
}

fn tier(it: &Tier) -> Check {
    bytes("machine.tier.block_bytes", it.block_bytes, 4096, 1 << 24)?;
    let (low, high) = (16 * it.block_bytes, PAGES_MAX * it.block_bytes);
    bytes("machine.tier.capacity_bytes", it.capacity_bytes, low, high)?;
    bytes("machine.tier.sequential_cutoff_bytes", it.sequential_cutoff_bytes, 0, 1 << 40)?;
    within("machine.tier.dirty_max_frac", it.dirty_max_frac, &SHARE, "")?;
    let drive = it.flash.capacity_bytes;
    bytes("machine.tier.capacity_bytes", it.capacity_bytes, low, drive)?;
    flash("machine.tier.flash", &it.flash)
}

fn array(it: &Array) -> Check {
    let least = match it.kind {
        ArrayKind::Stripe => 1.0,
        ArrayKind::Mirror => 2.0,
        ArrayKind::Parity => 3.0,
        ArrayKind::DoubleParity => 4.0,
    };
    within("machine.array.members", f64::from(it.members), &(least..=MEMBERS_MAX), "")?;
    bytes("machine.array.chunk_bytes", it.chunk_bytes, 4096, 1 << 24)?;
    if !it.chunk_bytes.is_power_of_two() {
        let chunk = it.chunk_bytes;
        return Err(Refused(format!(
            "machine.array.chunk_bytes is {chunk}, it must be a power of two"
        )));
    }
    Ok(())
}

fn disk(it: &Disk) -> Check {
    within("machine.disk.capacity_bytes", it.capacity_bytes as f64, &BYTES, "bytes")?;
    within("machine.disk.cylinders", f64::from(it.cylinders), &(2.0..=1e7), "")?;
    within("machine.disk.rotation_ms", it.rotation_ms, &(0.01..=1e4), "milliseconds")?;
    within("machine.disk.seek_track_ms", it.seek_track_ms, &TIME_MS, "milliseconds")?;
    let full = it.seek_track_ms..=1e5;
    within("machine.disk.seek_full_ms", it.seek_full_ms, &full, "milliseconds")?;
    within("machine.disk.seek_linear_frac", it.seek_linear_frac, &SHARE, "")?;
    within("machine.disk.outer_mb_s", it.outer_mb_s, &RATE_MB_S, "MB/s")?;
    within("machine.disk.inner_mb_s", it.inner_mb_s, &(1e-3..=it.outer_mb_s), "MB/s")?;
    within("machine.disk.overhead_us", it.overhead_us, &TIME_US, "microseconds")?;
    within("machine.disk.interface_mb_s", it.interface_mb_s, &RATE_MB_S, "MB/s")?;
    within("machine.disk.depth", f64::from(it.depth), &(1.0..=256.0), "")?;
    bytes("machine.disk.read_buffer_bytes", it.read_buffer_bytes, 0, 1 << 32)?;
    bytes("machine.disk.write_buffer_bytes", it.write_buffer_bytes, 0, 1 << 32)
}

fn flash(path: &str, it: &Flash) -> Check {
    let field = |name: &str| format!("{path}.{name}");
    within(&field("capacity_bytes"), it.capacity_bytes as f64, &BYTES, "bytes")?;
    within(&field("channels"), f64::from(it.channels), &(1.0..=256.0), "")?;
    within(&field("dies_per_channel"), f64::from(it.dies_per_channel), &(1.0..=256.0), "")?;
    within(&field("planes"), f64::from(it.planes), &(1.0..=16.0), "")?;
    let planes = u64::from(it.channels) * u64::from(it.dies_per_channel) * u64::from(it.planes);
    if planes > PLANES_MAX {
        return Err(Refused(format!(
            "{path} has {planes} planes in all, it may have {PLANES_MAX} at most"
        )));
    }
    bytes(&field("page_bytes"), it.page_bytes, 512, 1 << 22)?;
    within(&field("read_us"), it.read_us, &TIME_US, "microseconds")?;
    within(&field("program_us"), it.program_us, &(0.01..=1e8), "microseconds")?;
    within(&field("channel_mb_s"), it.channel_mb_s, &RATE_MB_S, "MB/s")?;
    within(&field("interface_mb_s"), it.interface_mb_s, &RATE_MB_S, "MB/s")?;
    within(&field("overhead_us"), it.overhead_us, &TIME_US, "microseconds")?;
    bytes(&field("write_buffer_bytes"), it.write_buffer_bytes, 0, 1 << 34)?;
    within(&field("spare_frac"), it.spare_frac, &(0.02..=1.0), "")?;
    within(&field("aged_frac"), it.aged_frac, &(0.0..=4.0), "")?;
    let Some(slc) = &it.slc else { return Ok(()) };
    bytes(&field("slc.capacity_bytes"), slc.capacity_bytes, 4096, it.capacity_bytes)?;
    within(&field("slc.program_us"), slc.program_us, &(0.01..=it.program_us), "microseconds")?;
    within(&field("slc.fold_mb_s"), slc.fold_mb_s, &(0.0..=1e6), "MB/s")?;
    within(&field("slc.begin_frac"), slc.begin_frac, &SHARE, "")
}

fn station(it: &Station) -> Check {
    within("machine.station.capacity_bytes", it.capacity_bytes as f64, &BYTES, "bytes")?;
    within("machine.station.servers", f64::from(it.servers), &COUNT, "")?;
    within("machine.station.read_us", it.read_us, &TIME_US, "microseconds")?;
    within("machine.station.write_us", it.write_us, &TIME_US, "microseconds")?;
    within("machine.station.mb_s", it.mb_s, &RATE_MB_S, "MB/s")
}
