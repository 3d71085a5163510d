//! From counts to the result: rates, shares, Little's law, and what to warn of.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_base::histogram::Histogram;
use leadline_base::host::HostUse;
use leadline_wire::WIRE_VERSION;
use leadline_wire::event::load::LoadResult;
use leadline_wire::event::measure::{
    ClockSource, Generator, LatencyUs, Level, MeasureResult, MovedBytes, Network, Offered, Placed,
    Preconditioned, Realised, SLICES_MAX, SimulatedFacts, SpansUs, Stall, StreamCount, WarmUp,
    WrittenBytes,
};
use leadline_wire::finding::{Code, Finding};
use leadline_wire::job::measure::MeasureJob;

use crate::backend::asynchronous::Instead;
use crate::evidence::levels::{levels, shifted};
use crate::evidence::modes::modes;
use crate::evidence::provenance::{self, DataPlace, Verdict};
use crate::evidence::stalls::{running, stalled, stalls};
use crate::run::controller::Controller;
use crate::run::offered::missed_rate;
use crate::run::recorder::{Lost, StreamTally, Tally};
use crate::run::slices::{coalesce, joined};
use crate::run::stop::rate;
use crate::run::summary::{interval, latency_us, operations as operations_of};
use crate::target::precondition::no_plateau;

/// Largest breach of Little's law of a valid run (METHODS §1).
pub const LITTLE_ERROR_MAX: f64 = 0.05;

/// Everything one run left behind.
#[derive(Debug)]
pub struct Finished<'a> {
    /// The job.
    pub job: &'a MeasureJob,
    /// Counts of all workers over the window.
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
    /// What was found on the way.
    pub findings: Vec<Finding>,
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
    /// Where the data file lies; none without one.
    pub place: Option<DataPlace>,
    /// What requests were queued by where there is no `io_uring`.
    pub instead: Option<Instead>,
    /// What preconditioning did.
    pub precondition: Option<Preconditioned>,
    /// Bytes written before the workload, by purpose.
    pub written_bytes: WrittenBytes,
    /// What went over the network; none without one.
    pub network: Option<Network>,
    /// Where the workers ran.
    pub placement: Option<Placed>,
    /// The clock response times were read from.
    pub clock: ClockSource,
    /// Whether the window was ended because the load was hopeless.
    pub given_up: bool,
}

impl Evidence {
    /// Nothing gathered but the clock's name.
    #[must_use]
    pub fn none(clock: ClockSource) -> Self {
        Self {
            due_spans: None,
            offered: None,
            place: None,
            instead: None,
            precondition: None,
            written_bytes: WrittenBytes::default(),
            network: None,
            placement: None,
            clock,
            given_up: false,
        }
    }
}

/// The result of a finished run.
///
/// # Errors
/// `NothingCompleted` when nothing completed within the window.
pub fn assemble(mut run: Finished) -> Result<MeasureResult, EngineError> {
    let tally = run.tally;
    let operations = tally.operations();
    require_any(&run)?;
    let throughput = rate(run.controller.window(), |slice| slice.bytes);
    let iops = rate(run.controller.window(), |slice| slice.operations);
    let workload = &run.job.workload;
    let outstanding = f64::from(workload.process_num) * f64::from(workload.queue_depth);
    let issuers_s = run.wall_s * outstanding;
    let little_error = little(&run, issuers_s);
    let Verdict { cached_share, provenance, disbelieved } = judge(&run);
    let invalid = invalid(&run, little_error, disbelieved);
    let written_bytes = written(&run);
    told(&mut run, throughput.half_width_frac());
    let mut all = Histogram::default();
    all.merge(&tally.read.latency);
    all.merge(&tally.write.latency);
    // With the requests still waiting at the end, which the two kinds' own histograms lack.
    let felt = tally.open.as_ref().map_or(&all, |open| &open.due_to_completed);
    let (levels, stalls) = disturbances(&mut run, all.quantile_ns(0.5) * 1e-9);
    let load = load(&run);
    let device_bytes = run.host.device.map(|(read, write)| MovedBytes { read, write });
    Ok(MeasureResult {
        version: WIRE_VERSION,
        job_id: run.job.job_id.clone(),
        throughput_mb_s: interval(tally.bytes() as f64 / run.wall_s, &throughput, 1e-6),
        iops: interval(operations as f64 / run.wall_s, &iops, 1.0),
        latency_us: latency_us(felt),
        read: operations_of(tally.read.bytes, &tally.read.latency),
        write: operations_of(tally.write.bytes, &tally.write.latency),
        syncs: (tally.sync.latency.count() > 0).then(|| operations_of(0, &tally.sync.latency)),
        wall_s: run.wall_s,
        total_s: run.total_s,
        prepare_s: run.prepare_s,
        cpu_user: run.host.cpu.user_s / run.wall_s,
        cpu_system: run.host.cpu.system_s / run.wall_s,
        io_share: (tally.waiting_ns() * 1e-9 / issuers_s).clamp(0.0, 1.0),
        littles_law_error_frac: little_error,
        workload_bytes: MovedBytes { read: tally.read.bytes, write: tally.write.bytes },
        device_bytes,
        cached_share,
        cache_resident_bytes: run.host.cache_resident_bytes,
        foreign_cpu: run.host.foreign_s.map(|seconds| seconds / run.wall_s),
        realised: realised(tally),
        warm_up: WarmUp {
            seconds: run.controller.warm_up_s(),
            steady: run.controller.steady(),
            intervals: coalesce(run.controller.warm_up(), SLICES_MAX),
        },
        intervals: coalesce(run.controller.window(), SLICES_MAX),
        admissible: invalid.is_empty(),
        findings: invalid.into_iter().chain(run.findings).collect(),
        simulated: run.simulated,
        spans_us: spans(tally, &all, run.evidence.due_spans),
        offered: run.evidence.offered,
        provenance,
        levels,
        stalls,
        precondition: run.evidence.precondition,
        written_bytes,
        other_load: run.host.other_load,
        placement: run.evidence.placement,
        generator: generator(run.job, operations as f64 / run.wall_s),
        network: run.evidence.network,
        streams: tally.streams.iter().map(stream_count).collect(),
        clock: run.evidence.clock,
        load,
    })
}

