"""fio's job files on the command line: run, predicted, written, and fio as a cross-check."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import typer

import survey_fixture
from command import leadline
from leadline.engine import PointFailed, Target, TargetRefused
from leadline.fio import FioJobRefused, read_job
from leadline.models.model import PredictionRefused
from leadline.record import Access
from leadline.record.measurement import WorkloadAsked
from leadline.studies.measurement import command as fio_jobs
from leadline.studies.measurement import command as measure_command
from leadline.studies.measurement import run as measuring
from leadline.studies.measurement.plan import MeasurementRefused
from leadline.studies.prediction import command as predict_command
from leadline.studies.survey import command as survey_command
from leadline.terminal.context import Context
from places import ROOT

WORKLOAD = "unique_bytes=1MiB,size_mean=4KiB"
GLOBAL = "[global]\nfilename=f\nsize=1m\nnorandommap\ninvalidate=0\nfadvise_hint=0\n"
TWO = f"{GLOBAL}[pages]\nrw=randread\nbs=8k\n[log]\nstonewall\nrw=write\nbs=64k\nfsync=4\nprio=3\n"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "two.fio"
    path.write_text(TWO, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store") / "s.sqlite"
    done = leadline("survey", "sim:two-level", "--budget", "2m", store=store)
    assert done.returncode == 0, done.stderr
    return store


def test_every_job_of_a_file_is_measured_and_stored(jobs: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    done = leadline("measure", "sim:two-level", "--fio", str(jobs), "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)["jobs"]
    assert [job["name"] for job in answer] == ["pages", "log"]
    assert [job["workload"]["read_frac"] for job in answer] == [1.0, 0.0]
    assert [job["sync"] for job in answer] == ["none", "fsync=4"]
    assert answer[1]["findings"][0]["text"] == "not mapped: prio=3"
    assert "warning: [log] not mapped: prio=3" in done.stderr
    again = json.loads(leadline("show", answer[1]["point"], "--json", store=store).stdout)
    del again["leadline"], again["schema"]
    assert {"name": "log"} | again == answer[1], "the warning is stored with the point"


def test_a_table_stands_under_each_jobs_name(jobs: Path, tmp_path: Path) -> None:
    done = leadline("measure", "sim:two-level", "--fio", str(jobs), store=tmp_path / "s.sqlite")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\[(\w+)\]", done.stdout, flags=re.MULTILINE) == ["pages", "log"]


def test_a_job_brings_its_time_and_the_command_can_change_it(tmp_path: Path) -> None:
    path = tmp_path / "timed.fio"
    path.write_text(f"{GLOBAL}[a]\nrw=randread\nruntime=1\n", encoding="utf-8")
    spent = []
    for options in ([], ["--seconds", "0.5"]):
        done = leadline(
            "measure",
            "sim:two-level",
            "--fio",
            str(path),
            "--accuracy",
            "0.0005",
            "--json",
            *options,
            store=tmp_path / "s.sqlite",
        )
        assert done.returncode == 0, done.stderr
        spent.append(json.loads(done.stdout)["jobs"][0]["result"]["wall_s"])
    assert spent == [pytest.approx(1, rel=0.1), pytest.approx(0.5, rel=0.1)]


@pytest.mark.real
def test_a_directory_gets_the_jobs_own_engine_and_flags(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    path = tmp_path / "direct.fio"
    path.write_text(
        f"{GLOBAL}[a]\nrw=randread\nioengine=io_uring\niodepth=4\ndirect=1\n", encoding="utf-8"
    )
    done = leadline(
        "measure",
        str(target),
        "--fio",
        str(path),
        "--seconds",
        "0.5",
        "--runs",
        "1",
        "--json",
        store=tmp_path / "s.sqlite",
    )
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert (job["backend"], job["direct"], job["workload"]["queue_depth"]) == ("uring", True, 4)
    assert not list(target.iterdir())


@pytest.mark.real
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed: apt-get install fio")
def test_fio_as_the_engine_has_the_same_table_and_says_what_it_cannot(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    store = tmp_path / "s.sqlite"
    done = leadline(
        "measure",
        str(target),
        "--workload",
        WORKLOAD,
        "--engine",
        "fio",
        "--seconds",
        "0.6",
        "--runs",
        "2",
        "--json",
        store=store,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["facts"]["engine"].startswith("fio-")
    assert answer["throughput_mb_s"]["low"] is not None
    assert answer["cached_share"] is None
    table = leadline("show", answer["point"], store=store).stdout
    words = " ".join(table.split())
    assert "device: not looked at by another engine" in words
    assert "steadiness not checked" in words
    assert not list(target.iterdir())


def test_a_workload_is_written_for_the_target_and_nothing_is_measured(tmp_path: Path) -> None:
    path, target = tmp_path / "out.fio", tmp_path / "target"
    target.mkdir()
    done = leadline(
        "measure",
        str(target),
        "--workload",
        f"{WORKLOAD},read_frac=0.8",
        "--seconds",
        "7",
        "--direct",
        "--backend",
        "uring",
        "--write-fio",
        str(path),
        store=tmp_path / "s.sqlite",
    )
    assert done.returncode == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    assert f"filename={target}/leadline-fio.bin" in text
    (job,) = read_job(path)
    assert (job.access.backend, job.access.direct, job.seconds) == ("uring", True, 7.0)
    assert job.workload.read_frac == 0.8
    assert str(path) in done.stderr
    assert list(target.iterdir()) == []


def test_a_job_is_predicted_with_what_differs(surveyed: Path, tmp_path: Path) -> None:
    path = tmp_path / "pages.fio"
    path.write_text(f"{GLOBAL}[pages]\nrw=randrw\nbs=8k\nrate_iops=3\nprio=3\n", encoding="utf-8")
    done = leadline("predict", "two-level", "--fio", str(path), "--json", store=surveyed)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["predictions"]
    assert row["name"] == "pages"
    assert row["throughput_mb_s"]["value"] > 0
    assert any("prio=3" in found["text"] for found in row["findings"])
    assert "job_asks_less" in [found["code"] for found in row["findings"]]
    assert "pages" in leadline("predict", "two-level", "--fio", str(path), store=surveyed).stdout


@pytest.mark.parametrize("waits", ["fsync=1", "fdatasync=8", "sync=dsync"])
def test_a_job_whose_writes_wait_is_not_predicted_from_writes_that_did_not(
    surveyed: Path, tmp_path: Path, waits: str
) -> None:
    path = tmp_path / "log.fio"
    path.write_text(f"{GLOBAL}[log]\nrw=randrw\nbs=8k\n{waits}\n", encoding="utf-8")
    done = leadline("predict", "two-level", "--fio", str(path), store=surveyed)
    assert done.returncode == 2
    assert "the survey's were buffered" in done.stderr
    assert "leadline survey sim:two-level --sync" in done.stderr
    path.write_text(f"{GLOBAL}[log]\nrw=randread\nbs=8k\n{waits}\n", encoding="utf-8")
    reads = leadline("predict", "two-level", "--fio", str(path), store=surveyed)
    assert reads.returncode == 0, reads.stderr


def test_a_survey_for_jobs_reaches_storage_as_they_do(tmp_path: Path) -> None:
    path, store = tmp_path / "log.fio", tmp_path / "s.sqlite"
    far = "[far]\nstonewall\nrw=randread\nsize=900g\n"
    path.write_text(f"{GLOBAL}[log]\nrw=randrw\nbs=8k\nsync=dsync\n{far}", encoding="utf-8")
    words = ("survey", "sim:two-level", "--budget", "2m", "--for-fio", str(path))
    done = leadline(*words, "--json", store=store)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sync"] == "dsync"
    assert "[far] touches 900 GiB, which is not surveyed" in done.stderr
    found = leadline("predict", "two-level", "--fio", str(path), "--json", store=store)
    assert [row["name"] for row in json.loads(found.stdout)["predictions"]] == ["log"]


def test_jobs_that_reach_storage_in_two_ways_have_no_survey(tmp_path: Path) -> None:
    path = tmp_path / "two.fio"
    path.write_text(f"{GLOBAL}[a]\nrw=randread\ndirect=1\n[b]\nrw=randread\n", encoding="utf-8")
    done = leadline("survey", str(tmp_path), "--for-fio", str(path), store=tmp_path / "s.sqlite")
    assert done.returncode == 2
    assert "[a] are direct, those of [b] buffered" in " ".join(done.stderr.split())
    (one, _) = read_job(path)
    target = Target.parse(str(tmp_path))
    assert survey_command._way_of([one], target).direct
    assert not survey_command._way_of([one], Target.parse("sim:two-level")).direct
    assert survey_command._way_of([], target) == Access()


@pytest.mark.parametrize(
    ("backend", "refused"), [("pread", True), ("uring", True), ("nfs", False), ("simulated", False)]
)
def test_a_direct_job_is_refused_where_the_survey_had_the_choice(
    tmp_path: Path, backend: str, refused: bool
) -> None:
    path = tmp_path / "direct.fio"
    path.write_text(f"{GLOBAL}[pages]\nrw=randread\nbs=8k\ndirect=1\n", encoding="utf-8")
    (job,) = read_job(path)
    start = msgspec.structs.replace(survey_fixture.two_region().start, backend=backend)
    if not refused:
        predict_command._require_alike(job, start)
        return
    with pytest.raises(PredictionRefused, match=r"leadline survey .* --direct"):
        predict_command._require_alike(job, start)


def test_a_job_outside_the_survey_is_refused_and_the_others_are_told(
    surveyed: Path, tmp_path: Path
) -> None:
    path = tmp_path / "large.fio"
    path.write_text(f"{GLOBAL}[far]\nsize=900g\n", encoding="utf-8")
    alone = leadline("predict", "two-level", "--fio", str(path), store=surveyed)
    assert alone.returncode == 2
    assert "[far]" in alone.stderr
    path.write_text(f"{GLOBAL}[near]\nrw=randread\n[far]\nstonewall\nsize=900g\n", encoding="utf-8")
    both = leadline("predict", "two-level", "--fio", str(path), "--json", store=surveyed)
    assert both.returncode == 0, both.stderr
    answer = json.loads(both.stdout)
    assert [row["name"] for row in answer["predictions"]] == ["near"]
    assert [row["name"] for row in answer["refused"]] == ["far"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workload", WORKLOAD, "--fio", "JOBS"], "once: either in words"),
        (["--fio", "absent.fio"], "no file absent.fio"),
        (["--fio", "JOBS", "--rate", "5"], "a job has its own"),
        (["--fio", "JOBS", "--write-fio", "x.fio"], "2 jobs"),
        (["--workload", WORKLOAD, "--engine", "fio"], "needs a directory"),
        (["--workload", WORKLOAD, "--engine", "dd"], "leadline or fio"),
        (["--workload", WORKLOAD, "--write-fio", "/no/such/place.fio"], "cannot be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_refused(
    options: list[str], said: str, jobs: Path, tmp_path: Path
) -> None:
    typed = [str(jobs) if word == "JOBS" else word for word in options]
    done = leadline("measure", "sim:two-level", *typed, store=tmp_path / "s.sqlite")
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


# ---- in this process, where a command of its own would tell no more ------------------------------


def measure(target: str, store: Path, **options: Any) -> None:
    """Call the command's function as typer does."""
    context: Any = SimpleNamespace(
        obj=Context(store_url=str(store), debug=False), get_parameter_source=lambda _: None
    )
    measure_command.command(context, target=target, **options)


