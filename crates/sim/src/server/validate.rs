//! Ranges: wide enough for every server that is, narrow enough that each ends in bounded time.

use std::ops::RangeInclusive;

use super::document::{
    Batch, Cache, Clients, Collector, Cores, Document, Law, Lock, Pool, Speed, Storage,
};
use crate::document::Refused;

type Check = Result<(), Refused>;

const COUNT: RangeInclusive<f64> = 1.0..=4096.0;
const WAITING: RangeInclusive<f64> = 0.0..=1e6;
const TIME_MS: RangeInclusive<f64> = 0.0..=1e6;
const SECONDS: RangeInclusive<f64> = 1e-3..=1e6;
const TRIAL_S: RangeInclusive<f64> = 0.0..=1e5;
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// Something is left of the processors for requests.
const PART: RangeInclusive<f64> = 0.0..=0.95;
const SPREAD: RangeInclusive<f64> = 0.0..=2.0;
const MEGABYTES: RangeInclusive<f64> = 1e-6..=1e7;
const FACTOR: RangeInclusive<f64> = 0.01..=100.0;
const EXTRA: RangeInclusive<f64> = 0.0..=100.0;
const RESENDS: RangeInclusive<f64> = 0.0..=10.0;
const TIMEOUT_MS: RangeInclusive<f64> = 1.0..=1e6;
const RATE_PER_S: RangeInclusive<f64> = 0.0..=1e5;
const VARIATION: RangeInclusive<f64> = 1e-3..=20.0;
/// Of the heap, what may live in it: less than this, or it is never done.
const LIVE_MAX_FRAC: f64 = 0.9;

pub(super) fn check(server: &Document) -> Check {
    within("workers", f64::from(server.workers), &COUNT, "")?;
    within("backlog", f64::from(server.backlog), &WAITING, "")?;
    within("warm_up_s", server.warm_up_s, &TRIAL_S, "seconds")?;
    within("set_up_s", server.set_up_s, &TRIAL_S, "seconds")?;
    cores(&server.cores)?;
    maybe(server.cache.as_ref(), cache)?;
    maybe(server.storage.as_ref(), storage)?;
    maybe(server.lock.as_ref(), lock)?;
    maybe(server.pool.as_ref(), pool)?;
    maybe(server.collector.as_ref(), collector)?;
    maybe(server.clients.as_ref(), clients)?;
    maybe(server.batch.as_ref(), batch)?;
    speed(&server.speed)?;
    whole(server)
}

/// What no part can say by itself.
fn whole(server: &Document) -> Check {
    let storage_ms = server.storage.as_ref().map_or(0.0, |storage| storage.io_ms);
    let query_ms = server.pool.as_ref().map_or(0.0, |pool| pool.query_ms);
    if server.cores.work_ms + storage_ms + query_ms <= 0.0 {
        return Err(Refused(
            "a request takes no time at all; give cores.work_ms, storage or pool".to_owned(),
        ));
    }
    if server.storage.is_none() {
        let ios = server.batch.as_ref().is_some_and(|batch| batch.ios_per_s > 0.0);
        let without = if server.lock.is_some() {
            "lock is"
        } else if server.cache.is_some() {
            "cache is"
        } else if ios {
            "batch.ios_per_s is"
        } else {
            return Ok(());
        };
        return Err(Refused(format!("{without} given without a storage")));
    }
    Ok(())
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
    Err(Refused(format!("{field} is {value}; it must be between {low} and {high}{unit}")))
}

fn law(field: &str, it: Law) -> Check {
    match it {
        Law::Constant {} | Law::Exponential {} => Ok(()),
        Law::Lognormal { cv } => within(&format!("{field}.cv"), cv, &VARIATION, ""),
    }
}

fn cores(it: &Cores) -> Check {
    within("cores.count", f64::from(it.count), &COUNT, "")?;
    within("cores.work_ms", it.work_ms, &TIME_MS, "milliseconds")?;
    law("cores.work", it.work)
}

fn cache(it: &Cache) -> Check {
    within("cache.hit_frac", it.hit_frac, &SHARE, "")?;
    within("cache.cold_share", it.cold_share, &SHARE, "")?;
    within("cache.cold_hit_frac", it.cold_hit_frac, &SHARE, "")
}

fn storage(it: &Storage) -> Check {
    within("storage.channels", f64::from(it.channels), &COUNT, "")?;
    within("storage.io_ms", it.io_ms, &TIME_MS, "milliseconds")?;
    law("storage.io", it.io)?;
    within("storage.degraded_share", it.degraded_share, &SHARE, "")?;
    within("storage.degraded_factor", it.degraded_factor, &FACTOR, "")
}

fn lock(it: &Lock) -> Check {
    within("lock.write_share", it.write_share, &SHARE, "")?;
    within("lock.stripes", f64::from(it.stripes), &COUNT, "")
}

fn pool(it: &Pool) -> Check {
    within("pool.connections", f64::from(it.connections), &COUNT, "")?;
    within("pool.query_ms", it.query_ms, &TIME_MS, "milliseconds")?;
    law("pool.query", it.query)
}

fn collector(it: &Collector) -> Check {
    within("collector.heap_mb", it.heap_mb, &MEGABYTES, "MB")?;
    let live = 0.0..=LIVE_MAX_FRAC * it.heap_mb;
    within("collector.live_mb", it.live_mb, &live, "MB")?;
    within("collector.allocates_mb", it.allocates_mb, &MEGABYTES, "MB")?;
    within("collector.ms_per_live_mb", it.ms_per_live_mb, &TIME_MS, "milliseconds")?;
    within("collector.begin_frac", it.begin_frac, &SHARE, "")?;
    within("collector.cores_frac", it.cores_frac, &PART, "")?;
    within("collector.assist_frac", it.assist_frac, &EXTRA, "")
}

fn clients(it: &Clients) -> Check {
    within("clients.timeout_ms", it.timeout_ms, &TIMEOUT_MS, "milliseconds")?;
    within("clients.resends", f64::from(it.resends), &RESENDS, "")?;
    within("clients.backoff_ms", it.backoff_ms, &TIME_MS, "milliseconds")
}

fn batch(it: &Batch) -> Check {
    within("batch.mean_busy_s", it.mean_busy_s, &SECONDS, "seconds")?;
    within("batch.mean_idle_s", it.mean_idle_s, &SECONDS, "seconds")?;
    within("batch.cores_frac", it.cores_frac, &PART, "")?;
    within("batch.ios_per_s", it.ios_per_s, &RATE_PER_S, "per second")
}

fn speed(it: &Speed) -> Check {
    within("speed.drift_sd", it.drift_sd, &SPREAD, "")?;
    within("speed.drift_memory_s", it.drift_memory_s, &(0.01..=1e6), "seconds")?;
    within("speed.between_trials_sd", it.between_trials_sd, &SPREAD, "")?;
    within("speed.cold_frac", it.cold_frac, &EXTRA, "")?;
    within("speed.cold_s", it.cold_s, &SECONDS, "seconds")
}
