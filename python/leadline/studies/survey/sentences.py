"""The answer in five plain sentences, from a finished (or stopped) survey's record alone.

Each number carries its 95 % interval; a difference that the intervals cannot show is said to be
"no difference shown", never rounded into a finding. One reading each: levels, best and worst
workloads, bigger requests, more processes (with reads and sequence where they matter), how sure.
"""

from __future__ import annotations

from leadline.record.findings import (
    LEVEL_FRAC,
    Comparison,
    Gain,
    border_is_gradual,
    compare,
    ends,
    gain,
    told_drift,
)
from leadline.record.study import Status
from leadline.record.survey import Curve, CurvePoint, Region, Survey
from leadline.record.wording import (
    FRACTION_ENDS,
    join_words,
    say_bytes,
    say_change,
    say_count,
    say_half_width,
    say_place,
    say_rate,
    say_step,
    say_times,
    say_value,
    say_workload_at,
)
from leadline.units import format_bytes, format_seconds, say_percent, say_span

_WORDS = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}


def sentences(survey: Survey) -> tuple[str, ...]:
    """Answer in five plain sentences; pure, so the same record always reads the same."""
    return (
        _levels(survey),
        _best_and_worst(survey),
        _bigger_requests(survey),
        _more_processes(survey),
        _how_sure(survey),
    )


def _levels(survey: Survey) -> str:
    regions, curve = survey.regions, survey.unique_bytes_curve
    if not regions:
        return "Levels: cannot tell, the survey stopped before any level was measured."
    cap = survey.start.cache_limit_bytes
    capped = f" The file cache was capped at {format_bytes(cap)} for this survey." if cap else ""
    if len(regions) == 1:
        return _one_level(regions[0], curve) + capped
    holds = [
        f"the {region.name}{'' if index else ' holds'} {say_bytes(border.bytes, level=not index)}"
        f"{' and gives out gradually' if border_is_gradual(border) else ''}"
        for index, (region, border) in enumerate(zip(regions, survey.borders, strict=False))
    ]
    count = _WORDS.get(len(regions), str(len(regions)))
    levels = f"{count} levels: {', '.join(holds)}, beyond it the {regions[-1].name}."
    return f"{levels} {_shown_by(survey)}{capped}"


def _shown_by(survey: Survey) -> str:
    """Say what shows the borders: counts, or throughput alone."""
    by_count = [border.basis == "counted" for border in survey.borders]
    others = by_count.count(False)
    alone = f"{'borders show' if others > 1 else 'border shows'} in the throughput alone."
    if not any(by_count):
        return f"The {alone}"
    counted = "Where the file cache ends was counted, by what reads found in it"
    return f"{counted}; the other {alone}" if others else f"{counted}."


def _one_level(region: Region, curve: Curve) -> str:
    span = f"between {format_bytes(region.low_bytes)} and {format_bytes(region.high_bytes)} touched"
    fall = ends(curve)
    if fall is not None and fall.slower and fall.ratio < 0.8:
        return (
            f"One level, the {region.name}, on a smooth slope: no border shown {span}, but the "
            f"smallest workload is {say_times(fall.inverse())} as fast as the largest (95 %)."
        )
    return f"One level, the {region.name}: no border shown {span}."


def _best_and_worst(survey: Survey) -> str:
    regions = {region.index: region for region in survey.regions}
    found = [
        (point, curve, regions[curve.region])
        for family in survey.families
        for curve in family.curves
        for point in curve.points
        if curve.region is not None and curve.region in regions
    ]
    found += [
        (point, survey.unique_bytes_curve, region)
        for point in survey.unique_bytes_curve.points
        for region in survey.regions
        if region.low_bytes <= point.x <= region.high_bytes
    ]
    if not found:
        return "Best and worst workloads: cannot tell, too little was measured."
    best = max(found, key=lambda entry: entry[0].throughput_mb_s.value)
    worst = min(found, key=lambda entry: entry[0].throughput_mb_s.value)
    # Both ends were picked from all the points, so every pair was a candidate.
    pairs = len(found) * (len(found) - 1) // 2
    apart = compare(best[0].throughput_mb_s, worst[0].throughput_mb_s, candidates=pairs)
    if not apart.shown:
        return f"Best and worst workloads: no difference shown among {len(found)} workloads."
    return f"Runs best: {_entry(best)}; worst: {_entry(worst)}."


def _entry(entry: tuple[CurvePoint, Curve, Region]) -> str:
    point, curve, region = entry
    what = say_workload_at(curve.parameter, point.x)
    return f"{what} {say_place(region)}, {say_rate(point.throughput_mb_s)}"


def _curves(survey: Survey, parameter: str) -> list[tuple[Region, Curve | None]]:
    families = {family.region: family for family in survey.families}
    return [
        (region, families[region.index].curve(parameter) if region.index in families else None)
        for region in survey.regions
    ]


