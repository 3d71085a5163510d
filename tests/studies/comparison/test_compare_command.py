"""`leadline compare` as a user runs it: facts first, verdicts, prices, the gate's exit code."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import shared_surveys
from command import leadline
from files_fixture import EXISTING, ScriptedTests, start_of
from leadline import compare
from leadline.record.files import FilesCell
from leadline.record.survey import SURVEY
from leadline.stats import runs_interval
from leadline.store import Store, open_store
from leadline.studies.files.run import run_files
from places import ROOT
from proving.simulation import SimulatedSurvey

INSIDE = "unique_bytes=1MiB,size_mean=8KiB,read_frac=0.8,seq_frac=0.5"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "store.sqlite"
    with open_store(str(path)) as opened:
        for profile, seed in (("hp-730", 1), ("hp-730", 2), ("sparcstation-1plus", 1)):
            shared_surveys.keep(opened, shared_surveys.surveyed(profile, seed))
    return path


def test_facts_come_before_the_ratios_and_the_faster_system_is_named(store: Path) -> None:
    asked = ("compare", "hp-730", "sparcstation-1plus", "--workload", INSIDE)
    brief, done = leadline(*asked, store=store), leadline("--verbose", *asked, store=store)
    assert done.returncode == 0, done.stderr
    differs, facts = done.stdout.index("What differs"), done.stdout.index("HP/UX 8.07")
    score = "hp-730 faster on 1 of 1 workload, sparcstation-1plus on 0"
    assert differs < facts < done.stdout.index(score)
    named = brief.stdout.index("Facts that differ: Simulated system, Cpu, Memory, ")
    assert named < brief.stdout.index(score)
    (pair,) = json.loads(leadline(*asked, "--json", store=store).stdout)["pairs"]
    assert pair["verdict"] == "a"


MEASURED = ("unique_bytes=4GiB", "size_mean=64KiB", "read_frac=1")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measured") / "store.sqlite"
    others = {"no-cache": ("unique_bytes=1GiB",), "noisy": (*MEASURED, "--rate", "50")}
    for target in ("two-level", "four-level", *others):
        words = others.get(target, MEASURED)
        done = leadline("measure", f"sim:{target}", *words, "--seconds", "5s", store=path)
        assert done.returncode == 0, done.stderr
    return path


def id_of(store: Path, target: str) -> str:
    rows = json.loads(leadline("systems", "--json", store=store).stdout)
    return str(next(row["study_id"] for row in rows if row["target"] == f"sim:{target}"))


def test_stored_measurements_are_compared_run_by_run(measured: Path) -> None:
    ids = [id_of(measured, name) for name in ("two-level", "four-level")]
    shown = [json.loads(leadline("show", each, "--json", store=measured).stdout) for each in ids]
    rates = [[run["throughput_mb_s"]["value"] for run in each["runs"]] for each in shown]
    done = leadline("compare", *ids, "--json", store=measured)
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    means = [math.fsum(map(math.log, each)) / len(each) for each in rates]
    assert pair["source"] == "measured"
    assert "measured_apart" in [found["code"] for found in pair["findings"]]
    assert pair["ratio"]["value"] == pytest.approx(math.exp(means[0] - means[1]), rel=1e-5)
    assert pair["verdict"] == ("a" if means[0] > means[1] else "b")
    assert "two-level faster on 1 of" in leadline("compare", *ids, store=measured).stdout
    gate = leadline("compare", *ids, "--fail-if", "slower=5%", store=measured)
    assert gate.returncode == (4 if means[0] > means[1] else 0)


@pytest.mark.parametrize(("part", "verdict"), [(0.94, "inconclusive"), (0.75, "a")])
def test_a_difference_that_another_hour_may_make_is_no_verdict(
    tmp_path: Path, part: float, verdict: str
) -> None:
    system = ("read_overhead_us = 90.0", "read_mb_s = 500.0", "run_to_run_cv = 0.02")
    slower = (f"read_overhead_us = {90 / part}", f"read_mb_s = {500 * part}", "run_to_run_cv = 0.0")
    plain = (
        (ROOT / "python/leadline/profiles/two-level.toml").read_text().replace(system[2], slower[2])
    )
    store, ids = tmp_path / "store.sqlite", []
    for name, text in (("one", plain), ("other", _replaced(plain, system, slower))):
        (tmp_path / f"{name}.toml").write_text(text)
        words = ("unique_bytes=16GiB", "size_mean=64KiB", "read_frac=1", "--seconds", "60s")
        target = f"sim:{tmp_path / name}.toml"
        leadline("measure", target, *words, store=store)
        rows = json.loads(leadline("systems", "--json", store=store).stdout)
        ids.append(next(row["study_id"] for row in rows if row["target"] == target))
    (pair,) = json.loads(leadline("compare", *ids, "--json", store=store).stdout)["pairs"]
    assert pair["verdict"] == verdict
    codes = {found["code"] for found in pair["findings"]}
    assert ("sessions_differ" in codes) == (verdict == "inconclusive")
    assert pair["ratio"]["low"] > 1


def _replaced(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    for one, other in zip(old, new, strict=True):
        text = text.replace(one, other)
    return text


def test_studies_of_files_are_compared_program_by_program(tmp_path: Path) -> None:
    store, ids = tmp_path / "store.sqlite", ("a" * 32, "b" * 32)
    with open_store(str(store)) as opened:
        for study_id, drives, kbytes_s, mib in zip(
            ids, ((1, 2), (1,)), (9e5, 6e5), (8, 16), strict=True
        ):
            cells = [FilesCell(system=EXISTING, drives=each) for each in drives]
            start = msgspec.structs.replace(start_of(cells, runs=6), study_id=study_id)
            tests = ScriptedTests(lambda *_, rate=kbytes_s: rate, noise_frac=0.02)
            tests.cached_share = 0.5 if mib == 16 else 0.0
            run_files(tests, opened, start, file_bytes=mib << 20)
    pairs = json.loads(leadline("compare", *ids, "--json", store=store).stdout)["pairs"]
    assert [pair["title"] for pair in pairs] == [
        "read 8192, 1 drive",
        "write 4096, 1 drive",
        "write 8192, 1 drive",
        "rewrite 8192, 1 drive",
    ]
    codes = [{found["code"] for found in pair["findings"]} for pair in pairs]
    assert all("files_differ" in each for each in codes)
    assert ["file_test_suspect" in each for each in codes] == [True, False, False, False]
    for pair in pairs:
        assert pair["verdict"] == "a"
        assert pair["ratio"]["low"] <= 1.5 <= pair["ratio"]["high"]
        assert pair["a_mb_s"]["value"] == pytest.approx(9e5 * 1024e-6, rel=0.05)
    assert "thing" in leadline("compare", *ids, store=store).stdout


@pytest.mark.parametrize(
    ("names", "words", "said"),
    [
        (("two-level", "no-cache"), (), "no workload was measured on both"),
        (("two-level", "noisy"), (), "no workload was measured on both"),  # at a rate
        (("two-level", "two-level"), (), "is given twice"),
        (("two-level", "four-level"), ("--measure",), "measurements by what they are"),
        (("two-level",), ("nowhere",), "nowhere"),
    ],
)
def test_measurements_that_have_nothing_in_common_are_refused(
    measured: Path, names: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    ids = [id_of(measured, name) for name in names]
    done = leadline("compare", *ids, *words, store=measured)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_json_has_the_promised_keys(store: Path) -> None:
    done = leadline(
        "compare",
        "hp-730",
        "sparcstation-1plus",
        "--named",
        "--json",
        "--price",
        "hp-730=35000 USD,sparcstation-1plus=15000 USD",
        store=store,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {"pairs", "differing_facts"} <= set(document)
    assert [pair["title"] for pair in document["pairs"]] == [
        "workstation",
        "large_utility",
        "scientific_write",
        "scientific_read",
        "database",
    ]
    first = document["pairs"][0]
    assert {"a", "b", "workload", "ratio", "verdict"} <= set(first)
    assert set(first["ratio"]) == {"value", "low", "high", "n"}
    assert {pair["verdict"] for pair in document["pairs"]} <= {"a", "b", "inconclusive"}
    assert first["per_price_ratio"]["value"] == pytest.approx(first["ratio"]["value"] * 15 / 35)
    assert document["pairs"][4]["ratio"] is None
    unknown = document["pairs"][4]["findings"][0]
    assert unknown["code"] == "not_comparable"
    assert "500 MiB" in unknown["values"]["why"]


def test_without_a_workload_the_named_ones_and_the_focal_points_are_compared(store: Path) -> None:
    done = leadline("compare", "hp-730", "sparcstation-1plus", "--json", store=store)
    titles = [pair["title"] for pair in json.loads(done.stdout)["pairs"]]
    assert titles[:5] == [
        "workstation",
        "large_utility",
        "scientific_write",
        "scientific_read",
        "database",
    ]
    assert "page cache of hp-730" in titles
    assert "disk of sparcstation-1plus" in titles


def test_the_gate_fails_with_its_own_exit_code_and_only_on_what_is_slower(store: Path) -> None:
    gate = ("--workload", INSIDE, "--fail-if", "slower=5%")
    worse = leadline("compare", "hp-730", "sparcstation-1plus", *gate, store=store)
    assert worse.returncode == 4
    assert "gate failed" in worse.stdout
    assert "exit code 4" in worse.stderr
    better = leadline("compare", "sparcstation-1plus", "hp-730", *gate, store=store)
    assert better.returncode == 0
    assert "gate passed" in better.stdout


def test_several_surveys_of_a_system_put_what_differs_between_them_in_the_interval(
    store: Path,
) -> None:
    words = ("hp-730-1,hp-730-2", "sparcstation-1plus", "--workload", INSIDE, "--json")
    both = json.loads(leadline("compare", *words, store=store).stdout)
    (pair,) = both["pairs"]
    ones = [
        json.loads(leadline("compare", name, *words[1:], store=store).stdout)["pairs"][0]
        for name in ("hp-730-1", "hp-730-2")
    ]
    mean = math.sqrt(math.prod(each["ratio"]["value"] for each in ones))
    assert pair["ratio"]["value"] == pytest.approx(mean)
    assert len(both["contenders"][0]["more_ids"]) == 1
    assert pair["a"] == "hp-730"
    assert "several surveys" in " ".join(both["notes"])
    measured = leadline("compare", *words[:2], "--measure", store=store)
    assert measured.returncode == 2
    assert "give one survey of each" in measured.stderr
    twice = leadline("compare", "hp-730-1,hp-730-1", "sparcstation-1plus", store=store)
    assert twice.returncode == 2
    assert "given twice" in twice.stderr


def test_a_gate_on_latency_takes_measurements_several_of_each_system(tmp_path: Path) -> None:
    """One whose requests take 20% longer fails on p99; it is no gate of two surveys."""
    system = ("read_overhead_us = 90.0", "read_mb_s = 500.0", "run_to_run_cv = 0.02")
    plain = (ROOT / "python/leadline/profiles/two-level.toml").read_text()
    slower = _replaced(plain, system, ("read_overhead_us = 108.0", "read_mb_s = 416.7", system[2]))
    store = tmp_path / "store.sqlite"
    for name, text in (("old", plain), ("new", slower)):
        (tmp_path / f"{name}.toml").write_text(text)
        for seed in (1, 2, 3, 4):
            words = ("unique_bytes=16GiB", "size_mean=64KiB", "read_frac=1", "--seconds", "20s")
            target = f"sim:{tmp_path / name}.toml"
            leadline("measure", target, *words, "--seed", str(seed), store=store)
    rows = json.loads(leadline("systems", "--json", store=store).stdout)
    ids = [
        [row["study_id"] for row in rows if f"/{name}." in row["target"]] for name in ("old", "new")
    ]
    sides = [",".join(side) for side in ids]
    done = leadline("compare", *sides, "--fail-if", "p99=5%", "--json", store=store)
    assert done.returncode == 4, done.stderr
    (failure,) = json.loads(done.stdout)["gate"]["failures"]
    assert failure["metric"] == "p99"
    assert 1.1 < failure["new_over_old"]["value"] < 1.3
    back = leadline("compare", *sides[::-1], "--fail-if", "p99=5%", store=store)
    assert back.returncode == 0, back.stdout
    lone = leadline("compare", ids[0][0], ids[1][0], "--fail-if", "p99=5%", store=store)
    assert lone.returncode == 2
    assert "OLD1,OLD2" in lone.stderr


def test_two_surveys_of_one_system_cannot_be_told_apart_and_pass_the_gate(store: Path) -> None:
    done = leadline(
        "compare",
        "hp-730-1",
        "hp-730-2",
        "--workload",
        INSIDE,
        "--json",
        "--fail-if",
        "slower=5%",
        store=store,
    )
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert [pair["verdict"] for pair in document["pairs"]] == ["inconclusive"]
    assert document["differing_facts"] == []
    assert document["gate"]["failed"] is False
    assert document["contenders"][0]["name"] == "hp-730 (hp-730-1)"


def test_measuring_reads_both_systems_now_and_keeps_the_readings(store: Path) -> None:
    done = leadline(
        "compare",
        "hp-730",
        "sparcstation-1plus",
        "--workload",
        INSIDE,
        "--measure",
        "--passes",
        "3",
        "--json",
        store=store,
    )
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    assert (pair["source"], pair["verdict"]) == ("measured", "a")
    assert len(pair["readings"]) == 3
    assert "pass 3" in done.stderr


def test_python_measures_them_by_the_same_readings(store: Path) -> None:
    options: dict[str, Any] = {"workloads": [INSIDE], "measure": True, "passes": 3}
    said: list[str] = []
    found = compare("hp-730", "sparcstation-1plus", store=str(store), say=said.append, **options)
    (pair,) = found.document.pairs
    assert (pair.source, pair.verdict, len(pair.readings)) == ("measured", "a", 3)
    assert any("pass 3" in each for each in said)


def test_one_system_measured_against_itself_is_not_told_apart(store: Path) -> None:
    done = leadline(
        "compare", "hp-730-1", "hp-730-2", "--workload", INSIDE, "--measure", "--json", store=store
    )
    (pair,) = json.loads(done.stdout)["pairs"]
    assert pair["verdict"] == "inconclusive"
    assert pair["ratio"]["low"] < 1 < pair["ratio"]["high"]
    assert len(set(map(tuple, pair["readings"]))) == 6
    assert all(one != other for one, other in pair["readings"]), "both met the same noise"


def keep(opened: Store, simulated: SimulatedSurvey, system: str, directory: Path) -> None:
    """Store a simulated survey as if it were one of a directory."""
    start = msgspec.structs.replace(
        simulated.survey.start,
        study_id=f"real-{system}",
        system=system,
        target=str(directory),
        backend="pread",
        system_profile=None,
    )
    opened.begin(SURVEY, start)
    for point in simulated.points:
        own = f"{system}-{point.point_id}"
        opened.add(start.study_id, msgspec.structs.replace(point, point_id=own))
    survey = msgspec.structs.replace(simulated.survey, start=start)
    opened.end(start.study_id, survey, survey.status)


@pytest.mark.real
def test_two_directories_are_measured_in_turns_and_left_as_they_were(tmp_path: Path) -> None:
    path, directories = tmp_path / "store.sqlite", [tmp_path / "one", tmp_path / "other"]
    simulated = shared_surveys.surveyed("hp-730", 1)
    with open_store(str(path)) as opened:
        for directory in directories:
            directory.mkdir()
            keep(opened, simulated, directory.name, directory)
        keep(opened, simulated, "again", directories[0])
    small = "unique_bytes=2MiB,size_mean=16KiB,read_frac=0.5,seq_frac=0.5"
    asked = ("--workload", small, "--measure", "--passes", "2", "--seconds", "300ms", "--json")
    done = leadline("compare", "one", "other", *asked, store=path)
    assert done.returncode == 0, done.stderr
    (pair,) = json.loads(done.stdout)["pairs"]
    assert pair["source"] == "measured"
    assert all(reading > 0 for each in pair["readings"] for reading in each)
    for side, of in enumerate("ab"):
        in_a_row = runs_interval([readings[side] for readings in pair["readings"]])
        assert pair[f"{of}_mb_s"]["low"] == pytest.approx(in_a_row.low)
    assert [list(directory.iterdir()) for directory in directories] == [[], []]
    same = leadline("compare", "one", "again", *asked, store=path)
    assert same.returncode == 2
    assert "both would be the same system" in same.stderr


@pytest.mark.parametrize("name", ["page.html", "chart.svg", "chart.png"])
def test_the_comparison_is_drawn(store: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    done = leadline("compare", "hp-730", "sparcstation-1plus", "-o", str(path), store=store)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 5000
    if name.endswith(".svg"):
        assert (tmp_path / "chart-disk_reads.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("hp-730",), "two or more surveys"),
        (("hp-730", "hp-730"), "given twice"),
        (("hp-730", "nobody"), "nobody"),
        (("hp-730", "sparcstation-1plus", "--fail-if", "slower"), "slower=5%"),
        (("hp-730", "sparcstation-1plus", "--model", "oracle"), "no model called"),
        (("hp-730", "sparcstation-1plus", "--price", "hp-730=x"), "SYSTEM=AMOUNT"),
        (("hp-730", "sparcstation-1plus", "--workload", "sizes=3"), "key=value"),
        (("hp-730", "sparcstation-1plus", "-o", "/nowhere/page.html"), "does not exist"),
        (("hp-730", "sparcstation-1plus", "-o", "page.doc"), ".doc"),
        (
            ("hp-730", "sparcstation-1plus", "--workload", "unique_bytes=9TiB,size_mean=8KiB"),
            "no workload can be compared",
        ),
        (("hp-730-1", "hp-730-2", "sparcstation-1plus", "--fail-if", "slower=1%"), "exactly two"),
    ],
)
def test_bad_input_gives_one_clear_message(
    store: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = leadline("compare", *arguments, store=store)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
