"""What `leadline peak` and `leadline surface` do with a begun experiment, and how it is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group
from rich.text import Text

from leadline.engine import Stopped
from leadline.record.wording import format_count, join_words
from leadline.record.workbench import (
    EXPERIMENT,
    Experiment,
    ExperimentStart,
    PeakRate,
    Sample,
    Surface,
    Threshold,
    Trial,
    TrialState,
)
from leadline.store import Store
from leadline.studies.conduct import conduct
from leadline.studies.registry import KINDS
from leadline.studies.workbench.answer import (
    format_peak,
    format_quantile,
    format_requests,
    format_sample,
    format_target,
)
from leadline.studies.workbench.loads import percentile_ms
from leadline.studies.workbench.policies.ladders import CLIMBS
from leadline.studies.workbench.run_lengths import expected_s
from leadline.studies.workbench.search import TrialWatcher
from leadline.studies.workbench.study import (
    ExperimentStudy,
    Variation,
    Where,
    format_variation,
    read_variations,
    spent_s,
    varied_sentences,
    varied_start,
)
from leadline.studies.workbench.tables import render_varied
from leadline.terminal.context import Context
from leadline.terminal.options import positive_seconds, reader, with_output
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.tell import draw, require_output, tell
from leadline.terminal.watch import Teller
from leadline.units import format_percent, format_seconds

ExperimentPath = Annotated[
    Path, typer.Argument(metavar="EXPERIMENT.toml", help="See docs/reference/experiment.md.")
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        metavar="P", help="How loads are picked; the file's, or curve.", show_default=False
    ),
]
Deadline = Annotated[
    float | None,
    typer.Option(
        parser=reader(positive_seconds),
        metavar="TIME",
        show_default=False,
        help="Most that it may cost, e.g. 20m; what is reached then is the answer.  [default: the "
        "file's, or none; 5m on a target]",
    ),
]
OwnSeed = Annotated[
    int | None,
    typer.Option(
        min=0, help="Decides everything that is drawn; the file's, or 1.", show_default=False
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the unfinished experiment of this name.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="tls://…", help="A dask.distributed scheduler whose workers run trials."),
]
InsecureScheduler = Annotated[
    bool,
    typer.Option(
        "--insecure-scheduler",
        help="Take a scheduler of another machine without TLS, on a network of your own.",
    ),
]
with_page = with_output("Also draw it: .html, .svg, .pdf or .csv.")
"""Gives a command its `output`, the page of what it measured."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """How an experiment is told, and where else it goes."""

    json: bool = False
    output: Path | None = None
    compare: bool = True


def run_and_tell(
    context: Context, study: ExperimentStudy, shown: Shown, *, resume: bool
) -> Experiment:
    """Run an experiment, keep it, and show it."""
    kind = KINDS[EXPERIMENT.kind]
    require_output(shown.output, kind)
    store = context.open_store()
    found: Experiment = conduct(study, store, _Teller(study), resume=resume)
    tell(found, kind, json=shown.json)
    if shown.output is not None:
        draw(store, found, kind, shown.output, ())
    return found


def _tell_plan(
    start: ExperimentStart, stored: Experiment | None, machines: tuple[str, ...]
) -> None:
    goal = start.goal
    what = start.system
    if start.design is None and start.samples[0]:
        what += f" ({format_sample(start.samples[0])})"
    limit = "" if start.deadline_s is None else f"; ends within {format_seconds(start.deadline_s)}"
    policy = f"policy {start.policy}"
    if start.policy in CLIMBS:
        policy += f" ({CLIMBS[start.policy](goal).words})"
    if start.design is not None:
        policy = f"{format_count(len(start.samples), 'sample')}, design {start.design}, {policy}"
    where = "" if len(machines) < 2 else f", on {len(machines)} machines"
    talk(
        f"experiment {start.study_id[:8]} of {what}: "
        f"{format_target(goal.threshold)}; ± {format_percent(goal.error_frac)} of the rate at "
        f"{format_percent(goal.confidence)}; {policy}{where}{limit}"
    )
    if start.run_lengths is not None:
        talk(
            f"  then trials of {join_words(list(map(format_seconds, start.run_lengths.seconds)))}: "
            f"{format_seconds(expected_s(start.run_lengths))} of test time and their set-up"
        )
    if stored is not None:
        kept = sum(len(own.trials) for own in stored.peaks)
        talk(f"  {format_count(kept, 'trial')} kept from before")


class _Teller(Teller, TrialWatcher):
    """Says every trial of a peak search, and every peak of a surface."""

    def __init__(self, study: ExperimentStudy) -> None:
        super().__init__(lambda start, kept: _tell_plan(start, kept, study.machines))
        self._trials = self._ended = 0
        self._cost_s = 0.0

    def begun(self, start: ExperimentStart, kept: Experiment | None) -> None:
        super().begun(start, kept)
        self._start, peaks = start, kept.peaks if kept is not None else ()
        self._trials = sum(len(own.trials) for own in peaks)
        self._ended = sum(own.peak is not None for own in peaks)
        self._cost_s = sum(trial.cost_s for own in peaks for trial in own.trials)

    def stopped(self, store: Store, start: ExperimentStart, error: BaseException) -> None:
        if isinstance(error, Stopped):
            talk(
                f"stopped; the trials that ended are kept under {start.study_id[:8]}: the "
                "same command with --resume goes on"
            )

    def on_trial(self, sample: Sample, trial: Trial) -> None:
        self._trials += 1
        self._cost_s += trial.cost_s
        if self._start.design is not None:
            return
        request = trial.request
        said = _outcome(trial, self._start.goal.threshold)
        talk(
            f"  {self._trials:>3}  {format_requests(request.rate_per_s):>18} for "
            f"{format_seconds(request.seconds):<8} {said:<24} "
            f"{format_seconds(self._cost_s)} so far"
        )

    def on_curve(self, sample: Sample, trial: Trial) -> None:
        request = trial.request
        response = None if trial.measured is None else trial.measured.response_ms
        said = trial.state.value
        if response is not None:
            named = {"p50": response.p50, "p99": response.p99, "p99.9": response.p99_9}
            said = ", ".join(f"{name} {_ms(value)}" for name, value in named.items())
        talk(
            f"  curve {format_requests(request.rate_per_s):>15} for "
            f"{format_seconds(request.seconds):<8} {said}"
        )

    def on_length(self, sample: Sample, trial: Trial) -> None:
        request = trial.request
        talk(
            f"  length {format_requests(request.rate_per_s):>14} for "
            f"{format_seconds(request.seconds):<8} {_outcome(trial, self._start.goal.threshold)}"
        )

    def on_peak(self, sample: Sample, peak: PeakRate, surface: Surface | None) -> None:
        if surface is None:
            return
        self._ended += 1
        rate = peak.rate_per_s
        found = format_peak(rate, peak.confidence) if rate is not None else "no rate"
        verdict = "" if peak.verdict == "found" else f" [{peak.verdict.value}]"
        error = ""
        if surface.error_frac is not None:
            error = f"; expected error {format_percent(surface.error_frac)}"
        talk(
            f"  {self._ended:>3} of {len(self._start.samples)}  {format_sample(sample)}: {found}"
            f"{verdict}, {format_count(peak.trials, 'trial')}; {format_seconds(self._cost_s)} so "
            f"far{error}"
        )


def _ms(milliseconds: float) -> str:
    return format_seconds(milliseconds / 1000)


def _outcome(trial: Trial, threshold: Threshold) -> str:
    if trial.state not in (TrialState.DONE, TrialState.ABORTED) or trial.measured is None:
        return trial.state.value
    response = trial.measured.response_ms
    said = "no answer" if response is None else f"mean {_ms(response.mean)}"
    if response is not None and threshold.mean_ms is None and threshold.percentile is not None:
        within = percentile_ms(threshold, trial.measured)
        said = f"{format_quantile(threshold.percentile)} within {_ms(within)}"
    return f"{said}, given up" if trial.state is TrialState.ABORTED else said


# `--vary accuracy=70%,90%`: one experiment with several goals or policies, told side by side.

Vary = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=V,…",
        help="Run it once for each of these goals: accuracy=70%,90% confidence=75%,95% "
        "width=2%,10% policy=linear,binary; may be said several times: all combinations, and what "
        "each costs.  [default: none]",
        show_default=False,
    ),
]


def require_one(texts: list[str] | None, *, resumed: bool) -> None:
    """Refuse to go on with several experiments at once.

    Raises:
        BadParameter: they are several.

    """
    if texts and resumed:
        raise typer.BadParameter("--resume goes on with one experiment; leave out --vary")


def run_varied(
    context: Context, start: ExperimentStart, texts: list[str], shown: Shown, *, where: Where
) -> None:
    """Run an experiment once for each combination, keep each, and tell them side by side.

    Raises:
        ExperimentRefused: what is to be varied makes no sense.

    """
    variations = read_variations(texts)
    kind = KINDS[EXPERIMENT.kind]
    require_output(shown.output, kind)
    store = context.open_store()
    found: list[Experiment] = []
    talk(f"{format_count(len(variations), 'experiment')} of {start.system}")
    for variation in variations:
        own = varied_start(start, variation)
        study = ExperimentStudy(where, partial(_already, own), compare=False)
        found.append(conduct(study, store, Teller(lambda *_: None)))
        cost = format_seconds(spent_s(found[-1]))
        talk(f"  {own.study_id[:8]}  {format_variation(variation)}: {cost}")
    if shown.json:
        put_json(_document(start, variations, found))
    else:
        sentences = varied_sentences(variations, found)
        show(Group(*map(Text, sentences), render_varied(variations, found)))
    if shown.output is not None:
        beside = [each.start.study_id for each in found[1:]]
        draw(store, found[0], kind, shown.output, beside)


def _already(start: ExperimentStart, _: Store) -> ExperimentStart:
    return start


def _document(
    start: ExperimentStart, variations: tuple[Variation, ...], found: list[Experiment]
) -> dict[str, Any]:
    costs = [spent_s(each) for each in found]
    return {
        "name": start.system,
        "sentences": varied_sentences(variations, found),
        "varied": [
            variation
            | {
                "experiment": each.start.study_id,
                "cost_s": cost_s,
                "of_least": cost_s / min(costs) if min(costs) > 0 else None,
                "trials": sum(len(own.trials) for own in each.peaks),
                "peaks": [
                    {
                        "sample": own.sample,
                        "peak_rate": own.peak.rate_per_s,
                        "verdict": own.peak.verdict,
                    }
                    for own in each.peaks
                    if own.peak is not None
                ],
            }
            for variation, each, cost_s in zip(variations, found, costs, strict=True)
        ],
    }
