"""`--vary accuracy=70%,90%`: one experiment with several goals or policies, told side by side."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from leadline.cli.context import Context
from leadline.cli.talk import put_json, show, talk
from leadline.cli.tell import draw, require_output
from leadline.cli.watch import Teller
from leadline.cli.workbench.run import Shown
from leadline.record.wording import say_count
from leadline.record.workbench import EXPERIMENT, Experiment, ExperimentStart
from leadline.report.kinds import KINDS
from leadline.report.workbench.varied_table import render_varied
from leadline.store import Store
from leadline.studies.conduct import conduct
from leadline.studies.workbench.asked import ExperimentStudy, Where
from leadline.studies.workbench.varied import (
    Variation,
    read_variations,
    say_variation,
    spent_s,
    varied_sentences,
    varied_start,
)
from leadline.units import format_seconds

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
    talk(f"{say_count(len(variations), 'experiment')} of {start.system}")
    for variation in variations:
        own = varied_start(start, variation)
        study = ExperimentStudy(where, partial(_already, own), compare=False)
        found.append(conduct(study, store, Teller(lambda *_: None)))
        cost = format_seconds(spent_s(found[-1]))
        talk(f"  {own.study_id[:8]}  {say_variation(variation)}: {cost}")
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
