"""The kinds of study that are harmed: a short command of each, on a real target and a simulated."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attempts.scene import Scene

POINT_S = 0.1
"""Most time of a point of a hurried study on a real target."""
CAP = ("--cache-limit", "64MiB", "--max-bytes", "96MiB")
SMALL = "unique_bytes=16MiB,size_mean=4KiB,read_frac=0.5"
RUNS = ("--runs", "3", "--seconds", "1")
GENERATOR = Path(__file__).parents[2] / "tests" / "fake_generator.py"
SIMULATED_SERVER = """
name = "tried"
policy = "binary"
[server]
kind = "simulated"
wall_scale = 0.0005
[server.system]
workers = 2
service_ms = 10.0
service = { kind = "fixed" }
between_trials_sd = 0.01
[threshold]
mean = "40ms"
[goal]
run_length = "20s"
rate_start = 40
"""
COMMAND_SERVER = """
name = "tried"
policy = "binary"
[server]
kind = "command"
prepare = ["sh", "-c", "echo filled >{{state}}/database"]
set_up = ["sh", "-c", "sleep 600 & test -e {{state}}/database"]
load = ["{python}", "{generator}", "slow", "{{rate}}", "{{seconds}}", "{{seed}}"]
[threshold]
mean = "40ms"
[goal]
run_length = "0.3s"
rate_start = 40
"""


@dataclass(frozen=True)
class Kind:
    """A command that makes one study, and how it goes on."""

    name: str
    records: str
    """Of the study, in the store."""
    words: Callable[[Scene], list[str]]
    span_s: float
    """A kill comes within this time of a sitting; some sittings make a study."""
    prepare: Callable[[Scene], None] = lambda _: None
    point_s: float = 0.0
    simulated: bool = False
    beside: tuple[str, ...] = ()
    """Names that the user has, or asked for, in the target's directory."""
    kept: tuple[str, ...] = ()
    """Names below the temporary directory of what --resume finds again."""


def _survey(scene: Scene) -> list[str]:
    return ["survey", str(scene.target), "--name", "tried", *CAP, "--budget", "60s"]


def _survey_first(scene: Scene) -> None:
    # A larger cap than elsewhere: the largest requests of many processes are drawn as well.
    # And all the points there are, for a curve of every parameter in every region.
    size = ("--max-bytes", "384MiB", "--cache-limit", "256MiB", "--budget", "10m")
    words = ("survey", str(scene.target), "--name", "tried", *size)
    done = scene.run(*words, point_s=POINT_S)
    assert done.code == 0, done.said


def _simulated_first(scene: Scene) -> None:
    done = scene.run("survey", "sim:two-level", "--name", "tried")
    assert done.code == 0, done.said


def _records_first(scene: Scene) -> None:
    words = ("--records", "100000", "--memory", "48MiB")
    done = scene.run("stream", "generate", str(scene.target / "in"), *words)
    assert done.code == 0, done.said


def _sort(scene: Scene) -> list[str]:
    places = [str(scene.target / name) for name in ("in", "out")]
    options = ["--memory", "48MiB", "--no-bound", "--runs", "8", "--name", "tried", "--replace"]
    return ["stream", "sort", *places, *options]


def _experiment(text: str) -> Callable[[Scene], list[str]]:
    def words(scene: Scene) -> list[str]:
        path = scene.base / "experiment.toml"
        path.write_text(text, encoding="utf-8")
        return ["peak", str(path), "--no-compare"]

    return words


def _scale(scene: Scene) -> list[str]:
    effort = ["--size", "4MiB", "--memory", "64MiB", "--repeat", "4", "--budget", "2m"]
    return ["stream", "scale", str(scene.target), "--name", "tried", *effort]


def _files(scene: Scene) -> list[str]:
    effort = ["--file-size", "2MiB", "--runs", "3", "--budget", "5m"]
    systems = ["--filesystems", "existing,ext4", "--block-sizes", "1KiB,2KiB,4KiB"]
    return ["files", str(scene.target), "--name", "tried", *systems, *effort]


KINDS = (
    Kind("survey", "survey", _survey, span_s=4.0, point_s=POINT_S),
    Kind(
        "survey, simulated",
        "survey",
        lambda _: ["survey", "sim:three-level", "--name", "tried"],
        span_s=1.0,
        simulated=True,
    ),
    Kind(
        "validation",
        "validation",
        lambda _: ["validate", "tried", "--count", "10", "--seconds", "1s", "--no-rivals"],
        span_s=2.0,
        prepare=_survey_first,
        point_s=POINT_S,
    ),
    Kind(
        "validation, simulated",
        "validation",
        lambda _: ["validate", "tried", "--count", "20", "--no-rivals"],
        span_s=1.0,
        prepare=_simulated_first,
        simulated=True,
    ),
    Kind(
        "cache",
        "cache",
        lambda scene: ["cache", str(scene.target), "--name", "tried", *CAP, "--budget", "90s"],
        span_s=5.0,
        point_s=POINT_S,
    ),
    Kind(
        "cache, simulated",
        "cache",
        lambda _: ["cache", "sim:hp-730", "--name", "tried"],
        span_s=0.5,
        simulated=True,
    ),
    Kind("files", "files", _files, span_s=3.0),
    Kind("stream scale", "stream", _scale, span_s=2.0),
    Kind("stream sort", "stream", _sort, span_s=1.0, prepare=_records_first, beside=("in", "out")),
    Kind(
        "peak",
        "experiment",
        _experiment(COMMAND_SERVER.format(python=sys.executable, generator=GENERATOR)),
        span_s=3.0,
        kept=(f"leadline-{os.geteuid()}",),
    ),
    Kind(
        "peak, simulated", "experiment", _experiment(SIMULATED_SERVER), span_s=0.5, simulated=True
    ),
    Kind(
        "measure",
        "measurement",
        lambda scene: ["measure", str(scene.target), "--workload", SMALL, *RUNS],
        span_s=5.0,
    ),
    Kind(
        "measure, simulated",
        "measurement",
        lambda _: ["measure", "sim:two-level", "--workload", SMALL, "--runs", "40"],
        span_s=0.3,
        simulated=True,
    ),
)


def kind(name: str) -> Kind:
    """Return a kind by its name."""
    return next(each for each in KINDS if each.name == name)
