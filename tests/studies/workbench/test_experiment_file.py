"""Experiment files: what they become, and that every message names file, line and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.record.workbench import (
    CommandServer,
    Factor,
    Goal,
    NfsServer,
    SimulatedServer,
    Threshold,
)
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.keys import (
    FACTOR,
    GOAL,
    POOL,
    SERVERS,
    SURFACE,
    THRESHOLD,
    TOP,
)
from leadline.studies.workbench.experiments.quantities import line_of, lines_of
from leadline.studies.workbench.experiments.read import (
    QUANTILES,
    begin_peak,
    begin_surface,
    load_experiment,
    read_experiment,
)
from places import ROOT

SMALL = """
[server]
kind = "simulated"
system = { workers = 4, service_ms = 10.0, service = { kind = "exponential" } }

[threshold]
mean = "40ms"
"""
WHOLE = """\
name = "database"
seed = 7
deadline = "2h"

[server]
kind = "simulated"
wall_scale = 0.01
dies_above = "900/s"
generator_max = 800

[server.system]
service_ms = 10.0
service = { kind = "lognormal", cv = 1.5 }
cpu_ms = 0.2

[threshold]
mean = "40ms"
percentile = "95%"
limit = "0.2s"
width = 0.2

[goal]
accuracy = "95%"
confidence = 0.9
run_length = "90s"
rate_start = 20
rate_max = "5000/s"
deadline = "20m"

[factors]
workers = [1, 4, 16]

[factors.disks]
levels = [1, 2]
role = "resource"
scale = "linear"

[sample]
workers = 4
disks = 2

[surface]
design = "full"
error = "6%"

