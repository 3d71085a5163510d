"""What people and machines hand in that nobody thought of: a message each, never a defect."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from command import environment, leadline
from forked_command import run_forked
from leadline.app import main
from leadline.engine import Target, TargetRefused, load_profile, open_engine
from leadline.engine.process import ProcessEngine
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.fio import FioJobRefused, read_job
from leadline.inputs import InputRefused, read_bytes, read_text
from leadline.machine.space import Space, keep_floor
from leadline.record import Access, EngineResult, Status, Workload
from leadline.record.job import Limits, NullTarget
from leadline.store import StoreError, open_store
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.read import begin_peak, load_experiment, read_experiment
from leadline.terminal.options import new_file
from leadline.terminal.talk import OutputLost, put_json, show, talk
from leadline.units import parse_bytes, parse_seconds
from places import TESTS
from proving.samples import sample_result
from shared_surveys import keep, surveyed

GOLDEN = (TESTS / "golden" / "server.toml").read_text(encoding="utf-8")
GIB = 2**30


@pytest.mark.parametrize("text", ["1e308", "1e308d", "9e99s", "40y", "1e10"])
def test_a_duration_has_an_end(text: str) -> None:
    with pytest.raises(ValueError, match=r"thirty years|unknown unit"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["1e308TiB", "1e308", "9e18KiB"])
def test_a_size_has_an_end(text: str) -> None:
    with pytest.raises(ValueError, match="more than any file can hold"):
        parse_bytes(text)


@pytest.mark.parametrize(
    "body",
    [
        "bs=0",
        "bs=-4k",
        "bs=4k,0\nrw=randrw",
        "bsrange=0-0",
        "bssplit=0/50:4k/50",
        "bs=" + "9" * 5000,
        "bs=9223372036854775808",
        "bs=4k\nruntime=99999999999999999999d",
        "bs=4k\niodepth=0",
        "bs=3g",
    ],
    ids=lambda body: body[:20],
)
def test_a_fio_job_of_impossible_numbers_is_refused(body: str) -> None:
    with pytest.raises(FioJobRefused, match=r"\[a\]: "):
        read_job(f"[a]\nrw=randread\nsize=8m\n{body}\n")


@pytest.mark.parametrize(
    ("there", "instead", "said"),
    [
        ("[1, 2]", "[1, inf]", "must be finite"),
        ("[1, 2]", "[1, " + "9" * 400 + "]", "at most 18 digits"),
        ("[sample]\nworkers = 2", "[sample]\nworkers = inf", "no such level|must be finite"),
        ("service_ms = 10.0", "service_ms = inf", "service_ms is inf, and must be a number"),
        ("service_ms = 10.0", "service_ms = 10.0\ndisks = nan", "disks is nan"),
        ("service_ms = 10.0", "service_ms = 10.0\ndisks = true", "disks|boolean"),
        ("service_ms = 10.0", "service_ms = 2026-01-01", "2026-01-01, a date"),
        ('kind = "simulated"', 'kind = ["simulated"]', "has the kind"),
        ('kind = "simulated"', "kind = {}", "has the kind"),
        ("rate_start = 40", "rate_start = " + "9" * 400, "must be a number"),
        ("rate_start = 40", "rate_start = 1e400", "must be a number"),
        ("[server.system]", "wall_scale = 1e308\n[server.system]", "at most 1000"),
        ('run_length = "20s"', 'run_length = "1e308s"', "thirty years"),
        ("[threshold]", "x = " + "[" * 30 + "]" * 30 + "\n[threshold]", "nested deeper"),
        ("[threshold]", "x = " + "[" * 9000 + "]" * 9000 + "\n[threshold]", "nested deeper"),
        ("[threshold]", "x" + ".x" * 3000 + " = 1\n[threshold]", "nested deeper"),
        ("[threshold]", "x = " + "9" * 5000 + "\n[threshold]", "not valid TOML"),
    ],
    ids=lambda text: text[:25],
)
def test_an_experiment_of_impossible_values_names_them(there: str, instead: str, said: str) -> None:
    assert there in GOLDEN
    with pytest.raises(ExperimentRefused, match=said):
        read_experiment(GOLDEN.replace(there, instead, 1), "it.toml")


def test_a_level_of_the_command_line_is_held_to_the_same() -> None:
    text = GOLDEN.replace("workers = [1, 2]", "workers = [1]").replace("[sample]\nworkers = 2", "")
    with pytest.raises(ExperimentRefused, match=r"workers: a level must be finite"):
        begin_peak(read_experiment(text, "it.toml"), sample={"workers": float("inf")})


def test_a_deep_profile_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text("a" + ".a" * 3000 + " = 1", encoding="utf-8")
    with pytest.raises(TargetRefused, match="nested deeper"):
        load_profile(str(file))


@pytest.mark.parametrize("port", ["99999", "0", "x", "-1", "²", "9" * 5000])
def test_a_bad_port_is_refused(port: str) -> None:
    for url in (f"nfs://host:{port}/e", f"nfs://host/e?mountport={port}"):
        with pytest.raises(TargetRefused):
            NfsAddress.parse(url)
    if not port.isdecimal() or int(port[:9]) > 65535:
        with pytest.raises(StoreError):
            open_store(f"postgresql+psycopg://127.0.0.1:{port}/x?connect_timeout=2")


def test_a_directory_that_is_no_text_is_refused(tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/d\xff")  # noqa: PTH102 - its name is bytes
    spelled = os.fsdecode(os.fsencode(tmp_path) + b"/d\xff")
    with pytest.raises(TargetRefused, match=r"no text in UTF-8.*rename"):
        Target.parse(spelled)
    done = leadline("survey", spelled, store=tmp_path / "s.sqlite")
    assert done.returncode == 5, done.stderr
    assert "no text in UTF-8" in done.stderr


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/null", "/", "PIPE", "LONG"])
def test_only_regular_files_of_sane_length_are_read(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "PIPE")
    with (tmp_path / "LONG").open("wb") as file:
        file.truncate(50 * 2**20)
    path = path if path.startswith("/") else str(tmp_path / path)
    with pytest.raises(InputRefused, match=r"no regular file|longer than 4096 KiB|directory"):
        read_text(path)
    for refuse, read in ((ExperimentRefused, load_experiment), (FioJobRefused, read_job)):
        with pytest.raises(refuse):
            read(Path(path))


def test_a_text_that_is_none_and_a_name_that_is_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path, said in (
        (tmp_path / "bytes", "UTF-8"),
        (tmp_path / "no", "no file"),
        ("a\0b", "no path"),
    ):
        with pytest.raises(InputRefused, match=said):
            read_text(path)
    (tmp_path / "good").write_text("it", encoding="utf-8")
    assert read_text(tmp_path / "good") == "it"


def test_standard_input_is_read_within_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, limit in ((b"[a]\n", 10), (b"12345", 5)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert read_bytes("-", bytes_max=limit) == given
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"123456")))
    with pytest.raises(InputRefused, match="standard input is longer"):
        read_bytes("-", bytes_max=5)


class Full(io.RawIOBase):
    """Takes nothing, as /dev/full does."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def __init__(self) -> None:
        self.descriptor = os.open("/dev/null", os.O_WRONLY)

    def write(self, _data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_answer_that_cannot_be_written_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    for put in (show, put_json):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Full())))
        with pytest.raises(OutputLost, match="No space left on device; what was measured is kept"):
            put("it")
    assert OutputLost.exit_code == 3
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BufferedWriter(Full())))
    talk("nobody hears it")


