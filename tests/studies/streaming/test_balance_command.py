"""`leadline balance` and `leadline stream scale` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from command import leadline
from leadline.store import open_store
from proving.samples import keep_study, stored_stream
from stream_fixture import ATLAS, BOREAS, run_study, scaling_study


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a scaling of two systems, and a single run."""
    path = tmp_path / "store.db"
    with open_store(str(path)) as kept:
        for study in (scaling_study(ATLAS), scaling_study(BOREAS)):
            keep_study(kept, stored_stream(study))
        single = run_study(ATLAS, "scan", "threads")
        start = msgspec.structs.replace(single.start, study_id="f" * 32, system="single")
        keep_study(kept, stored_stream(msgspec.structs.replace(single, start=start)))
    return path


def test_balance_says_what_gives_out_first(store: Path) -> None:
    done = leadline("balance", "atlas", store=store)
    assert done.returncode == 0, done.stderr
    assert "CPU" in done.stdout
    assert "doubling disks: no gain" in " ".join(done.stdout.split())


def test_balance_as_json_compares_systems(store: Path) -> None:
    done = leadline("balance", "atlas", "boreas", "--json", store=store)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [one["system"] for one in document["systems"]] == ["atlas", "boreas"]
    assert "boreas 130 MB/s per processor, limited by I/O path" in " ".join(document["compared"])
    firsts = {
        (one["kernel"], one["phase"]): one["first"] for one in document["systems"][0]["balances"]
    }
    assert firsts["sort", "read"] == "cpu"
    assert firsts["scan", "read"] == "disks"


def test_what_if_is_answered(store: Path) -> None:
    done = leadline("balance", "atlas", "--what-if", "cores=2,disks=2", "--json", store=store)
    found = json.loads(done.stdout)["systems"][0]["what_if"]
    sort = next(one for one in found if (one["kernel"], one["phase"]) == ("sort", "read"))
    assert sort["changes"] == {"cores": 2.0, "disks": 2.0}
    assert sort["gain_frac"]["value"] == pytest.approx(1.0, abs=0.02)


def test_a_single_run_has_a_balance_too(store: Path) -> None:
    done = leadline("balance", "single", "--json", store=store)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["systems"][0]["balances"][0]["first"] == "disks"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["balance", "nothing-there"], "nothing-there"),
        (["balance", "atlas", "--what-if", "wheels=2"], "known part"),
        (["balance", "atlas", "--what-if", "cores=0"], "above 0"),
        (["balance", "atlas", "-o", "/nowhere/at/all.html"], "does not exist"),
        (["stream", "scale", "/nowhere/at/all"], "/nowhere/at/all"),
        (["stream", "scale", ".", "."], "twice"),
        (["stream", "scale", ".", "--kernels", "merge"], "scan, sort, transpose"),
        (["stream", "scale", ".", "--size", "1KiB"], "too little"),
        (["stream", "scale"], "DIR"),
    ],
)
def test_what_makes_no_sense_is_refused(store: Path, arguments: list[str], words: str) -> None:
    done = leadline(*arguments, store=store)
    assert done.returncode == (5 if words in {"/nowhere/at/all", "twice"} else 2)
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_nothing_is_left_of_a_refusal(tmp_path: Path) -> None:
    leadline("stream", "scale", str(tmp_path), str(tmp_path), store=tmp_path / "s.db")
    assert not (tmp_path / ".leadline").exists()
