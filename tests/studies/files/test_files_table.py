"""The table prints as Kridle and McKusick printed it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from files_fixture import EXISTING, ScriptedTests, made, study_of
from leadline.charts.images import ReportError
from leadline.record.files import FilesCell
from leadline.studies.files.page import render_files_html, save_files
from leadline.studies.files.text import (
    PaperTable,
    TableCell,
    TableColumn,
    TableSection,
    render_files,
    table_lines,
    table_of,
)
from opened_page import OpenedPage

VAX_750 = """\
4.2BSD File Systems Tests - VAX 11/750

                  Logically Sequential Transfers
         from an 8K/1K 4.2BSD File System (Kbytes/sec.)
----------------------------------------------------------------
Test           Emulex SC750/Eagle      UDA50/RA81
               1 Drive     2 Drives    1 Drive     2 Drives
----------------------------------------------------------------
read_8192      490 (69%)   620 (96%)   310 (44%)   520 (65%)
write_4096     380 (99%)   370 (99%)   370 (97%)   360 (98%)
write_8192     470 (99%)   470 (99%)   320 (71%)   410 (83%)
rewrite_8192   650 (99%)   620 (99%)   310 (50%)   450 (70%)
----------------------------------------------------------------
"""
"""KM83 §5, the first half of the first table, figure by figure."""


def column(storage: str, one: str, two: str) -> TableColumn:
    """A column from the paper's own spelling: `490 69, 380 99, …`."""

    def cells(text: str) -> tuple[TableCell, ...]:
        pairs = [entry.split() for entry in text.split(",")]
        return tuple(
            TableCell(float(pair[0]), float(pair[1].rstrip("*")), pair[1].endswith("*"))
            if len(pair) > 1
            else TableCell(None)
            for pair in pairs
        )

    return TableColumn(storage, ((1, cells(one)), (2, cells(two))))


def test_the_papers_own_table_prints_as_in_the_paper() -> None:
    emulex = column(
        "Emulex SC750/Eagle", "490 69,380 99,470 99,650 99", "620 96,370 99,470 99,620 99"
    )
    uda = column("UDA50/RA81", "310 44,370 97,320 71,310 50", "520 65,360 98,410 83,450 70")
    table = PaperTable(
        "4.2BSD File Systems Tests - VAX 11/750", (TableSection("an 8K/1K 4.2BSD", (emulex, uda)),)
    )
    lines = [" ".join(line.split()) for line in table_lines(table)]
    wanted = [" ".join(line.split()) for line in VAX_750.splitlines()]
    dashes = [line for line in lines if set(line) == {"-"}]
    assert len(dashes) == 3
    assert [line for line in lines if line not in dashes] == [
        line for line in wanted if not line or set(line) != {"-"}
    ]


def test_what_was_not_measured_and_what_is_suspect_are_marked_as_in_the_paper() -> None:
    uda = column("UDA50/RA81", "360 45,380 99,220 58*,220 50*", "-,-,-,180 52*")
    table = PaperTable("t", (TableSection("an 8K/1K 4.2BSD", (uda,)),))
    text = "\n".join(table_lines(table))
    assert "220 (58%)*" in text
    assert "180 (52%)*" in text
    assert text.count("n.m.") == 3
    assert text.splitlines()[-1].startswith("* ")


