"""Figures that CP93 and CP94 publish of their machines, beside what Leadline finds from outside.

A profile is made from a paper's figures, so most rows close a circle: figure, profile, survey,
figure. What a row can show is told by its role: "put in", the number stands in the profile;
"fitted", numbers that the paper lacks were chosen so that it comes out; "free", nothing was.
`bench/published.py` prints the table and stores it for the documentation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from leadline.engine import Limits, Target, open_engine
from leadline.inputs import parse_toml
from leadline.record import CacheSize, Interval, Survey, Workload
from leadline.record.findings import compare
from leadline.stats import own_error, pooled_noise, reading_interval
from proving.simulation import (
    SimulatedCacheStudy,
    SimulatedSurvey,
    simulate_cache_study,
    simulate_survey,
)

DIFFERENT = 0.15
"""A difference above this needs a sentence."""
READINGS = 5
"""Readings of each rate, every one with a seed of its own."""
SEED = 11
LIMITS = Limits(
    warm_up_s_max=60.0, measure_s_min=600.0, measure_s_max=600.0, accuracy=0.001, total_s_max=3600.0
)
"""Ten minutes a point (CP94 section 6), twenty of writeback's periods."""


class FiguresError(ValueError):
    """The file of figures makes no sense; the message names the entry and what is wrong."""


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A workload as the papers tell it: one process, half sequential."""

    unique_mb: float
    """MB touched, of 10^6 bytes."""
    size_kb: float
    """Mean request in KB, of 1024 bytes."""
    read_frac: float

    @property
    def workload(self) -> Workload:
        """The same in Leadline's terms."""
        return Workload(
            unique_bytes=round(self.unique_mb * 1e6),
            size_mean=round(self.size_kb * 1024),
            read_frac=self.read_frac,
            seq_frac=0.5,
            process_num=1,
        )


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published figure: of whom, what, where it stands, and how to find it.

    Exactly one of `at`, `cache`, `share`, `policy`, `regions` and `focal` says what to look at.
    """

    machine: str
    """Name of a profile."""
    what: str
    source: str
    """Paper and table, figure or section, with the paper's own reserve."""
    role: Literal["put in", "fitted", "free"]
    unit: Literal["MB/s", "MB", "KB", "%", "x", "regions", ""]
    published: float | None = None
    low: float | None = None
    """With or without `high`, where the paper gives a range or a bound."""
    high: float | None = None
    at: Place | None = None
    """The rate of this workload."""
    over: Place | None = None
    """Divided by the rate of this one."""
    over_machine: str | None = None
    """On this machine, if it is another one."""
    cache: Literal["reads", "writes"] | None = None
    """Effective size of the page cache."""
    share: Literal["reads", "writes"] | None = None
    """The same as a share of the memory."""
    policy: Literal["write-back", "write-through"] | None = None
    regions: bool = False
    """How many performance regions."""
    focal: Literal["size_mean", "unique_bytes"] | None = None
    """What the survey chose for itself in `region`."""
    region: int = 0
    why: str = ""
    """Why what is found differs by more than `DIFFERENT`."""

    def __post_init__(self) -> None:
        """Refuse a figure that says nothing, or nothing that can be found."""
        ways = (self.at, self.cache, self.share, self.policy, self.regions or None, self.focal)
        if sum(way is not None for way in ways) != 1:
            raise FiguresError(
                f"{self.machine}, {self.what}: say one of at, cache, share, policy, regions, focal"
            )
        numbers = (self.published, self.low, self.high)
        if self.policy is None and all(number is None for number in numbers):
            raise FiguresError(f"{self.machine}, {self.what}: no published figure")
        if self.over_machine is not None and self.at is not None and self.over is None:
            raise FiguresError(f"{self.machine}, {self.what}: over_machine without over")


@dataclass(frozen=True)
class Row:
    """A published figure with what Leadline found."""

    figure: Figure
    found: Interval | None
    """In the figure's unit; None where a word is the answer, or where nothing was found."""
    said: str
    """The word that is the answer, or why there is no number; empty beside a number."""

    @property
    def difference(self) -> float | None:
        """Found against published as a fraction; against the nearer end of a range, 0 within it.

        None where words are compared, or nothing was found.
        """
        figure = self.figure
        if self.found is None:
            return None
        value = self.found.value
        if figure.published is not None:
            return value / figure.published - 1
        if figure.low is not None and value < figure.low:
            return value / figure.low - 1
        if figure.high is not None and value > figure.high:
            return value / figure.high - 1
        return 0.0

    @property
    def differs(self) -> bool:
        """Whether a sentence must say why."""
        if self.figure.policy is not None:
            return self.said != self.figure.policy
        # As it is printed: 15.4% reads as 15%, and needs no sentence.
        return self.difference is None or abs(round(100 * self.difference)) > 100 * DIFFERENT

    @property
    def settled(self) -> bool:
        """Whether a sentence stands where one must, and nowhere else."""
        return bool(self.figure.why) == self.differs


class _File(msgspec.Struct, forbid_unknown_fields=True):
    figure: list[Figure]


def read_figures(path: Path) -> tuple[Figure, ...]:
    """Read the published figures.

    Raises:
        FiguresError: not TOML, or an entry that makes no sense.

    """
    try:
        return tuple(msgspec.convert(parse_toml(path.read_text(encoding="utf-8")), _File).figure)
    except (ValueError, msgspec.ValidationError) as error:
        raise FiguresError(f"{path}: {error}") from error


def find_all(figures: Sequence[Figure]) -> tuple[Row, ...]:
    """Survey and measure every machine, and put what is found beside what was published."""
    return tuple(find(figure) for figure in figures)


