"""`measure --resume`: what was measured is kept run by run, and only the rest is measured."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import leadline as package
from command import ended_after, killed_after, leadline
from leadline.engine import Target, TargetRefused
from leadline.engine.targets.claim import claim
from leadline.record import Access, Measurement, Status, Workload
from leadline.record.measurement import MEASUREMENT, Measured, MeasurementAsked, MeasurementStart
from leadline.record.study import Item
from leadline.store import Keeper, Store, open_store
from leadline.studies.measurement.plan import (
    MeasurementRefused,
    begin_measurements,
    find_begun,
    load_measured,
    plan_workload,
)
from leadline.studies.measurement.run import measure_workloads

SYSTEM = "sim:two-level"
TARGET = Target.parse(SYSTEM)
PAGES = "unique_bytes=2MiB,size_mean=8KiB,process_num=2"
LOG = "unique_bytes=4MiB,size_mean=64KiB,read_frac=0"
GLOBAL = "[global]\nfilename=f\nsize=1m\nruntime=1\ntime_based=1\nnorandommap\n"
JOBS = f"{GLOBAL}[pages]\nrw=randread\nbs=8k\n[log]\nrw=write\nbs=64k\nfsync=4\n[both]\nrw=randrw\n"
RUNS = 3


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    path = tmp_path / "jobs.fio"
    path.write_text(JOBS, encoding="utf-8")
    return ["measure", SYSTEM, "--fio", str(path), "--runs", str(RUNS), "--seed", "9", "--json"]


def newest(path: Path) -> Measured:
    with open_store(str(path)) as store:
        (summary,) = store.list(MEASUREMENT)
        return load_measured(store, summary.study_id)


def answers(text: str, *, counted: bool = True) -> list[dict[str, Any]]:
    """The documents of a file's jobs, or of one workload, without the ids that chance decides.

    An engine counts its jobs: without `counted` a sitting that made fewer of them says the same.
    """
    told = json.loads(text)
    found: list[dict[str, Any]] = told.get("jobs", [told])
    for each in found:
        del each["point"]
        if not counted:
            del each["result"]["job_id"]
    return found


# ---- as a person meets it ------------------------------------------------------------------------


def test_a_killed_file_of_jobs_resumes_to_the_very_same_answer(
    asked: list[str], tmp_path: Path
) -> None:
    whole, cut = tmp_path / "whole.sqlite", tmp_path / "cut.sqlite"
    expected = answers(leadline(*asked, store=whole).stdout)
    assert [each["name"] for each in expected] == ["pages", "log", "both"]
    ended_after(2, signal.SIGKILL, *asked, store=cut)
    before = newest(cut)
    assert (before.status, len(before.points), before.runs) == (Status.RUNNING, 2, ())
    resumed = leadline(*asked, "--resume", store=cut)
    assert resumed.returncode == 0, resumed.stderr
    assert f"9 runs of 3 workloads, {2 * RUNS} runs kept from before" in resumed.stderr
    assert answers(resumed.stdout) == expected
    after = newest(cut)
    assert after.status is Status.DONE
    assert after.points[:2] == before.points, "what was measured before is as it was"
    assert after.start == before.start


def test_a_workload_killed_between_its_runs_makes_only_the_others(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.sqlite", tmp_path / "cut.sqlite"
    asked = ["measure", SYSTEM, "--workload", PAGES, "--runs", "6", "--seconds", "0.6", "--json"]
    expected = leadline(*asked, store=whole).stdout
    killed = killed_after(4, *asked, store=cut)
    assert killed.returncode == -signal.SIGKILL
    before = newest(cut)
    assert (len(before.points), len(before.runs)) == (0, 4)
    assert "4 runs of the next workload" in leadline("show", _id(before), store=cut).stdout
    assert " 4 runs " in leadline("systems", store=cut).stdout
    resumed = leadline("measure", SYSTEM, "--resume", "--json", store=cut)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["result"]["job_id"] == "job-2", "two runs, and no more"
    assert answers(resumed.stdout, counted=False) == answers(expected, counted=False)
    assert newest(cut).runs == ()


def test_what_is_interrupted_is_told_and_goes_on(asked: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    stopped = ended_after(1, signal.SIGINT, *asked, store=store)
    assert stopped.returncode == 3, stopped.stderr
    assert [job["name"] for job in json.loads(stopped.stdout)["jobs"]] == ["pages"]
    before = newest(store)
    said = f"3 of 9 runs are kept as {_id(before)[:8]}; the same command with --resume goes on"
    assert said in stopped.stderr
    assert before.status is Status.STOPPED
    assert leadline(*asked, "--resume", store=store).returncode == 0
    assert newest(store).status is Status.DONE


def test_what_was_killed_after_its_last_run_only_ends(asked: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    ended_after(3, signal.SIGKILL, *asked, store=store)
    before = newest(store)
    assert (before.status, len(before.points)) == (Status.RUNNING, 3)
    resumed = leadline(*asked, "--resume", store=store)
    assert len(json.loads(resumed.stdout)["jobs"]) == 3
    assert newest(store) == before._replace(status=Status.DONE)


def test_a_file_of_jobs_is_one_study_that_every_command_tells_whole(
    asked: list[str], tmp_path: Path
) -> None:
    store, page = tmp_path / "store.sqlite", tmp_path / "page.html"
    told = leadline(*asked, store=store).stdout
    study = newest(store)
    (listed,) = json.loads(leadline("systems", "--json", store=store).stdout)
    assert (listed["study_id"], listed["items"], listed["status"]) == (_id(study), 3, "done")
    assert leadline("show", _id(study), "--json", store=store).stdout == told
    shown = leadline("show", _id(study), store=store).stdout
    assert [line for line in shown.splitlines() if line.startswith("[")] == [
        "[pages]",
        "[log]",
        "[both]",
    ]
    rows = json.loads(leadline("export", _id(study), store=store).stdout)
    assert [row["point_id"] for row in rows] == [point.point_id for point in study.points]
    drawn = leadline("report", _id(study), "-o", str(page), store=store)
    assert drawn.returncode == 0, drawn.stderr
    assert "both: " in page.read_text(encoding="utf-8")
    point = json.loads(leadline("show", study.points[1].point_id, "--json", store=store).stdout)
    own = {name: said for name, said in point.items() if name not in ("leadline", "schema")}
    assert json.loads(told)["jobs"][1] == {"name": "log"} | own


# ---- in this process, where a command of its own would tell no more ------------------------------


class Stopping:
    """A store that is interrupted once it has so many items."""

    def __init__(self, store: Keeper, items: int) -> None:
        self._store, self._left = store, items
        self.begin, self.end = store.begin, store.end

    def add(self, study_id: str, item: Item, group: str = "") -> None:
        self._store.add(study_id, item, group)
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt


def begun(*workloads: str, runs: int = RUNS, seed: int = 1) -> MeasurementStart:
    planned = tuple(plan_workload(Workload.parse(each), Access(), runs=runs) for each in workloads)
    return begin_measurements(TARGET, MeasurementAsked(workloads=planned, seed=seed, accuracy=0.01))


def stopped(store: Store, start: MeasurementStart, items: int) -> Measured:
    """Measure until so many items are stored."""
    with pytest.raises(KeyboardInterrupt):
        measure_workloads(TARGET, Stopping(store, items), start)
    return load_measured(store, start.study_id)


@pytest.mark.parametrize("items", range(1, 2 * RUNS))
def test_stopped_anywhere_it_measures_the_same_points(items: int) -> None:
    with open_store("sqlite://") as store:
        start = begun(PAGES, LOG)
        whole = measure_workloads(TARGET, store, start)
        again = msgspec.structs.replace(start, study_id="b" * 32)
        before = stopped(store, again, items)
        assert len(before.points) * RUNS + len(before.runs) == items
        assert before.status is Status.STOPPED
        found = measure_workloads(TARGET, store, again, before)
        assert list(map(_measured, found.points)) == list(map(_measured, whole.points))
        assert load_measured(store, again.study_id) == found
        assert [len(point.runs) for point in found.points] == [RUNS, RUNS]


def test_the_newest_of_the_same_workloads_goes_on() -> None:
    with open_store("sqlite://") as store:
        pages = stopped(store, begun(PAGES), 1)
        log = stopped(store, begun(LOG), 2)
        readings = msgspec.structs.replace(pages.start, study_id="c" * 32, asked=None)
        store.begin(MEASUREMENT, readings)
        assert find_begun(store, TARGET, pages.start.workloads) == pages
        assert find_begun(store, TARGET, ()) == log
        (other,) = begun(PAGES.replace("8KiB", "4KiB")).workloads
        with pytest.raises(TargetRefused, match=f"{_id(log)[:8]} of 'two-level' runs other work"):
            find_begun(store, TARGET, (other,))
        with pytest.raises(TargetRefused, match="no unfinished measurement of 'hp-730' is stored"):
            find_begun(store, Target.parse("sim:hp-730"), ())


def test_what_says_not_what_it_was_to_measure_cannot_go_on() -> None:
    with open_store("sqlite://") as store:
        older = msgspec.structs.replace(begun(PAGES), asked=None)
        store.begin(MEASUREMENT, older)
        with pytest.raises(TargetRefused, match="no unfinished measurement"):
            find_begun(store, TARGET, ())
        with pytest.raises(TargetRefused, match="cannot go on"):
            measure_workloads(TARGET, store, older, load_measured(store, older.study_id))


def test_runs_on_another_system_are_not_made_one_answer() -> None:
    with open_store("sqlite://") as store:
        start = begun(PAGES)
        kept = stopped(store, start, 2)
        before = {"simulated_system": "one-level"}
        others = [msgspec.structs.replace(run, facts=before) for run in kept.runs]
        with pytest.raises(TargetRefused, match=r"the 2 runs before: simulated_system: one-level"):
            measure_workloads(TARGET, store, start, kept._replace(runs=tuple(others)))
        assert load_measured(store, start.study_id) == kept, "nothing of it was lost"


def test_a_simulated_system_that_was_changed_is_another() -> None:
    with open_store("sqlite://") as store:
        start = begun(PAGES)
        kept = stopped(store, start, 2)
        other = msgspec.structs.replace(TARGET, profile={**(TARGET.profile or {}), "noise": {}})
        with pytest.raises(TargetRefused, match=r"sim:two-level describes another system than"):
            measure_workloads(other, store, start, kept)
        assert load_measured(store, start.study_id) == kept


def test_what_is_refused_before_its_first_run_leaves_nothing() -> None:
    with open_store("sqlite://") as store:
        with pytest.raises(TargetRefused, match="is more than the"):
            measure_workloads(TARGET, store, begun(PAGES, LOG.replace("4MiB", "8192TiB")))
        preconditioned = MeasurementAsked(
            workloads=begun(PAGES).workloads, seed=1, accuracy=0.01, precondition_bytes_max=1
        )
        with pytest.raises(MeasurementRefused, match="--precondition writes to a real device"):
            begin_measurements(TARGET, preconditioned)
        assert store.list(MEASUREMENT) == ()


def test_python_measures_and_goes_on(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    with open_store(path) as store:
        kept = stopped(store, begun(PAGES, LOG), 4)
    with pytest.raises(TargetRefused, match="runs other workloads"):
        package.measure(SYSTEM, PAGES, resume=True, store=path)
    found = package.measure(SYSTEM, resume=True, store=path)
    assert found.study.points[0] == kept.points[0]
    assert [point.workload.size_mean for point in found.study.points] == [8192, 65536]
    assert len(found.document()) == 2
    assert package.open(_id(kept), store=path) == found
    alone = package.measure(SYSTEM, PAGES, runs=1, seconds="100ms", store=path)
    assert alone.document()["point"] == _id(alone.study)
    with pytest.raises(MeasurementRefused, match="nothing to measure"):
        package.measure(SYSTEM, store=path)


# ---- what contradicts ----------------------------------------------------------------------------


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with open_store(str(path)) as store:
        stopped(store, begun(PAGES), 1)
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workload", LOG], "runs other workloads: 2 MiB touched"),
        (["--workload", PAGES, "--rate", "5"], "runs other workloads"),
        (["--sync", "dsync"], "unfinished measurement of 'two-level' has --sync none, not dsync"),
        (["--write-fio", "out.fio"], "leave one out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_another_question_is_refused(unfinished: Path, options: list[str], said: str) -> None:
    before = newest(unfinished)
    done = leadline("measure", SYSTEM, *options, "--resume", store=unfinished)
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert done.stdout == ""
    assert newest(unfinished) == before


def test_what_it_began_with_is_kept_and_said(unfinished: Path) -> None:
    typed = ["--seed", "7", "--runs", "9", "--seconds", "5s", "--max-bytes", "1GiB", "--rate", "2"]
    done = leadline("measure", SYSTEM, *typed, "--resume", "--json", store=unfinished)
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: --")]
    said = "is not used: with --resume it goes on as it began"
    assert notes == [
        f"note: --runs {said} ({RUNS})",
        f"note: --rate {said} (without it)",
        f"note: --max-bytes {said} (without it)",
        f"note: --seed {said} (1)",
    ]
    assert len(json.loads(done.stdout)["runs"]) == RUNS
    finished = leadline("measure", SYSTEM, "--resume", store=unfinished)
    assert finished.returncode == 2
    assert "no unfinished measurement of 'two-level' is stored; leave out" in finished.stderr


def _id(study: Measured) -> str:
    return study.start.study_id


def _measured(point: Measurement) -> Measurement:
    """A point without what chance, the clock and the count of jobs decide."""
    replace = msgspec.structs.replace
    return replace(point, point_id="", started_at="", result=replace(point.result, job_id=""))


def test_a_resume_that_is_refused_leaves_a_study_that_runs_as_it_is(tmp_path: Path) -> None:
    """Another Leadline holds the target: it is that one's study."""
    store, place = tmp_path / "store.sqlite", tmp_path / "target"
    place.mkdir()
    words = ("measure", str(place), "--workload", PAGES, "--runs", "3", "--seconds", "0.3")
    killed_after(2, *words, store=store)
    before = newest(store)
    assert before.status is Status.RUNNING
    with claim(place):
        refused = leadline(*words, "--resume", store=store)
    assert refused.returncode == 5
    assert "in use by another Leadline" in refused.stderr
    assert newest(store) == before
    assert leadline(*words, "--resume", store=store).returncode == 0
    assert newest(store).status is Status.DONE
