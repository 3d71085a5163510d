"""The workbench (SH08): experiments, trials, peak rates, surfaces, as immutable documents.

Names are SH08's (Table 2): a server is *saturated* when its mean response time exceeds `R_sat`, or
when fewer than a share `P_sat` of its responses are within `L_sat`; the *peak rate* is the highest
arrival rate that does not saturate it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec

from leadline.record.access import AccessKept
from leadline.record.finding import Finding
from leadline.record.study import Records, Status, StudyStart
from leadline.record.workload import Interval, Workload

Level = str | int | float
"""One setting of a factor."""


class Within(msgspec.Struct, frozen=True, kw_only=True):
    """A share of the responses that is to be within a time."""

    percentile: float
    """A fraction: 0.99."""
    limit_ms: float


LIMITS_MAX = 4
"""Most limits that one load's requests are counted over (crates/wire/src/event/load.rs)."""


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """When a server is saturated (SH08 §3.3): by the mean, a percentile, or any of several."""

    mean_ms: float | None = None
    """R_sat."""
    percentile: float | None = None
    """P_sat, a fraction: 0.95."""
    limit_ms: float | None = None
    """L_sat: that share of the responses is to be within it."""
    width_frac: float = 0.1
    """s: the peak-rate region is R_sat ± s R_sat."""
    also: tuple[Within, ...] = ()
    """Further shares that are to be within a time, each; only beside a first."""

    @property
    def shares(self) -> tuple[Within, ...]:
        """Every share that is to be within a time, in the order of `Batch.over_each`."""
        if self.percentile is None or self.limit_ms is None:
            return ()
        return (Within(percentile=self.percentile, limit_ms=self.limit_ms), *self.also)

    @property
    def also_limits_ms(self) -> tuple[float, ...]:
        """Limits beside the first."""
        return tuple(within.limit_ms for within in self.also)


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What a search for a peak rate is to reach.

    The run length is part of the question: short trials end before a queue has built up, and read
    the peak higher. The peak rate is that of trials of `run_length_s`.
    """

    threshold: Threshold
    accuracy: float = 0.9
    """a of SH08 eq. 2, as a claim about the *rate*: half its interval is at most (1 - a) of it."""
    confidence: float = 0.95
    run_length_s: float = 180.0
    """r: the trial that defines the peak (SH08 Fig. 6's sweet spot)."""
    rate_start_per_s: float = 50.0
    """First load of a search that knows nothing (SH08 Algorithm 3)."""
    rate_max_per_s: float | None = None
    """The generator offers no more."""
    deadline_s: float | None = None
    """Most that all trials of one peak may cost."""
    increment_per_s: float | None = None
    """By how much the policies that climb raise the load; None: as much as the first load."""
    trial_length_s: float | None = None
    """r of the policies that climb; None: each one's own (`policies.climb`)."""
    trials: int | None = None
    """t of the policies that climb; None: each one's own."""

    @property
    def error_frac(self) -> float:
        """1 - a: the largest half width of the rate's interval, as a fraction of the rate."""
        return round(1.0 - self.accuracy, 9)  # 0.1, not 0.09999999999999998


class Prior(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a peak before its first trial: a seed (SH08 §3.7), or a surface's word."""

    rate_per_s: float
    sd_log: float | None = None
    """Standard deviation of the logarithm of the peak about it; None when nobody can say."""


class TrialRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy asks next: one trial at one load."""

    rate_per_s: float
    seconds: float
    """Run length of the measured window, without warm-up."""
    abort_above_ms: float | None = None
    """Give up once the mean response time is above this, no sooner than 10 s into the window."""
    purpose: Literal["search", "probe", "confirm", "curve", "length"] = "search"


class ResponseMs(msgspec.Struct, frozen=True, kw_only=True):
    """Response times in milliseconds, from when requests were due."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p99_9: float
    max: float


class Batch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Requests due in one of the equal parts of a window."""

    due: int
    mean_ms: float
    """0 when none was due."""
    over: int
    """Slower than the threshold's `limit_ms`; 0 without one."""
    completed: int
    """Ended in it, whenever they were due."""
    also_over: tuple[int, ...] = ()
    """Slower than each of the threshold's further limits."""

    @property
    def over_each(self) -> tuple[int, ...]:
        """Slower than each limit, the first one's first."""
        return (self.over, *self.also_over)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a load generator found at one rate (crates/wire/src/event/load.rs).

    Every request due in the window counts. One without an answer when the generator stops waiting
    counts with its age then, so `response_ms` is then a lower bound.
    """

    seconds: float
    """Measured; shorter than asked when aborted."""
    warm_up_s: float
    due: int
    unanswered: int
    failed: int
    """Answered with an error; they count nowhere else."""
    completed_per_s: float
    response_ms: ResponseMs | None
    batches: tuple[Batch, ...]
    aborted: bool
    sent_late_ms_p99: float | None = None
    """How late the generator itself sent; None when it cannot be late."""

    @property
    def offered_per_s(self) -> float:
        """Rate that was really due."""
        return self.due / self.seconds if self.seconds > 0 else 0.0


class TrialState(StrEnum):
    """How a trial ended; nothing else can happen to one."""

    DONE = "done"
    ABORTED = "aborted"
    """Given up as saturated."""
    GENERATOR_LIMITED = "generator-limited"
    """The generator did not offer the rate: the answer says nothing of the server."""
    SERVER_LOST = "server-lost"
    """It died or stopped answering; it may be the load that killed it."""
    FAILED = "failed"
    """Neither server nor generator can be blamed: it says nothing. It may run again."""


StalledIn = Literal["engine", "processor", "target"]
"""Leadline itself did not run; others had the processors; neither, so the device or the server."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of one sample; immutable once it ended."""

    order: int
    """From 0, in the sample's peak search."""
    request: TrialRequest
    seed: int
    state: TrialState
    cost_s: float
    """Test time it took: set-up, warm-up, window, tear-down. Virtual on a simulated server."""
    measured: Measured | None
    """None when the trial found nothing."""
    failure: str | None = None
    """What, why, what to do; unless `done` or `aborted`."""
    worker: str | None = None
    """Machine of the pool."""
    can_offer_per_s: float | None = None
    """Of a generator that fell short: the rate it did; None when it does not know."""
    waited_frac: float | None = None
    """Part of the mean response in which all of the generator's slots were taken: the limit was
    how many requests it may have under way. None where that is not known."""
    started_at: str = ""
    """UTC, ISO 8601."""
    stalled_in: StalledIn | None = None
    """What a stall of this trial was in, by the whole window; None where that cannot be seen."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """All trials at one load together: a row of `leadline peak`'s table."""

    rate_per_s: float
    trials: int
    response_ms: Interval | None
    """Mean over trials; at the goal's confidence."""
    percentile_ms: Interval | None
    """The threshold's percentile, when it has one."""
    saturated: bool | None
    """None: cannot tell."""


class PeakVerdict(StrEnum):
    """Why a search for a peak rate ended."""

    FOUND = "found"
    """A stated interval is within the accuracy that was asked for."""
    DEADLINE = "deadline"
    """The accuracy was not reached in time; what was reached stands."""
    GAVE_UP = "gave-up"
    """The policy did not reach the accuracy and does not expect more trials to; what was reached
    stands."""
    NEVER_SATURATED = "never-saturated"
    """Not at the highest rate the generator may offer: the peak is at least that."""
    ALWAYS_SATURATED = "always-saturated"
    """At every load tried, however low: the peak is below them."""
    GENERATOR_LIMITED = "generator-limited"
    """The generator gave out before the server."""
    SERVER_LOST = "server-lost"
    """The server died under load: the peak is below that load, and cannot be told."""
    IRREGULAR = "irregular"
    """Trials contradict each other (two modes, a curve that falls): no one rate answers."""
    FAILED = "failed"
    """Trials failed again and again."""


class PeakRate(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one search."""

    policy: str
    verdict: PeakVerdict
    rate_per_s: Interval | None
    """At the goal's confidence; n is the trials it rests on. None when no number can be given."""
    accuracy: float | None
    """a reached: 1 - half the interval over the rate."""
    confidence: float
    cost_s: float
    trials: int
    loads: tuple[Load, ...]
    limited_by: Literal["server", "generator", "time", "unknown"]
    run_length_s: float
    lower_bound_per_s: float | None = None
    """Highest load seen unsaturated below every saturated one (RFC 9971: relevant lower bound)."""
    upper_bound_per_s: float | None = None
    """Lowest load seen saturated."""
    sentences: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    disturbed: tuple[int, ...] = ()
    """Places of the trials that one stall decided; they count for nothing."""


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """Something the workbench may vary (SH08 Table 1)."""

    name: str
    role: Literal["workload", "resource", "configuration"]
    """W, R or C."""
    levels: tuple[Level, ...]
    scale: Literal["linear", "log", "category"] = "log"
    """How a model is to see it."""


Sample = dict[str, Level]
"""One level for each factor, by its name."""


class SimulatedServer(msgspec.Struct, frozen=True, kw_only=True, tag="simulated", tag_field="kind"):
    """A server whose truth is known (crates/wire/src/job/trial.rs)."""

    system: dict[str, Any]
    """Fields of the simulated server, as the engine reads them; factors replace them by name."""
    wall_scale: float = 0.0
    """Seconds of real time for each of the trial: 0 answers at once, 0.01 keeps a pool busy."""
    dies_above_per_s: float | None = None
    """Under more load than this the server dies."""
    generator_max_per_s: float | None = None
    """The generator sends no more than this."""


class NfsServer(msgspec.Struct, frozen=True, kw_only=True, tag="nfs", tag_field="kind"):
    """nfs-ganesha on this machine, configured, started, loaded and stopped per trial."""

    directory: str
    """Where its data lies; Leadline owns `.leadline/` in it."""
    workload: str
    """Of SH08 Table 3: specsfs97, web_server, db_tp, mail."""
    data_bytes: int
    settings: dict[str, Level] = {}
    """Settings that are the same in all samples; factors add to them, by the same names."""
    warm_up_s: float = 5.0


class CommandServer(msgspec.Struct, frozen=True, kw_only=True, tag="command", tag_field="kind"):
    """Any server and any load generator, started by commands of the user's own experiment file."""

    load: tuple[str, ...]
    """The generator: given {rate}, {seconds}, {seed} and factors; prints one JSON document."""
    set_up: tuple[str, ...] = ()
    tear_down: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    """Once per sample, before its first trial."""
    time_out_s: float = 60.0
    """Beyond the run length; then the trial has failed."""
    environment: dict[str, str] = {}
    check: tuple[str, ...] = ()
    """Succeeds while the server lives: asked after a load that failed, to tell who died."""
    directory: str = ""
    """Where the commands run: the experiment file's own; empty: where Leadline runs."""


class StorageServer(AccessKept, frozen=True, kw_only=True, tag="storage", tag_field="kind"):
    """Storage under the engine's own open loop; factors are parameters of the workload."""

    target: str
    """As `leadline measure` takes it: a directory, nfs://…, sim:…."""
    workload: Workload
    cache_limit_bytes: int | None = None
    warm_up_s: float = 1.0
    max_bytes: int | None = None
    """Use no more than this of the target."""


ServerSpec = SimulatedServer | NfsServer | CommandServer | StorageServer


def is_simulated(server: ServerSpec) -> bool:
    """Whether its trials take no time of their own: what they cost is virtual."""
    if isinstance(server, StorageServer):
        return server.target.startswith("sim:")
    return isinstance(server, SimulatedServer)


class TrialOrder(msgspec.Struct, frozen=True, kw_only=True):
    """All that a machine of the pool must know to run one trial; it can be sent there."""

    server: ServerSpec
    sample: Sample
    threshold: Threshold
    request: TrialRequest
    order: int
    seed: int


class RunLengths(msgspec.Struct, frozen=True, kw_only=True):
    """A study of run lengths (SH08 Figs. 5, 6): loads at which trials of several lengths run."""

    seconds: tuple[float, ...]
    """Rising."""
    parts: tuple[float, ...] = (0.3, 0.9)
    """Of the peak: SH08's load factors."""
    trials: int = 10
    """Of each length at each load."""


class SurfaceCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the grid: what was measured, or what the model says."""

    sample: Sample
    rate_per_s: Interval | None
    measured: bool


class MeasuredGrid(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of another surface, measured cell by cell, that this one is held against."""

    study_id: str
    cells: tuple[SurfaceCell, ...]
    """Those with a rate."""


class ExperimentStart(StudyStart, frozen=True, kw_only=True):
    """What decides an experiment, before its first trial; `system` is its name."""

    server: ServerSpec
    goal: Goal
    policy: str
    factors: tuple[Factor, ...] = ()
    samples: tuple[Sample, ...] = ()
    """Of a peak search: the one configuration. Of a surface: the whole grid."""
    design: str | None = None
    """How a surface chooses its samples; None for a single peak."""
    surface_error_frac: float | None = None
    deadline_s: float | None = None
    """Of the whole experiment."""
    seed: int = 1
    started_at: str = ""
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    text: str = ""
    """The experiment file as it was read."""
    curve_points: int = 0
    """Trials of a single peak at even parts of it, once it is known."""
    run_lengths: RunLengths | None = None
    """Trials of several lengths at parts of a single peak, once it is known."""
    against: MeasuredGrid | None = None
    """Of a surface: what its error is said against."""

    @property
    def target(self) -> str:
        """The server, in words."""
        if isinstance(self.server, StorageServer):
            return self.server.target
        if isinstance(self.server, CommandServer):
            return f"a server loaded by {self.server.load[0]}"
        return "a simulated server" if isinstance(self.server, SimulatedServer) else "an NFS server"


class SampleBegun(msgspec.Struct, frozen=True, kw_only=True, tag="begun"):
    """First of a sample's items: the search for its peak began."""

    order: int = 0
    item_id: None = None
    sample: Sample
    prior: Prior | None
    """What was known before."""


class TrialEnded(msgspec.Struct, frozen=True, kw_only=True, tag="trial"):
    """A trial ended, whatever its state."""

    item_id: str
    trial: Trial

    @property
    def order(self) -> int:
        """Behind the beginning."""
        return self.trial.order + 1


class PeakKnown(msgspec.Struct, frozen=True, kw_only=True, tag="peak"):
    """Last of a sample's items: the answer of its search."""

    order: int
    item_id: None = None
    peak: PeakRate


class CurveEnded(msgspec.Struct, frozen=True, kw_only=True, tag="curve"):
    """A trial at an even part of the peak ended; these come after the answer."""

    order: int
    item_id: str
    trial: Trial


class LengthEnded(msgspec.Struct, frozen=True, kw_only=True, tag="length"):
    """A trial of a study of run lengths ended; these come last."""

    order: int
    item_id: str
    trial: Trial


class SamplePeak(msgspec.Struct, frozen=True, kw_only=True):
    """One sample of a surface, with its trials and, once it is known, its peak."""

    sample: Sample
    trials: tuple[Trial, ...]
    peak: PeakRate | None
    prior: Prior | None = None
    """What was known before its first trial: a replay needs it."""
    curve: tuple[Trial, ...] = ()
    """Trials at even parts of the peak, the lowest first."""
    lengths: tuple[Trial, ...] = ()
    """Trials of several lengths at parts of the peak, as they ran."""


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """The response surface (SH08 §4), with its model's own doubts."""

    model: str
    """quadratic-raw, quadratic-log, soft-min, gaussian-process."""
    cells: tuple[SurfaceCell, ...]
    error_frac: float | None
    """What the model expects of its own mean absolute error."""
    cost_s: float
    ideal: Sample | None
    """Least of everything (levels in the order of the file) that reaches the best rate, within
    what can be told apart."""
    flat: tuple[str, ...]
    """Factors that change nothing that can be told, and where: sentences."""


class Fare(msgspec.Struct, frozen=True, kw_only=True):
    """How one policy fares on the same server, as far as its trials tell."""

    policy: str
    verdict: PeakVerdict
    rate_per_s: float | None
    cost_s: float
    """Median over the repetitions."""
    cost_low_s: float
    cost_high_s: float
    trials: int
    repetitions: int


class ExperimentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of all samples together."""

    surface: Surface | None
    sentences: tuple[str, ...]
    findings: tuple[Finding, ...]
    wall_s: float
    fares: tuple[Fare, ...]
    fares_on: str


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as it is told: start, items and answer together."""

    version: int = 1
    start: ExperimentStart
    status: Status
    peaks: tuple[SamplePeak, ...] = ()
    surface: Surface | None = None
    sentences: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    wall_s: float = 0.0
    fares: tuple[Fare, ...] = ()
    """Policy comparison: simulated on a server fitted to the trials."""
    fares_on: str = ""
    """That server, in words; why there is none."""


EXPERIMENT = Records(
    "experiment",
    ExperimentStart,
    SampleBegun | TrialEnded | PeakKnown | CurveEnded | LengthEnded,
    ExperimentAnswer,
    said="experiment",
    made_by="leadline peak EXPERIMENT.toml",
)
