//! Random writes before the warm-up, until the device has reached its sustained rate.
//!
//! Flash that was idle, or that has a fast cache in front, takes the first writes faster than it
//! can go on taking them. The SNIA Solid State Storage Performance Test Specification (Enterprise,
//! 2.0.1, "steady state") writes in rounds and calls the device steady when over the last five
//! rounds the rates' range is within 20% of their mean, and the line fitted to them rises or falls
//! by no more than 10% of their mean. That rule is kept. Adapted is what is written: the job's own
//! file instead of twice the whole device, requests of the workload's mean size instead of a fixed
//! list, rounds of an eighth of twice the file instead of a minute (longer where that takes less
//! than [`ROUND_S_MIN`] and the bytes allow), and the bytes that may be written are bounded, because
//! they wear the device.

#![forbid(unsafe_code)]

use std::fs::File;
use std::os::unix::fs::FileExt;

use leadline_base::buffer::{BufferSlice, SLICE_BYTES_MAX};
use leadline_base::clock::{now_ns, ns_from_s, s_from_ns};
use leadline_base::error::EngineError;
use leadline_wire::event::measure::{Preconditioned, Round};
use leadline_wire::finding::{Code, Finding};
use leadline_wire::job::measure::MeasureJob;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::backend::data_file::DataFile;

/// Rounds that must agree.
pub const ROUNDS: usize = 5;

/// Rounds that fit into the bytes allowed, at least.
const ROUNDS_AFFORDED: u64 = 8;

/// Largest range of the rates of those rounds, as a share of their mean.
pub const RANGE_FRAC_MAX: f64 = 0.2;

/// Largest change along the line fitted to them, as a share of their mean.
pub const CHANGE_FRAC_MAX: f64 = 0.1;

/// A round lasts this long where the bytes allow, in seconds.
pub const ROUND_S_MIN: f64 = 0.2;

/// Smallest request and smallest step between places, in bytes: a page, so that a buffered write
/// never reads.
const PAGE_BYTES: u64 = 4096;

/// What is being written to, and its clock.
pub trait Writable {
    /// Nanoseconds on the clock of the deadline.
    fn now_ns(&self) -> u64;
    /// Writes one request at a random place.
    ///
    /// # Errors
    /// When the target refuses it.
    fn write(&mut self) -> Result<(), EngineError>;
    /// Waits until everything written is on the device.
    ///
    /// # Errors
    /// When the target cannot.
    fn settle(&mut self) -> Result<(), EngineError>;
}

/// How much is written, and how long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Bytes of one request.
    pub request_bytes: u64,
    /// Bytes of a round, at least.
    pub round_bytes: u64,
    /// Bytes of a round, at most.
    pub round_bytes_max: u64,
    /// Most bytes in all.
    pub bytes_max: u64,
    /// When the job's time is up.
    pub deadline_ns: u64,
}

impl Plan {
    /// Rounds of `request_bytes` requests over `unique_bytes` bytes, of which `bytes_max` bytes may
    /// be written.
    #[must_use]
    pub fn new(request_bytes: u64, unique_bytes: u64, bytes_max: u64, deadline_ns: u64) -> Self {
        let whole = |bytes: u64| (bytes / request_bytes).max(1) * request_bytes;
        let wanted = bytes_max.min(unique_bytes.saturating_mul(2));
        Self {
            request_bytes,
            round_bytes: whole(wanted / ROUNDS_AFFORDED),
            round_bytes_max: whole(bytes_max / ROUNDS_AFFORDED),
            bytes_max,
            deadline_ns,
        }
    }
}

