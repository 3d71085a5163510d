"""Experiment files: TOML read into records; every message names the file and the line."""

from __future__ import annotations

import difflib
import itertools
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from leadline.engine import CacheLimitRefused, TargetRefused, host_facts
from leadline.errors import WorkloadError
from leadline.inputs import InputRefused, parse_toml, read_text
from leadline.record import Access
from leadline.record.workbench import (
    CommandServer,
    ExperimentStart,
    Factor,
    Goal,
    Level,
    NfsServer,
    RunLengths,
    Sample,
    ServerSpec,
    SimulatedServer,
    StorageServer,
    Threshold,
    TrialOrder,
    TrialRequest,
    Within,
)
from leadline.servers import check_server, run_trial
from leadline.studies.workbench import policies
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.keys import (
    FACTOR,
    GOAL,
    POOL,
    SERVERS,
    SURFACE,
    TABLE_NAMES,
    THRESHOLD,
    TOP,
    Key,
    storage_factor,
    storage_goal,
    storage_sample,
    storage_server,
    threshold_of,
)
from leadline.studies.workbench.experiments.quantities import (
    KeyPath,
    line_of,
    lines_of,
    read_levels,
)
from leadline.studies.workbench.surface.design import DEFAULT, open_design

SAMPLES_MAX = 10_000
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""Keys of a threshold that name a share by themselves."""
WIDTH_FRAC = 0.1
_HERE = "{here}"
"""In a directory or command: the folder of the experiment file."""


class ExperimentFile(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment as it was written, validated."""

    path: str
    text: str
    name: str
    server: ServerSpec
    goal: Goal
    policy: str
    seed: int = 1
    deadline_s: float | None = None
    factors: tuple[Factor, ...] = ()
    sample: Sample | None = None
    """The one configuration of `leadline peak`; None when the file leaves it open."""
    design: str | None = None
    surface_error_frac: float | None = None
    scheduler: str | None = None
    at_once: int | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The whole grid, the last factor varying fastest."""
        names = [factor.name for factor in self.factors]
        grid = itertools.product(*(factor.levels for factor in self.factors))
        return tuple(dict(zip(names, levels, strict=True)) for levels in grid)


def load_experiment(path: str | Path) -> ExperimentFile:
    """Read an experiment file.

    Raises:
        ExperimentRefused: it cannot be read, is not TOML, or makes no sense: file, line, what to
            write instead.

    """
    try:
        text = read_text(path)
    except InputRefused as error:
        raise ExperimentRefused(str(error)) from error
    return read_experiment(text, str(path))


def read_experiment(text: str, path: str) -> ExperimentFile:
    """Read the text of an experiment file; raises as `load_experiment`."""
    try:
        raw = parse_toml(text)
    except ValueError as error:
        raise ExperimentRefused(f"{path}: not valid TOML: {error}") from error
    return _Reader(text, path).read(raw)


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self._text, self._path = text, path
        self._lines = lines_of(text)

    def read(self, raw: dict[str, Any]) -> ExperimentFile:
        self._refuse_unknown(raw, (), [key.name for key in TOP] + list(TABLE_NAMES))
        for name in TABLE_NAMES:
            if not isinstance(raw.get(name, {}), dict):
                self._refuse((name,), f"{name} must be a table: [{name}]")
        flat = {name: value for name, value in raw.items() if name not in TABLE_NAMES}
        top: dict[str, Any] = {"name": Path(self._path).stem, "policy": policies.DEFAULT}
        top |= self._table(flat, (), TOP)
        if top["policy"] not in policies.POLICIES and "policy" in raw:
            self._refuse(
                ("policy",),
                f"there is no policy {top['policy']!r}" + _near(top["policy"], policies.POLICIES),
            )
        server = self._server(raw.get("server"))
        storage = isinstance(server, StorageServer)
        factors = self._factors(raw.get("factors", {}), storage=storage)
        threshold = self._threshold(raw.get("threshold"))
        if threshold.also and isinstance(server, NfsServer):
            self._refuse(("threshold",), 'the load of kind = "nfs" is counted over one limit only')
        experiment = ExperimentFile(
            path=self._path,
            text=self._text,
            server=server,
            goal=self._goal(raw.get("goal", {}), threshold, storage=storage),
            factors=factors,
            sample=self._sample(raw.get("sample"), factors, storage=storage),
            **top,
            **self._table(raw.get("surface", {}), ("surface",), SURFACE),
            **self._table(raw.get("pool", {}), ("pool",), POOL),
        )
        self._try(experiment)
        return experiment

    def _table(self, raw: dict[str, Any], path: KeyPath, keys: Sequence[Key]) -> dict[str, Any]:
        """Return the fields that a table gives, each read."""
        self._refuse_unknown(raw, path, [key.name for key in keys])
        found = {}
        for key in keys:
            if key.name in raw:
                found[key.field] = self._value(raw[key.name], (*path, key.name), key)
            elif key.required:
                self._refuse(
                    path,
                    f"{'.'.join(path)} lacks {key.name!r}: {key.words} "
                    f"For example: {key.name} = {key.kind.example}",
                )
        return found

    def _value(self, raw: Any, path: KeyPath, key: Key) -> Any:
        try:
            return key.kind.read(raw)
        except ValueError as error:
            self._refuse(path, f"{'.'.join(path)} is {_shown(raw)}: {error}")

    def _threshold(self, raw: dict[str, Any] | None) -> Threshold:
        path = ("threshold",)
        if raw is None:
            self._refuse((), 'there is no [threshold]; add one, for example mean = "40ms"')
        fields = self._table(raw, path, THRESHOLD)
        for one, other in (("percentile", "limit"), ("limit", "percentile")):
            if one in raw and other not in raw:
                self._refuse(
                    (*path, one),
                    f"threshold.{one} needs threshold.{other} beside it, "
                    'for example percentile = "95%" and limit = "100ms"',
                )
        shares = list(fields.get("also", ()))
        if "percentile" in fields:
            shares.append(Within(percentile=fields["percentile"], limit_ms=fields["limit_ms"]))
        for name, share in QUANTILES.items():
            if name in fields:
                shares.append(Within(percentile=share, limit_ms=fields[name]))
        if not shares and "mean_ms" not in fields:
            self._refuse(
                path,
                "[threshold] has neither mean nor percentile with limit; when is "
                'the server saturated? For example mean = "40ms"',
            )
        try:
            return threshold_of(
                fields.get("mean_ms"), shares, width_frac=fields.get("width_frac", WIDTH_FRAC)
            )
        except ValueError as error:
            self._refuse(path, f"[threshold]: {error}")

    def _goal(self, raw: dict[str, Any], threshold: Threshold, *, storage: bool) -> Goal:
        fields = self._table(raw, ("goal",), GOAL)
        make = storage_goal if storage else _goal_of
        goal = make(threshold, fields)
        if goal.accuracy < 0.5:
            self._refuse(
                ("goal", "accuracy"),
                f"goal.accuracy is {goal.accuracy:g}: it is a claim "
                "about how near the rate is; for ± 10% write 0.9",
            )
        if goal.confidence < 0.5:
            self._refuse(
                ("goal", "confidence"),
                f"goal.confidence is {goal.confidence:g}: it is "
                "how sure an interval is; for 95% write 0.95",
            )
        most = goal.rate_max_per_s
        if most is not None and (goal.increment_per_s or 0) > most:
            self._refuse(
                ("goal", "increment"),
                f"goal.increment is {goal.increment_per_s:g}, above goal.rate_max, {most:g}",
            )
        if most is None or most >= goal.rate_start_per_s:
            return goal
        if "rate_start" in raw:
            self._refuse(
                ("goal", "rate_start"),
                f"goal.rate_start is {goal.rate_start_per_s:g}, above goal.rate_max, {most:g}",
            )
        return msgspec.structs.replace(goal, rate_start_per_s=most)

    def _factors(self, raw: dict[str, Any], *, storage: bool) -> tuple[Factor, ...]:
        factors = tuple(self._factor(name, value, storage=storage) for name, value in raw.items())
        if math.prod(len(factor.levels) for factor in factors) > SAMPLES_MAX:
            self._refuse(
                ("factors",),
                f"the factors' levels make more than {SAMPLES_MAX} samples; leave some out",
            )
        return factors

    def _factor(self, name: str, raw: Any, *, storage: bool) -> Factor:
        path = ("factors", name)
        table = {"levels": raw} if isinstance(raw, list) else raw
        if not isinstance(table, dict):
            self._refuse(
                path,
                f"factors.{name} is {_shown(raw)}: write its levels, for example "
                f"{name} = [1, 2, 4]",
            )
        fields = self._table(table, path, FACTOR)
        if storage:
            try:
                fields["levels"] = storage_factor(
                    Factor(name=name, role="workload", levels=fields["levels"])
                ).levels
            except ValueError as error:
                self._refuse(path, f"factors.{name}: {error}")
        scale = fields.setdefault("scale", _usual_scale(fields["levels"]))
        if scale != "category" and isinstance(fields["levels"][0], str):
            self._refuse(
                (*path, "scale"),
                f"factors.{name}.scale is {scale!r}, but its levels are "
                'text; write scale = "category", or levels as numbers',
            )
        if scale == "log" and min(fields["levels"]) <= 0:
            self._refuse(
                (*path, "scale"),
                f"factors.{name}.scale is 'log', but a level is not "
                'above 0; write scale = "linear"',
            )
        role = "workload" if storage else "configuration"
        return Factor(name=name, **({"role": role} | fields))

    def _sample(
        self, raw: dict[str, Any] | None, factors: Sequence[Factor], *, storage: bool
    ) -> Sample | None:
        if raw is None:
            only = all(len(factor.levels) == 1 for factor in factors)
            return {factor.name: factor.levels[0] for factor in factors} if only else None
        self._refuse_unknown(raw, ("sample",), [factor.name for factor in factors])
        try:
            return complete_sample(storage_sample(raw) if storage else raw, factors)
        except (ExperimentRefused, ValueError) as error:
            self._refuse(("sample",), str(error))

    def _server(self, raw: dict[str, Any] | None) -> ServerSpec:
        path = ("server",)
        if raw is None:
            self._refuse(
                (),
                "there is no [server]; add one with kind = "
                + " or ".join(f'"{kind}"' for kind in SERVERS),
            )
        kind = raw.get("kind")
        if not isinstance(kind, str) or kind not in SERVERS:
            said = "lacks 'kind'" if kind is None else f"has the kind {_shown(kind)}"
            self._refuse((*path, "kind"), f"[server] {said}; there are: {', '.join(SERVERS)}")
        record, keys = SERVERS[kind]
        table = {name: value for name, value in raw.items() if name != "kind"}
        here = str(Path(self._path).resolve().parent)
        fields = _put_here(self._table(table, path, keys), here)
        if record is CommandServer:
            fields["directory"] = str(Path(here) / fields.get("directory", ""))
        if record is StorageServer:
            return self._storage(fields)
        return record(**fields)

    def _storage(self, fields: dict[str, Any]) -> StorageServer:
        own: dict[str, Any] = {
            name: fields[name] for name in ("warm_up_s", "max_bytes") if name in fields
        }
        reached = Access(
            **{name: fields[name] for name in Access.__struct_fields__ if name in fields}
        )
        try:
            return storage_server(fields["target"], fields["workload"], reached, at_once=own)
        except WorkloadError as error:
            self._refuse(("server", "workload"), f"server.workload: {error}")
        except TargetRefused as error:
            self._refuse(("server", "target"), f"server.target: {error}")

    def _try(self, experiment: ExperimentFile) -> None:
        """Ask a simulated server for a moment, or look at storage; it says what is wrong."""
        server = experiment.server
        try:
            check_server(server, experiment.samples)
        except (TargetRefused, CacheLimitRefused) as error:
            self._refuse(("server",), str(error))
        if not isinstance(server, SimulatedServer):
            return
        sample = experiment.sample or {
            factor.name: factor.levels[0] for factor in experiment.factors
        }
        instant = msgspec.structs.replace(server, wall_scale=0.0)
        request = TrialRequest(rate_per_s=1.0, seconds=0.01)
        try:
            run_trial(
                TrialOrder(
                    server=instant,
                    sample=sample,
                    request=request,
                    order=0,
                    seed=1,
                    threshold=experiment.goal.threshold,
                )
            )
        except TargetRefused as error:
            words = str(error).replace("`", " ").replace(":", " ").split()
            named = next((word for word in words if word in server.system), "")
            self._refuse(("server", "system", named), str(error))

    def _refuse_unknown(self, raw: Mapping[str, Any], path: KeyPath, known: Iterable[str]) -> None:
        known = list(known)
        for name in raw:
            if name not in known:
                where = f"[{'.'.join(path)}] has" if path else "the file has"
                self._refuse(
                    (*path, name), f"{where} the unknown key {name!r}" + _near(name, known)
                )

    def _refuse(self, path: KeyPath, why: str) -> NoReturn:
        raise ExperimentRefused(f"{self._path}:{line_of(self._lines, path)}: {why}")


def complete_sample(levels: Mapping[str, Level], factors: Sequence[Factor]) -> Sample:
    """Return one level for each factor, those with a single level added.

    Raises:
        ExperimentRefused: a factor is unknown, has no such level, or is missing.

    """
    names = [factor.name for factor in factors]
    for name in levels:
        if name not in names:
            raise ExperimentRefused(f"there is no factor {name!r}{_near(name, names)}")
    sample: Sample = {}
    for factor in factors:
        if factor.name in levels:
            sample[factor.name] = levels[factor.name]
        elif len(factor.levels) == 1:
            sample[factor.name] = factor.levels[0]
        else:
            raise ExperimentRefused(
                f"the sample lacks the factor {factor.name!r}, which has {len(factor.levels)} "
                f"levels: {', '.join(map(str, factor.levels))}"
            )
        try:
            read_levels([sample[factor.name]])
        except ValueError as error:
            raise ExperimentRefused(f"the sample's {factor.name}: {error}") from error
    return sample


def begin_peak(
    experiment: ExperimentFile,
    *,
    sample: Sample | None = None,
    policy: str | None = None,
    seed: int | None = None,
    deadline_s: float | None = None,
    curve_points: int = 0,
    run_lengths: RunLengths | None = None,
) -> ExperimentStart:
    """Return what decides a peak search.

    Args:
        experiment: the file.
        sample: levels in the place of the file's `[sample]`.
        policy: in the place of the file's.
        seed: the same.
        deadline_s: the same; of the search.
        curve_points: trials at even parts of the peak, once it is known.
        run_lengths: then trials of several lengths at parts of it.

    Raises:
        ExperimentRefused: factors have several levels and no one said which to take.
        UnknownPolicy: there is none of this name.

    """
    chosen = dict(experiment.sample or {}) | dict(sample or {})
    try:
        if isinstance(experiment.server, StorageServer):
            chosen = storage_sample(chosen)
        complete = complete_sample(chosen, experiment.factors)
    except (ExperimentRefused, ValueError) as error:
        raise ExperimentRefused(
            f"{experiment.path}: {error}; say which with --at NAME=LEVEL or in [sample], or run "
            "`leadline surface`"
        ) from error
    limit_s = deadline_s or experiment.goal.deadline_s or experiment.deadline_s
    goal = msgspec.structs.replace(experiment.goal, deadline_s=limit_s)
    start = _begin(experiment, goal, (complete,), policy=policy, seed=seed, deadline_s=limit_s)
    return msgspec.structs.replace(start, curve_points=curve_points, run_lengths=run_lengths)


def begin_surface(
    experiment: ExperimentFile,
    *,
    design: str | None = None,
    policy: str | None = None,
    seed: int | None = None,
    deadline_s: float | None = None,
) -> ExperimentStart:
    """Return what decides a surface; `design` and the others in the place of the file's.

    Raises:
        ExperimentRefused: the file has no factor to vary.
        UnknownPolicy, UnknownDesign: there is none of this name.

    """
    samples = experiment.samples
    if len(samples) < 2:
        raise ExperimentRefused(
            f"{experiment.path}: no factor has two levels, so there is no surface; add some under "
            "[factors], for example threads = [1, 4, 16], or run `leadline peak`"
        )
    start = _begin(
        experiment,
        experiment.goal,
        samples,
        policy=policy,
        seed=seed,
        deadline_s=deadline_s or experiment.deadline_s,
    )
    chosen = design or experiment.design or DEFAULT
    open_design(chosen, experiment.factors, experiment.goal, samples=samples)
    return msgspec.structs.replace(
        start, design=chosen, surface_error_frac=experiment.surface_error_frac
    )


def _begin(
    experiment: ExperimentFile,
    goal: Goal,
    samples: tuple[Sample, ...],
    *,
    policy: str | None,
    seed: int | None,
    deadline_s: float | None,
) -> ExperimentStart:
    chosen = policy or experiment.policy
    policies.open_policy(chosen, goal, 1)
    return ExperimentStart(
        study_id=uuid.uuid4().hex,
        system=experiment.name,
        server=experiment.server,
        goal=goal,
        policy=chosen,
        factors=experiment.factors,
        samples=samples,
        deadline_s=deadline_s,
        seed=experiment.seed if seed is None else seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        facts=host_facts(),
        text=experiment.text,
    )


def _goal_of(threshold: Threshold, asked: Mapping[str, Any]) -> Goal:
    return Goal(threshold=threshold, **asked)


def _usual_scale(levels: Sequence[Level]) -> str:
    if any(isinstance(level, str) for level in levels):
        return "category"
    return "log" if all(float(level) > 0 for level in levels) else "linear"


def _near(name: str, known: Iterable[str]) -> str:
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"; did you mean {near[0]!r}?" if near else ";"
    listed = f" There are: {', '.join(known)}" if known else " there is nothing to name here"
    return guess + listed


def _shown(value: Any) -> str:
    return f"{value!r}" if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _put_here(fields: dict[str, Any], here: str) -> dict[str, Any]:
    """Put the file's own folder where commands and directories name it."""
    return {name: _here_in(value, here) for name, value in fields.items()}


def _here_in(value: Any, here: str) -> Any:
    if isinstance(value, str):
        return value.replace(_HERE, here)
    if isinstance(value, tuple):
        return tuple(_here_in(word, here) for word in value)
    if isinstance(value, dict):
        return {name: _here_in(word, here) for name, word in value.items()}
    return value
