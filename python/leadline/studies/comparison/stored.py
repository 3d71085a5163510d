"""Stored measurements, or studies of plain files, compared: the same question on both sides."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from leadline.record import Measurement, Workload
from leadline.record.comparison import Contender, SystemsComparison
from leadline.record.files import FILES, FilesRow, FilesStudy
from leadline.record.finding import Finding, within
from leadline.record.job import CLOSED
from leadline.record.jobs.file_test import KBYTE
from leadline.record.measurement import MEASUREMENT, Measured
from leadline.record.study import Records, StudyStart
from leadline.record.survey import SURVEY
from leadline.record.wording import format_count
from leadline.stats import runs_interval
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
from leadline.studies.comparison.ratio import parse_rule, unpaired_ratio
from leadline.studies.files.run import load_files
from leadline.studies.measurement.plan import load_measured

SESSIONS_LN = math.log(1.1)
"""What is measured once says nothing of how a system differs from hour to hour: a round number,
not a measured one."""


class MeasuredRuns(NamedTuple):
    """What was measured of one question."""

    question: Question
    mb_s: tuple[float, ...]
    """Of each run."""
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class _Side:
    """One system."""

    start: StudyStart
    facts: dict[str, Any]
    system_profile: dict[str, Any] | None
    readings: Mapping[Hashable, MeasuredRuns]


def kind_of(store: Store, ref: str) -> Records[Any, Any] | None:
    """Return which kind of study that can be compared goes by this reference; a survey first."""
    kinds: tuple[Records[Any, Any], ...] = (SURVEY, MEASUREMENT, FILES)
    for kind in kinds:
        with suppress(StoreError):
            store.find(ref, kind)
            return kind
    return None


def compare_measured(
    store: Store, refs: Sequence[str], kind: Records[Any, Any], fail_if: str | None = None
) -> SystemsComparison:
    """Compare what was measured before, each at its own time, question by question.

    Raises:
        StoreError: there are no such studies of this kind.
        ComparisonRefused: no question was asked of two of them, in the same way.

    """
    if kind is FILES:
        loaded = [_of_files(load_files(store, ref)) for ref in refs]
    else:
        loaded = [_of_measurements(load_measured(store, ref)) for ref in refs]
    names = name_systems([side.start for side in loaded])
    sides = list(zip(names, loaded, strict=True))
    pairs = [pair for a, b in combinations(sides, 2) for pair in _both(a, b)]
    if not pairs:
        raise ComparisonRefused(
            "no workload was measured on both, as fast as it goes and in the same way: measure "
            "the same one on each"
        )
    return answered(
        pairs,
        None if fail_if is None else parse_rule(fail_if),
        contenders=tuple(
            Contender(
                name=name,
                system=side.start.system,
                survey_id=side.start.study_id,
                target=side.start.target,
                started_at=side.start.started_at,
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
        ratio = unpaired_ratio(mine.mb_s, theirs.mb_s)
        findings = [*within(a, mine.findings), *within(b, theirs.findings)]
        sizes = [each.question.workload.unique_bytes for each in (mine, theirs)]
        if sizes[0] != sizes[1]:
            findings.append(Finding.of("files_differ", a_bytes=sizes[0], b_bytes=sizes[1]))
        findings.append(Finding.of("too_few_passes" if ratio is None else "measured_apart"))
        if ratio is not None and withheld(ratio, SESSIONS_LN):
            findings.append(Finding.of("sessions_differ", within_frac=math.expm1(SESSIONS_LN)))
        rates = [runs_interval(each.mb_s) for each in (mine, theirs)]
        pair = compared((a, b), mine.question, rates, ratio, list(dict.fromkeys(findings)))
        yield msgspec.structs.replace(pair, source="measured"), ratio


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
        )
    facts = usable[0].facts if usable else {}
    return _Side(found.start, facts, found.start.system_profile, told)


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
    return _Side(study.start, study.start.facts, None, told)


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