[pool]
scheduler = "tcp://head:8786"
at_once = 3
"""


def test_a_small_file_has_everything_else_by_default() -> None:
    found = read_experiment(SMALL, "small.toml")
    assert (found.name, found.policy, found.seed) == ("small", "curve", 1)
    assert found.goal == Goal(threshold=Threshold(mean_ms=40.0))
    assert found.server == SimulatedServer(
        system={"workers": 4, "service_ms": 10.0, "service": {"kind": "exponential"}}
    )
    assert found.factors == ()
    assert found.sample == {}


def test_every_key_arrives_in_its_field_and_unit() -> None:
    found = read_experiment(WHOLE, "whole.toml")
    assert (found.name, found.seed, found.deadline_s) == ("database", 7, 7200.0)
    assert found.server == SimulatedServer(
        system={"service_ms": 10.0, "service": {"kind": "lognormal", "cv": 1.5}, "cpu_ms": 0.2},
        wall_scale=0.01,
        dies_above_per_s=900.0,
        generator_max_per_s=800.0,
    )
    assert found.goal == Goal(
        threshold=Threshold(mean_ms=40.0, percentile=0.95, limit_ms=200.0, width_frac=0.2),
        accuracy=0.95,
        confidence=0.9,
        run_length_s=90.0,
        rate_start_per_s=20.0,
        rate_max_per_s=5000.0,
        deadline_s=1200.0,
    )
    assert found.factors == (
        Factor(name="workers", role="configuration", levels=(1, 4, 16), scale="log"),
        Factor(name="disks", role="resource", levels=(1, 2), scale="linear"),
    )
    assert found.sample == {"workers": 4, "disks": 2}
    assert (found.design, found.surface_error_frac) == ("full", 0.06)
    assert (found.scheduler, found.at_once) == ("tcp://head:8786", 3)
    assert found.samples[:3] == (
        {"workers": 1, "disks": 1},
        {"workers": 1, "disks": 2},
        {"workers": 4, "disks": 1},
    )


def test_how_fixed_steps_climb_is_in_the_goal() -> None:
    text = changed(
        "rate_start = 20", 'rate_start = 20\nincrement = "5/s"\ntrial_length = "2m"\ntrials = 4'
    )
    goal = read_experiment(text, "whole.toml").goal
    assert (goal.increment_per_s, goal.trial_length_s, goal.trials) == (5.0, 120.0, 4)
    usual = read_experiment(WHOLE, "whole.toml").goal
    assert (usual.increment_per_s, usual.trial_length_s, usual.trials) == (None, None, None)


def test_an_nfs_server_and_a_command(tmp_path: Path) -> None:
    threshold = '[threshold]\nmean = "5ms"\n'
    (tmp_path / "nfs.toml").write_text(
        '[server]\nkind = "nfs"\ndirectory = "{here}/data"\nworkload = "db_tp"\ndata = "64MiB"\n'
        'settings = { threads = 8, stable = "sync" }\nwarm_up = "2s"\n' + threshold
    )
    assert load_experiment(tmp_path / "nfs.toml").server == NfsServer(
        directory=f"{tmp_path}/data",
        workload="db_tp",
        data_bytes=64 * 2**20,
        settings={"threads": 8, "stable": "sync"},
        warm_up_s=2.0,
    )
    (tmp_path / "command.toml").write_text(
        '[server]\nkind = "command"\nload = "{here}/load \'two words\' {rate} {seconds}"\n'
        'set_up = ["start", "a b"]\ntime_out = "1m"\nenvironment = { PORT = 80, HOME = "{here}" }\n'
        + threshold
    )
    assert load_experiment(tmp_path / "command.toml").server == CommandServer(
        load=(f"{tmp_path}/load", "two words", "{rate}", "{seconds}"),
        set_up=("start", "a b"),
        time_out_s=60.0,
        environment={"PORT": "80", "HOME": str(tmp_path)},
        directory=str(tmp_path),
    )


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new)


REFUSED = [
    ("seed = 7", "sede = 7", 2, "unknown key 'sede'; did you mean 'seed'"),
    ("seed = 7", "seed = -7", 2, "seed is -7: it must be a whole number"),
    ('deadline = "2h"', "deadline = 7200", 3, 'write it with its unit, for example "90s"'),
    ('deadline = "2h"', 'deadline = "2 years"', 3, "unknown unit 'years'"),
    ('name = "database"', 'policy = "curv"', 1, "no policy 'curv'"),
    ('kind = "simulated"', 'kind = "simulate"', 6, "kind 'simulate'; there are: simulated, nfs"),
    ('kind = "simulated"\n', "", 5, "lacks 'kind'"),
    ("wall_scale", "walscale", 7, r"\[server\] has the unknown key .*mean 'wall_scale'"),
    ('"900/s"', '"900 per second"', 8, "requests per second, for example 200"),
    ("cpu_ms = 0.2", "cpu_ms = -0.2", 14, "cpu_ms is -0.2"),
    ("cpu_ms = 0.2", "cpus = 0.2", 14, "unknown field"),
    ('mean = "40ms"', "mean = 40", 17, 'threshold.mean is 40: .*"40ms"'),
    ('mean = "40ms"', 'mean_ms = "40ms"', 17, "mean_ms.*did you mean 'mean'"),
    ('percentile = "95%"', "percentile = 95", 18, "a share between 0 and 1"),
    ('limit = "0.2s"\n', "", 18, "threshold.percentile needs threshold.limit"),
    ('percentile = "95%"\n', "", 18, "threshold.limit needs threshold.percentile"),
    ('accuracy = "95%"', 'accuracy = "10%"', 23, "for ± 10% write 0.9"),
    ("confidence = 0.9", "confidence = 0.05", 24, "for 95% write 0.95"),
    ("rate_start = 20", "increment = 6000", 26, "goal.increment is 6000, above goal.rate_max"),
    ("rate_start = 20", "increment = 0", 26, "goal.increment is 0: it must be between 0.001 and"),
    ("rate_start = 20", "trials = 101", 26, "a whole number between 1 and 100"),
    ("rate_start = 20", "trials = 0", 26, "a whole number between 1 and 100"),
    ("rate_start = 20", "trial_length = 60", 26, 'write it with its unit, for example "90s"'),
    ("rate_start = 20", "rate_start = 6000", 26, "above goal.rate_max, 5000"),
    ("workers = [1, 4, 16]", "workers = [1, 4, 1]", 31, "a level is there twice"),
    ("workers = [1, 4, 16]", "workers = [1, 'many']", 31, "numbers and text"),
    ("workers = [1, 4, 16]", "workers = [true]", 31, 'write "on" and "off"'),
    ("workers = [1, 4, 16]", "workers = 4", 31, r"write its levels, for example workers = \[1"),
    ("levels = [1, 2]\n", "", 33, "lacks 'levels'"),
    ('scale = "linear"', 'scale = "cubic"', 36, "one of linear, log, category"),
    ("levels = [1, 2]", 'levels = ["a", "b"]', 36, 'its levels are text; write scale = "category"'),
    ("disks = 2", "disk = 2", 40, "unknown key 'disk'; did you mean 'disks'"),
    ("disks = 2\n", "", 38, "lacks the factor 'disks', which has 2 levels: 1, 2"),
    ("at_once = 3", "at_once = 0", 48, "a whole number, 1 or more"),
    ("seed = 7", "seed = ", 2, "not valid TOML"),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"), REFUSED, ids=[r[1][:30] for r in REFUSED]
)
def test_what_makes_no_sense_is_refused_with_file_and_line(
    old: str, new: str, line: int, message: str
) -> None:
    with pytest.raises(ExperimentRefused, match=message) as refused:
        read_experiment(changed(old, new), "whole.toml")
    text = str(refused.value)
    assert text.startswith(f"whole.toml:{line}: ") or f"(at line {line}, " in text, text
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no .threshold.|there is no .server."),
        (SMALL.replace('mean = "40ms"', ""), "neither mean nor percentile"),
        ("server = 3\n" + SMALL.split("\n\n")[1], "server must be a table"),
    ],
)
def test_what_is_missing_is_said(text: str, message: str) -> None:
    with pytest.raises(ExperimentRefused, match=message):
        read_experiment(text, "x.toml")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ExperimentRefused, match="there is no file"):
        load_experiment(tmp_path / "none.toml")
    with pytest.raises(ExperimentRefused, match="cannot be read"):
        load_experiment(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ExperimentRefused, match="UTF-8"):
        load_experiment(tmp_path / "binary.toml")


def test_every_field_of_the_records_can_be_written() -> None:
    """A field that no key sets would be out of every user's reach."""
    for record, keys in SERVERS.values():
        assert {key.field for key in keys} == set(record.__struct_fields__)
    assert {key.field for key in GOAL} | {"threshold"} == set(Goal.__struct_fields__)
    assert {key.field for key in THRESHOLD} == set(Threshold.__struct_fields__) | set(QUANTILES)
    assert {key.field for key in FACTOR} | {"name"} == set(Factor.__struct_fields__)


