"""The whole comparison from surveys: facts, ratios with verdicts, common curves, prices, gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from leadline.errors import LeadlineError
from leadline.models.application.predicted import predict_application
from leadline.models.model import PredictionRefused
from leadline.models.predictor import NAMED
from leadline.record import Interval, Prediction, Status, Survey, Workload
from leadline.record.application import Application
from leadline.record.application.comparison import ApplicationComparison, ApplicationPair
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.comparison import (
    ComparedWorkload,
    Contender,
    Gate,
    Metric,
    OwnCurve,
    Price,
    Rule,
    SystemsComparison,
)
from leadline.record.finding import Finding, Severity, within
from leadline.record.study import StudyStart
from leadline.record.wording import join_words
from leadline.stats import OwnError, runs_interval
from leadline.studies.comparison.contenders import (
    COMMON_SIZE_BYTES,
    Named,
    common_curves,
    common_rates,
    common_size,
    withheld,
)
from leadline.studies.comparison.facts import access_curves, cache_sizes, differing_facts
from leadline.studies.comparison.ratio import (
    ALPHA,
    NOT_TWO,
    GateRefused,
    Judged,
    LogRatio,
    holm,
    judge,
    paired_ratio,
    per_price,
    per_price_ratio,
    predicted,
    studies_ratio,
    verdict_of,
    welch_df,
)
from leadline.units import format_bytes


class ComparisonRefused(LeadlineError):
    """Nothing can be compared as asked; the message says what to type instead."""

    exit_code = 2


@dataclass(frozen=True)
class Question:
    """A workload to compare on, with its name where it has one."""

    title: str | None
    workload: Workload


@dataclass(frozen=True)
class WorkloadReadings:
    """One workload measured on several systems."""

    workload: Workload
    mb_s: dict[str, tuple[float, ...]]
    """Of each system, in the order of the passes."""
    findings: tuple[Finding, ...]
    """Why a system cannot take the workload and has no readings, or why they decide nothing."""
    costs: Mapping[Metric, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    """What else a gate may be about, in us, as `mb_s`."""


@dataclass(frozen=True)
class Terms:
    """How to compare."""

    questions: Sequence[Question]
    prices: Mapping[str, Price] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    """The gate's; none without a gate."""
    measured: Mapping[Workload, WorkloadReadings] | None = None
    """Readings of every question, when measured; None predicts."""


def name_systems(sides: Sequence[Sequence[StudyStart]]) -> tuple[str, ...]:
    """Return the names that tell the systems apart: with the study's id where names repeat.

    Args:
        sides: of each system its studies, of which the first names it.

    Raises:
        ComparisonRefused: fewer than two systems, or a study twice.

    """
    ids = [start.study_id for side in sides for start in side]
    if len(sides) < 2:
        raise ComparisonRefused(
            "comparing takes two or more surveys: leadline compare S1 S2; "
            "leadline systems lists them"
        )
    for study_id in ids:
        if ids.count(study_id) > 1:
            raise ComparisonRefused(
                f"{study_id[:8]} is given twice. A system's name means its newest study; "
                "name an older one by its id: leadline systems lists them"
            )
    systems = [side[0].system for side in sides]
    return tuple(
        name if systems.count(name) == 1 else f"{name} ({side[0].study_id[:8]})"
        for name, side in zip(systems, sides, strict=True)
    )


def named_questions() -> tuple[Question, ...]:
    """Return the five workloads of CP94 Fig. 16."""
    return tuple(Question(title, workload) for title, workload in NAMED.items())


def focal_questions(systems: Sequence[Named]) -> tuple[Question, ...]:
    """Return each system's focal points, each workload once."""
    found: dict[Workload, str] = {}
    for system in systems:
        for region in system.predictor.survey.regions:
            found.setdefault(region.focal, f"{region.name} of {system.name}")
    return tuple(Question(title, workload) for workload, title in found.items())


def questions_on(
    systems: Sequence[Named], own: Sequence[Question], *, named: bool
) -> tuple[Question, ...]:
    """Return what to compare on, each workload once: without any, CP94's and each focal point."""
    found = [*(named_questions() if named or not own else ()), *own]
    if not named and not own:
        found += focal_questions(systems)
    return tuple({item.workload: item for item in reversed(found)}.values())[::-1]


