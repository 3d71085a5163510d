//! From counts to the result: rates, shares, Little's law, and what to warn of.

use crate::controller::Controller;
use crate::error::EngineError;
use crate::histogram::Histogram;
use crate::host::HostUse;
use crate::job::{Job, WIRE_VERSION};
use crate::levels::{levels, shift_warning};
use crate::precondition::plateau_warning;
use crate::recorder::{Tally, coalesce};
use crate::result::{
    ClockSource, EngineResult, Interval, LatencyUs, Level, MovedBytes, Offered, OperationSummary,
    OtherLoad, Placed, Preconditioned, Provenance, Realised, SLICES_MAX, SimulatedFacts, SpansUs,
    Stall, WarmUp, WrittenBytes,
};
use crate::stalls::{running, stall_warning, stalls};
use crate::stop::rate;

/// Largest breach of Little's law of an admissible run (METHODS §1).
pub const LITTLE_ERROR_MAX: f64 = 0.05;

/// Everything one run left behind.
#[derive(Debug)]
pub struct Finished<'a> {
    /// The job.
    pub job: &'a Job,
    /// Counts of all issuers over the window.
    pub tally: &'a Tally,
    /// The slices and the decisions.
    pub controller: &'a Controller,
    /// Length of the window in seconds.
    pub wall_s: f64,
    /// Length of the job so far in seconds.
    pub total_s: f64,
    /// Length of its preparation in seconds.
    pub prepare_s: f64,
    /// What the machine did meanwhile.
    pub host: HostUse,
    /// Leadline's own seconds per request that Little's law allows for; see [`little`].
    pub own_allowance_s: f64,
    /// What the simulated system knows.
    pub simulated: Option<SimulatedFacts>,
    /// Warnings collected on the way.
    pub warnings: Vec<String>,
    /// What else was gathered on the way.
    pub evidence: Evidence,
}

/// What a run gathered beside its counts; a part that was not gathered stays empty.
#[derive(Debug)]
pub struct Evidence {
    /// Spans of an open loop: due to submitted, and due to completed.
    pub due_spans: Option<(LatencyUs, LatencyUs)>,
    /// What an open loop offered.
    pub offered: Option<Offered>,
    /// Where the bytes came from.
    pub provenance: Provenance,
    /// What preconditioning did.
    pub precondition: Option<Preconditioned>,
    /// Bytes written by the job, by purpose.
    pub written_bytes: WrittenBytes,
    /// What else the machine did.
    pub other_load: OtherLoad,
    /// Where the issuers ran.
    pub placement: Option<Placed>,
    /// The clock response times were read from.
    pub clock: ClockSource,
}

impl Evidence {
    /// Nothing gathered but the clock's name.
    #[must_use]
    pub fn none(clock: ClockSource) -> Self {
        Self {
            due_spans: None,
            offered: None,
            provenance: Provenance::default(),
            precondition: None,
            written_bytes: WrittenBytes::default(),
            other_load: OtherLoad::default(),
            placement: None,
            clock,
        }
    }
}

/// The result of a finished run.
///
/// # Errors
/// `Io` when nothing completed within the window.
pub fn assemble(mut run: Finished) -> Result<EngineResult, EngineError> {
    let tally = run.tally;
    let operations = tally.operations();
    if operations == 0 || run.wall_s <= 0.0 {
        return Err(EngineError::io(format!(
            "no request completed in the measured window of {:.3} s; raise measure_s_max or ask \
            for smaller requests",
            run.wall_s
        )));
    }
    let throughput = rate(run.controller.window(), |slice| slice.bytes);
    let iops = rate(run.controller.window(), |slice| slice.operations);
    let workload = &run.job.workload;
    let outstanding = f64::from(workload.process_num) * f64::from(workload.queue_depth);
    let issuers_s = run.wall_s * outstanding;
    let little_error = little(&run, issuers_s);
    let reasons = reasons(little_error);
    warn(&mut run, throughput.half_width_frac());
    let mut all = Histogram::default();
    all.merge(&tally.read.latency);
    all.merge(&tally.write.latency);
    let (levels, stalls) = disturbances(&mut run, all.quantile_ns(0.5) * 1e-9);
    let device_bytes = run.host.device.map(|(read, write)| MovedBytes { read, write });
    Ok(EngineResult {
        version: WIRE_VERSION,
        job_id: run.job.job_id.clone(),
        throughput_mb_s: Interval::new(tally.bytes() as f64 / run.wall_s, &throughput, 1e-6),
        iops: Interval::new(operations as f64 / run.wall_s, &iops, 1.0),
        latency_us: LatencyUs::of(&all),
        read: OperationSummary::of(&tally.read),
        write: OperationSummary::of(&tally.write),
        wall_s: run.wall_s,
        total_s: run.total_s,
        prepare_s: run.prepare_s,
        cpu_user: run.host.cpu.user_s / run.wall_s,
        cpu_system: run.host.cpu.system_s / run.wall_s,
        io_share: (tally.waiting_ns() * 1e-9 / issuers_s).clamp(0.0, 1.0),
        littles_law_error_frac: little_error,
        workload_bytes: MovedBytes { read: tally.read.bytes, write: tally.write.bytes },
        device_bytes,
        cached_share: cached_share(tally.read.bytes, device_bytes),
        cache_resident_bytes: run.host.cache_resident_bytes,
        foreign_cpu: run.host.foreign_s.map(|seconds| seconds / run.wall_s),
        realised: realised(tally),
        warm_up: WarmUp {
            seconds: run.controller.warm_up_s(),
            steady: run.controller.steady(),
            intervals: coalesce(run.controller.warm_up(), SLICES_MAX),
        },
        intervals: coalesce(run.controller.window(), SLICES_MAX),
        admissible: reasons.is_empty(),
        reasons,
        warnings: run.warnings,
        simulated: run.simulated,
        spans_us: SpansUs {
            due_to_submitted: run.evidence.due_spans.map(|spans| spans.0),
            submitted_to_completed: LatencyUs::of(&all),
            due_to_completed: run.evidence.due_spans.map(|spans| spans.1),
        },
        offered: run.evidence.offered,
        provenance: run.evidence.provenance,
        levels,
        stalls,
        precondition: run.evidence.precondition,
        written_bytes: run.evidence.written_bytes,
        other_load: run.evidence.other_load,
        placement: run.evidence.placement,
        generator: None,
        clock: run.evidence.clock,
    })
}

