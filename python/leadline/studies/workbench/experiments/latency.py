"""A search on storage as the command line and Python ask for it, without an experiment file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline.engine import Target
from leadline.errors import WorkloadError
from leadline.record import Access
from leadline.record.workbench import Threshold, Within
from leadline.servers import check_server
from leadline.studies.workbench import policies
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.keys import storage_goal, storage_server, threshold_of
from leadline.studies.workbench.experiments.quantities import SHARE
from leadline.studies.workbench.experiments.read import ExperimentFile
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