/// What a trial of the workbench keeps; no virtual generator is late.
fn load(run: &Finished) -> Option<LoadResult> {
    let seen = run.tally.open.as_ref()?.load.as_ref()?;
    let warm_up_s = run.controller.warm_up_s();
    let load = seen.result(warm_up_s, run.wall_s, run.evidence.given_up);
    let real = run.evidence.clock != ClockSource::Virtual;
    Some(LoadResult { sent_late_ms_p99: load.sent_late_ms_p99.filter(|_| real), ..load })
}

/// A window in which nothing completed is no measurement, unless the server went away: that is one.
fn require_any(run: &Finished) -> Result<(), EngineError> {
    if run.tally.lost.is_some() || (run.tally.operations() > 0 && run.wall_s > 0.0) {
        return Ok(());
    }
    Err(EngineError::nothing_completed(format!(
        "no request completed in the measured window of {:.3} s; give it more time, or ask \
        for smaller requests",
        run.wall_s
    )))
}

fn spans(tally: &Tally, all: &Histogram, due: Option<(LatencyUs, LatencyUs)>) -> SpansUs {
    let sent = tally.open.as_ref().map_or(all, |open| &open.submitted_to_completed);
    SpansUs {
        due_to_submitted: due.map(|spans| spans.0),
        submitted_to_completed: latency_us(sent),
        due_to_completed: due.map(|spans| spans.1),
    }
}

/// Little's law over the window: the workers' time must be accounted for by response times, think
/// time, the wait for the next request to be due and Leadline's own work. What is left over, as a
/// share of `process_num · queue_depth · wall`.
///
/// Response times are summed within the window (a request that straddles an edge counts with its
/// part inside). Own work counts as measured, but no more than `own_allowance_s` per request, so
/// that a worker kept from running by anything else is not excused. In an open loop own work is
/// lateness, which is measured and judged by itself (due → submitted), so all of it counts.
fn little(run: &Finished, issuers_s: f64) -> f64 {
    let tally = run.tally;
    let allowance_s = match tally.open {
        Some(_) => f64::INFINITY,
        None => run.own_allowance_s * tally.operations() as f64,
    };
    let own_s = (tally.own_ns as f64 * 1e-9).min(allowance_s);
    let unasked_ns = tally.think_ns as f64 + tally.idle_ns() as f64;
    let accounted_s = (tally.waiting_ns() + unasked_ns) * 1e-9 + own_s;
    (accounted_s / issuers_s - 1.0).abs()
}

/// Why a run whose server went away is none.
fn lost_server(lost: &Lost, run: &Finished) -> Finding {
    let found = Finding::new(Code::ServerLost)
        .with("why", lost.why.clone())
        .with("lost_requests", lost.requests);
    if run.controller.window().is_empty() { found } else { found.with("window_s", run.wall_s) }
}

/// Everything that keeps the run from being believed.
fn invalid(run: &Finished, little_error_frac: f64, disbelieved: Option<Finding>) -> Vec<Finding> {
    let broken = (little_error_frac > LITTLE_ERROR_MAX)
        .then(|| Finding::new(Code::LittlesLaw).with("error_frac", little_error_frac));
    let lost = run.tally.lost.as_ref().map(|lost| lost_server(lost, run));
    let missed = run.evidence.offered.and_then(|offered| missed_rate(&offered, run.wall_s));
    lost.or(broken).into_iter().chain(disbelieved).chain(missed).collect()
}

