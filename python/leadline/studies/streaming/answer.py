"""Everything that is said about a streaming study: `leadline balance S` and the study's own end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from leadline.record.balance import RESOURCE_WORDS, Balance, Scaling, StreamBalance
from leadline.record.finding import Finding
from leadline.record.streaming import StreamStudy
from leadline.studies.streaming.balance import balances_of, scalings_of, what_ifs
from leadline.studies.streaming.measured import costs_of, doubts_about, ratios_of
from leadline.studies.streaming.resources import more_than_all
from leadline.units import format_rate

TWICE: tuple[dict[str, float], ...] = ({"disks": 2.0}, {"cores": 2.0})
"""What is answered when nothing was asked."""
_RATIO_ERROR_FRAC = 0.05


def balance_of(study: StreamStudy, changes: Mapping[str, float] | None = None) -> StreamBalance:
    """Return ratios, costs, scaling, balance and what-ifs of a study.

    `changes` are factors of parts of the machine; without any, twice the disks and twice the
    processors are answered.
    """
    balances, scalings = balances_of(study), scalings_of(study)
    asked = TWICE if changes is None else (changes,)
    return StreamBalance(
        system=study.start.system,
        study_id=study.start.study_id,
        platform=study.runs[0].options.platform if study.runs else "process",
        processors=balances[0].processors if balances else 0.0,
        disks=max((run.disks for run in study.runs), default=0),
        ratios=ratios_of(study),
        costs=costs_of(study),
        scaling=scalings,
        balances=balances,
        what_if=tuple(one for each in asked for one in what_ifs(balances, each)),
        sentences=sentences_about(balances, scalings),
        findings=tuple(_findings(study, balances)),
        not_measurable=_not_measurable(study),
    )


def sentences_about(balances: Sequence[Balance], scalings: Sequence[Scaling]) -> tuple[str, ...]:
    """Say the bottleneck, each phase's balance, and each phase's scaling."""
    return (*_first_sentences(balances), *(one.sentence for one in scalings))


def _first_sentences(balances: Sequence[Balance]) -> Iterator[str]:
    """Say the bottleneck, then phase by phase."""
    known = [one for one in balances if one.first is not None]
    if not known:
        return
    lowest = min(known, key=_first_rate)
    assert lowest.first is not None  # noqa: S101 - `known` has only such
    yield (
        f"Bottleneck: {RESOURCE_WORDS[lowest.first]}, {lowest.kernel} {lowest.phase}, "
        f"{format_rate(_first_rate(lowest))} of disk bandwidth per processor."
    )
    for one in known:
        yield f"{one.kernel} {one.phase}: {one.sentence}"


def _first_rate(balance: Balance) -> float:
    rates = [
        one.mb_s_per_processor.value
        for one in balance.saturations
        if one.resource == balance.first and one.mb_s_per_processor is not None
    ]
    return rates[0]


def _findings(study: StreamStudy, balances: Sequence[Balance]) -> Iterator[Finding]:
    if study.capacities is None:
        yield Finding.of("no_capacities")
    for ratio in ratios_of(study):
        error = ratio.error_frac
        if ratio.bus == "io" and error is not None and abs(error) > _RATIO_ERROR_FRAC:
            which = {"kernel": ratio.kernel, "phase": ratio.phase}
            yield Finding.of("io_off_model", **which, disks=ratio.disks, error_frac=error)
    yield from doubts_about(study)
    yield from _passed(balances)
    yield from _one_device(study)


def _passed(balances: Sequence[Balance]) -> Iterator[Finding]:
    """Say where a run used more of a resource than there was when it was measured."""
    for one in balances:
        for saturation in one.saturations:
            use = saturation.use_at_most
            if use is None or not more_than_all(use):
                continue
            yield Finding.of(
                "used_more_than_all",
                kernel=one.kernel,
                phase=one.phase,
                use_frac=use.value,
                resource=RESOURCE_WORDS[saturation.resource],
            )


def _one_device(study: StreamStudy) -> Iterator[Finding]:
    """Say which directories are one disk to the kernel: a stripe over them adds nothing."""
    disks = study.capacities.disks if study.capacities is not None else ()
    for one, other in itertools.combinations(disks, 2):
        shared = sorted(set(one.devices) & set(other.devices))
        if shared:
            pair = {"one": one.directory, "other": other.directory}
            yield Finding.of("disks_on_one_device", **pair, devices=", ".join(shared))


def _not_measurable(study: StreamStudy) -> dict[str, str]:
    found: dict[str, str] = {}
    for run in study.runs:
        found.update(run.result.not_measurable)
    return found


def sentences_of(study: StreamStudy) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """Return a study's sentences and findings, for its end."""
    said = balance_of(study)
    return said.sentences, said.findings


def without_scaling(sentences: Sequence[str], said: StreamBalance) -> Sequence[str]:
    """Leave out what is said of each phase's scaling, which comes last and is a table too."""
    return sentences[: len(sentences) - len(said.scaling)]


def scaling_of(said: StreamBalance, kernel: str, phase: str) -> Scaling | None:
    """Return the scaling of one phase."""
    return next((one for one in said.scaling if (one.kernel, one.phase) == (kernel, phase)), None)


def compared(systems: Sequence[StreamBalance]) -> tuple[str, ...]:
    """Say of every phase that all systems ran how much disk bandwidth each can take.

    Higher is better (AD98 Fig. 9), and what saturates is named, because two systems may be equally
    fast for different reasons.
    """
    if len(systems) < 2:
        return ()
    said = []
    for one in systems[0].balances:
        same = [_same(system, one) for system in systems]
        known = [balance for balance in same if balance is not None and balance.first is not None]
        if len(known) == len(systems):
            said.append(f"{one.kernel} {one.phase}: {'; '.join(map(_standing, known))}.")
    return tuple(said)


def _same(system: StreamBalance, one: Balance) -> Balance | None:
    found = (
        other for other in system.balances if (other.kernel, other.phase) == (one.kernel, one.phase)
    )
    return next(found, None)


def _standing(balance: Balance) -> str:
    word = RESOURCE_WORDS[balance.first or "disks"]
    return f"{balance.system} {format_rate(_first_rate(balance))} per processor, limited by {word}"