def _bigger_requests(survey: Survey) -> str:
    curves = _curves(survey, "size_mean")
    if not curves:
        return "Bigger requests: not measured."
    texts = [(region, _gain_text(gain(curve), "size_mean")) for region, curve in curves]
    return f"Bigger requests: {_by_place(texts)}."


def _by_place(texts: list[tuple[Region, str]]) -> str:
    """Say each text once, with every place it holds for."""
    places: dict[str, list[str]] = {}
    for region, text in texts:
        places.setdefault(text, []).append(say_place(region))
    return "; ".join(f"{join_words(where)} {text}" for text, where in places.items())


def _gain_text(found: Gain | None, parameter: str) -> str:
    if found is None:
        return "not measured"
    last = say_value(parameter, found.last.x)
    if not (found.to_best.faster and found.best.x > found.first.x):
        span = _span(parameter, found.first.x, found.last.x)
        return f"no gain shown from {span}{_falls(found, last)}"
    span = _span(parameter, found.first.x, found.best.x)
    text = f"going from {span} brings {say_times(found.to_best)}"
    if found.rising:
        return f"{text}, still rising at the largest measured"
    if found.level_x < found.last.x:
        text += f", levelling off at about {say_value(parameter, found.level_x)}"
    return text + _falls(found, last)


def _falls(found: Gain, last: str) -> str:
    if not (found.to_last.slower and found.to_last.ratio < LEVEL_FRAC):
        return ""
    return f", and at {last} it is down to {say_times(found.to_last)} of the best"


def _span(parameter: str, low: float, high: float) -> str:
    words = " processes" if parameter == "process_num" else ""
    return f"{say_value(parameter, low)} to {say_value(parameter, high)}{words}"


def _more_processes(survey: Survey) -> str:
    curves = _curves(survey, "process_num")
    if not curves:
        return "More processes: not measured."
    texts = [(region, _gain_text(gain(curve), "process_num")) for region, curve in curves]
    mixes = [_mix(survey, parameter, words) for parameter, words in FRACTION_ENDS.items()]
    return " ".join([f"More processes: {_by_place(texts)}.", *filter(None, mixes)])


def _mix(survey: Survey, parameter: str, words: tuple[str, str]) -> str:
    """Compare the two ends of a mix in every region that has them."""
    told: list[str] = []
    alike: list[str] = []
    for region, curve in _curves(survey, parameter):
        comparison = ends(curve) if _spans_the_mix(curve) else None
        if comparison is None:
            continue
        if comparison.shown:
            told.append(f"{say_place(region)} {_faster_side(comparison, words)}")
        else:
            alike.append(say_place(region))
    if alike:
        told.append(f"no difference shown {join_words(alike)}")
    return f"{words[0].capitalize()} against {words[1]}: {'; '.join(told)}." if told else ""


def _spans_the_mix(curve: Curve | None) -> bool:
    xs = {point.x for point in curve.points} if curve else set()
    return {0.0, 1.0} <= xs


def _faster_side(comparison: Comparison, words: tuple[str, str]) -> str:
    fast, slow = words if comparison.faster else (words[1], words[0])
    shown = comparison if comparison.faster else comparison.inverse()
    verb = "are" if fast.endswith("s") else "is"
    return f"{fast} {verb} {say_times(shown)} as fast as {slow}"


def _how_sure(survey: Survey) -> str:
    parts = [f"{say_count(survey.points, 'point')} in {format_seconds(survey.wall_s)}"]
    if survey.accuracy_frac is None:
        parts.append("too few readings for the width of the intervals")
    else:
        width = say_half_width(survey.accuracy_frac)
        parts.append(f"the 95 % intervals are {width} at the median")
    if survey.noise_frac:
        noise = [f"{say_percent(frac)} ({name})" for name, frac in survey.noise_frac.items()]
        parts.append(f"readings of one point differ from run to run by {join_words(noise)}")
    parts.append(_drift(survey))
    text = f"How sure: {', '.join(parts)}."
    if survey.status is not Status.DONE:
        text += (
            f" The survey was stopped early, after {survey.points} of "
            f"{survey.start.plan.points} planned points."
        )
    if not survey.settled:
        text += " The focal points had not settled when it ended."
    return text


def _drift(survey: Survey) -> str:
    if survey.drift_step is not None:
        return f"and the system {say_step(survey.drift_step)}"
    drift = told_drift(survey.drift_frac)
    if drift is None or drift.low is None or drift.high is None:
        return "drift cannot be told"
    if drift.covers(0.0):
        return f"no drift shown: {say_change(drift)}"
    way = "slowed down" if drift.value < 0 else "sped up"
    size = sorted((abs(drift.low), abs(drift.high)))
    span = say_span(say_percent(size[0]), say_percent(size[1]))
    return f"and the system {way} during the survey by {say_percent(abs(drift.value))} ({span})"
