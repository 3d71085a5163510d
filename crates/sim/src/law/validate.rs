//! Checks of a simulated system that types cannot make.

use std::ops::RangeInclusive;

use leadline_base::error::EngineError;

use super::system::{CacheLevel, Drift, DriftShape, HitShape, Meta, SimulatedSystem, SurveyHints};

/// Cache levels a system may have.
const LEVELS_MAX: usize = 8;
const BYTES: RangeInclusive<f64> = 512.0..=1e18;
const RATE_MB_S: RangeInclusive<f64> = 1e-3..=1e7;
const OVERHEAD_US: RangeInclusive<f64> = 0.0..=1e8;
const TIME_MS: RangeInclusive<f64> = 0.0..=1e5;
const FACTOR: RangeInclusive<f64> = 1.0..=1e4;
const SECONDS: RangeInclusive<f64> = 1e-3..=1e7;
const SERVERS: RangeInclusive<f64> = 1.0..=4096.0;
const CV: RangeInclusive<f64> = 0.0..=5.0;

type Check = Result<(), EngineError>;

/// Check every value of a system.
pub(crate) fn check(system: &SimulatedSystem) -> Check {
    check_meta(&system.meta)?;
    check_copy(system)?;
    check_levels(system)?;
    check_device(system)?;
    check_modifiers(system)?;
    check_time(system)?;
    check_survey(&system.survey)
}

pub(crate) fn refuse(message: impl std::fmt::Display) -> EngineError {
    EngineError::bad_job(format!("simulated system: {message}"))
}

fn within(field: &str, value: f64, range: &RangeInclusive<f64>, unit: &str) -> Check {
    if range.contains(&value) {
        return Ok(());
    }
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    Err(refuse(format!(
        "{field} is {value}, it must be between {} and {}{unit}",
        range.start(),
        range.end()
    )))
}

fn maybe(field: &str, value: Option<f64>, range: &RangeInclusive<f64>, unit: &str) -> Check {
    value.map_or(Ok(()), |value| within(field, value, range, unit))
}

/// Check a profile's name.
pub(crate) fn check_meta(meta: &Meta) -> Check {
    let name = &meta.name;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        return Err(refuse(format!(
            "meta.name is {name:?}, it must be 1 to 64 lower-case letters, digits and hyphens"
        )));
    }
    Ok(())
}

fn check_copy(system: &SimulatedSystem) -> Check {
    let copy = &system.copy;
    within("copy.read_overhead_us", copy.read_overhead_us, &OVERHEAD_US, "microseconds")?;
    maybe("copy.write_overhead_us", copy.write_overhead_us, &OVERHEAD_US, "microseconds")?;
    within("copy.read_mb_s", copy.read_mb_s, &RATE_MB_S, "MB/s")?;
    maybe("copy.write_mb_s", copy.write_mb_s, &RATE_MB_S, "MB/s")?;
    within("copy.processors", f64::from(copy.processors), &SERVERS, "")
}

fn check_levels(system: &SimulatedSystem) -> Check {
    if system.cache.len() > LEVELS_MAX {
        let count = system.cache.len();
        return Err(refuse(format!("cache has {count} levels, it may have {LEVELS_MAX} at most")));
    }
    for (index, level) in system.cache.iter().enumerate() {
        check_level(index, level)?;
    }
    for (index, pair) in system.cache.windows(2).enumerate() {
        let (near, far) = (pair[0].read_capacity_bytes, pair[1].read_capacity_bytes);
        if far <= near {
            return Err(refuse(format!(
                "cache[{}].read_capacity_bytes is {far}, it must be above the {near} of the level \
                 before it, whose data it also holds",
                index + 1
            )));
        }
    }
    Ok(())
}

fn check_level(index: usize, level: &CacheLevel) -> Check {
    let field = |name: &str| format!("cache[{index}].{name}");
    let read = level.read_capacity_bytes;
    within(&field("read_capacity_bytes"), read as f64, &BYTES, "bytes")?;
    let write = level.write_capacity_bytes();
    within(&field("write_capacity_bytes"), write as f64, &(512.0..=read as f64), "bytes")?;
    within(&field("read_overhead_us"), level.read_overhead_us, &OVERHEAD_US, "microseconds")?;
    within(&field("write_overhead_us"), level.write_overhead_us, &OVERHEAD_US, "microseconds")?;
    maybe(&field("read_mb_s"), level.read_mb_s, &RATE_MB_S, "MB/s")?;
    maybe(&field("write_mb_s"), level.write_mb_s, &RATE_MB_S, "MB/s")?;
    within(&field("channels"), f64::from(level.channels), &SERVERS, "")?;
    match (level.shape, level.smear_width) {
        (HitShape::Smeared, Some(width)) => within(&field("smear_width"), width, &(0.01..=1.0), ""),
        (HitShape::Smeared, None) => Err(refuse(format!(
            "{} is missing, the smeared shape needs it: between 0.01 and 1",
            field("smear_width")
        ))),
        (_, Some(width)) => Err(refuse(format!(
            "{} is {width}, it must be left out unless the shape is \"smeared\"",
            field("smear_width")
        ))),
        (_, None) => Ok(()),
    }
}

