"""`leadline peak`: how much load can this server, or this storage, take?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from leadline.engine import Target
from leadline.errors import LeadlineError, WorkloadError
from leadline.record import Access
from leadline.record.workbench import (
    Level,
    PeakRate,
    PeakVerdict,
    RunLengths,
    Sample,
    Threshold,
    Within,
)
from leadline.record.workload import parse_share
from leadline.servers import check_server
from leadline.studies.workbench import policies
from leadline.studies.workbench.command_run import (
    Deadline,
    InsecureScheduler,
    OwnSeed,
    PolicyName,
    Resume,
    Scheduler,
    Shown,
    Vary,
    require_one,
    run_and_tell,
    run_varied,
    with_page,
)
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.keys import storage_goal, storage_server, threshold_of
from leadline.studies.workbench.experiments.quantities import SHARE
from leadline.studies.workbench.experiments.read import ExperimentFile, load_experiment
from leadline.studies.workbench.run_lengths import read_run_lengths
from leadline.studies.workbench.study import Where, peak_of
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Json,
    MaxBytes,
    duration,
    positive_seconds,
    reader,
    with_access,
    with_group,
)
from leadline.units import parse_seconds

DEADLINE_S = 300.0
"""Most that a search on storage takes where nobody said."""


def storage_experiment(
    target: str,
    words: str,
    access: Access,
    threshold: Threshold,
    *,
    goal: Mapping[str, Any] | None = None,
    seed: int = 1,
    max_bytes: int | None = None,
) -> ExperimentFile:
    """Return the experiment that a file of this target, workload and threshold would say.

    Args:
        target: as `leadline measure` takes it.
        words: the workload; empty is as usual.
        access: how storage is reached.
        threshold: the latency targets.
        goal: fields of the goal that are not as usual.
        seed: decides everything that is drawn.
        max_bytes: use no more of the target.

    Raises:
        ExperimentRefused: the words make no workload.
        TargetRefused: the target cannot be used.

    """
    try:
        server = storage_server(target, words, access, at_once={"max_bytes": max_bytes})
        check_server(server, [{}])
    except WorkloadError as error:
        raise ExperimentRefused(str(error)) from error
    asked = {"deadline_s": DEADLINE_S} | dict(goal or {})
    return ExperimentFile(
        path=server.target,
        text="",
        name=Target.parse(server.target).name,
        server=server,
        goal=storage_goal(threshold, asked),
        policy=policies.DEFAULT,
        seed=seed,
        sample={},
    )


def latency_targets(
    *, mean: float | None, quantiles: Mapping[float, float | None], within: Sequence[str] = ()
) -> Threshold:
    """Return the threshold of these targets.

    Args:
        mean: longest mean response in seconds.
        quantiles: of each share, 0.99, the longest time in seconds.
        within: the same as text, `99.9%=5ms`.

    Raises:
        ExperimentRefused: there is none, one cannot be read, or two contradict each other.

    """
    shares = [
        Within(percentile=share, limit_ms=1e3 * seconds)
        for share, seconds in quantiles.items()
        if seconds is not None
    ]
    try:
        shares += [_within(text) for text in within]
        return threshold_of(None if mean is None else 1e3 * mean, shares)
    except ValueError as error:
        raise ExperimentRefused(
            f"{error}: for example --p99 2ms, --mean 500us, or --within 99.9%=5ms"
        ) from error


def _within(text: str) -> Within:
    share, equals, limit = text.partition("=")
    if not equals:
        raise ValueError(f"--within {text!r} is not SHARE=TIME")
    try:
        percentile = SHARE.read(share.strip() if "%" in share else float(share))
    except ValueError as error:
        raise ValueError(f"--within {text!r}: {share!r} is no share: {error}") from error
    return Within(percentile=percentile, limit_ms=1e3 * response_seconds(limit))


def response_seconds(text: str) -> float:
    """Read a response time, which says its unit: 2 may be seconds or milliseconds.

    Raises:
        ValueError: it has none, or is no time at all.

    """
    if not text.strip()[-1:].isalpha():
        raise ValueError(f"{text!r} has no unit; write for example 2ms or 500us")
    seconds = parse_seconds(text.strip())
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time at all; write for example 2ms or 500us")
    return seconds


# `leadline peak … --run-lengths 30s,1m,3m`: the options of a study of run lengths.

LENGTH_OPTIONS: dict[str, tuple[Any, Any]] = {
    "run_lengths": (
        Annotated[
            str | None,
            typer.Option(
                metavar="TIME,…",
                help="Then trials of each of these lengths at parts of the peak, e.g. 30s,1m,3m,5m:"
                " how far responses spread, and which length reaches the accuracy in the least "
                "test time. They come on top of the deadline.  [default: none]",
                show_default=False,
            ),
        ],
        None,
    ),
    "load_factors": (
        Annotated[
            str | None,
            typer.Option(
                metavar="SHARE,…",
                help="Parts of the peak at which --run-lengths are tried.  [default: 30%,90%]",
                show_default=False,
            ),
        ],
        None,
    ),
    "trials": (
        Annotated[
            int | None,
            typer.Option(
                metavar="N",
                min=1,
                help="Of each length at each load of --run-lengths.  [default: 10]",
                show_default=False,
            ),
        ],
        None,
    ),
}


def lengths_of(
    run_lengths: str | None = None, load_factors: str | None = None, trials: int | None = None
) -> RunLengths | None:
    """Return the study that was asked for; None where nobody asked.

    Raises:
        BadParameter: a list that cannot be read, or its options without it.
        ExperimentRefused: lengths, loads or trials that make no study.

    """
    if run_lengths is None:
        for name, given in (("--load-factors", load_factors), ("--trials", trials)):
            if given is not None:
                raise typer.BadParameter(f"{name} goes with --run-lengths, for example 30s,1m,3m")
        return None
    try:
        seconds = [positive_seconds(each) for each in run_lengths.split(",")]
        parts = [parse_share(each) for each in (load_factors or "").split(",") if each.strip()]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return read_run_lengths(seconds, parts, trials)


# `leadline peak TARGET --p99 2ms`: the options of a search on storage, without a file.

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


CurvePoints = Annotated[
    int,
    typer.Option(
        min=0,
        max=100,
        metavar="N",
        help="Then so many trials at even parts of the peak: the load-latency curve. They "
        "come on top of the deadline.  [default: none]",
        show_default=False,
    ),
]


class TrialsFailed(LeadlineError):
    """Trials failed again and again; what was measured is kept."""

    exit_code = 3


class PolicyGaveUp(LeadlineError):
    """The accuracy that was asked for was not reached, and more trials were not expected to."""

    exit_code = 3


@with_page
@with_access
@with_group("asked", TARGET_OPTIONS, StorageAsked.of)
@with_group("run_lengths", LENGTH_OPTIONS, lengths_of)
def command(
    context: typer.Context,
    *,
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT.toml|TARGET",
            help="A server's file (docs/reference/experiment.md), or storage with a latency "
            "target: DIR, nfs://HOST/PATH, sim:NAME.",
        ),
    ],
    asked: StorageAsked,
    access: Access,
    curve: CurvePoints = 0,
    run_lengths: RunLengths | None,
    policy: PolicyName = None,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LEVEL", help="Level of a factor; the file's [sample] without."),
    ] = None,
    deadline: Deadline = None,
    seed: OwnSeed = None,
    resume: Resume = False,
    vary: Vary = None,
    scheduler: Scheduler = None,
    insecure_scheduler: InsecureScheduler = False,
    output: Path | None = None,
    compare: Annotated[
        bool | None,
        typer.Option(
            "--compare/--no-compare",
            show_default=False,
            help="Compare with the other policies; takes some seconds.  [default: "
            "of a file, not of a target]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find the peak rate of a server or disk at a latency target.

    Example: leadline peak /data --p99 2ms --workload bs=4k,rw=randread,direct=1,size=2g
    """
    require_one(vary, resumed=resume)
    file = experiment_of(experiment, asked, access)
    own: Context = context.obj
    decided: dict[str, Any] = {
        "sample": _sample(at or ()),
        "policy": policy,
        "seed": seed,
        "deadline_s": deadline,
        "curve_points": curve,
        "run_lengths": run_lengths,
    }
    where = Where(scheduler=scheduler, insecure=insecure_scheduler)
    beside = is_file(experiment) if compare is None else compare
    study = peak_of(file, where, decided, compare=beside)
    shown = Shown(json=json, output=output)
    if vary:
        run_varied(own, study.decide(own.open_store()), vary, shown, where=study.where)
        return
    found = run_and_tell(own, study, shown, resume=resume)
    _require_answer(found.peaks[0].peak)


def _require_answer(peak: PeakRate | None) -> None:
    """Leave with 3 where the search did not come to what was asked."""
    if peak is not None and peak.verdict is PeakVerdict.FAILED:
        raise TrialsFailed("trials failed again and again; `leadline show` tells how each ended")
    if peak is not None and peak.verdict is PeakVerdict.GAVE_UP:
        raise PolicyGaveUp(
            "the policy gave up before it knew the rate as well as was asked; what "
            "it reached is kept"
        )


def _sample(texts: list[str] | tuple[()]) -> Sample:
    sample: Sample = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not equals or not name.strip() or not level.strip():
            raise typer.BadParameter(f"--at {text!r} is not NAME=LEVEL, for example threads=8")
        sample[name.strip()] = _level(level.strip())
    return sample


def _level(text: str) -> Level:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
