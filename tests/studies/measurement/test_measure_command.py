"""The measure command: its JSON, its open loop, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import leadline

WORKLOAD = "unique_bytes=8MiB,size_mean=4KiB"
PROMISED = {
    "throughput_mb_s",
    "iops",
    "latency_us",
    "cpu_user",
    "cpu_system",
    "cached_share",
    "admissible",
    "findings",
    "spans_us",
    "offered",
    "provenance",
    "levels",
    "stalls",
    "generator",
    "placement",
    "written_bytes",
    "other_load",
}


def test_the_promised_keys_are_there_and_the_point_is_stored_whole(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = leadline("measure", "sim:two-level", "--workload", WORKLOAD, "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer.keys() >= PROMISED
    assert answer["arrivals"] == {"kind": "closed", "rate_per_s": None}
    assert answer["facts"]["simulated_system"] == "two-level"
    told = [{key: found[key] for key in found if key != "text"} for found in answer["findings"]]
    assert told == answer["result"]["findings"], "nothing is found before a simulation"
    assert json.loads(leadline("show", answer["point"], "--json", store=store).stdout) == answer


def test_a_window_in_which_no_request_ended_is_made_longer(tmp_path: Path) -> None:
    slow = ["sim:sparcstation-10", "--workload", "unique_bytes=50MiB,size_mean=4MiB"]
    short = [*slow, "--runs", "1", "--seconds", "0.02", "--json"]
    done = leadline("measure", *short, store=tmp_path / "store.sqlite")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["wall_s"] > 0.3


@pytest.mark.parametrize(
    ("options", "kind"),
    [(["--rate", "500"], "poisson"), (["--rate", "500", "--arrivals", "constant"], "constant")],
)
def test_a_rate_makes_an_open_loop(options: list[str], kind: str, tmp_path: Path) -> None:
    done = leadline(
        "measure",
        "sim:two-level",
        "--workload",
        WORKLOAD,
        *options,
        "--json",
        store=tmp_path / "s.sqlite",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arrivals"] == {"kind": kind, "rate_per_s": 500.0}


@pytest.mark.real
def test_a_directory_is_measured_with_facts_and_a_ceiling(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    done = leadline(
        "measure",
        str(target),
        "--workload",
        WORKLOAD,
        "--seconds",
        "0.5",
        "--json",
        store=tmp_path / "s.sqlite",
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["facts"]["generator_ceiling_iops_one_issuer"] > 0
    assert answer["facts"]["filesystem_type"]
    before = answer["findings"][: -len(answer["result"]["findings"]) or None]
    for found in before:
        assert f"warning: {found['text']}" in done.stderr
    assert not list(target.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--arrivals", "poisson"], "add --rate"),
        (["--rate", "100", "--arrivals", "bursty"], "poisson or constant"),
        (["--rate", "0"], "rate"),
        (["--rate", "soon"], "--rate"),
        (["--placement", "near"], "auto or free"),
        (["--precondition", "0"], "not above zero"),
        (["--precondition", "1GiB"], "--precondition writes to a real device"),
        (["--backend", "uring"], "--backend uring does not work on null:"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_refused(options: list[str], said: str, tmp_path: Path) -> None:
    done = leadline(
        "measure", "null:", "--workload", WORKLOAD, *options, store=tmp_path / "s.sqlite"
    )
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("backend", ["pread", "mmap"])
def test_a_deep_queue_without_uring_is_refused_before_anything_is_done(
    backend: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    done = leadline(
        "measure",
        str(target),
        "--backend",
        backend,
        "--workload",
        f"{WORKLOAD},queue_depth=8",
        store=tmp_path / "s.sqlite",
    )
    assert done.returncode == 5
    assert "needs --backend uring" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, "no word of the machine before the refusal"
    assert not list(target.iterdir())
