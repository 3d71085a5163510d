"""The predict command on a stored survey of a simulated system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import leadline
from leadline.store import open_store
from shared_surveys import keep, surveyed

WORK = "unique_bytes=10MiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=2"
TWICE = "unique_bytes=1MiB,size_mean=4KiB"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("predict") / "store.sqlite"
    with open_store(str(path)) as kept:
        keep(kept, surveyed("hp-730"))
    return path


def test_the_promised_keys_are_there(store: Path) -> None:
    done = leadline("predict", "hp-730", "--workload", WORK, "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    promised = {"workload", "throughput_mb_s", "region", "model", "findings"}
    assert promised <= answer.keys()
    assert {"value", "low", "high", "n"} == answer["throughput_mb_s"].keys()
    rate = answer["throughput_mb_s"]
    assert rate["low"] < rate["value"] < rate["high"]
    run = answer["run_throughput_mb_s"]
    assert run["low"] < rate["low"] < rate["high"] < run["high"]
    assert answer["iops"]["value"] == pytest.approx(rate["value"] * 1e6 / 32768)
    assert answer["response_us"]["value"] == pytest.approx(2e6 / answer["iops"]["value"])
    assert (answer["region"], answer["region_name"]) == (1, "disk")


def test_several_workloads_stand_in_their_order(store: Path) -> None:
    done = leadline(
        "predict", "hp-730", "--workload", WORK, "--workload", TWICE, "--json", store=store
    )
    answer = json.loads(done.stdout)
    assert [p["workload"]["size_mean"] for p in answer["predictions"]] == [32768, 4096]
    assert "throughput_mb_s" not in answer


def test_named_workloads_beyond_the_survey_are_said_to_be(store: Path) -> None:
    done = leadline("predict", "hp-730", "--named", "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [p["name"] for p in answer["predictions"]] == ["workstation", "large_utility"]
    assert len(answer["refused"]) == 3
    assert "unique_bytes=250 MiB lies outside" in answer["refused"][0]["reason"]
    guessed = leadline("predict", "hp-730", "--named", "--extrapolate", "--json", store=store)
    found = json.loads(guessed.stdout)["predictions"]
    assert [p["extrapolated"] for p in found] == [False, False, True, True, True]


def test_the_table_has_interval_region_and_warnings(store: Path) -> None:
    near = "unique_bytes=3.2MB,size_mean=8KiB"
    done = leadline("predict", "hp-730", "--workload", WORK, "--workload", near, store=store)
    assert done.returncode == 0, done.stderr
    assert "kB/s" in done.stdout
    assert "workload 2 *" in done.stdout
    assert "region boundary: unique_bytes=3.05 MiB" in done.stdout
    assert "readings of hp-730" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hp-730", "--workload", "unique_bytes=1TiB,size_mean=4KiB"], "--extrapolate"),
        (["hp-730", "--workload", WORK, "--model", "oracle"], "the models are: joint, product"),
        (["nobody", "--workload", WORK], "no survey or system 'nobody'"),
        (["hp-730", "--workload", "size_mean=4KiB"], "unique_bytes missing"),
        (["hp-730"], "nothing to predict"),
    ],
)
def test_what_cannot_be_predicted_is_refused_in_one_sentence(
    store: Path, arguments: list[str], said: str
) -> None:
    done = leadline("predict", *arguments, store=store)
    assert done.returncode == 2
    # Usage errors stand in a box whose lines break.
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_nothing_but_refusals_is_a_refusal_after_the_document(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "vast.fio"
    path.write_text("[global]\nsize=1t\nbs=4k\nrw=read\n[a]\n[b]\n", encoding="utf-8")
    done = leadline("predict", "hp-730", "--fio", str(path), "--json", store=store)
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert answer["predictions"] == []
    assert [item["name"] for item in answer["refused"]] == ["a", "b"]
