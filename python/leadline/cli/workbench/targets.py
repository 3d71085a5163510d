"""`leadline peak TARGET --p99 2ms`: the options of a search on storage, without a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from leadline.cli.options import MaxBytes, duration, reader
from leadline.record import Access
from leadline.studies.workbench.experiments.latency import (
    latency_targets,
    response_seconds,
    storage_experiment,
)
from leadline.studies.workbench.experiments.read import ExperimentFile, load_experiment

_SUFFIX = ".toml"
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def _limit(said: str) -> Any:
    option = typer.Option(
        parser=reader(response_seconds),
        metavar="TIME",
        help=f"TARGET: {said}, e.g. 2ms.  [default: no such target]",
    )
    return Annotated[float | None, option]


TARGET_OPTIONS: dict[str, tuple[Any, Any]] = {
    "mean": (_limit("longest mean response"), None),
    "p50": (_limit("longest median"), None),
    "p95": (_limit("longest 95th percentile"), None),
    "p99": (_limit("longest 99th percentile"), None),
    "within": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="SHARE=TIME",
                help="TARGET: this share of the responses within this time, e.g. 99.9%=5ms; may "
                "be said several times, and beside the others.",
            ),
        ],
        None,
    ),
    "workload": (
        Annotated[
            str | None,
            typer.Option(
                metavar="k=v,…",
                help="TARGET: the workload, in Leadline's words or fio's: bs=4k,rw=randread,"
                "size=2g. Without a depth or processes, 128 requests may be under way.",
            ),
        ],
        None,
    ),
    "run_length": (
        Annotated[
            float | None,
            duration("TARGET: length of the trials that define the peak.  [default: 20s]"),
        ],
        None,
    ),
    "rate_start": (
        Annotated[
            float | None,
            typer.Option(
                metavar="R", min=0.01, help="TARGET: first load, requests/s.  [default: 500]"
            ),
        ],
        None,
    ),
    "rate_max": (
        Annotated[
            float | None,
            typer.Option(metavar="R", min=0.01, help="TARGET: highest load.  [default: none]"),
        ],
        None,
    ),
    "accuracy": (
        Annotated[
            float | None,
            typer.Option(
                min=0.5,
                max=0.999,
                help="TARGET: half the rate's interval is at most 1 less this.  [default: 0.9]",
            ),
        ],
        None,
    ),
    "confidence": (
        Annotated[
            float | None,
            typer.Option(min=0.5, max=0.999, help="TARGET: of the interval.  [default: 0.95]"),
        ],
        None,
    ),
    "max_bytes": (MaxBytes, None),
}


class StorageAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of a search on storage, by option; what was not said is None."""

    said: dict[str, Any]

    @classmethod
    def of(cls, **said: Any) -> StorageAsked:
        """Keep what was given."""
        return cls(said={name: value for name, value in said.items() if value not in (None, [])})


def experiment_of(what: str, asked: StorageAsked, access: Access) -> ExperimentFile:
    """Return the experiment of a file, or of a target with what was said beside it.

    Raises:
        BadParameter: options of a target were given with a file.
        ExperimentRefused, TargetRefused: it makes no sense; the message says why.

    """
    if is_file(what):
        given = [f"--{name.replace('_', '-')}" for name in asked.said]
        given += [word.split()[0] for word in access.beyond()]
        if given:
            raise typer.BadParameter(
                f"{given[0].removeprefix('--')} goes with a target; an experiment file has "
                "[threshold], [goal] and [server] for it"
            )
        return load_experiment(what)
    return _of_target(what, asked.said, access)


def is_file(what: str) -> bool:
    """Whether an experiment file is meant, and no target."""
    return what.endswith(_SUFFIX) and not what.startswith("sim:") and not Path(what).is_dir()


def _of_target(what: str, said: Mapping[str, Any], access: Access) -> ExperimentFile:
    threshold = latency_targets(
        mean=said.get("mean"),
        quantiles={share: said.get(name) for name, share in _QUANTILES.items()},
        within=said.get("within", ()),
    )
    fields = {
        "run_length": "run_length_s",
        "rate_start": "rate_start_per_s",
        "rate_max": "rate_max_per_s",
        "accuracy": "accuracy",
        "confidence": "confidence",
    }
    return storage_experiment(
        what,
        said.get("workload", ""),
        access,
        threshold,
        goal={field: said[name] for name, field in fields.items() if name in said},
        max_bytes=said.get("max_bytes"),
    )
