"""`leadline predict S --application A` and `leadline compare S1 S2 --application A`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import leadline as leadline_api
from command import leadline
from leadline.store import open_store
from leadline.studies.survey.study import load_survey
from planted_traces import Planted, mixture
from shared_surveys import keep, surveyed
from traced_programs import write_strace

MIB = 2**20


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predict")
    path = folder / "store.sqlite"
    with open_store(str(path)) as kept:
        keep(kept, surveyed("two-level"), surveyed("no-cache"))
    requests = mixture((Planted("uniform", 1.0, 2048 * MIB, 65536, 0.5),), 3000, 3)
    trace = write_strace(requests, folder / "program.strace", sync_every=20, stats=10)
    done = leadline("characterize", "--trace", str(trace), store=path)
    assert done.returncode == 0, done.stderr
    return path


def test_a_stored_application_is_predicted(store: Path) -> None:
    done = leadline("predict", "two-level", "--application", "program", "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["io_s"]["low"] < answer["io_s"]["value"] < answer["io_s"]["high"]
    assert answer["io_at_least"]
    assert answer["in_io"] is None
    assert [term["name"] for term in answer["terms"]] == ["reads", "writes", "syncs", "metadata"]
    assert [term["seconds"] is None for term in answer["terms"]] == [False, False, True, True]
    assert answer["caches"][0]["lru"] == pytest.approx(1.0, abs=0.1)
    told = leadline("predict", "two-level", "--application", "program", store=store)
    said = " ".join(told.stdout.split())
    assert "program on two-level: at least" in said
    assert "Not surveyed, and in neither time:" in said
    assert answer["sentences"][0].split(":")[0] == "program on two-level"


def test_a_survey_for_an_application_measures_what_predicts_it(store: Path) -> None:
    words = ("survey", "sim:two-level", "--for", "program", "--name", "ready", "--budget", "10m")
    done = leadline(*words, store=store)
    assert done.returncode == 0, done.stderr
    assert "goes to 2 kinds of requests of what it is for" in " ".join(done.stderr.split())
    with open_store(str(store)) as kept:
        survey, points = load_survey(kept, "ready")
    assert survey.start.access.sync == "fdatasync=20"
    needed = {(each.size_mean, each.read_frac, each.seq_frac) for each in survey.start.needed}
    assert needed == {(65536, 1.0, 0.0), (65536, 0.0, 0.0)}
    learned = [point.workload for point in points if point.stage == "learning"]
    own = [each for each in learned if (each.size_mean, each.read_frac, each.seq_frac) in needed]
    assert len(own) >= len(learned) // 2 > 0
    done = leadline("predict", "ready", "--application", "program", "--json", store=store)
    terms = {term["name"]: term["seconds"] for term in json.loads(done.stdout)["terms"]}
    assert terms["syncs"] is not None
    assert terms["metadata"] is None
    none = leadline(*words[:-1], "2m", "--learn", "0", store=store)
    assert "--for adds no points" in " ".join(none.stderr.split())
    both = leadline(*words, "--for-fio", "nothing.fio", store=store)
    assert both.returncode == 2
    assert "leave one out" in both.stderr


def test_python_predicts_what_the_command_does(store: Path) -> None:
    done = leadline("predict", "two-level", "--application", "program", "--json", store=store)
    system = leadline_api.open("two-level", store=str(store))
    found = system.predict_application("program", store=str(store))
    assert found.io_s.value == pytest.approx(json.loads(done.stdout)["io_s"]["value"])


def test_systems_are_compared_by_an_application(store: Path) -> None:
    asked = ("compare", "two-level", "no-cache", "--application", "program")
    done = leadline(*asked, "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["names"] == ["two-level", "no-cache"]
    assert answer["pairs"][0]["verdict"] == "inconclusive"
    assert answer["pairs"][0]["elapsed_ratio"] is None
    told = " ".join(leadline(*asked, store=store).stdout.split())
    assert "inconclusive" in told
    assert "two-level: not surveyed: syncs" in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("predict", "two-level", "--application", "program", "--named"), "by itself"),
        (("predict", "two-level", "--application", "nobody"), "nobody"),
        (("predict", "two-level", "--application", "no-cache"), "no-cache"),
        (("predict", "program", "--application", "program"), "program"),
        (("predict", "two-level"), "--application A"),
        (("compare", "two-level", "no-cache", "--application", "program", "--named"), "leave out"),
        (("compare", "two-level", "--application", "program"), "two or more"),
    ],
)
def test_what_makes_no_sense_is_refused(store: Path, asked: tuple[str, ...], said: str) -> None:
    done = leadline(*asked, store=store)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