def compare_systems(systems: Sequence[Named], terms: Terms) -> SystemsComparison:
    """Compare every pair of systems on every question.

    Raises:
        ComparisonRefused: no question at all, or none that any pair of systems can answer.
        GateRefused: a gate over other than two systems.

    """
    if not terms.questions:
        raise ComparisonRefused("no workload to compare on; give --workload or --named")
    if terms.rules and len(systems) != 2:
        raise GateRefused(NOT_TWO)
    pairs = [pair for a, b in combinations(systems, 2) for pair in _on_questions(a, b, terms)]
    if not any(pair.shown.ratio is not None for pair in pairs):
        reasons = list(dict.fromkeys(str(each) for pair in pairs for each in pair.shown.withheld))
        raise ComparisonRefused("no workload can be compared: " + "; ".join(reasons[:3]))
    surveys = [system.predictor.survey for system in systems]
    size = common_size(systems)
    return answered(
        pairs,
        terms.rules,
        contenders=tuple(_contender(system, terms) for system in systems),
        differing_facts=differing_facts([survey.start for survey in surveys]),
        common_size_bytes=size,
        rates=common_rates(systems, size) if size else (),
        curves=common_curves(systems, size) if size else (),
        cache_sizes=cache_sizes(systems),
        own_curves=tuple(
            OwnCurve(system.name, system.predictor.survey.unique_bytes_curve) for system in systems
        ),
        access_curves=access_curves(systems),
        notes=_notes(systems, terms, size),
    )


class Pair(NamedTuple):
    """One workload on two systems, and what decides it."""

    shown: ComparedWorkload
    ratio: LogRatio | None
    """Of throughput, A over B."""
    costs: Mapping[Metric, LogRatio | None] = {}
    """Of what else a gate may be about."""


def answered(pairs: Sequence[Pair], rules: Sequence[Rule], **more: Any) -> SystemsComparison:
    """Judge all pairs together, and the gate by them."""
    judged = with_verdicts(pairs)
    decidable = sum(pair.ratio is not None for pair in judged)
    return SystemsComparison(
        pairs=judged,
        verdicts=decidable,
        expected_by_chance=ALPHA * decidable,
        gate=_gate_of(pairs, rules) if rules else None,
        **more,
    )


def _contender(system: Named, terms: Terms) -> Contender:
    survey = system.predictor.survey
    start = survey.start
    return Contender(
        name=system.name,
        system=start.system,
        survey_id=start.study_id,
        more_ids=tuple(each.survey.start.study_id for each in system.more),
        target=start.target,
        started_at=start.started_at,
        model=system.predictor.model.name,
        price=terms.prices.get(system.name),
        findings=tuple(
            dict.fromkeys(f for each in system.predictors for f in _survey_findings(each.survey))
        ),
    )


def _survey_findings(survey: Survey) -> tuple[Finding, ...]:
    start, found = survey.start, survey.findings
    if survey.status is Status.DONE:
        return found
    unfinished = Finding.of("survey_unfinished", target=start.target, system=start.system)
    return (unfinished, *found)


def _on_questions(a: Named, b: Named, terms: Terms) -> list[Pair]:
    found = []
    for question in terms.questions:
        if terms.measured is None:
            pair = _predicted(a, b, question)
        else:
            pair = _measured(a, b, question, terms.measured[question.workload])
        prices = terms.prices.get(a.name), terms.prices.get(b.name)
        shown = msgspec.structs.replace(
            pair.shown,
            a_mb_s_per_price=per_price(pair.shown.a_mb_s, prices[0]),
            b_mb_s_per_price=per_price(pair.shown.b_mb_s, prices[1]),
            per_price_ratio=per_price_ratio(pair.shown.ratio, *prices),
        )
        found.append(pair._replace(shown=shown))
    return found


def _predicted(a: Named, b: Named, question: Question) -> Pair:
    sides: dict[str, list[Prediction]] = {}
    findings: list[Finding] = []
    for system in (a, b):
        try:
            side = [each.predict(question.workload) for each in system.predictors]
            about = (*system.disturbance.findings, *(f for each in side for f in each.findings))
            sides[system.name] = side
        except PredictionRefused as refusal:
            about = (Finding.of("not_comparable", why=str(refusal)),)
        findings += within(system.name, dict.fromkeys(about))
    told = [predicted(side) for side in sides.values()]
    ratio = studies_ratio(*told) if len(told) == 2 else None
    if len(sides) == 2 and ratio is None:
        findings.append(Finding.of("no_spread"))
    if ratio is not None and withheld(ratio, a.disturbance.ln + b.disturbance.ln):
        findings.append(Finding.of("verdict_withheld"))
    rates = [_rate_of(sides[each.name]) if each.name in sides else None for each in (a, b)]
    return Pair(compared((a.name, b.name), question, rates, ratio, findings), ratio)