@given(st.integers(0, len(WHOLE)), st.integers(0, 12), st.text("[]{}=\"'.#\n 0a%-", max_size=4))
def test_a_damaged_file_is_read_or_refused(at: int, gone: int, new: str) -> None:
    """Never anything else than the one error; a line that it names exists."""
    text = WHOLE[:at] + new + WHOLE[at + gone :]
    try:
        read_experiment(text, "whole.toml")
    except ExperimentRefused as error:
        named = re.match(r"whole\.toml:(\d+): ", str(error))
        assert named is None or 1 <= int(named[1]) <= text.count("\n") + 1


def test_the_reference_names_every_key() -> None:
    reference = ROOT / "docs/reference/experiment.md"
    text = reference.read_text(encoding="utf-8")
    every = [TOP, THRESHOLD, GOAL, FACTOR, SURFACE, POOL, *(keys for _, keys in SERVERS.values())]
    for keys in every:
        for key in keys:
            needed = "required" if key.required else key.default
            row = f"| `{key.name}` | {key.kind.says} | {needed} | {key.words} |"
            assert row in text, f"docs/reference/experiment.md lacks the row {row}"


def test_a_peak_search_begins_with_one_sample() -> None:
    start = begin_peak(read_experiment(WHOLE, "whole.toml"), seed=9, policy="binary")
    assert start.samples == ({"workers": 4, "disks": 2},)
    assert (start.seed, start.policy, start.design) == (9, "binary", None)
    assert start.goal.deadline_s == start.deadline_s == 1200.0
    assert start.text == WHOLE
    other = begin_peak(
        read_experiment(WHOLE, "whole.toml"), sample={"workers": 16}, deadline_s=60, policy="binary"
    )
    assert other.samples == ({"workers": 16, "disks": 2},)
    assert other.goal.deadline_s == 60
    assert other.study_id != start.study_id