/// What a reader of a run that can be believed must know.
fn told(run: &mut Finished, half_width_frac: Option<f64>) {
    if run.tally.lost.is_some() {
        return; // that says all there is to say
    }
    let limits = &run.job.limits;
    if let Some(most) = limits.operations_max {
        if !run.controller.counted_out() {
            let found = Finding::new(Code::TimeCap)
                .with("requests", run.controller.window_operations())
                .with("requests_max", most);
            run.findings.push(found);
        }
    } else if run.controller.steady() == Some(false) {
        let found = Finding::new(Code::NotSteady).with("warm_up_s_max", limits.warm_up_s_max);
        run.findings.push(found);
    }
    let asked = run.job.precondition.zip(run.evidence.precondition.as_ref());
    run.findings.extend(asked.and_then(|(asked, done)| no_plateau(done, asked.bytes_max)));
    match half_width_frac {
        Some(share) if share <= limits.accuracy || limits.accuracy == 0.0 => {}
        Some(share) => run.findings.push(
            Finding::new(Code::TimeCap)
                .with("half_width_frac", share)
                .with("accuracy_frac", limits.accuracy)
                .with("wall_s", run.wall_s),
        ),
        None if run.job.replay.is_some() => {}
        None => run.findings.push(Finding::new(Code::NoInterval)),
    }
    if let Some(generator) = generator(run.job, run.tally.operations() as f64 / run.wall_s)
        && generator.bound
    {
        let found = Finding::new(Code::GeneratorBound).with("ceiling_iops", generator.ceiling_iops);
        run.findings.push(found);
    }
    if let Some(Instead { name, why }) = run.evidence.instead.take() {
        let found = Finding::new(Code::NoIoUring).with("instead", name.to_owned()).with("why", why);
        run.findings.push(found);
    }
    if run.job.workload.size_mean > run.job.workload.unique_bytes {
        run.findings.push(Finding::new(Code::SizeAboveData));
    }
}

/// Share of the generator's ceiling from which a run says more of it than of the target.
const GENERATOR_BOUND_FRAC: f64 = 0.8;

fn generator(job: &MeasureJob, iops: f64) -> Option<Generator> {
    let ceiling_iops = job.ceiling_iops?;
    Some(Generator { ceiling_iops, bound: iops >= GENERATOR_BOUND_FRAC * ceiling_iops })
}

/// Where the bytes of the window came from.
fn judge(run: &Finished) -> Verdict {
    provenance::judge(&provenance::Window {
        place: run.evidence.place.as_ref(),
        host: &run.host,
        found: &run.tally.found,
        read_bytes: run.tally.read.bytes,
        sequential_share: run.tally.sequential as f64 / run.tally.operations().max(1) as f64,
    })
}

/// Bytes written to the data file, by purpose; during warm-up the workload is taken to have written
/// the same share of its bytes as in the window.
fn written(run: &Finished) -> WrittenBytes {
    let tally = run.tally;
    let warm_up = joined(run.controller.warm_up()).map_or(0, |slice| slice.bytes);
    let share = tally.write.bytes as f64 / tally.bytes().max(1) as f64;
    let workload = tally.write.bytes + (warm_up as f64 * share).round() as u64;
    let reached = run.evidence.place.is_some();
    WrittenBytes { workload: if reached { workload } else { 0 }, ..run.evidence.written_bytes }
}

/// What the mean over the window hides, each with what is said of it. `response_s` is the usual response
/// time.
/// A replay has the rates and the pauses of its trace.
fn disturbances(run: &mut Finished, response_s: f64) -> (Vec<Level>, Vec<Stall>) {
    if run.job.replay.is_some() {
        return (Vec::new(), Vec::new());
    }
    let window = run.controller.window();
    let stalls = stalls(window, response_s + run.job.workload.think_time_s);
    let levels = levels(&running(window, &stalls));
    let by_turns = modes(window).map(|found| found.finding());
    run.findings.extend(stalls.iter().map(stalled));
    run.findings.extend(by_turns.or_else(|| shifted(&levels)));
    (levels, stalls)
}

fn stream_count(stream: &StreamTally) -> StreamCount {
    StreamCount {
        operations: stream.requests,
        reads: stream.reads,
        bytes: stream.bytes,
        response_s: stream.response_ns as f64 * 1e-9,
        rounds: stream.rounds,
    }
}

fn realised(tally: &Tally) -> Realised {
    if tally.operations() == 0 {
        return Realised { size_mean: 0.0, size_cv: 0.0, read_frac: 0.0, seq_frac: 0.0 };
    }
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
