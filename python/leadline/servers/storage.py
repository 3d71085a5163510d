"""Storage as a server: a trial is a run of the engine's own open loop on a target.

Factors are parameters of the workload. A target stays open from one trial to the next within
`hold_storage`: it is claimed once and its data is laid out once, and when the block ends nothing of
it is left. Outside of one, as on another machine of a pool, each trial opens its own.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from leadline.engine import (
    Engine,
    EngineFault,
    Limits,
    PointFailed,
    ServerLost,
    Target,
    TargetRefused,
    bounded,
    fitting,
    open_engine,
    require_fit,
)
from leadline.errors import WorkloadError
from leadline.record import Access, Arrivals, EngineResult, Workload
from leadline.record.finding import Severity
from leadline.record.job import RATE_MAX_PER_S, LoadAsked
from leadline.record.workbench import (
    Measured,
    Sample,
    StalledIn,
    StorageServer,
    Trial,
    TrialOrder,
    TrialState,
    is_simulated,
)
from leadline.record.workload import QUANTITIES
from leadline.servers.verdict import Outcome, state_of

_SHORT_FRAC = 0.03
"""Of the requests due: a run that leaves more undone missed its rate, as the engine says it."""
_OTHERS_CPU = 0.25
"""Processors that others must have for it to be said."""
_LATE_PART = 0.1
"""Of the response, at their 99th percentiles: a generator later than this had a part in it."""


class _Ran(msgspec.Struct, frozen=True):
    """What a run of the engine came to."""

    outcome: Outcome
    waited_frac: float | None = None
    prepare_s: float = 0.0
    """Went into laying data out."""
    stalled_in: StalledIn | None = None


class _Held:
    """Targets that stay open until the block ends, each for one way to it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._engines: dict[bytes, Engine] = {}

    def __enter__(self) -> _Held:
        return self

    def __exit__(self, *raised: object) -> None:
        self._engines.clear()
        self._stack.close()

    def engine(self, server: StorageServer) -> Engine:
        """Return the open target; it is opened when there is none."""
        way = msgspec.json.encode(msgspec.structs.replace(server, workload=_PLAIN, warm_up_s=0.0))
        if way not in self._engines:
            self._engines[way] = self._stack.enter_context(_opened(server))
        return self._engines[way]


_PLAIN = Workload(unique_bytes=4096, size_mean=4096)
_HELD: ContextVar[_Held | None] = ContextVar("held", default=None)


@contextmanager
def hold_storage() -> Iterator[None]:
    """Keep the targets of trials in this thread open from one to the next, until the block ends."""
    with _Held() as held:
        token = _HELD.set(held)
        try:
            yield
        finally:
            _HELD.reset(token)


def run_storage_trial(order: TrialOrder, server: StorageServer) -> Trial:
    """Run one trial: requests due at random (Poisson), at the rate asked, for the time asked.

    Test time is the warm-up, the window and what the engine needs around them; laying out data,
    which one trial does for all, is left out.

    Raises:
        TargetRefused: the target cannot be used, or the workload makes no sense or does not fit.
        CacheLimitRefused: memory cannot be capped as asked.

    """
    workload = workload_of(server, order.sample)
    if order.request.rate_per_s > RATE_MAX_PER_S:
        return _trial(order, _Ran(Outcome(TrialState.GENERATOR_LIMITED, _TOO_FAST)), 0.0)
    if is_simulated(server):
        # In virtual time, from the same beginning for every trial: its noise is the trial's own.
        with _opened(server, order.seed) as engine:
            began_s = engine.clock_s
            ran = _conduct(engine, order, server, workload)
            return _trial(order, ran, engine.clock_s - began_s)
    held = _HELD.get()
    with ExitStack() as stack:
        engine = (stack.enter_context(_Held()) if held is None else held).engine(server)
        began_s = time.monotonic()
        ran = _conduct(engine, order, server, workload)
        return _trial(order, ran, time.monotonic() - began_s)


_TOO_FAST = f"no generator of this machine offers more than {RATE_MAX_PER_S:g} requests/s"


def workload_of(server: StorageServer, sample: Sample) -> Workload:
    """Return the workload of a sample: the factors' levels over the experiment's own.

    Raises:
        TargetRefused: one is no parameter of a workload, or out of its range.

    """
    for name in sample:
        if name not in QUANTITIES:
            close = difflib.get_close_matches(name, QUANTITIES, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(QUANTITIES)}"
            raise TargetRefused(f"a workload has no parameter {name!r}; {hint}")
    try:
        workload = msgspec.structs.replace(server.workload, **sample)
    except (WorkloadError, TypeError) as error:
        raise TargetRefused(f"the workload: {error}") from error
    if workload.think_time_s > 0:
        raise TargetRefused(
            "the workload has a think time, but its requests are due by a clock, whatever was done "
            "before: leave think_time out"
        )
    return workload


def check_storage(server: StorageServer, sample: Sample) -> None:
    """Look whether a trial could be run; nothing is opened or written.

    Raises:
        TargetRefused: it could not; the message says why.
        CacheLimitRefused: memory cannot be capped as asked.

    """
    target = Target.parse(server.target)
    if not target.has_device:
        raise TargetRefused("null: has no latency to keep: it measures Leadline itself")
    access = fitting(target, Access.kept_by(server), "leadline")
    require_fit(workload_of(server, sample), capacity_bytes=_NO_BOUND_BYTES, backend=access.backend)


