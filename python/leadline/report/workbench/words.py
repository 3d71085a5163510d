"""Peak rates in words: rates, responses, durations, and why a search ended."""

from __future__ import annotations

from leadline.record import Interval
from leadline.record.wording import say_interval
from leadline.record.workbench import Experiment, ExperimentStart, PeakRate, PeakVerdict, TrialState
from leadline.units import say_percent, say_span

VERDICTS: dict[PeakVerdict, str] = {
    PeakVerdict.FOUND: "found",
    PeakVerdict.DEADLINE: "accuracy not reached in time",
    PeakVerdict.GAVE_UP: "accuracy not reached",
    PeakVerdict.NEVER_SATURATED: "never saturated",
    PeakVerdict.ALWAYS_SATURATED: "saturated at every load",
    PeakVerdict.GENERATOR_LIMITED: "the generator gave out first",
    PeakVerdict.SERVER_LOST: "the server was lost",
    PeakVerdict.IRREGULAR: "trials contradict each other",
    PeakVerdict.FAILED: "trials failed",
}

STATES: dict[TrialState, str] = {
    TrialState.DONE: "done",
    TrialState.ABORTED: "given up as saturated",
    TrialState.GENERATOR_LIMITED: "the generator fell short",
    TrialState.SERVER_LOST: "the server was lost",
    TrialState.FAILED: "failed",
}


def say_load(rate_per_s: float) -> str:
    """Write `712` or `7.25`: requests per second, without the unit."""
    digits = 0 if rate_per_s >= 100 else 1 if rate_per_s >= 10 else 2
    return f"{rate_per_s:,.{digits}f}"


def say_peak(rate: Interval | None) -> str:
    """Write `712/s (705 to 719)`; a dash when no number can be given."""
    if rate is None:
        return "\N{EN DASH}"
    if rate.low is None or rate.high is None:
        return f"{say_load(rate.value)}/s (no interval)"
    return f"{say_load(rate.value)}/s ({say_span(say_load(rate.low), say_load(rate.high))})"


def say_half(rate: Interval | None) -> str:
    """Write half an interval as `±1.4 %`; nothing when there is none."""
    half = None if rate is None else rate.half_width_frac
    return "" if half is None else f"±{say_percent(half)}"


def say_half_brief(rate: Interval | None) -> str:
    """Write half an interval where there is little room: `±0.5%`, `±12%`."""
    half = None if rate is None else rate.half_width_frac
    if half is None:
        return ""
    return f"±{100 * half:.{1 if half < 0.0995 else 0}f}%"


def say_ms(value_ms: float) -> str:
    """Write `4.97 µs`, `38 ms`, `1.4 s`."""
    if value_ms >= 1000:
        return f"{value_ms / 1000:,.3g} s"
    if 0 < value_ms < 0.9995:
        return f"{value_ms * 1000:.3g} µs"
    return f"{value_ms:.3g} ms"


def say_response(response: Interval | None) -> str:
    """Write `5.03 ms (4.96 to 5.1)` for a table."""
    if response is None:
        return "\N{EN DASH}"
    return say_interval(response, lambda value_ms: say_ms(max(0.0, value_ms)))


def say_cost(cost_s: float) -> str:
    """Write bench time: `45 s`, `12 min`, `3.4 h`."""
    if cost_s < 90:
        return f"{cost_s:.0f} s"
    if cost_s < 5400:
        return f"{cost_s / 60:.3g} min"
    return f"{cost_s / 3600:,.3g} h"


def peak_of(experiment: Experiment) -> PeakRate | None:
    """Return the answer of a single search; None while there is none."""
    return experiment.peaks[0].peak if experiment.peaks else None


def is_surface(start: ExperimentStart) -> bool:
    """Whether the experiment maps a surface, not one peak."""
    return start.design is not None


def experiment_title(experiment: Experiment) -> str:
    """Write `Peak rate of atlas` or `Peak rates of atlas over disks and workers`."""
    start = experiment.start
    if not is_surface(start):
        return f"Peak rate of {start.system}"
    names = [factor.name for factor in start.factors]
    over = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"Peak rates of {start.system} over {over}"