def test_a_peak_search_needs_to_know_which_sample() -> None:
    open_file = read_experiment(changed("[sample]\nworkers = 4\ndisks = 2\n", ""), "whole.toml")
    assert open_file.sample is None
    with pytest.raises(ExperimentRefused, match=r"'workers', which has 3 levels.*--at NAME=LEVEL"):
        begin_peak(open_file)
    with pytest.raises(ExperimentRefused, match="no factor 'cores'"):
        begin_peak(open_file, sample={"cores": 2})


def test_a_surface_begins_with_its_whole_grid() -> None:
    start = begin_surface(read_experiment(WHOLE, "whole.toml"), design="full-grid", policy="binary")
    assert len(start.samples) == 6
    assert (start.design, start.surface_error_frac, start.deadline_s) == ("full-grid", 0.06, 7200.0)
    assert start.goal.deadline_s == 1200.0
    with pytest.raises(ExperimentRefused, match="no surface; add some under"):
        begin_surface(read_experiment(SMALL, "small.toml"), design="full-grid", policy="binary")


def test_a_low_maximum_lowers_the_first_load() -> None:
    found = read_experiment(SMALL + "[goal]\nrate_max = 20\n", "small.toml")
    assert found.goal.rate_start_per_s == 20.0


def test_start_records_survive_json() -> None:
    """They go into the store and to the machines of the pool."""
    start = begin_surface(read_experiment(WHOLE, "whole.toml"), design="full-grid", policy="binary")
    assert msgspec.json.decode(msgspec.json.encode(start), type=type(start)) == start


TRICKY = (
    '''
a = "x = 1 # no comment" # [not.a.table]
b = """
c = 3
"""
d = [ # [e]
  1, "]",
]
"quoted.key" = 'it''s' '''.replace("'it''s'", "'its'")
    + """
[t . "u v"]
x.y = { z = [1, "}"], w = 2 }
[[list]]
k = '''
[no]'''
l = 1
q = '''"'''
r = '''x''''
after = 1
"""
)


def test_lines_are_those_of_the_keys() -> None:
    lines = lines_of(TRICKY)
    assert {path: line for path, line in lines.items() if len(path) == 1} == {
        ("a",): 2,
        ("b",): 3,
        ("d",): 6,
        ("quoted.key",): 9,
        ("t",): 10,
        ("list",): 12,
    }
    assert lines["t", "u v", "x", "y"] == 11
    assert (lines["list", "k"], lines["list", "l"]) == (13, 15)
    assert (lines["list", "r"], lines["list", "after"]) == (17, 18)
    assert line_of(lines, ("t", "u v", "x", "y", "z")) == 11
    assert line_of(lines, ("nowhere",)) == 1


@given(st.lists(st.sampled_from(["", "# [x]", "  ", "[t]\n[t.u]", 'v = "#"']), max_size=6))
def test_a_key_is_found_below_anything(above: list[str]) -> None:
    text = "\n".join([*above, "wanted = 1"])
    lines = lines_of(text)
    found = [line for path, line in lines.items() if path[-1] == "wanted"]
    assert found == [text.count("\n") + 1]


WORKLOADS = ROOT / "workloads"
SHIPPED = sorted(WORKLOADS.rglob("*.toml"))


@pytest.mark.parametrize(
    "path", SHIPPED, ids=[str(path.relative_to(WORKLOADS)) for path in SHIPPED]
)
def test_the_experiments_that_are_shipped_can_be_begun(path: Path) -> None:
    start = begin_peak(load_experiment(path), policy="binary")
    assert start.samples
    assert len(SHIPPED) >= 4