/// Little's law over the window: the issuers' time must be accounted for by response times, think
/// time and Leadline's own work. What is left over, as a share of `process_num · queue_depth ·
/// wall`.
///
/// Response times are summed within the window (a request that straddles an edge counts with its
/// part inside). Own work counts as measured, but no more than `own_allowance_s` per request, so
/// that an issuer kept from running by anything else is not excused.
fn little(run: &Finished, issuers_s: f64) -> f64 {
    let tally = run.tally;
    let own_s = (tally.own_ns as f64 * 1e-9).min(run.own_allowance_s * tally.operations() as f64);
    let accounted_s = tally.waiting_ns() * 1e-9 + tally.think_ns as f64 * 1e-9 + own_s;
    (accounted_s / issuers_s - 1.0).abs()
}

fn reasons(little_error: f64) -> Vec<String> {
    if little_error <= LITTLE_ERROR_MAX {
        return Vec::new();
    }
    vec![format!(
        "Little's law is broken by {:.1} % (5 % allowed): the issuers spent time neither in \
        requests nor thinking, as when other programs take the processors",
        little_error * 100.0
    )]
}

fn warn(run: &mut Finished, half_width_frac: Option<f64>) {
    let limits = &run.job.limits;
    if !run.controller.steady() {
        run.warnings.push(format!(
            "the rate was not steady within the {:.3} s of warm-up allowed \
            (limits.warm_up_s_max); the window may hold a transient",
            limits.warm_up_s_max
        ));
    }
    let asked = run.job.precondition.zip(run.evidence.precondition.as_ref());
    let warning = asked.and_then(|(asked, done)| plateau_warning(done, asked.bytes_max));
    run.warnings.extend(warning);
    match half_width_frac {
        Some(share) if share <= limits.accuracy => {}
        Some(share) => run.warnings.push(format!(
            "time cap reached before the asked accuracy: ±{:.1} % instead of ±{:.1} % after \
            {:.3} s",
            share * 100.0,
            limits.accuracy * 100.0,
            run.wall_s
        )),
        None => run.warnings.push("the window was too short for an interval".to_owned()),
    }
    if run.job.workload.size_mean > run.job.workload.unique_bytes {
        run.warnings.push(
            "size_mean is above unique_bytes: every request is as long as unique_bytes".to_owned(),
        );
    }
}

/// What the mean over the window hides, each with its warning. `response_s` is the usual response
/// time.
fn disturbances(run: &mut Finished, response_s: f64) -> (Vec<Level>, Vec<Stall>) {
    let window = run.controller.window();
    let stalls = stalls(window, response_s + run.job.workload.think_time_s);
    let levels = levels(&running(window, &stalls));
    run.warnings.extend(stalls.iter().map(stall_warning));
    run.warnings.extend(shift_warning(&levels));
    (levels, stalls)
}

/// Share of the bytes read that did not come from the device; none without reads or counters.
fn cached_share(read: u64, device: Option<MovedBytes>) -> Option<f64> {
    let device = device?;
    (read > 0).then(|| (1.0 - device.read as f64 / read as f64).clamp(0.0, 1.0))
}

fn realised(tally: &Tally) -> Realised {
    let number = tally.operations() as f64;
    let mean = tally.bytes() as f64 / number;
    let variance = (tally.length_squares / number - mean * mean).max(0.0);
    Realised {
        size_mean: mean,
        size_cv: variance.sqrt() / mean,
        read_frac: tally.read.latency.count() as f64 / number,
        seq_frac: tally.sequential as f64 / number,
    }
}