_NO_BOUND_BYTES = 2**62
"""How much fits is asked when the target is open."""


@contextmanager
def _opened(server: StorageServer, run_seed: int = 0) -> Iterator[Engine]:
    target = Target.parse(server.target)
    with open_engine(
        target, Access.kept_by(server), max_bytes=server.max_bytes, run_seed=run_seed
    ) as engine:
        engine.prepare()
        yield engine


def _conduct(engine: Engine, order: TrialOrder, server: StorageServer, workload: Workload) -> _Ran:
    request = order.request
    limits = Limits(
        warm_up_s_max=server.warm_up_s,
        warm_up_s_min=server.warm_up_s,
        measure_s_min=request.seconds,
        measure_s_max=request.seconds,
        accuracy=0.0,
    )
    load = LoadAsked(
        limits_ms=tuple(within.limit_ms for within in order.threshold.shares),
        abort_above_ms=request.abort_above_ms,
    )
    try:
        result = engine.run(
            workload,
            seed=order.seed,
            limits=bounded(limits, layout_bytes=workload.unique_bytes),
            arrivals=Arrivals("poisson", request.rate_per_s),
            load=load,
        )
    except ServerLost as error:
        return _Ran(Outcome(TrialState.SERVER_LOST, str(error)))
    except (EngineFault, PointFailed) as error:
        return _Ran(Outcome(TrialState.FAILED, f"the engine's run failed: {error}"))
    return _Ran(_judge(order, result), _waited_frac(result), result.prepare_s, _stalled_in(result))


def _judge(order: TrialOrder, result: EngineResult) -> Outcome:
    if result.load is UNSET:
        raise EngineFault("the engine did not tell the parts of the window")
    measured = result.load
    if result.server_lost:
        return Outcome(TrialState.SERVER_LOST, "; ".join(result.reasons), measured)
    short = _generator_short(result)
    if short is not None:
        return Outcome(TrialState.GENERATOR_LIMITED, short, measured)
    invalid = [found for found in result.findings if found.severity is Severity.INVALID]
    disbelieved = [str(found) for found in invalid if found.code != "missed_rate"]
    if disbelieved:
        return Outcome(TrialState.FAILED, "; ".join(disbelieved), measured)
    state, failure = state_of(measured, order.request, order.threshold)
    if state is not TrialState.GENERATOR_LIMITED:
        return Outcome(state, failure, measured)
    if _late_for_nothing(measured):
        return Outcome(TrialState.ABORTED if measured.aborted else TrialState.DONE, None, measured)
    others = _others(result)
    # Who was late because others had the processors may not be so again: that is no limit of its.
    late = TrialState.FAILED if others else state
    return Outcome(late, f"{failure}{others}", measured)


def _late_for_nothing(measured: Measured) -> bool:
    """Whether requests waited so much longer for the target that the generator's part is none."""
    response, late_ms = measured.response_ms, measured.sent_late_ms_p99
    return response is not None and late_ms is not None and late_ms < _LATE_PART * response.p99


def _others(result: EngineResult) -> str:
    """Say that other programs had the processors, which is no limit of the generator's own."""
    if result.others_cpu < _OTHERS_CPU:
        return ""
    return (
        f"; other programs used {result.others_cpu:.1f} processors meanwhile: stop them, or wait, "
        "and search again"
    )


def _generator_short(result: EngineResult) -> str | None:
    """Return why the rate was the generator's limit, if it was."""
    offered = result.offered
    if offered is None:
        return None
    if offered.fell_short == "generator":
        return (
            f"the generator sent {offered.late_generator + offered.missed} of {offered.due} "
            f"requests late or not at all although it might have{_others(result)}"
        )
    bound = result.generator is not None and result.generator.bound
    if bound and offered.shortfall_frac > _SHORT_FRAC:
        return (
            f"{offered.completed_per_s:.4g} requests/s are within 20% of the most that Leadline "
            "reaches on this machine with the null backend: the storage may be faster"
        )
    return None


def _stalled_in(result: EngineResult) -> StalledIn:
    if any(stall.generator for stall in result.stalls):
        return "engine"
    return "processor" if result.others_cpu >= _OTHERS_CPU else "target"


def _waited_frac(result: EngineResult) -> float | None:
    """Part of the mean response in which requests waited for one of the slots to be free."""
    spans = result.spans_us
    if spans is None or spans.due_to_submitted is None or spans.due_to_completed is None:
        return None
    whole = spans.due_to_completed.mean
    return min(1.0, spans.due_to_submitted.mean / whole) if whole > 0 else None


def _trial(order: TrialOrder, ran: _Ran, took_s: float) -> Trial:
    outcome, measured = ran.outcome, ran.outcome.measured
    # What is due is what the schedule says, so only what was done tells what the generator can.
    short = outcome.state is TrialState.GENERATOR_LIMITED and measured is not None
    return Trial(
        can_offer_per_s=measured.completed_per_s if short and measured is not None else None,
        order=order.order,
        request=order.request,
        seed=order.seed,
        state=outcome.state,
        cost_s=max(took_s - ran.prepare_s, 0.0),
        waited_frac=ran.waited_frac,
        measured=outcome.measured,
        failure=outcome.failure,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        stalled_in=ran.stalled_in,
    )