fn check_device(system: &SimulatedSystem) -> Check {
    let device = &system.device;
    within("device.disks", f64::from(device.disks), &SERVERS, "")?;
    let at_once = device.channels.map(f64::from);
    maybe("device.channels", at_once, &(1.0..=f64::from(device.disks)), "")?;
    within("device.capacity_bytes", device.capacity_bytes as f64, &BYTES, "bytes")?;
    within("device.seek_min_ms", device.seek_min_ms, &TIME_MS, "milliseconds")?;
    within("device.seek_span_ms", device.seek_span_ms, &TIME_MS, "milliseconds")?;
    within("device.rotation_ms", device.rotation_ms, &TIME_MS, "milliseconds")?;
    within("device.read_mb_s", device.read_mb_s, &RATE_MB_S, "MB/s")?;
    maybe("device.write_mb_s", device.write_mb_s, &RATE_MB_S, "MB/s")?;
    within("device.read_overhead_us", device.read_overhead_us, &OVERHEAD_US, "microseconds")?;
    within("device.write_overhead_us", device.write_overhead_us, &OVERHEAD_US, "microseconds")?;
    let penalty_us = device.sequential_penalty_us;
    within("device.sequential_penalty_us", penalty_us, &OVERHEAD_US, "microseconds")?;
    let stripe = device.stripe_unit_bytes.map(|bytes| bytes as f64);
    maybe("device.stripe_unit_bytes", stripe, &BYTES, "bytes")?;
    within("device.write_penalty", device.write_penalty, &FACTOR, "")
}

fn check_modifiers(system: &SimulatedSystem) -> Check {
    if let Some(hop) = &system.network {
        within("network.latency_us", hop.latency_us, &OVERHEAD_US, "microseconds")?;
        within("network.mb_s", hop.mb_s, &RATE_MB_S, "MB/s")?;
        let levels = system.cache.len() as f64;
        within("network.after_level", f64::from(hop.after_level), &(0.0..=levels), "cache levels")?;
    }
    if let Some(growth) = &system.growth {
        within("growth.reference_bytes", growth.reference_bytes as f64, &BYTES, "bytes")?;
        within("growth.exponent", growth.exponent, &(0.0..=2.0), "")?;
    }
    if let Some(flusher) = &system.flusher {
        if system.cache.is_empty() {
            return Err(refuse("[flusher] is given without any cache level for it to flush"));
        }
        within("flusher.period_s", flusher.period_s, &SECONDS, "seconds")?;
        within("flusher.run_s", flusher.run_s, &(0.0..=flusher.period_s), "seconds")?;
        within("flusher.slow_factor", flusher.slow_factor, &FACTOR, "")?;
    }
    Ok(())
}

fn check_time(system: &SimulatedSystem) -> Check {
    within("noise.service_cv", system.noise.service_cv, &CV, "")?;
    within("noise.run_to_run_cv", system.noise.run_to_run_cv, &CV, "")?;
    system.drift.as_ref().map_or(Ok(()), check_drift)?;
    if let Some(bursts) = &system.bursts {
        within("bursts.mean_slow_s", bursts.mean_slow_s, &SECONDS, "seconds")?;
        within("bursts.mean_normal_s", bursts.mean_normal_s, &SECONDS, "seconds")?;
        within("bursts.slow_factor", bursts.slow_factor, &FACTOR, "")?;
    }
    Ok(())
}

/// A shape has its own fields, all of them, and no others.
fn check_drift(drift: &Drift) -> Check {
    let step = drift.shape == DriftShape::Step;
    let fields = [
        ("drift.rate_per_hour", drift.rate_per_hour, -0.9..=10_000.0, !step),
        ("drift.at_s", drift.at_s, 0.0..=1e7, step),
        ("drift.factor", drift.factor, 0.05..=20.0, step),
    ];
    for (field, value, range, wanted) in fields {
        match value {
            Some(value) if wanted => within(field, value, &range, "")?,
            None if wanted => return Err(refuse(format!("{field} is missing"))),
            Some(value) => {
                return Err(refuse(format!(
                    "{field} is {value}, it must be left out: the drift's shape has no use for it"
                )));
            }
            None => {}
        }
    }
    Ok(())
}

/// Check how far a survey may go.
pub(crate) fn check_survey(hints: &SurveyHints) -> Check {
    let bytes = |value: Option<u64>| value.map(|bytes| bytes as f64);
    let unique_bytes_max = bytes(hints.unique_bytes_max);
    maybe("survey.unique_bytes_max", unique_bytes_max, &BYTES, "bytes")?;
    maybe("survey.size_mean_max", bytes(hints.size_mean_max), &BYTES, "bytes")?;
    let processes = hints.process_num_max.map(f64::from);
    maybe("survey.process_num_max", processes, &(1.0..=1024.0), "")?;
    maybe("survey.measure_s_max", hints.measure_s_max, &SECONDS, "seconds")
}
