"""What a person meets first: widths, pipes, units, lists, and commands about the machine."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from golden_cases import HERE, KINDS
from rich.text import Text

from command import leadline
from leadline.app import main
from leadline.record.wording import format_time
from leadline.studies.workbench.text import format_ms
from leadline.terminal.talk import show
from leadline.units import format_seconds

WORDS = re.compile(r"[\w.+'%/-]+")
NARROW, WIDE = 80, 400


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a study of every kind; opening one may bring it up to date."""
    return Path(
        shutil.copyfile(HERE / "store-today.sqlite", tmp_path_factory.mktemp("frozen") / "s.sqlite")
    )


def told(*words: str, store: Path, columns: int | None) -> str:
    """What a command in this process puts on stdout, which is no terminal."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    kept |= {"LEADLINE_STORE": str(store), "NO_COLOR": "1"}
    kept |= {} if columns is None else {"COLUMNS": str(columns)}
    with (
        mock.patch.object(sys, "argv", ["leadline", *words]),
        mock.patch.object(sys, "stdout", out),
        mock.patch.dict(os.environ, kept, clear=True),
    ):
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return out.buffer.getvalue().decode()


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_is_broken_and_no_line_too_long_at_80_columns(kind: str, frozen: Path) -> None:
    narrow = told("show", KINDS[kind], store=frozen, columns=NARROW)
    assert [line for line in narrow.splitlines() if len(line) > NARROW] == []
    wide = {*WORDS.findall(told("show", KINDS[kind], store=frozen, columns=WIDE))}
    assert {*WORDS.findall(narrow)} <= wide


def test_the_list_of_studies_breaks_no_name_either(frozen: Path) -> None:
    narrow = told("systems", store=frozen, columns=NARROW)
    wide = told("systems", store=frozen, columns=WIDE)
    assert all(len(line) <= NARROW for line in narrow.splitlines())
    assert {*WORDS.findall(narrow)} <= {*WORDS.findall(wide)} | {"of", "UTC", "took"}
    listed = json.loads(told("systems", "--json", store=frozen, columns=None))
    for item in listed:
        for text in (narrow, wide):
            assert item["study_id"][:8] in text
            assert item["started_at"][:19].replace("T", " ") in text


def test_into_a_pipe_nothing_is_wrapped_and_no_blank_ends_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show(Text("word " * 100 + "  "))
    assert capsys.readouterr().out == "word " * 99 + "word\n"
    monkeypatch.setenv("COLUMNS", "50")
    show(Text("word " * 100))
    assert len(capsys.readouterr().out.splitlines()) == 10


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(5e-9, "5 ns"), (4.96e-6, "4.96 µs"), (0.000123, "123 µs"), (0.25, "250 ms"), (0.0, "0 ms")],
)
def test_short_times_are_told_in_their_own_unit(seconds: float, said: str) -> None:
    assert format_seconds(seconds) == said


def test_a_response_below_a_millisecond_is_told_in_microseconds() -> None:
    assert format_ms(0.00496) == "4.96 µs"
    assert format_ms(4.97) == "4.97 ms"
    assert format_time(3600.0, simulated=True) == "1 h of simulated time"


def test_a_simulated_survey_says_whose_time_it_estimates(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    done = leadline("survey", "sim:no-cache", "--budget", "60s", store=store)
    assert done.returncode == 0, done.stderr
    assert "ends within 1 min of simulated time" in done.stderr
    lines = [line for line in done.stderr.splitlines() if " points, " in line and " left; " in line]
    assert 5 <= len(lines) <= 10
    assert all("of simulated time left; last " in line for line in lines)


def test_runs_that_ended_early_are_not_said_to_have_met_their_cap(tmp_path: Path) -> None:
    words = ("measure", "sim:two-level", "--seconds", "1m", "--json")
    done = leadline(*words, store=tmp_path / "s.sqlite")
    answer = json.loads(done.stdout)
    assert answer["result"]["wall_s"] < 30
    codes = [each["code"] for each in answer["findings"]]
    assert "runs_differ" in codes
    assert "time_cap" not in codes


def test_measure_needs_nothing_but_a_target(tmp_path: Path) -> None:
    done = leadline("measure", "sim:two-level", "--json", store=tmp_path / "s.sqlite")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["workload"]["unique_bytes"] == 256 * 2**20
    assert done.stderr.startswith("workload: 256 MiB touched, 32 KiB requests, 50% reads")


def test_a_target_without_files_takes_the_workload_of_fios_words(tmp_path: Path) -> None:
    words = ["bs=4k", "rw=randread", "iodepth=4", "direct=1", "size=64m"]
    done = leadline("measure", "sim:two-level", *words, "--json", store=tmp_path / "s.sqlite")
    assert done.returncode == 0, done.stderr
    work = json.loads(done.stdout)["workload"]
    assert (work["size_mean"], work["read_frac"], work["queue_depth"]) == (4096, 1.0, 4)


@pytest.mark.real
def test_measure_on_a_directory_tells_how_far_it_is(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    words = ("bs=4k", "size=4m", "rw=randrw", "--seconds", "0.5s", "--runs", "3")
    done = leadline("measure", str(target), *words, store=tmp_path / "s.sqlite")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^  (\d) of 3 runs, .+ left; last .+B/s \(run\)$", done.stderr, re.M)
    assert lines == ["1", "2"]


def test_a_survey_of_no_storage_is_refused_by_what_it_is(tmp_path: Path) -> None:
    done = leadline("survey", "/proc", store=tmp_path / "s.sqlite")
    assert done.returncode == 5
    assert done.stderr.startswith("leadline: /proc is on proc, a file system of the kernel that")


def test_systems_that_are_simulated_are_listed_with_what_they_are(tmp_path: Path) -> None:
    done = leadline("sims", store=tmp_path / "s.sqlite")
    assert "sim:hp-730" in done.stdout
    assert "HP 730 with one HP 1350SX (1991)" in done.stdout
    both = json.loads(leadline("sims", "--json", store=tmp_path / "s.sqlite").stdout)
    assert both["obey_a_law"]["two-level"]
    assert both["made_of_parts"]
    assert not both["obey_a_law"].keys() & both["made_of_parts"].keys()


def test_the_doctor_says_what_is_here_and_what_is_missing(tmp_path: Path) -> None:
    words = ("doctor", str(tmp_path))
    found = json.loads(leadline(*words, "--json", store=tmp_path / "s.sqlite").stdout)
    able = {each["name"]: each.get("why_not") for each in found["abilities"]}
    assert able["leadline[charts]"] is None, "the tests have them"
    assert able["fio"] is None or "apt-get install fio" in able["fio"]
    assert found["facts"]["cpu_count"] == os.cpu_count()
    said = leadline(*words, store=tmp_path / "s.sqlite").stdout
    assert said.startswith("leadline 0.")
    assert "What disturbs a measurement now" in said
    assert not list(tmp_path.glob(".leadline*"))


def test_what_is_removed_is_named_first_and_gone_with_what_is_about_it(tmp_path: Path) -> None:
    store = shutil.copyfile(HERE / "store-today.sqlite", tmp_path / "s.sqlite")
    survey = KINDS["survey"]
    asked = leadline("rm", survey[:8], store=store)
    assert asked.returncode == 2
    assert "nobody can be asked here; add --yes" in asked.stderr
    done = leadline("rm", survey[:8], "--yes", store=store)
    assert done.returncode == 0, done.stderr
    assert f"survey {survey[:8]} of atlas" in done.stderr
    assert f"validation {KINDS['validation'][:8]} of atlas" in done.stderr
    listed = leadline("systems", store=store).stdout
    assert survey[:8] not in listed
    assert KINDS["validation"][:8] not in listed
    assert KINDS["peak"][:8] in listed
    again = leadline("rm", survey[:8], "--yes", store=store)
    assert again.returncode != 0


def test_studies_that_are_about_each_other_are_removed_once(tmp_path: Path) -> None:
    """Only a store that others have changed has them; it must not be walked for ever."""
    store = shutil.copyfile(HERE / "store-today.sqlite", tmp_path / "s.sqlite")
    survey, child = KINDS["survey"], KINDS["validation"]
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE leadline_studies SET parent = ? WHERE id = ?", (child, survey))
    done = leadline("rm", survey[:8], "--yes", store=store)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_name_is_no_safe_order_to_remove(tmp_path: Path) -> None:
    store = shutil.copyfile(HERE / "store-today.sqlite", tmp_path / "s.sqlite")
    done = leadline("rm", "atlas", "--yes", store=store)
    assert done.returncode == 2
    assert "is a system's name" in done.stderr
    assert KINDS["survey"][:8] in leadline("systems", store=store).stdout


def test_a_prediction_and_a_comparison_say_what_they_were_made_from(frozen: Path) -> None:
    own = f"survey {KINDS['survey'][:8]} of atlas (sim:two-level), 2026-11-"
    workload = (
        "--workload",
        "unique_bytes=2GiB,size_mean=64KiB,read_frac=60%,seq_frac=0.6,process_num=8",
    )
    predicted = told("predict", "atlas", *workload, store=frozen, columns=NARROW)
    assert predicted.startswith(f"predicted from {own}")
    compared = told("compare", "atlas", "boreas", store=frozen, columns=NARROW)
    survey = KINDS["survey"][:8]
    assert compared.startswith(f"comparison of atlas ({survey}) and boreas (")
