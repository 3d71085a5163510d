"""Experiments on a terminal and as files: what they say, in every encoding and format."""

from __future__ import annotations

import csv
import functools
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import experiment_fixture as made
from leadline.charts.images import ReportError
from leadline.record.workbench import Experiment
from leadline.studies.workbench.page import require_format, save_experiment
from leadline.studies.workbench.tables import render_experiment


@functools.cache
def peak() -> Experiment:
    return made.peak_experiment()


@functools.cache
def surface() -> Experiment:
    return made.partly(made.full_surface())


def printed(view: Any, encoding: str = "utf-8", width: int = 80, *, verbose: bool = False) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    console = Console(file=file, width=width, color_system=None, legacy_windows=False)
    console.verbose = verbose  # type: ignore[attr-defined]
    console.print(view)
    file.seek(0)
    return file.read()


def test_a_search_on_a_terminal_has_a_line_for_every_load_and_when_asked_each_policy() -> None:
    text = printed(render_experiment(peak()))
    lines = text.splitlines()
    found = peak().peaks[0].peak
    assert found is not None
    assert " ".join(text.split()).startswith(peak().sentences[0])
    for load in found.loads:
        (line,) = [
            each
            for each in lines
            if each.split()[:1] == [f"{load.rate_per_s:,.0f}"]
            or each.split()[:1] == [f"{load.rate_per_s:,.1f}"]
        ]
        assert line.split()[1] == str(load.trials)
        said = {True: " yes ", False: " no ", None: " inconclusive "}[load.saturated]
        assert said in line
    assert not any("(used)" in line for line in lines)
    lines += printed(render_experiment(peak()), verbose=True).splitlines()
    assert any(line.split()[:2] == ["binary", "(used)"] for line in lines)
    assert max(map(len, lines)) <= 80


def test_a_surface_on_a_terminal_is_a_table_with_the_ideal_and_the_measured() -> None:
    text = printed(render_experiment(surface()), width=120)
    assert text.count("*") == 8 + 1
    (row,) = [line for line in text.splitlines() if "[8" in line]
    assert row.split()[0] == "4"
    assert "±8.5%" in row
    whole = printed(render_experiment(made.full_surface()), width=120)
    assert whole.count("*") == 32 + 1


def test_an_ascii_terminal_gets_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    del capsys
    for experiment in (peak(), surface(), made.hostile(peak()), made.hostile(surface())):
        text = printed(render_experiment(experiment), encoding="ascii")
        assert text.isascii()
        assert "\x1b" not in text


def lines_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_csv_of_a_search_has_a_line_for_every_trial(tmp_path: Path) -> None:
    save_experiment(peak(), tmp_path / "p.csv", [made.peak_experiment(seed=2)])
    lines = lines_of(tmp_path / "p.csv")
    trials = peak().peaks[0].trials
    assert len(lines) > len(trials)
    for line, trial in zip(lines, trials, strict=False):
        assert float(line["rate_per_s"]) == trial.request.rate_per_s
        assert line["state"] == trial.state.value


def test_csv_of_a_surface_has_a_line_for_every_configuration(tmp_path: Path) -> None:
    save_experiment(surface(), tmp_path / "s.csv")
    lines = lines_of(tmp_path / "s.csv")
    found = surface().surface
    assert found is not None
    assert len(lines) == 32
    for line, cell in zip(lines, found.cells, strict=True):
        assert line["factor_disks"] == str(cell.sample["disks"])
        assert line["measured"] == str(cell.measured)
        assert (line["cost_s"] != "") is cell.measured
        rate = cell.rate_per_s
        assert line["rate_per_s"] == ("" if rate is None else str(rate.value))


def test_no_cell_of_a_file_is_a_formula(tmp_path: Path) -> None:
    start = msgspec.structs.replace(peak().start, system="=cmd|' /C calc'!A0")
    save_experiment(msgspec.structs.replace(peak(), start=start), tmp_path / "p.csv")
    assert {line["name"][:2] for line in lines_of(tmp_path / "p.csv")} == {"'="}


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_pictures_are_saved_the_first_under_the_name_that_was_asked(
    tmp_path: Path, suffix: str, begins: bytes
) -> None:
    save_experiment(surface(), tmp_path / f"s{suffix}")
    names = {path.name for path in tmp_path.iterdir()}
    stems = ("s", "s-lines") if suffix != ".pdf" else ("s",)  # paper has all in one file
    assert names == {f"{stem}{suffix}" for stem in stems}
    assert all(path.read_bytes().startswith(begins) for path in tmp_path.iterdir())


def test_what_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"an experiment as '\.doc'; use \.html, \.csv"):
        require_format(tmp_path / "p.doc")
    with pytest.raises(ReportError, match=r"as '\.doc'"):
        save_experiment(peak(), tmp_path / "p.doc")
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(ReportError, match=r"taken\.html cannot be written: Is a directory"):
        save_experiment(peak(), tmp_path / "taken.html")
    empty = msgspec.structs.replace(peak(), peaks=(), fares=())
    with pytest.raises(ReportError, match="nothing was measured that can be drawn"):
        save_experiment(empty, tmp_path / "empty.svg")