/// Writes to the job's file until the rate has reached its plateau; none when the job asks for no
/// preconditioning. `granule_bytes` is the smallest transfer, `progress` gets the share of the
/// bytes allowed that is written.
///
/// # Errors
/// `Target` or `Io` when the file cannot be opened or written.
pub fn precondition(
    job: &MeasureJob,
    data: &DataFile,
    granule_bytes: u64,
    deadline_ns: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<Preconditioned>, EngineError> {
    let Some(asked) = job.precondition else { return Ok(None) };
    let mut file = RandomWrites::new(job, data, granule_bytes)?;
    let request_bytes = file.request_bytes;
    let plan = Plan::new(request_bytes, job.workload.unique_bytes, asked.bytes_max, deadline_ns);
    until_plateau(&mut file, &plan, progress).map(Some)
}

/// Writes in rounds until their rates have reached a plateau, the next round would pass the bytes
/// allowed, or time is up.
///
/// # Errors
/// Those of the target.
pub fn until_plateau(
    target: &mut impl Writable,
    plan: &Plan,
    progress: &mut dyn FnMut(f64),
) -> Result<Preconditioned, EngineError> {
    let began_ns = target.now_ns();
    let mut done = Preconditioned { bytes: 0, seconds: 0.0, plateau: false, rounds: Vec::new() };
    while !done.plateau
        && done.bytes + plan.round_bytes <= plan.bytes_max
        && target.now_ns() < plan.deadline_ns
    {
        let round = write_round(target, plan, plan.bytes_max - done.bytes)?;
        done.bytes += round.bytes;
        done.rounds.push(round);
        let rates: Vec<f64> = done.rounds.iter().map(|round| round.throughput_mb_s).collect();
        // A round cut short by the deadline may be too short to judge by.
        done.plateau = round.bytes >= plan.round_bytes && is_plateau(&rates);
        progress(done.bytes as f64 / plan.bytes_max as f64);
    }
    done.seconds = s_from_ns(target.now_ns() - began_ns);
    Ok(done)
}

fn write_round(
    target: &mut impl Writable,
    plan: &Plan,
    left_bytes: u64,
) -> Result<Round, EngineError> {
    let began_ns = target.now_ns();
    let most_bytes = plan.round_bytes_max.max(plan.round_bytes).min(left_bytes);
    let long_ns = began_ns.saturating_add(ns_from_s(ROUND_S_MIN));
    let mut bytes = 0;
    while bytes + plan.request_bytes <= most_bytes {
        let now_ns = target.now_ns();
        let full = bytes >= plan.round_bytes && now_ns >= long_ns;
        if full || now_ns >= plan.deadline_ns {
            break;
        }
        target.write()?;
        bytes += plan.request_bytes;
    }
    target.settle()?;
    let seconds = s_from_ns(target.now_ns() - began_ns).max(1e-9);
    Ok(Round { bytes, throughput_mb_s: bytes as f64 / seconds * 1e-6 })
}

/// Whether the last [`ROUNDS`] of these rates, in order, lie on a plateau.
#[must_use]
pub fn is_plateau(rates: &[f64]) -> bool {
    let Some(last) = rates.last_chunk::<ROUNDS>() else { return false };
    let number = ROUNDS as f64;
    let mean = last.iter().sum::<f64>() / number;
    let highest = last.iter().copied().fold(f64::MIN, f64::max);
    let lowest = last.iter().copied().fold(f64::MAX, f64::min);
    let middle = (number - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, rate) in last.iter().enumerate() {
        let place = index as f64 - middle;
        products += place * rate;
        squares += place * place;
    }
    let change = products / squares * (number - 1.0);
    mean > 0.0
        && highest - lowest <= RANGE_FRAC_MAX * mean
        && change.abs() <= CHANGE_FRAC_MAX * mean
}

/// What a reader is told when there was no plateau; `bytes_max` is what was allowed.
#[must_use]
pub fn no_plateau(done: &Preconditioned, bytes_max: u64) -> Option<Finding> {
    if done.plateau {
        return None;
    }
    let round_bytes = done.rounds.iter().map(|round| round.bytes).min().unwrap_or(bytes_max);
    let found = Finding::new(Code::NoPlateau).with("written_bytes", done.bytes);
    Some(if done.bytes + round_bytes > bytes_max {
        found.with("more_bytes", bytes_max.saturating_mul(2))
    } else {
        found
    })
}

/// Requests of one size at random places of the data file.
struct RandomWrites {
    file: File,
    direct: bool,
    buffer: BufferSlice,
    request_bytes: u64,
    step_bytes: u64,
    places: u64,
    random: Xoshiro256PlusPlus,
}

impl RandomWrites {
    fn new(job: &MeasureJob, data: &DataFile, granule_bytes: u64) -> Result<Self, EngineError> {
        let step_bytes = granule_bytes.max(PAGE_BYTES);
        // The file is laid out in whole pages.
        let span = (job.workload.unique_bytes / step_bytes).max(1) * step_bytes;
        let most = span.min(SLICE_BYTES_MAX as u64) / step_bytes * step_bytes;
        let request_bytes = job.workload.size_mean.next_multiple_of(step_bytes).min(most);
        let Some(buffer) = data.buffers(1, request_bytes, job.seed)?.pop() else {
            return Err(EngineError::fault("no buffer to precondition with"));
        };
        Ok(Self {
            file: data.reopen(job.backend.direct, false)?,
            direct: job.backend.direct,
            buffer,
            request_bytes,
            step_bytes,
            places: (span - request_bytes) / step_bytes + 1,
            random: Xoshiro256PlusPlus::seed_from_u64(job.seed),
        })
    }

    fn failed(error: &std::io::Error) -> EngineError {
        EngineError::io(format!(
            "preconditioning could not write the data file: {error}; look at the kernel log for \
            the device"
        ))
    }
}

impl Writable for RandomWrites {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn write(&mut self) -> Result<(), EngineError> {
        let at = self.random.next_u64() % self.places * self.step_bytes;
        let length = self.request_bytes as usize;
        self.buffer.renew(length);
        let bytes = &self.buffer.as_mut_slice()[..length];
        self.file.write_all_at(bytes, at).map_err(|error| Self::failed(&error))
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        if self.direct {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| Self::failed(&error))
    }
}
