"""`leadline measure TARGET --application A`: what it says, stores, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import leadline
from planted_traces import Planted, mixture
from traced_programs import write_strace

MIB = 2**20
STREAMS = (Planted("uniform", 0.6, 8 * MIB, 4096, 0.8), Planted("loop", 0.4, 4 * MIB, 65536))
SHORT = ("--seconds", "0.5", "--runs", "2")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measure")
    trace = write_strace(mixture(STREAMS, 6000, 3), folder / "program.strace", sync_every=20)
    path = folder / "store.sqlite"
    done = leadline("characterize", "--trace", str(trace), store=path)
    assert done.returncode == 0, done.stderr
    return path


def test_a_phase_runs_on_a_machine_made_of_parts(store: Path) -> None:
    asked = ("measure", "sim:sata-ssd-cliff", "--application", "program")
    done = leadline(*asked, "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    both = answer["beside"]
    assert both["phase"] == 1
    assert both["described_per_s"] == pytest.approx(2900, rel=0.3)
    assert both["weights_error"] < 0.03
    assert answer["sync"] == "fdatasync=20"
    assert len(answer["result"]["streams"]) == 2
    assert any("when a sync comes" in said for said in both["not_mapped"])
    told = leadline(*asked, store=store).stdout
    assert "requests/s;" in told
    assert "Its streams' shares are within" in told
    shown = leadline("show", answer["point"], "--json", store=store)
    assert json.loads(shown.stdout)["result"]["streams"] == answer["result"]["streams"]


@pytest.mark.parametrize("backend", ["pread", "uring", "mmap"])
def test_a_phase_runs_on_a_directory(backend: str, store: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    asked = ("measure", str(target), "--application", "program", "--backend", backend)
    done = leadline(*asked, *SHORT, "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    counts = answer["result"]["streams"]
    operations = sum(each["operations"] for each in counts)
    assert operations == answer["read"]["operations"] + answer["write"]["operations"]
    assert [each["reads"] == each["operations"] for each in counts] == [False, True]
    assert list(target.iterdir()) == []


def test_a_whole_phase_begins_with_an_empty_file_cache_and_ends_with_its_last_request(
    store: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    done = leadline(
        *("measure", str(target), "--application", "program", "--phase", "1"),
        *("--runs", "2", "--json"),
        store=store,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    for run in answer["runs"]:
        made = run["iops"]["value"] * run["wall_s"]
        # It goes on to the end of a slice, whose length is the machine's affair.
        assert made > 5999
    assert not {"time_cap", "not_steady"} & {each["code"] for each in answer["findings"]}
    # 8 MiB are touched at random for the first time, and 160 MiB are read.
    assert 0.03 < answer["beside"]["miss_ratio"] < 0.15
    asked = ("measure", str(target), "--application", "program", "--seconds", "1", "--runs", "1")
    steady = json.loads(leadline(*asked, "--json", store=store).stdout)
    assert steady["beside"]["miss_ratio"] < 0.02, "what a warm page cache holds is not missed"


def test_a_phase_is_written_as_fio_jobs(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    done = leadline(
        "measure", str(tmp_path), "--application", "program", "--write-fio", str(path), store=store
    )
    assert done.returncode == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    assert f"filename={tmp_path}/leadline-fio.bin" in text
    assert text.count("[stream-") == 2
    assert "fdatasync=20" in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("sim:two-level", "--application", "program"), "machine made of parts"),
        (("null:", "--application", "nobody"), "nobody"),
        (("null:", "--application", "program", "--phase", "7"), "no phase 7: it has 1 phase"),
        (("null:", "--phase", "1", "--workload", "unique_bytes=1MiB,size_mean=4KiB"), "--phase"),
        (("null:", "--application", "program", "--rate", "10"), "its own pace"),
        (("null:", "--application", "program", "--fio", "x.fio"), "say what to run"),
    ],
)
def test_what_makes_no_sense_is_refused(store: Path, asked: tuple[str, ...], said: str) -> None:
    done = leadline("measure", *asked, store=store)
    assert done.returncode == (5 if "made of parts" in said else 2), done.stdout + done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