def find(figure: Figure) -> Row:
    """Find one figure; what was surveyed or measured before is not measured again."""
    if figure.at is not None:
        return Row(figure, _rate_or_ratio(figure, figure.at), "")
    if figure.policy is not None:
        return Row(figure, None, studied(figure.machine).study.cache.policy.value)
    if figure.cache or figure.share:
        return _of_cache(figure)
    survey = surveyed(figure.machine).survey
    if figure.regions:
        return Row(figure, Interval(len(survey.regions), None, None, survey.points), "")
    found = _chosen(survey, figure.focal or "size_mean", figure.region)
    return Row(figure, found, "" if found else f"n.m.: {len(survey.regions)} regions were found")


@functools.cache
def studied(machine: str) -> SimulatedCacheStudy:
    """Study a machine's page cache, once."""
    return simulate_cache_study(machine, SEED)


@functools.cache
def surveyed(machine: str) -> SimulatedSurvey:
    """Survey a machine, once."""
    return simulate_survey(machine, SEED)


@functools.cache
def rate(machine: str, workload: Workload) -> Interval:
    """Measure a workload on a machine, in MB/s: `READINGS` runs of ten virtual minutes each."""
    readings, errors = [], []
    target = Target.parse(f"sim:{machine}")
    with open_engine(target, run_seed=SEED) as engine:
        for number in range(READINGS):
            result = engine.run(workload, seed=SEED + number, limits=LIMITS)
            readings.append(result.throughput_mb_s.value)
            errors.append(own_error(result.throughput_mb_s))
    return reading_interval(readings, errors, pooled_noise([readings]))


def _rate_or_ratio(figure: Figure, at: Place) -> Interval:
    above = rate(figure.machine, at.workload)
    if figure.over is None:
        return above
    return _ratio(above, rate(figure.over_machine or figure.machine, figure.over.workload))


def _ratio(above: Interval, below: Interval) -> Interval:
    found = compare(above, below)
    return Interval(found.ratio, found.low, found.high, min(above.n, below.n))


def _of_cache(figure: Figure) -> Row:
    size = _size(figure, figure.machine)
    if figure.over_machine is None:
        number = _scaled(size.bytes, 1e-6) if figure.cache else _scaled(size.memory_frac, 100)
        return Row(figure, number, size.reason)
    below = _size(figure, figure.over_machine)
    pair = (size.bytes, below.bytes) if figure.cache else (size.memory_frac, below.memory_frac)
    if pair[0] is None or pair[1] is None:
        return Row(figure, None, f"n.m.: {size.reason or below.reason}")
    return Row(figure, _ratio(pair[0], pair[1]), "")


def _size(figure: Figure, machine: str) -> CacheSize:
    found = studied(machine).study.cache
    return found.reads if "reads" in (figure.cache, figure.share) else found.writes


def _scaled(number: Interval | None, by: float) -> Interval | None:
    if number is None:
        return None
    low, high = (None if end is None else end * by for end in (number.low, number.high))
    return Interval(number.value * by, low, high, number.n)


def _chosen(survey: Survey, parameter: str, region: int) -> Interval | None:
    if not -len(survey.regions) <= region < len(survey.regions):
        return None
    focal = survey.regions[region].focal
    value = focal.size_mean / 1024 if parameter == "size_mean" else focal.unique_bytes / 1e6
    return Interval(value, None, None, survey.points)


# ---- the table ------------------------------------------------------------------------------

HEAD = (
    "| figure | published | source | role | found (95%, n) | difference |",
    "|---|---|---|---|---|---|",
)


def table(rows: Sequence[Row]) -> list[str]:
    """Write the lines of one Markdown table per machine, its sentences numbered below it."""
    lines: list[str] = []
    for machine in dict.fromkeys(row.figure.machine for row in rows):
        own = [row for row in rows if row.figure.machine == machine]
        sentences = list(dict.fromkeys(row.figure.why for row in own if row.figure.why))
        lines += ["", f"### {machine}", "", *HEAD]
        for row in own:
            mark = f" ({sentences.index(row.figure.why) + 1})" if row.figure.why else ""
            cells = (
                row.figure.what,
                format_published(row.figure),
                row.figure.source,
                row.figure.role,
                format_found(row),
                format_difference(row) + mark,
            )
            lines.append(f"| {' | '.join(cells)} |")
        if sentences:
            lines += ["", *(f"{number}. {text}" for number, text in enumerate(sentences, 1))]
    return lines


def format_published(figure: Figure) -> str:
    """Write what the paper says: `2.4 MB/s`, `1.5 to 2.8 x`, `at least 4 x`."""
    if figure.policy is not None:
        return figure.policy
    if figure.published is not None:
        said = f"{figure.published:g}"
    elif figure.low is not None and figure.high is not None:
        said = f"{figure.low:g} to {figure.high:g}"
    else:
        said = f"at least {figure.low:g}" if figure.high is None else f"at most {figure.high:g}"
    return f"{said} {figure.unit}".replace(" %", "%")


def format_found(row: Row) -> str:
    """Write what was found with its interval and count, or why there is nothing."""
    found, unit = row.found, row.figure.unit
    if found is None:
        return row.said
    if found.low is None or found.high is None:
        return f"{found.value:.3g} {unit} (n = 1 survey)"
    return f"{found.value:.3g} {unit} [{found.low:.3g}, {found.high:.3g}] (n = {found.n})"


def format_difference(row: Row) -> str:
    """Write the difference in percent, or whether words agree."""
    if row.figure.policy is not None:
        return "another" if row.differs else "the same"
    if row.difference is None:
        return "n.m."
    ranged = row.figure.published is None
    if ranged and row.difference == 0:
        return "within"
    percent = round(100 * row.difference)
    return f"{percent:+d}%" if percent else "0%"