def test_a_full_standard_output_ends_with_code_3(tmp_path: Path) -> None:
    code = "import sys; from leadline.app import main; sys.argv[0] = 'leadline'; main()"
    command = [sys.executable, "-c", code, "--store", str(tmp_path / "s"), "systems", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100
        )
    assert done.returncode == 3, done.stderr
    assert "cannot be written to standard output" in done.stderr
    assert "defect" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_second_signal_does_not_change_how_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemExit(130) from None  # as typer ends

    def told(_text: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = {
        each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("leadline.app.app", interrupted)
    monkeypatch.setattr("leadline.app.talk", told)
    assert threading.current_thread() is threading.main_thread()
    try:
        with pytest.raises(SystemExit) as leaving:
            main()
        assert leaving.value.code == 3
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_what_is_there_is_overwritten_with_force_alone(tmp_path: Path) -> None:
    page, chart = tmp_path / "a.html", tmp_path / "b-levels.svg"
    for path in (page, chart):
        path.write_text("precious", encoding="utf-8")
    assert new_file(None, force=False) is None
    assert new_file(tmp_path / "new.html", force=False) == tmp_path / "new.html"
    assert new_file(Path("/dev/null"), force=False) == Path("/dev/null")
    for path, named in ((page, "a.html"), (tmp_path / "b.svg", "b-levels.svg")):
        with pytest.raises(TargetRefused, match=rf"{named} is there already; add --force"):
            new_file(path, force=False)
        assert new_file(path, force=True) == path


def test_commands_overwrite_nothing_by_themselves(tmp_path: Path) -> None:
    store, file = tmp_path / "s.sqlite", tmp_path / "there.fio"
    file.write_text("precious", encoding="utf-8")
    asked = ["measure", "null:", "--workload", "unique_bytes=1MiB,size_mean=4KiB"]
    refused = leadline(*asked, "--write-fio", str(file), store=store)
    assert refused.returncode == 2
    assert "add --force" in refused.stderr
    assert file.read_text(encoding="utf-8") == "precious"
    assert leadline(*asked, "--write-fio", str(file), "--force", store=store).returncode == 0
    assert "precious" not in file.read_text(encoding="utf-8")
    done = leadline("export", "nobody", "-o", str(file), store=store)
    assert done.returncode == 2
    assert "add --force" in done.stderr


def test_a_report_overwrites_no_page_and_no_charts_by_itself(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with open_store(str(store)) as opened:
        keep(opened, surveyed("two-level"))

    def report(*words: str) -> subprocess.CompletedProcess[str]:
        there = partial(os.chdir, tmp_path)  # where a page goes that has no name
        return run_forked(["report", "two-level", *words], environment(store), 120, steer=there)

    def files() -> set[str]:
        return {path.name for path in tmp_path.rglob("*") if not path.name.startswith("store.")}

    page, charts = tmp_path / "leadline-two-level.html", tmp_path / "charts"
    charts.mkdir()
    for precious, words in (
        (page, ()),
        (page, ("-o", str(page))),
        (charts / "unique_bytes.svg", ("--charts", str(charts))),
    ):
        precious.write_text("precious", encoding="utf-8")
        before = files()
        refused = report(*words)
        assert refused.returncode == 2
        assert f"{precious.name} is there already; add --force" in refused.stderr
        assert files() == before, "nothing was written beside it"
        assert precious.read_text(encoding="utf-8") == "precious"
        page.unlink(missing_ok=True)
    page.write_text("precious", encoding="utf-8")
    forced = report("--charts", str(charts), "--force")
    assert forced.returncode == 0, forced.stderr
    assert "precious" not in page.read_text("utf-8") + (charts / "unique_bytes.svg").read_text()


@pytest.fixture(scope="module")
def two_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with a survey in it."""
    store = tmp_path_factory.mktemp("two-level") / "store.sqlite"
    with open_store(str(store)) as opened:
        keep(opened, surveyed("two-level"))
    return store


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "-o", "{0}/nowhere/x.csv"), "x.csv cannot be written: No such file"),
        (("export", "--format", "csv", "-o", "{0}"), "cannot be written: Is a directory"),
        (
            ("export", "--format", "json", "-o", "/dev/full"),
            "/dev/full cannot be written: No space",
        ),
        (
            ("report", "-o", "{0}/y.html", "--charts", "/dev/null"),
            "charts cannot be written to /dev",
        ),
    ],
)
def test_what_cannot_be_written_is_told(
    two_level: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    command, *options = (word.format(tmp_path) for word in words)
    done = leadline(command, "two-level", *options, store=two_level)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_survey_that_ended_with_its_budget_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    # The 75% version does not cut its sizes to what a short window holds.
    store, words = tmp_path / "store.sqlite", ("survey", "sim:ibm-3090", "--focal", "75%")
    ended = leadline(*words, "--budget", "60s", store=store)
    assert ended.returncode == 3, ended.stderr
    assert "the same command with --resume and a larger --budget goes on" in ended.stderr
    again = leadline(*words, "--budget", "60s", "--resume", store=store)
    assert again.returncode == 3, "a budget is that of all sittings"
    more = leadline(*words, "--budget", "20m", "--resume", store=store)
    assert more.returncode == 0, more.stderr
    with open_store(str(store)) as opened:
        (found,) = opened.list()
    assert (found.status, found.items) == (Status.DONE, 34)


def test_the_floor_is_kept_while_data_is_laid_out() -> None:
    keep_floor("/data", Space(100 * GIB, 5 * GIB), GIB)
    keep_floor("/data", Space(100 * GIB, 5 * GIB - GIB // 64), GIB)  # the file system's own books
    with pytest.raises(TargetRefused, match=r"5 GiB must stay free .*layout was stopped"):
        keep_floor("/data", Space(100 * GIB, 5 * GIB - GIB // 64 - 1), GIB)


def test_a_target_that_went_away_in_a_run_is_no_defect(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    work = Workload(unique_bytes=2**20, size_mean=4096)
    with (  # noqa: PT012
        pytest.raises(TargetRefused, match="removed or unmounted meanwhile"),
        open_engine(Target.parse(str(target)), max_bytes=2**20) as engine,
    ):
        shutil.rmtree(target)
        engine.run(work, seed=1, limits=Limits())


class Lays:
    """A child that tells of a layout, then of a window."""

    pid = None

    def run(self, _job: Any, on_event: Any, _look: Any) -> EngineResult:
        on_event({"event": "phase", "phase": "prepare"})
        on_event({"event": "progress", "phase": "prepare", "done_frac": 0.5})
        on_event({"event": "progress", "phase": "measure", "done_frac": 0.5})
        return sample_result()


class Filling:
    """A place that others fill up."""

    cached_here, capacity_bytes, lost, target = True, 2**40, False, NullTarget()

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.asked: list[int] = []

    def require_room(self, _unique_bytes: int) -> None:
        """There is some."""

    def keep_floor(self, unique_bytes: int) -> None:
        self.asked.append(unique_bytes)
        raise TargetRefused("the floor is touched")


def test_the_engine_asks_for_the_floor_while_it_lays_out() -> None:
    place: Any = Filling()
    engine = ProcessEngine(
        Access(backend="pread"), place=place, group=None, max_bytes=None, command=()
    )
    vars(engine)["_child"] = Lays()
    work = Workload(unique_bytes=2**20, size_mean=4096)
    with pytest.raises(TargetRefused, match="the floor is touched"):
        engine.lay_out(work, seed=1, limits=Limits())
    assert place.asked == [2**20], "when data is written, and only then"


SERVE = "from leadline import _engine; raise SystemExit(_engine.serve())"


def test_invalid_text_on_the_engines_stdin_is_answered() -> None:
    job = b'{"job_id": "next", "nonsense": 1}\n'
    done = subprocess.run(
        [sys.executable, "-c", SERVE],
        input=b'{"job_id": "it\xff"}\n' + job,
        capture_output=True,
        check=False,
        timeout=100,
    )
    first, second = done.stdout.splitlines()
    assert b'"event":"error"' in first
    assert b"no text in UTF-8" in first
    assert b'"job_id":"next"' in second
    assert done.returncode == 0