def _rate_of(side: Sequence[Prediction]) -> Interval:
    """Return what a system's surveys predict together."""
    if len(side) == 1:
        return side[0].throughput_mb_s
    own = [OwnError(each.ln_sd, each.df) for each in side]
    return runs_interval([each.throughput_mb_s.value for each in side], own)


def _measured(a: Named, b: Named, question: Question, readings: WorkloadReadings) -> Pair:
    findings = [each for each in readings.findings if each.where in {a.name, b.name}]
    if not {a.name, b.name} <= readings.mb_s.keys():
        pair = compared((a.name, b.name), question, [None, None], None, findings)
        return Pair(msgspec.structs.replace(pair, source="measured"), None)
    sides = (readings.mb_s[a.name], readings.mb_s[b.name])
    passes = tuple(zip(*sides, strict=True))
    ratio = paired_ratio(passes)
    if ratio is None:
        findings.append(Finding.of("too_few_passes"))
    rates = [runs_interval(side) for side in sides]
    pair = compared((a.name, b.name), question, rates, ratio, findings)
    costs = {
        metric: paired_ratio(list(zip(told[a.name], told[b.name], strict=True)))
        for metric, told in readings.costs.items()
    }
    return Pair(msgspec.structs.replace(pair, source="measured", readings=passes), ratio, costs)


def compared(
    names: tuple[str, str],
    question: Question,
    rates: Sequence[Interval | None],
    ratio: LogRatio | None,
    findings: Sequence[Finding],
) -> ComparedWorkload:
    """Return a workload on two systems, with the verdict that its ratio has alone."""
    pair = ComparedWorkload(
        a=names[0],
        b=names[1],
        title=question.title,
        workload=question.workload,
        source="predicted",
        a_mb_s=rates[0],
        b_mb_s=rates[1],
        ratio=ratio.interval() if ratio else None,
        p_value=ratio.p_value() if ratio else None,
        verdict="inconclusive",
        verdict_alone="inconclusive",
        findings=tuple(findings),
    )
    if ratio is None or pair.withheld:
        return pair
    return msgspec.structs.replace(pair, verdict_alone=verdict_of(ratio, ratio.p_value()))


def with_verdicts(pairs: Sequence[Pair]) -> tuple[ComparedWorkload, ...]:
    """Give each pair the verdict that answers for all of them together."""
    adjusted = iter(holm([each.ratio.p_value() for each in pairs if each.ratio is not None]))
    found = []
    for pair, ratio, _ in pairs:
        if ratio is None:
            found.append(pair)
            continue
        verdict = verdict_of(ratio, next(adjusted))
        found.append(pair if pair.withheld else msgspec.structs.replace(pair, verdict=verdict))
    return tuple(found)


def _gate_of(pairs: Sequence[Pair], rules: Sequence[Rule]) -> Gate:
    """Judge the second system against the first."""
    judged = [
        Judged(shown.title, shown.workload, ratio, costs, admissible=not shown.withheld)
        for shown, ratio, costs in pairs
    ]
    return judge(rules, judged)


def _notes(systems: Sequence[Named], terms: Terms, size: int | None) -> tuple[str, ...]:
    notes = []
    several = [system.name for system in systems if system.more]
    if several:
        notes.append(
            f"Of {join_words(several)} several surveys: what differs between them is in the "
            "intervals, and charts show the first."
        )
    if terms.measured is None:
        notes.append(
            "Ratios are predicted from the surveys; --measure measures them now, --extrapolate "
            "takes a marked guess where a system was not surveyed."
        )
    else:
        notes.append("Ratios are measured now, interleaved; the other charts are from the surveys.")
    if size is None:
        notes.append("No common charts: the surveyed request sizes have none in common.")
    else:
        at = "" if size == COMMON_SIZE_BYTES else f" ({format_bytes(COMMON_SIZE_BYTES)} was not)"
        models = ", ".join(dict.fromkeys(system.predictor.model.name for system in systems))
        notes.append(
            f"Curves are brought to {format_bytes(size)} requests by each system's {models} model "
            f"(CP93 Table 3); that size was surveyed on all of them{at}."
        )
    return tuple(notes)


