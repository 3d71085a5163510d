"""Stored measurements, or studies of plain files, compared: the same question on both sides."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from leadline.record import Measurement, Workload
from leadline.record.comparison import Contender, Metric, SystemsComparison
from leadline.record.files import FILES, FilesRow, FilesStudy
from leadline.record.finding import Finding, within
from leadline.record.job import CLOSED
from leadline.record.jobs.file_test import KBYTE
from leadline.record.measurement import MEASUREMENT, Measured
from leadline.record.study import Records, StudyStart
from leadline.record.survey import SURVEY
from leadline.record.wording import format_count
from leadline.stats import runs_interval
from leadline.stats.intervals import PRIOR_SD_FRAC
from leadline.store import Store, StoreError
from leadline.studies.comparison.contenders import withheld
from leadline.studies.comparison.document import (
    ComparisonRefused,
    Pair,
    Question,
    answered,
    compared,
    name_systems,
)
from leadline.studies.comparison.facts import differing_facts
from leadline.studies.comparison.ratio import (
    COSTS,
    LogRatio,
    Told,
    cost_of,
    parse_rules,
    require_throughput,
    studies_ratio,
    unpaired_ratio,
)
from leadline.studies.comparison.run import studies_of
from leadline.studies.files.run import load_files
from leadline.studies.measurement.plan import load_measured

_KNOWN = 1e9
"""Degrees of freedom of a spread that is taken for known."""
SESSIONS_LN = math.log(1.1)
"""What is measured once says nothing of how a system differs from hour to hour: a round number,
not a measured one."""


class MeasuredRuns(NamedTuple):
    """What was measured of one question."""

    question: Question
    mb_s: tuple[float, ...]
    """Of each run; of a system with several studies, of each study."""
    findings: tuple[Finding, ...]
    costs: Mapping[Metric, tuple[float, ...]] = {}
    """What else is known, of each study."""


@dataclass(frozen=True)
class _Side:
    """One system."""

    starts: tuple[StudyStart, ...]
    """Of its studies."""
    facts: dict[str, Any]
    system_profile: dict[str, Any] | None
    readings: Mapping[Hashable, MeasuredRuns]


def _joined(sides: Sequence[_Side]) -> _Side:
    """Return a system's studies as one: what differs from one to the next is its spread."""
    if len(sides) == 1:
        return sides[0]
    told: dict[Hashable, MeasuredRuns] = {}
    for key in dict.fromkeys(key for side in sides for key in side.readings):
        each = [side.readings[key] for side in sides if key in side.readings]
        told[key] = MeasuredRuns(
            each[0].question,
            tuple(statistics.fmean(one.mb_s) for one in each),
            tuple(dict.fromkeys(finding for one in each for finding in one.findings)),
            {
                metric: tuple(value for one in each for value in one.costs.get(metric, ()))
                for metric in COSTS
            },
        )
    starts = tuple(start for side in sides for start in side.starts)
    return _Side(starts, sides[0].facts, sides[0].system_profile, told)


def kind_of(store: Store, ref: str) -> Records[Any, Any] | None:
    """Return which kind of study that can be compared goes by this reference; a survey first."""
    kinds: tuple[Records[Any, Any], ...] = (SURVEY, MEASUREMENT, FILES)
    for kind in kinds:
        with suppress(StoreError):
            store.find(ref, kind)
            return kind
    return None


def compare_measured(
    store: Store, refs: Sequence[str], kind: Records[Any, Any], fail_if: Sequence[str] = ()
) -> SystemsComparison:
    """Compare what was measured before, each at its own time, question by question.

    Of each system one study, or several with commas between.

    Raises:
        StoreError: there are no such studies of this kind.
        ComparisonRefused: no question was asked of two of them, in the same way.

    """

    def side_of(ref: str) -> _Side:
        if kind is FILES:
            return _of_files(load_files(store, ref))
        return _of_measurements(load_measured(store, ref))

    loaded = [_joined([side_of(ref) for ref in studies_of(side)]) for side in refs]
    names = name_systems([side.starts for side in loaded])
    sides = list(zip(names, loaded, strict=True))
    pairs = [pair for a, b in combinations(sides, 2) for pair in _both(a, b)]
    if not pairs:
        raise ComparisonRefused(
            "no workload was measured on both, as fast as it goes and in the same way: measure "
            "the same one on each"
        )
    rules = parse_rules(fail_if)
    for metric in {rule.metric for rule in rules}.intersection(COSTS):
        if all(pair.costs.get(metric) is None for pair in pairs):
            require_throughput(rules, "one measurement tells it once, without its spread")
    return answered(
        pairs,
        rules,
        contenders=tuple(
            Contender(
                name=name,
                system=side.starts[0].system,
                survey_id=side.starts[0].study_id,
                more_ids=tuple(start.study_id for start in side.starts[1:]),
                target=side.starts[0].target,
                started_at=side.starts[0].started_at,
                model="measured",
            )
            for name, side in sides
        ),
        differing_facts=differing_facts(loaded),
        notes=("Ratios are of measurements at different times; what changed between is in them.",),
    )


