"""An application on surveyed systems: whose predicted time is shorter, and is it sure?

Time in I/O decides: what else an application does takes the same on both sides. What neither
survey knows decides nothing, so a verdict is withheld where that is more than a little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from leadline.compare.curves import Named
from leadline.compare.disturbance import withheld
from leadline.compare.ratio import LogRatio, holm, verdict_of
from leadline.predict.application import predict_application
from leadline.record import Interval
from leadline.record.application import Application
from leadline.record.application.comparison import ApplicationComparison, ApplicationPair
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.finding import Finding, within
from leadline.record.wording import join_words

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
                verdict="cannot tell" if findings else verdict_of(ratio, p_value),
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
    variances = (max(a.ln_sd, 1e-9) ** 2, max(b.ln_sd, 1e-9) ** 2)
    df = sum(variances) ** 2 / (variances[0] ** 2 / a.df + variances[1] ** 2 / b.df)
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
    if withheld(ratio, systems[0].disturbance, systems[1].disturbance):
        yield Finding.of("verdict_withheld")
        for system in systems:
            yield from within(system.name, system.disturbance.findings)
