"""`leadline stream` as a user meets it: what it refuses, promises in JSON, and keeps."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from command import LEADLINE, environment, leadline
from fake_disks import Kept
from leadline.engine import (
    BudgetSpent,
    EngineFault,
    PointFailed,
    Stopped,
    Streams,
    TargetRefused,
    open_streams,
)
from leadline.record import Status
from leadline.record.job import Capacity, Check, StreamJob
from leadline.record.streaming import CapacityResult, StreamResult, StreamStart, StreamStudy
from leadline.store import Store, open_store
from leadline.studies.conduct import Watcher
from leadline.studies.streaming import command_run as run
from leadline.studies.streaming.plan import Wanted, plan_run
from leadline.studies.streaming.run import begin_stream, explain, recent_capacities, run_stream
from leadline.studies.streaming.study import KernelRuns
from leadline.studies.streaming.text import stream_document
from leadline.terminal.context import Context
from proving.samples import keep_study, sample_stream_study, stored_stream

MIB = 2**20


OF_TARGET = re.compile(
    "32 MiB|this machine|the input itself|does not exist|that fit|too little free space"
)
"""What is wrong is the data or the machine, and not the words."""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sort", "IN", "OUT", "--memory", "31MiB"], "at least 32 MiB"),
        (["sort", "IN", "OUT", "--memory", "1000TiB"], "this machine"),
        (["sort", "IN", "IN", "--replace"], "is the input itself"),
        (["sort", "IN", "OUT", "--io", "pread"], "mmap or uring"),
        (["sort", "IN", "OUT", "--threads", "0"], "threads"),
        (["sort", "IN", "OUT", "--stripe", ","], "names no directory"),
        (["sort", "IN", "OUT", "--stripe", "/no/such/disk"], "/no/such/disk does not exist"),
        (["sort", "IN", "OUT", "--stripe-unit", "100KB"], "power of two"),
        (["sort", "IN", "OUT", "--temp", "/no/such/disk"], "/no/such/disk does not exist"),
        (["sort", "IN", "OUT", "--budget", "0"], "no time at all"),
        (["sort", "IN", "OUT", "-o", "run.doc"], ".html"),
        (["sort", "IN", "OUT", "-o", "/no/such/place/run.html"], "does not exist"),
        (["scan", "IN", "OUT", "--match", "0"], "no share of the records"),
        (["scan", "IN", "OUT", "--match", "half"], "'half' is no number"),
        (["transpose", "IN", "OUT", "--rows", "7"], "give --rows and --columns that fit"),
        (["generate", "OUT"], "--records N, or --bytes SIZE"),
        (["generate", "OUT", "--records", "5", "--bytes", "500"], "and not both"),
        (["generate", "OUT", "--bytes", "99"], "a record has 100 bytes"),
        (["generate", "OUT", "--records", "5", "--format", "text"], "binary or ascii"),
        (["generate", "OUT", "--records", "999999999999"], "too little free space"),
        (["check", "nothing"], "does not exist"),
        (["shuffle", "IN", "OUT"], "No such command 'shuffle'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    (place / "in").write_bytes(bytes(100 * 4096))
    words = {"IN": str(place / "in"), "OUT": str(place / "out")}
    done = leadline(
        "stream", *[words.get(word, word) for word in arguments], store=tmp_path / "store.sqlite"
    )
    of_target = OF_TARGET.search(said) is not None and "-o" not in arguments
    assert done.returncode == (5 if of_target else 2), done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split()), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [path.name for path in place.iterdir()] == ["in"]
    assert (place / "in").read_bytes() == bytes(100 * 4096)


@pytest.mark.parametrize("command", [["sort", "nothing", "out"], ["check", "nothing"]])
def test_of_several_ranks_the_first_speaks(command: list[str], tmp_path: Path) -> None:
    first, second = (
        subprocess.Popen(
            [LEADLINE, "stream", *command],
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(tmp_path / "store.sqlite")
            | {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": rank},
        )
        for rank in ("0", "1")
    )
    with first, second:
        _, said = first.communicate(timeout=60)
        second.terminate()  # as the launcher does when one has ended, wherever the others are
        assert second.communicate(timeout=60)[1] == ""
    assert first.returncode == (5 if command[0] == "sort" else 2)
    assert "leadline: " in said


@pytest.mark.parametrize("ended", [True, False])
def test_a_refused_rank_says_why_only_where_the_first_did_not(
    ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise TargetRefused("no such disk")

    def wait(_: float) -> None:
        if ended:
            raise Stopped("SIGTERM")

    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.setattr(run, "_run_kernel", refuse)
    monkeypatch.setattr("time.sleep", wait)
    with pytest.raises((SystemExit, TargetRefused)) as left:
        run.run_kernel(Context(None), "sort", Wanted(), run.Shown())
    assert isinstance(left.value, SystemExit if ended else TargetRefused)
    code = left.value.code if isinstance(left.value, SystemExit) else left.value.exit_code
    assert code == TargetRefused.exit_code


def test_the_document_has_the_promised_keys() -> None:
    document = stream_document(sample_stream_study())
    promised = {"kernel", "platform", "bytes", "seconds", "verified", "bound_mb_s", "phases"}
    assert promised <= set(document)
    assert (document["kernel"], document["platform"]) == ("sort", "threads")
    assert (document["bytes"], document["bound_mb_s"]) == (100_000_000, None)
    phase = document["phases"][0]
    assert {"name", "mb_s", "cpu_user", "cpu_system", "io_bytes"} <= set(phase)
    assert (phase["mb_s"], phase["cpu_user"], phase["io_bytes"]) == (100.0, 0.25, 100_000_000)
    assert len(document["runs"]) == 2


def test_a_phase_whose_blocks_were_not_counted_says_so() -> None:
    study = sample_stream_study()
    run = study.runs[0]
    phase = msgspec.structs.replace(run.result.phases[0], block_written_bytes=None)
    result = msgspec.structs.replace(run.result, phases=(phase,))
    changed = msgspec.structs.replace(run, result=result)
    document = stream_document(msgspec.structs.replace(study, runs=(changed,)))
    assert document["phases"][0]["io_bytes"] is None


def test_stored_studies_are_shown_drawn_exported_and_listed(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with open_store(str(store)) as kept:
        keep_study(kept, stored_stream(sample_stream_study()))
    shown = leadline("show", "stream-a", store=store)
    assert shown.returncode == 0, shown.stderr
    assert "sort read" in shown.stdout
    assert json.loads(leadline("show", "tiny-stream", "--json", store=store).stdout)["runs"]
    drawn = leadline("report", "stream-a", "-o", str(tmp_path / "s.html"), store=store)
    assert drawn.returncode == 0, drawn.stderr
    exported = leadline("export", "stream-a", "-o", str(tmp_path / "s.csv"), store=store)
    assert exported.returncode == 0, exported.stderr
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 1 + 2 * 2
    (listed,) = json.loads(leadline("systems", "--json", store=store).stdout)
    assert (listed["kind"], listed["study_id"], listed["system"]) == (
        "stream",
        "stream-a",
        "tiny-stream",
    )


# --- the study that grows


class Scripted:
    """Answers jobs as told: with a result, or by raising."""

    def __init__(self, capacity: CapacityResult | Exception, kernel: BaseException | None) -> None:
        self.capacity = capacity
        self.kernel = kernel
        self.jobs: list[StreamJob] = []

    def run(self, job: StreamJob, *, output_bytes: int | None = None) -> StreamResult:
        self.jobs.append(job)
        result = sample_stream_study().runs[0].result
        if isinstance(job.kernel, Capacity):
            if isinstance(self.capacity, Exception):
                raise self.capacity
            return msgspec.structs.replace(result, kernel="capacity", capacity=self.capacity)
        assert output_bytes == 409_600
        if self.kernel is not None:
            raise self.kernel
        return result


CAPACITY = CapacityResult(
    memory_copy_bytes_s=(9e9, 9e9),
    memory_read_bytes_s=(2e10, 2e10),
    disk_read_bytes_s=((2e8, 2e8),),
    disk_write_bytes_s=((2e8, 2e8),),
    all_read_bytes_s=(2e8, 2e8),
    all_write_bytes_s=(2e8, 2e8),
    all_both_bytes_s=(2e8, 2e8),
    disk_devices=(("vda",),),
    processors=2.0,
)


def study_of(scripted: Scripted, kept: Kept, tmp_path: Path, **changed: Any) -> StreamStudy:
    (tmp_path / "in").write_bytes(bytes(100 * 4096))
    wanted = Wanted(
        source=str(tmp_path / "in"),
        destination=str(tmp_path / "out"),
        memory_bytes=64 * MIB,
        budget_s=60.0,
    )
    planned = plan_run("sort", wanted, name="scripted", **changed)
    return run_stream(planned, begin_stream(planned), scripted, kept)


def test_a_run_is_held_against_capacities_of_the_same_minute(tmp_path: Path) -> None:
    kept, scripted = Kept(), Scripted(CAPACITY, None)
    study = study_of(scripted, kept, tmp_path)
    assert [job.name for job in scripted.jobs] == ["capacity", "sort"]
    assert scripted.jobs[1].total_s_max < 60.0, "one budget for both"
    assert [each.status for each in kept.documents] == [*[Status.RUNNING] * 3, Status.DONE]
    assert kept.documents[-1] == study
    # 200 MB in 2 s, and disks that give 200 MB/s: half of what could be.
    assert stream_document(study)["bound_mb_s"] == pytest.approx(200.0)
    assert study.sentences[1] == "Bound: 50% of 200 MB/s, by disks."


def runs_of(
    scripted: Scripted, store: Store, tmp_path: Path, *, anew: bool = False, **wanted: Any
) -> StreamStudy:
    (tmp_path / "in").write_bytes(bytes(100 * 4096))
    given = {"memory_bytes": 64 * MIB, "budget_s": 60.0} | wanted
    planned = plan_run(
        "sort", Wanted(source=str(tmp_path / "in"), destination=str(tmp_path / "out"), **given)
    )
    runs, start = KernelRuns(planned, anew=anew), begin_stream(planned)
    return runs.run(cast(Streams, scripted), store, start, None, Watcher())


def test_what_the_machine_can_do_is_measured_once_a_day(tmp_path: Path) -> None:
    first, again = Scripted(CAPACITY, None), Scripted(CAPACITY, None)
    with open_store(str(tmp_path / "store.sqlite")) as store:
        measured = runs_of(first, store, tmp_path)
        known = runs_of(again, store, tmp_path)
        assert [job.name for job in again.jobs] == ["sort"]
        assert known.capacities == measured.capacities
        assert stream_document(known)["bound_mb_s"] == stream_document(measured)["bound_mb_s"]
        runs_of(again, store, tmp_path, anew=True)
        runs_of(again, store, tmp_path, memory_bytes=128 * MIB)
        runs_of(again, store, tmp_path, depth=4)
        runs_of(again, store, tmp_path, memory_bytes=32 * MIB)
    names = ["sort", *3 * ["capacity", "sort"], "sort"]
    assert [job.name for job in again.jobs] == names, "what was measured with less does not count"


@pytest.mark.parametrize(
    ("hours", "facts", "counts"),
    [
        (23, {}, True),
        (25, {}, False),
        (1, {"device_name": "sdz"}, False),
        (1, {"free_bytes": 1}, True),
    ],
)
def test_of_another_day_or_disk_nothing_is_taken(
    hours: int, facts: dict[str, Any], counts: bool, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(bytes(100 * 4096))
    ends: Any = {"source": str(tmp_path / "in"), "destination": str(tmp_path / "out")}
    planned = plan_run("sort", Wanted(**ends, memory_bytes=64 * MIB, budget_s=60.0))
    scripted, start = Scripted(CAPACITY, None), begin_stream(planned)
    later = datetime.fromisoformat(start.started_at) + timedelta(hours=hours)
    with open_store(str(tmp_path / "store.sqlite")) as store:
        run_stream(planned, start, cast(Streams, scripted), store)
        changed = msgspec.structs.replace(
            start, started_at=later.isoformat(), facts=start.facts | facts
        )
        assert (recent_capacities(store, planned, changed) is not None) == counts


def test_more_data_another_folder_or_a_reuse_of_yesterday_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(100 * 4096))
    ends: Any = {"source": str(tmp_path / "in"), "destination": str(tmp_path / "out")}
    planned = plan_run("sort", Wanted(**ends, memory_bytes=64 * MIB, budget_s=60.0))
    streams = cast(Streams, Scripted(CAPACITY, None))
    start = begin_stream(planned)

    def after(hours: int) -> StreamStart:
        at = datetime.fromisoformat(start.started_at) + timedelta(hours=hours)
        return msgspec.structs.replace(start, study_id=f"{hours:032}", started_at=at.isoformat())

    with open_store(str(tmp_path / "store.sqlite")) as store:
        run_stream(planned, start, streams, store)
        known = recent_capacities(store, planned, after(23))
        assert known is not None
        more = msgspec.structs.replace(planned, data_bytes=2**33)
        assert recent_capacities(store, more, after(1)) is None
        elsewhere = msgspec.structs.replace(after(1), directories=("/elsewhere",))
        assert recent_capacities(store, planned, elsewhere) is None
        run_stream(planned, after(23), streams, store, known=known)
        assert recent_capacities(store, planned, after(25)) is None


def test_a_bound_of_earlier_capacities_says_of_when(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(100 * 4096))
    study = study_of(Scripted(CAPACITY, None), Kept(), tmp_path)
    assert study.capacities is not None
    assert not any("--bound" in str(found) for found in study.findings)
    before = "2026-11-01T10:00:00+00:00"
    assert study.capacities.run is not None
    old = msgspec.structs.replace(
        study.capacities, run=msgspec.structs.replace(study.capacities.run, at=before)
    )
    said = explain(msgspec.structs.replace(study, capacities=old))
    assert [before in str(found) for found in said.findings if "--bound" in str(found)] == [True]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_bound_rank_measures_the_whole_machine(ranks: int, tmp_path: Path) -> None:
    """`mpirun` binds each of two ranks to a processor: capacities of one had ranks use 134%."""
    seen = []

    class Looking(Scripted):
        def run(self, job: StreamJob, *, output_bytes: int | None = None) -> StreamResult:
            seen.append(len(os.sched_getaffinity(0)))
            return super().run(job, output_bytes=output_bytes)

    (tmp_path / "in").write_bytes(bytes(100 * 4096))
    ends: Any = {"source": str(tmp_path / "in"), "destination": str(tmp_path / "out")}
    planned = plan_run("sort", Wanted(**ends, memory_bytes=64 * MIB, budget_s=60.0))
    planned = msgspec.structs.replace(
        planned, options=msgspec.structs.replace(planned.options, ranks=ranks)
    )
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
        all_of_them = len(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {min(allowed)})
        run_stream(planned, begin_stream(planned), Looking(CAPACITY, None), Kept())
        assert os.sched_getaffinity(0) == {min(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)
    assert seen == [all_of_them if ranks > 1 else 1, 1]


def test_without_room_for_capacities_there_is_no_bound_but_a_run(tmp_path: Path) -> None:
    for error in (TargetRefused("too little free space"), PointFailed("a write failed")):
        kept, scripted = Kept(), Scripted(error, None)
        study = study_of(scripted, kept, tmp_path)
        assert study.status is Status.DONE
        assert stream_document(study)["bound_mb_s"] is None
        assert str(error) in str(study.findings[0])


def test_a_bound_that_nobody_wants_is_not_measured(tmp_path: Path) -> None:
    scripted = Scripted(CAPACITY, None)
    study = study_of(scripted, Kept(), tmp_path, capacities=False)
    assert [job.name for job in scripted.jobs] == ["sort"]
    assert study.capacities is None


def test_what_was_measured_before_a_stop_is_kept(tmp_path: Path) -> None:
    kept, scripted = Kept(), Scripted(CAPACITY, Stopped("SIGTERM"))
    with pytest.raises(Stopped):
        study_of(scripted, kept, tmp_path)
    assert kept.documents[-1].status is Status.STOPPED
    assert kept.documents[-1].capacities is not None


def test_of_a_refusal_nothing_is_kept(tmp_path: Path) -> None:
    kept = Kept()
    with pytest.raises(TargetRefused):
        study_of(Scripted(CAPACITY, TargetRefused("no")), kept, tmp_path, capacities=False)
    assert kept.documents == []


# --- the engine child


def fake(code: str) -> tuple[str, ...]:
    """An engine that reads a job and does as told."""
    begin = "import json, sys, time; job = json.loads(sys.stdin.readline()); "
    say = (
        "say = lambda **event: print(json.dumps({'job_id': job['job_id'], **event}), flush=True); "
    )
    return (sys.executable, "-c", begin + say + code)


def asked(tmp_path: Path, total_s_max: float = 5.0) -> StreamJob:
    (tmp_path / "in").write_bytes(bytes(1000))
    return StreamJob(
        kernel=Check(), memory_bytes=64 * MIB, input=str(tmp_path / "in"), total_s_max=total_s_max
    )


def test_an_answer_that_is_none_is_the_engines_fault(tmp_path: Path) -> None:
    with (
        open_streams(command=fake("say(event='result', kernel='check')")) as streams,
        pytest.raises(EngineFault, match="does not fit the record"),
    ):
        streams.run(asked(tmp_path))


def test_a_job_that_ran_out_of_time_has_spent_its_budget(tmp_path: Path) -> None:
    late = "time.sleep(0.2); say(event='error', kind='target', message='not done in time')"
    with open_streams(command=fake(late)) as streams:
        with pytest.raises(BudgetSpent, match="not done in time") as spent:
            streams.run(asked(tmp_path, total_s_max=0.1))
        assert spent.value.exit_code == 3
    early = "say(event='error', kind='target', message='refused at once')"
    with (
        open_streams(command=fake(early)) as streams,
        pytest.raises(TargetRefused, match="refused at once"),
    ):
        streams.run(asked(tmp_path))