def _both(one: tuple[str, _Side], other: tuple[str, _Side]) -> Iterator[Pair]:
    (a, left), (b, right) = one, other
    for key, mine in left.readings.items():
        theirs = right.readings.get(key)
        if theirs is None:
            continue
        several = max(len(left.starts), len(right.starts)) > 1
        ratio_of = _ratio_of_studies if several else unpaired_ratio
        ratio = ratio_of(mine.mb_s, theirs.mb_s)
        findings = [*within(a, mine.findings), *within(b, theirs.findings)]
        sizes = [each.question.workload.unique_bytes for each in (mine, theirs)]
        if sizes[0] != sizes[1]:
            findings.append(Finding.of("files_differ", a_bytes=sizes[0], b_bytes=sizes[1]))
        if ratio is None or not several:
            findings.append(Finding.of("too_few_passes" if ratio is None else "measured_apart"))
        if ratio is not None and not several and withheld(ratio, SESSIONS_LN):
            findings.append(Finding.of("sessions_differ", within_frac=math.expm1(SESSIONS_LN)))
        rates = [runs_interval(each.mb_s) for each in (mine, theirs)]
        pair = compared((a, b), mine.question, rates, ratio, list(dict.fromkeys(findings)))
        costs = {
            metric: ratio_of(mine.costs.get(metric, ()), theirs.costs.get(metric, ()))
            for metric in COSTS
        }
        yield Pair(msgspec.structs.replace(pair, source="measured"), ratio, costs)


def _ratio_of_studies(a: Sequence[float], b: Sequence[float]) -> LogRatio | None:
    """Return A over B of values that are a study's each; three of them at least."""
    if len(a) + len(b) < 3:
        return None
    told = [[Told(value, PRIOR_SD_FRAC, _KNOWN) for value in side] for side in (a, b)]
    return studies_ratio(*told)


def _of_measurements(found: Measured) -> _Side:
    """Take what ran as fast as it goes, and whose workload says all of it."""
    told: dict[Hashable, MeasuredRuns] = {}
    usable = [each for each in found.points if each.arrivals == CLOSED and not each.streams]
    for key in dict.fromkeys((each.workload, each.access) for each in usable):
        own = [each for each in usable if (each.workload, each.access) == key]
        told[key] = MeasuredRuns(
            Question(None, key[0]),
            _rates(own),
            tuple(f for each in own for f in each.result.findings if not f.is_note),
            {metric: tuple(cost_of(each.result, metric) for each in own) for metric in COSTS},
        )
    facts = usable[0].facts if usable else {}
    return _Side((found.start,), facts, found.start.system_profile, told)


def _rates(points: Iterable[Measurement]) -> tuple[float, ...]:
    runs = (each.runs or (each.result,) for each in points)
    return tuple(run.throughput_mb_s.value for each in runs for run in each)


def _of_files(study: FilesStudy) -> _Side:
    """Take each program on so many drives; of several file systems each by its place."""
    told: dict[Hashable, MeasuredRuns] = {}
    common = tuple(each for each in study.findings if not each.is_note)
    systems = list(dict.fromkeys((row.fs, row.block_bytes) for row in study.rows))
    for row in study.rows:
        if row.kept and study.file_bytes:
            place = systems.index((row.fs, row.block_bytes))
            key = (row.test, row.drives, place, study.start.paper)
            stars = tuple(Finding.of("file_test_suspect", why=why) for why in row.suspect)
            mb_s = tuple(1e-6 * KBYTE * run.kbytes_s(study.file_bytes) for run in row.kept)
            told[key] = MeasuredRuns(_question(row, study.file_bytes), mb_s, common + stars)
    return _Side((study.start,), study.start.facts, None, told)


def _question(row: FilesRow, file_bytes: int) -> Question:
    """Say a program of KM83 as a workload: one pass over each drive's file, in order."""
    program, size = row.test.split("_")
    workload = Workload(
        unique_bytes=row.drives * file_bytes,
        size_mean=int(size),
        read_frac=float(program == "read"),
        seq_frac=1.0,
        process_num=row.drives,
    )
    return Question(f"{program} {size}, {format_count(row.drives, 'drive')}", workload)
