"""Pages of streaming studies and of balance in a real browser, their files, and the terminal."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import balance_fixture as balance
import stream_fixture as made
from drawn_text import unreadable
from leadline.charts.images import ReportError
from leadline.record import Status
from leadline.record.balance import StreamBalance
from leadline.record.finding import Finding
from leadline.record.streaming import StreamStudy
from leadline.studies.streaming.answer import balance_of
from leadline.studies.streaming.balance_text import render_balance
from leadline.studies.streaming.page import (
    render_balance_html,
    render_stream_html,
    require_format,
    save_balance,
    save_stream,
)
from leadline.studies.streaming.text import render_stream
from opened_page import OVERFLOW, OpenedPage, made_once


@pytest.fixture(scope="module")
def atlas() -> StreamStudy:
    return made.scaling_study()


@pytest.fixture(scope="module")
def boreas() -> StreamStudy:
    return made.scaling_study(made.BOREAS)


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, atlas: StreamStudy, boreas: StreamStudy
) -> Callable[[str], Path]:
    """Every kind of page, made when it is first asked for."""
    place = tmp_path_factory.mktemp("pages")
    counted = made.scaling_study(made.BOREAS, kernels=("sort",))
    kinds: dict[str, Callable[[], str]] = {
        "scaling": lambda: render_stream_html(atlas),
        "counted": lambda: render_stream_html(counted),
        "run": lambda: render_stream_html(made.run_study(passes=2)),
        "balance": lambda: render_balance_html([balance_of(atlas)]),
        "systems": lambda: render_balance_html([balance_of(atlas), balance_of(boreas)]),
    }
    return made_once(place, kinds)


_CHARTS = {"counted": 5, "run": 3, "balance": 6, "systems": 6, "scaling": 9}


_LOOKS = [
    *(
        pytest.param(
            name, width_px, "light", marks=[pytest.mark.long] * (name not in {"scaling", "systems"})
        )
        for name in _CHARTS
        for width_px in (400, 1280)
    ),
    ("scaling", 400, "dark"),
]


@pytest.mark.parametrize(("name", "width_px", "scheme"), _LOOKS)
def test_a_page_is_drawn_quiet_offline_readable_and_never_too_wide(
    browser: Any, pages: Callable[[str], Path], name: str, width_px: int, scheme: str
) -> None:
    page = OpenedPage.opened(browser, pages(name), width_px, scheme)
    assert page.ask("return document.documentElement.dataset.charts") == scheme
    drawn = page.marks("rect path", "symbol path")
    assert len(drawn) == _CHARTS[name]
    for chart, marks in drawn.items():
        unmeasured = chart == "memory-bus" and name in {"scaling", "run"}
        assert (marks == 0) if unmeasured else (marks > 1), chart
    assert unreadable(page) == []
    assert page.ask(OVERFLOW) <= 0
    assert page.console() == []
    # The browser itself may look into its own resources when it starts.
    assert [url for url in page.requests() if not url.startswith("chrome:")] == []


def test_the_studys_data_can_be_taken_out_of_the_page(
    browser: Any, pages: Callable[[str], Path], atlas: StreamStudy
) -> None:
    page = OpenedPage.opened(browser, pages("scaling"), 1280)
    data = page.ask("return JSON.parse(document.getElementById('leadline-data').textContent)")
    assert msgspec.convert(data, StreamStudy, strict=False) == atlas
    assert page.ask("return document.getElementById('save-json').href").startswith("data:")


def test_a_tooltip_says_what_a_disk_brought(browser: Any, pages: Callable[[str], Path]) -> None:
    page = OpenedPage.opened(browser, pages("scaling"), 1280)
    tip = page.tip_of("document.querySelector('[data-chart=scaling] .mark-rect path')")
    assert "Marginal gain" in tip
    assert "MB/s of" in tip


def test_unreadable_text_would_have_been_seen(browser: Any, pages: Callable[[str], Path]) -> None:
    """The check above can fail: a text moved over another, or out of its chart, is found."""
    page = OpenedPage(browser, pages("run"), 1280)
    page.ask(
        """const texts = document.querySelectorAll('[data-chart="bound"] svg text');
        texts[0].setAttribute('transform', 'translate(-400,0)');"""
    )
    assert any("is cut" in line for line in unreadable(page))
    page.ask(
        """const texts = document.querySelectorAll('[data-chart="bound"] svg text');
        texts[0].setAttribute('transform', texts[1].getAttribute('transform'));"""
    )
    assert any(" over " in line for line in unreadable(page))


def test_hostile_names_stay_text(browser: Any, tmp_path: Path) -> None:
    study, said = balance.hostile()
    for name, html in (
        ("stream", render_stream_html(study)),
        ("balance", render_balance_html([said, said])),
    ):
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        page = OpenedPage(browser, path, 400)
        shown = made.HOSTILE.replace("\x1b", "")
        heading = page.ask("return document.querySelector('h1').textContent")
        assert "</script><img src=x" in heading
        assert shown.split("\x1b")[0][:20] in heading
        assert page.ask("return document.querySelectorAll('img').length") == 0
        assert page.ask(OVERFLOW) <= 0
        assert page.console() == []


def _plain(html: str) -> str:
    body = html.partition("<main>")[2].partition("</main>")[0]
    return body.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_says_first_what_was_found_and_names_what_was_not_counted(
    atlas: StreamStudy,
) -> None:
    said = balance_of(atlas)
    text = _plain(render_stream_html(atlas))
    first, listed = text.index(said.sentences[0]), text.index('class="contents"')
    assert first < text.index("<figure") < listed < text.index('id="phases"')
    for words in (
        "n.m.: not measurable here. Instructions, cycles: perf_event_open",
        "12 of 12 runs: 21,474,836 records, in order, checksum a3b1c4d9e2f07",
        "every block where it belongs",
        "read 522 MB/s [514, 530], written",
        "2 threads, read 8 deep by direct I/O",
        "AMD EPYC 7B13",
        "0.42 + 0.16",
    ):
        assert words in text, words


def test_a_stopped_study_and_its_warnings_are_said(atlas: StreamStudy) -> None:
    study = msgspec.structs.replace(
        atlas,
        status=Status.STOPPED,
        findings=(Finding.of("no_bound", why="the disk was busy"),),
        runs=(),
        sentences=(),
    )
    text = _plain(render_stream_html(study))
    assert "stopped, not all was measured" in text
    assert "no capacities are known: the disk was busy</li>" in text
    assert "Nothing was measured." in text
    assert "data-chart=" not in text


def test_other_studies_follow_with_their_charts() -> None:
    other = made.run_study(made.BOREAS, "scan", "cluster")
    text = _plain(render_stream_html(made.run_study(), [other]))
    assert text.index('id="chart-bound"') < text.index('id="chart-bound-2"')
    assert "Scan on boreas: a cluster, 2 disks" in text


def test_the_balance_page_has_every_number_with_what_it_rests_on(
    atlas: StreamStudy, boreas: StreamStudy
) -> None:
    systems = [balance_of(atlas), balance_of(boreas)]
    text = _plain(render_balance_html(systems))
    for said in systems:
        for one in said.balances:
            for saturation in one.saturations:
                assert f">{saturation.why}</span>" in text
    assert "×2 disks" in text
    assert "Mbit/s of I/O per MIPS" in text
    assert "boreas 130 MB/s per processor, limited by I/O path" in text


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_csv_files_hold_every_phase_and_every_saturation(
    tmp_path: Path, atlas: StreamStudy, boreas: StreamStudy
) -> None:
    save_stream(atlas, tmp_path / "s.csv", [boreas])
    lines = _rows(tmp_path / "s.csv")
    assert len(lines) == 2 * 36 * 2
    first = atlas.runs[0].result.phases[0]
    assert float(lines[0]["seconds"]) == first.seconds
    assert float(lines[0]["mb_s"]) == first.mb_s
    assert lines[0]["instructions"] == ""
    assert {line["system"] for line in lines} == {"atlas", "boreas"}
    said = balance_of(boreas)
    save_balance([said], tmp_path / "b.csv")
    numbers = {
        (line["kernel"], line["phase"], line["resource"]): line
        for line in _rows(tmp_path / "b.csv")
    }
    assert len(numbers) == 30
    for one in said.balances:
        for saturation in one.saturations:
            line = numbers[one.kernel, one.phase, saturation.resource]
            rate = saturation.mb_s_per_processor
            assert line["mb_s_per_processor"] == ("" if rate is None else str(rate.value))
            assert line["first"] == str(saturation.resource == one.first)


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_pictures_are_saved_the_first_under_the_name_that_was_asked(
    tmp_path: Path, suffix: str, begins: bytes
) -> None:
    study = made.run_study()
    save_stream(study, tmp_path / f"s{suffix}")
    save_balance([balance_of(study)], tmp_path / f"b{suffix}")
    names = {path.name for path in tmp_path.iterdir()}
    beside = ("s-io-bus", "s-memory-bus", "b-balance-sort-write")
    stems = ("s", "b", *(beside if suffix != ".pdf" else ()))  # paper has all charts in one file
    assert names == {f"{stem}{suffix}" for stem in stems}
    assert all(path.read_bytes().startswith(begins) for path in tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path) -> None:
    study = made.run_study()
    with pytest.raises(ReportError, match=r"as '\.doc'; use \.html, \.csv"):
        require_format(tmp_path / "s.doc")
    (tmp_path / "taken.html").mkdir()
    saves: list[Callable[[], None]] = [
        lambda: save_stream(study, tmp_path / "taken.html"),
        lambda: save_balance([balance_of(study)], tmp_path / "taken.html"),
    ]
    for save in saves:
        with pytest.raises(ReportError, match=r"taken\.html cannot be written: Is a directory"):
            save()
    empty = msgspec.structs.replace(study, runs=())
    with pytest.raises(ReportError, match=r"nothing was measured that can be drawn"):
        save_stream(empty, tmp_path / "empty.svg")


def _printed(view: Any, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    console = Console(file=file, width=80, color_system=None, legacy_windows=False)
    console.verbose = True  # type: ignore[attr-defined]
    console.print(view)
    file.seek(0)
    return file.read()


def test_a_scaling_on_a_terminal_names_what_stopped_each_phase(atlas: StreamStudy) -> None:
    text = _printed(render_stream(atlas))
    lines = [line.split() for line in text.splitlines()]
    stopped = [line for line in lines if line[-1:] == ["CPU"]]
    assert [line[0] for line in stopped] == ["3", "4", "3", "4"]
    first = next(line for line in lines if line[:3] == ["sort", "read", "1"])
    rate = (
        next(
            each
            for each in balance_of(atlas).scaling
            if each.phase == "read" and each.kernel == "sort"
        )
        .steps[0]
        .achieved_mb_s
    )
    assert first[3] == f"{rate.value:,.0f}"
    assert max(map(len, text.splitlines())) <= 80
    assert "not measurable here. Memory bus" in text


def test_a_run_on_a_terminal_has_its_phases_and_their_bounds() -> None:
    text = _printed(render_stream(made.run_study(passes=2)))
    assert "sort runs: 100% of its bound by CPU" in text
    assert "sort merge" in text
    assert "1.62 + 0.42" in text
    assert "1 of 1 run: 21,474,836 records" in text


def test_balance_on_a_terminal(atlas: StreamStudy, boreas: StreamStudy) -> None:
    text = _printed(render_balance([balance_of(atlas)]))
    (line,) = (line for line in text.splitlines() if line.split()[:3] == ["sort", "read", "1,034"])
    assert line.split()[-1] == "CPU"
    assert "×2 cores" in text
    both = " ".join(_printed(render_balance([balance_of(atlas), balance_of(boreas)])).split())
    assert "boreas 130 MB/s per processor, limited by I/O path" in both


@pytest.mark.parametrize("kind", ["stream", "balance"])
def test_a_plain_terminal_gets_ascii_and_no_control_characters(kind: str) -> None:
    study, said = balance.hostile()
    view = render_stream(study) if kind == "stream" else render_balance([said])
    assert "\x1b" not in _printed(view)
    _printed(view, "ascii").encode("ascii")


def test_a_terminal_does_not_wait_for_altair() -> None:
    script = (
        "import sys; from leadline.studies.streaming import balance_text, text; "
        "assert 'altair' not in sys.modules, 'altair was loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_documents_of_balance_survive_the_page(pages: Callable[[str], Path], browser: Any) -> None:
    page = OpenedPage(browser, pages("systems"), 1280)
    data = page.ask("return JSON.parse(document.getElementById('leadline-data').textContent)")
    systems = msgspec.convert(data, list[StreamBalance], strict=False)
    assert [said.system for said in systems] == ["atlas", "boreas"]