def job_file(directory: Path, text: str) -> Path:
    path = directory / "jobs.fio"
    path.write_text(f"{GLOBAL}{text}", encoding="utf-8")
    return path


def test_what_is_wrong_with_a_later_job_is_found_before_the_first_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_measure", None)
    store = tmp_path / "s.sqlite"
    large = job_file(tmp_path, "[a]\n[b]\nstonewall\nsize=8p\n")
    with pytest.raises(TargetRefused, match=r"^\[b\]: unique_bytes"):
        measure("sim:two-level", store, fio=large)
    rated = job_file(tmp_path, "[a]\n[b]\nstonewall\nrate_iops=5\n")
    with pytest.raises(MeasurementRefused, match=r"\[b\]: --runs 3") as refusal:
        measure("sim:two-level", store, fio=rated, runs=3)
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("json_too", [True, False])
def test_what_was_measured_is_told_when_a_later_job_fails(
    json_too: bool,
    jobs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    measured = measuring._measure

    def fail_at_log(engine: Any, growing: Any, workload: WorkloadAsked, *more: Any) -> Any:
        if workload.name == "log":
            raise PointFailed("the device is gone")
        return measured(engine, growing, workload, *more)

    monkeypatch.setattr(measuring, "_measure", fail_at_log)
    with pytest.raises(PointFailed, match=r"^\[log\]: the device is gone") as failure:
        measure("sim:two-level", tmp_path / "s.sqlite", fio=jobs, json=json_too)
    assert failure.value.exit_code == 1
    told = capfd.readouterr().out
    if json_too:
        assert [job["name"] for job in json.loads(told)["jobs"]] == ["pages"]
    else:
        assert "[pages]" in told


def test_a_jobs_own_file_is_not_overwritten(tmp_path: Path) -> None:
    path = job_file(tmp_path, "[a]\n")
    before = path.read_text(encoding="utf-8")
    (tmp_path / "other").symlink_to(path)
    for name in ("jobs.fio", "other"):
        with pytest.raises(typer.BadParameter, match="would overwrite"):
            measure(
                "sim:two-level", tmp_path / "s", fio=path, write_fio=tmp_path / name, force=True
            )
    assert path.read_text(encoding="utf-8") == before


def test_a_written_job_keeps_the_jobs_own_way_to_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.fio"
    path = job_file(tmp_path, "[a]\nrw=randread\nbs=8k\nioengine=io_uring\ndirect=1\niodepth=4\n")
    measure("sim:two-level", tmp_path / "s", fio=path, write_fio=out)
    (job,) = read_job(out)
    assert (job.access.backend, job.access.direct, job.workload.queue_depth) == ("uring", True, 4)
    monkeypatch.setattr(fio_jobs, "target_facts", lambda _: {"logical_block_bytes": 4096})
    measure(
        str(tmp_path),
        tmp_path / "s",
        workload=WORKLOAD.replace("4KiB", "64KiB"),
        direct=True,
        write_fio=out,
        force=True,
    )
    assert "\nba=4096\n" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("workload", "options", "said"),
    [
        (f"{WORKLOAD},queue_depth=8", {}, "needs --backend uring"),
        (WORKLOAD, {"backend": "mmap", "direct": True}, "by its nature"),
        (f"{WORKLOAD},think_time=1ms", {"rate": 5.0}, "leave the think time"),
    ],
)
def test_what_a_measurement_refuses_is_not_written(
    workload: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.fio"
    with pytest.raises(FioJobRefused, match=said):
        measure(str(tmp_path), tmp_path / "s", workload=workload, write_fio=out, **options)
    assert not out.exists()


def test_a_target_without_files_says_what_it_leaves_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = job_file(tmp_path, "[a]\nrw=randread\nioengine=io_uring\ndirect=1\niodepth=4\n")
    measure("sim:two-level", tmp_path / "s.sqlite", fio=path, json=True)
    told = capfd.readouterr()
    (job,) = json.loads(told.out)["jobs"]
    said = "not mapped: the job goes by uring, direct; sim:two-level has one way"
    assert any(said in each["text"] for each in job["findings"])
    assert f"warning: [a] {said}" in told.err


@pytest.mark.parametrize("name", ["database", "streaming"])
def test_the_jobs_that_come_along_are_read_without_a_warning_of_weight(name: str) -> None:
    (job,) = read_job(ROOT / "workloads" / f"{name}.fio")
    assert job.name == name
    assert not [each for each in job.findings if not str(each).startswith("differs: in fio")]