def test_columns_stand_under_their_heads() -> None:
    cells = [FilesCell(system=made("ext4", 1024), drives=drives) for drives in (1, 2)]
    study = study_of(ScriptedTests(lambda cell, _test, _size: 98765.4 * cell.drives), cells)
    lines = table_lines(table_of(study))
    head = next(line for line in lines if "2 Drives" in line)
    row = next(line for line in lines if line.startswith("read_8192"))
    assert row.index("98800 (40%)") == head.index("1 Drive")
    assert row.index("198000 (40%)") == head.index("2 Drives")
    assert lines[0] == "File Systems Tests - thing"
    assert any("from a 1K ext4 File System (Kbytes/sec.)" in line for line in lines)
    assert any("loop on vda" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_studies_stand_side_by_side_as_the_papers_storage_systems_do() -> None:
    one = study_of(ScriptedTests(lambda *_: 5e5), whole())
    other = study_of(ScriptedTests(lambda *_: 7e5), whole()[2:3])
    start = msgspec.structs.replace(other.start, system="other", storage="vdb")
    lines = table_lines(table_of(one, msgspec.structs.replace(other, start=start)))
    assert lines[0] == "File Systems Tests - thing and other"
    at = lines.index(next(line for line in lines if "a 4K xfs" in line))
    assert lines[at + 2].endswith("  other loop on vdb")
    row = next(line for line in lines[at:] if line.startswith("write_8192"))
    assert row.split("write_8192")[1].split() == [
        "500000",
        "(40%)",
        "500000",
        "(40%)",
        "700000",
        "(40%)",
        "n.m.",
    ]


def test_rates_have_three_digits_and_cpu_is_summed_over_the_drives() -> None:
    assert TableCell(1234567.0, 68.6).text() == "1230000 (69%)"
    assert TableCell(0.123).text() == "0.12"
    study = study_of(
        ScriptedTests(lambda *_: 1000.0, cpu_percent=120.0), [FilesCell(system=EXISTING, drives=2)]
    )
    percent = study.rows[0].cpu_percent
    assert percent is not None
    assert percent.value == pytest.approx(120.0)


def whole() -> list[FilesCell]:
    return [
        FilesCell(system=EXISTING, drives=1),
        FilesCell(system=EXISTING, drives=2, missing="a second drive needs a second directory"),
        FilesCell(system=made("xfs", 4096), drives=1),
        FilesCell(system=made("xfs", 4096), drives=2),
        FilesCell(system=made("btrfs", 1024), drives=1, missing="it <b>has</b> none"),
    ]


def test_the_terminal_shows_the_table_the_intervals_and_what_is_missing() -> None:
    study = study_of(ScriptedTests(lambda *_: 5e5, noise_frac=0.05), whole(), runs=4)
    text = io.StringIO()
    console = Console(file=text, width=80)
    console.verbose = True  # type: ignore[attr-defined]
    console.print(render_files(study))
    said = text.getvalue()
    assert "from a 4K xfs File System (Kbytes/sec.)" in said
    assert "n.m. existing ext4 4 KiB, 2 drives: a second drive needs a second directory" in said
    row = next(line for line in said.splitlines() if line.startswith(" write_8192"))
    assert "[" in row
    assert " 3 " in row
    assert max(map(len, said.splitlines())) <= 80


def test_the_csv_has_a_line_for_every_entry_with_its_interval(tmp_path: Path) -> None:
    study = study_of(ScriptedTests(lambda *_: 5e5, noise_frac=0.05), whole())
    save_files(study, tmp_path / "a.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert len(rows) == 4 * len(whole())
    assert rows[0]["fs"] == "ext4"
    assert float(rows[0]["kbytes_s_low"]) < float(rows[0]["kbytes_s"])
    empty = next(row for row in rows if row["fs"] == "btrfs")
    assert (empty["kbytes_s"], empty["missing"]) == ("", "it <b>has</b> none")


def test_the_page_holds_the_table_and_makes_texts_inert(tmp_path: Path) -> None:
    study = study_of(ScriptedTests(lambda *_: 5e5, noise_frac=0.05), whole())
    page = render_files_html(study)
    for entry in ("Logically Sequential Transfers", "read_8192", "rewrite_8192", "1 Drive", "n.m."):
        assert entry in page
    assert "<b>has</b>" not in page
    assert "https://cdn" not in page
    save_files(study, tmp_path / "table.txt")
    assert (tmp_path / "table.txt").read_text().startswith("File Systems Tests - thing\n")
    save_files(study, tmp_path / "chart.svg")
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "chart.svg",
        "chart-write_4096.svg",
        "chart-write_8192.svg",
        "chart-rewrite_8192.svg",
    }


def test_another_ending_and_an_empty_study_are_refused(tmp_path: Path) -> None:
    study = study_of(ScriptedTests(lambda *_: 5e5), whole())
    with pytest.raises(ReportError, match=r"\.doc"):
        save_files(study, tmp_path / "a.doc")
    with pytest.raises(ReportError, match="nothing to draw"):
        save_files(msgspec.structs.replace(study, rows=()), tmp_path / "a.png")


@pytest.fixture(scope="module")
def files_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "files.html"
    save_files(study_of(ScriptedTests(lambda *_: 5e5, noise_frac=0.05), whole()), path)
    return path


@pytest.mark.parametrize(("width_px", "scheme"), [(400, "dark"), (1280, "light")])
def test_the_page_is_drawn_quiet_offline_and_never_too_wide(
    browser: Any, files_page: Path, width_px: int, scheme: str
) -> None:
    page = OpenedPage.opened(browser, files_page, width_px, scheme)
    assert page.ask("return document.querySelectorAll('.chart svg').length") == 4
    assert page.ask("return document.documentElement.scrollWidth") <= width_px
    assert page.console() == []
    assert page.requests() == []