# An application on surveyed systems: whose predicted time is shorter, and is it sure?
#
# Time in I/O decides: what else an application does takes the same on both sides. What neither
# survey knows decides nothing, so a verdict is withheld where that is more than a little, and where
# a prediction is invalid by itself.

UNKNOWN_MAX = 0.05
"""Of the traced time in I/O, or of all calls where that is not known, in terms nobody surveyed."""


def compare_application(
    systems: Sequence[Named], application: Application
) -> ApplicationComparison:
    """Compare every pair of systems.

    Raises:
        PredictionRefused: a survey is not finished.

    """
    found = tuple(predict_application(application, system.predictor) for system in systems)
    sides = list(combinations(zip(systems, found, strict=True), 2))
    ratios = [_ratio(a, b) for (_, a), (_, b) in sides]
    adjusted = holm([ratio.p_value() for ratio in ratios])
    pairs = []
    for ((a, at_a), (b, at_b)), ratio, p_value in zip(sides, ratios, adjusted, strict=True):
        findings = tuple(_withholding((a, b), (at_a, at_b), ratio))
        pairs.append(
            ApplicationPair(
                a=a.name,
                b=b.name,
                io_ratio=ratio.interval(),
                elapsed_ratio=_elapsed_ratio(at_a, at_b),
                p_value=ratio.p_value(),
                verdict="inconclusive" if findings else verdict_of(ratio, p_value),
                findings=findings,
            )
        )
    return ApplicationComparison(
        application=application.start.system,
        application_id=application.start.study_id,
        names=tuple(system.name for system in systems),
        predictions=found,
        pairs=tuple(pairs),
    )


def _ratio(a: ApplicationPrediction, b: ApplicationPrediction) -> LogRatio:
    variances = (max(a.own_ln_sd, 1e-9) ** 2, max(b.own_ln_sd, 1e-9) ** 2)
    df = welch_df(variances, (a.df, b.df))
    mean = math.log(b.io_s.value / a.io_s.value)
    return LogRatio(mean, math.sqrt(sum(variances)), df, a.io_s.n + b.io_s.n)


def _elapsed_ratio(a: ApplicationPrediction, b: ApplicationPrediction) -> Interval | None:
    """Of times that are not lower bounds; the ends are those of either side's, in quadrature."""
    first, second = a.elapsed_s, b.elapsed_s
    if first is None or second is None or a.io_at_least or b.io_at_least:
        return None
    mean = math.log(second.value / first.value)
    up, down = (
        math.hypot(_ln_end(one, low=not up), _ln_end(other, low=up))
        for up, one, other in ((True, first, second), (False, first, second))
    )
    return Interval(math.exp(mean), math.exp(mean - down), math.exp(mean + up), first.n + second.n)


def _ln_end(time: Interval, *, low: bool) -> float:
    end = time.low if low else time.high
    return 0.0 if end is None else abs(math.log(end / time.value))


def _withholding(
    systems: tuple[Named, Named],
    found: tuple[ApplicationPrediction, ApplicationPrediction],
    ratio: LogRatio,
) -> Iterator[Finding]:
    wrong = [[one for one in side.findings if one.severity is Severity.INVALID] for side in found]
    both = [each for each in wrong[0] if each in wrong[1]]
    yield from both
    for system, own in zip(systems, wrong, strict=True):
        yield from within(system.name, (each for each in own if each not in both))
    for system, each in zip(systems, found, strict=True):
        unknown = [term for term in each.terms if term.seconds is None]
        if not unknown:
            continue
        traced = [term.traced_s for term in each.terms]
        if None not in traced and sum(part or 0.0 for part in traced) > 0:
            share = sum(term.traced_s or 0.0 for term in unknown) / sum(
                part or 0.0 for part in traced
            )
            known = {"of_time_frac": share}
        else:
            share = sum(term.calls for term in unknown) / sum(term.calls for term in each.terms)
            known = {"of_calls_frac": share}
        if share > UNKNOWN_MAX:
            names = join_words([term.name for term in unknown])
            yield from within(system.name, [Finding.of("terms_not_surveyed", terms=names, **known)])
    if withheld(ratio, sum(system.disturbance.ln for system in systems)):
        yield Finding.of("verdict_withheld")
        for system in systems:
            yield from within(system.name, system.disturbance.findings)
