"""The figures of README and docs/ are those that benches stored, and say what they miss."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import examples
from command import LEADLINE
from figures import Cell, Column, Result, Row, add_save_option, origin, rendered, save, stored
from figures.rendered import BLOCK, INLINE, FigureError, caption, differences, documents, render
from figures.stored import ROOT, load, names
from tutorials import TUTORIALS

ENGINE = load("engine")
HAND_WRITTEN = {
    ("docs/concepts/streaming-models.md", "| | paper | Leadline's kernels |"): "terms of a model",
    ("docs/reference/experiment.md", "| key | written as | default | meaning |"): "defaults",
    ("docs/reference/machine.md", "| field | default | range |"): "defaults",
    ("docs/reference/server.md", "| field | default | range |"): "defaults",
    (
        "docs/reference/nfs-workloads.md",
        "| | `specsfs97` | `web_server` | `db_tp` | `mail` |",
    ): "what workloads are, by the paper",
    (
        "docs/reference/policies.md",
        "| name | source | next load | trials | seeded |",
    ): "how long trials are, by the papers",
}
"""Tables of numbers that nobody measured, each with what its numbers are."""
HAND_WRITTEN_MOST = 6
"""May only be made smaller: what is measured goes between markers."""

SETTINGS = {"95%", "5%", "1 GiB", "4 GiB"}
"""README's numbers that are no figures: confidences, what Leadline keeps to, sizes of data."""

UNIT = r"(?:%|×|x|ns|[µmu]?s|min|minutes|hours|h|[kMG]B/s|[KMG]iB|k/s|requests/s)"
FIGURE = re.compile(rf"^\**[-+−]?\d[\d.]*(?:\s?{UNIT})?(?:,? (?:[-+−(\[]|of \d).*)?\**$")
"""A cell that is a number, with or without a unit, an interval or a count behind it."""
MEASURED = re.compile(rf"\d\.\d|\d\s?{UNIT}(?!\w)| of \d|[(\[]\d")
"""And more than a whole number."""


def unmarked(text: str) -> str:
    """A document without what is rendered into it, and without what is code."""
    return re.sub(r"`[^`\n]*`", "", INLINE.sub("", BLOCK.sub("", text)))


def tables_of_figures(text: str) -> Iterator[str]:
    """The first lines of tables in which a cell is a figure."""
    for found in re.finditer(r"(?:^\|.*\n)+", text, re.M):
        cells = [cell.strip() for line in found[0].splitlines()[2:] for cell in line.split("|")]
        if any(FIGURE.match(cell) and MEASURED.search(cell) for cell in cells):
            yield found[0].splitlines()[0]


def test_readme_and_docs_say_what_is_stored() -> None:
    assert [f"{d.document.name}: {d.marker}: run make figures" for d in differences()] == []


def test_a_figure_that_is_not_the_stored_one_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stored, "RESULTS", tmp_path)
    stored.keep("x", result_of(Cell(10.9, most=10)))
    page = tmp_path / "page.md"
    monkeypatch.setattr(rendered, "documents", lambda: (page,))
    right = "It is <!--= x/r0/ratio -->10.9% (goal ≤ 10%: **missed**)<!--/--> off.\n"
    page.write_text(right, encoding="utf-8")
    assert list(differences()) == []
    for wrong in (right.replace("10.9", "9.9"), right.replace(": **missed**", "")):
        page.write_text(wrong, encoding="utf-8")
        assert [found.document for found in differences()] == [page]
        assert render(wrong) == right


def test_measured_tables_stand_between_markers() -> None:
    found = {
        (str(document.relative_to(ROOT)), head)
        for document in documents()
        for head in tables_of_figures(INLINE.sub("", BLOCK.sub("", read(document))))
    }
    assert found == set(HAND_WRITTEN)
    assert len(HAND_WRITTEN) <= HAND_WRITTEN_MOST


def read(document: Path) -> str:
    return document.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "cell", ["12% [7.2, 24]", "0.13", "**no** 3.1 ms", "19 of 30", "1161 [1075, 1318] k/s"]
)
def test_a_table_written_by_hand_is_seen(cell: str) -> None:
    table = f"| what | found |\n|---|---|\n| reads | {cell.removeprefix('**no** ')} |\n"
    assert list(tables_of_figures(f"\n{table}\n")) == ["| what | found |"]
    assert list(tables_of_figures(unmarked(f"\n<!-- figures: x -->\n{table}<!-- end -->\n"))) == []


def test_figures_in_readme_s_sentences_stand_between_markers() -> None:
    prose = re.sub(r"^    .*$|\]\([^)]*\)", "", unmarked(read(ROOT / "README.md")), flags=re.M)
    found = {" ".join(m[0].split()) for m in re.finditer(rf"\d[\d.]*\s?{UNIT}(?![\w/])", prose)}
    assert found == SETTINGS


def test_what_a_command_printed_stands_between_markers() -> None:
    """A command alone may stand anywhere; its output only where it is rendered."""
    answered = re.compile(r"^ *\$ .*\n+ *(?!\$)[^\s`]", re.M)
    for document in documents():
        if document in TUTORIALS:  # every command of theirs is run (test_tutorials.py)
            continue
        text = BLOCK.sub("", read(document))
        blocks = re.findall(r"(?:^    [^\n]*\n)+|^```.*?^```", text, re.M | re.S)
        assert [block for block in blocks if answered.search(block)] == [], document


def test_every_result_is_told_somewhere() -> None:
    told = "".join(map(read, documents()))
    assert [name for name in names() if not re.search(rf"<!--[=a-z: ]* {name}[ /]", told)] == []


def test_every_result_says_of_which_code_and_machine_it_is() -> None:
    for name in names():
        result = load(name)
        keys = [row.key for row in result.rows]
        assert len(set(keys)) == len(keys), name
        assert {key for row in result.rows for key in row.cells} <= {c.key for c in result.columns}
        if result.made_by is not None:
            paths = origin.measures_of(result.made_by)
            assert paths, name
            assert [path for path in paths if not (ROOT / path.removeprefix(":!")).exists()] == []
        assert result.entered or (result.commit and result.date and result.machine is not None)


def result_of(*cells: Cell, **head: object) -> Result:
    """A result of one column."""
    about = {"made_by": "bench/engine.py", "command": "bench/x.py --save y", "commit": "1234567"}
    rows = tuple(Row(f"r{number}", {"ratio": cell}) for number, cell in enumerate(cells))
    columns = (
        Column("ratio", "ratio", ("{value:g} {unit} [{low:g}, {high:g}]", "{value:g} {unit}"), "%"),
    )
    known = {**about, "date": "2026-11-23", "machine": {}, **head}
    return msgspec.convert({**known, "columns": columns, "rows": rows}, Result)


def test_a_figure_with_a_goal_says_whether_it_meets_it() -> None:
    cells = (
        Cell(9.9, most=10),
        Cell(10.9, 9, 12, most=10),
        Cell(96, least=92, most=98),
        Cell(99, most=98),
    )
    lines = rendered.markdown(result_of(*cells).columns, result_of(*cells).rows)
    assert lines[2:] == [
        "| 9.9% (goal ≤ 10%: met) |",
        "| 10.9% [9, 12] (goal ≤ 10%: **missed**) |",
        "| 96% (goal 92 to 98%: met) |",
        "| 99% (goal ≤ 98%: **missed**) |",
    ]
    assert rendered.say(Cell(1, most=2), ("{value:g}%",), " %") == "1% (goal ≤ 2%: met)"


def test_a_goal_of_a_whole_column_stands_in_its_head() -> None:
    found = result_of(Cell(9.9, most=10), Cell(10.9, 9, 12, most=10))
    assert rendered.markdown(found.columns, found.rows) == [
        "| ratio (goal ≤ 10%) |",
        "|---|",
        "| 9.9% |",
        "| 10.9% [9, 12] (**missed**) |",
    ]


def test_the_engine_is_held_against_the_stronger_fio() -> None:
    """Each goal on io_uring is on fio with registered buffers and files, or on the bare loop."""
    goals = Counter(
        row.cells["peer"]
        for row in ENGINE.rows
        if "io_uring" in str(row.cells["what"])
        for cell in row.cells.values()
        if isinstance(cell, Cell) and (cell.least, cell.most) != (None, None)
    )
    assert goals == {"fio io_uring registerfiles fixedbufs": 5, "bare loop of io_uring": 4}


def test_a_result_of_no_known_commit_is_told_as_old() -> None:
    assert "older" not in caption(result_of(Cell(1))).lower()
    for head in ({"commit": None}, {"older": "the clock was another one"}):
        assert "**Older than the code.**" in caption(result_of(Cell(1), **head))
    said = caption(result_of(Cell(1), entered="a letter"))
    assert said == ("`bench/x.py`, 23 November 2026, commit 1234567. Entered by hand.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<!-- figures: engine -->\nno end\n", "not closed"),
        ("<!--figures: engine -->\n<!-- end -->\n", "misspelt"),
        ("It is <!--= engine/a-null-fio/own -->1", "not closed"),
        ("<!--= engine/a-null-fio/own -->1<!--/--> ns", "line 1 begins with"),
        ("A <!--= engine/a-null-fio/none -->1<!--/-->", "no column none"),
        ("A <!--= nothing/a/b -->1<!--/-->", "nothing.json"),
        ("<!-- figures: engine rows=z* -->\n<!-- end -->", "no such rows"),
        ("<!-- example: examples/peak lines=1-999 -->\n<!-- end -->", "lines 1-999 of"),
    ],
)
def test_a_marker_that_says_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(FigureError, match=why):
        render(text)


def test_rendering_twice_changes_nothing() -> None:
    text = "\n<!-- figures: engine rows=a-* columns=what,ratio origin=no -->\nold\n<!-- end -->\n"
    once = render(text)
    assert "| (a) null | 0." in once
    assert "old" not in once
    assert render(once) == once


def test_what_a_bench_saves_is_what_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["bench/engine.py", "--rounds", "3", "--save"])
    parser = argparse.ArgumentParser()
    add_save_option(parser, "tried")
    columns, rows = [Column("a", "A")], [Row("one", {"a": Cell(1.5, 1.0, 2.0, n=3)}, note="why")]
    save(parser.parse_args([]), columns, rows)
    assert not (tmp_path / "results").exists()
    save(parser.parse_args(["--save"]), columns, rows, directory=tmp_path, rounds=3)
    found = load("tried")
    assert (found.rows, found.columns, found.rounds) == (tuple(rows), tuple(columns), 3)
    assert found.command == "bench/engine.py --rounds 3 --save"
    assert found.machine is not None
    assert "Linux" in found.machine["kernel"]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["tried.json"]
    assert "results/tried.json" in capsys.readouterr().out


@pytest.mark.parametrize("asked", ["tried", "tried_part"])
def test_the_name_of_a_part_is_added_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: str
) -> None:
    monkeypatch.setattr(stored, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench/engine.py"])
    said = argparse.Namespace(save=asked)
    save(said, [Column("a", "A")], [Row("one", {"a": Cell(1.5)})], part="part")
    assert [path.name for path in tmp_path.iterdir()] == ["tried_part.json"]


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A repository of one program that measures `code`."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "x.py").write_text("1\n", encoding="utf-8")
    (tmp_path / "bench.py").write_text('MEASURES = ("code", ":!code/not")\n', encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "begin")
    monkeypatch.setattr(origin, "ROOT", tmp_path)
    origin.measures_of.cache_clear()
    return tmp_path


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    command = ["git", "-C", str(folder), *who, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_result_is_stale_when_the_code_it_measured_changed(repository: Path) -> None:
    commit = origin.commit_now(["code"])
    result = result_of(Cell(1), made_by="bench.py", commit=commit)
    (repository / "code" / "not").write_text("2", encoding="utf-8")
    (repository / "other").write_text("2", encoding="utf-8")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "something else")
    assert origin.why_stale(result) is None
    (repository / "code" / "x.py").write_text("2\n", encoding="utf-8")
    assert origin.why_stale(result) == f"1 of its files changed since {commit}: code/x.py"
    assert (
        origin.commit_now(["code"]) == f"{git(repository, 'rev-parse', '--short=12', 'HEAD')}-dirty"
    )


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ({"commit": None}, "was not written down"),
        ({"commit": "0123456789ab"}, "not in this clone, which may be a shallow one"),
        ({"commit": "0123456789ab-dirty"}, "that were not committed"),
        ({"made_by": None}, "no program of this repository"),
    ],
)
def test_a_result_that_cannot_be_compared_says_why(
    repository: Path, head: dict[str, object], why: str
) -> None:
    assert repository.exists()
    found = origin.why_stale(result_of(Cell(1), **{"made_by": "bench.py", **head}))
    assert found is not None
    assert why in found


DEAR = ("application", "latency-target", "peak", "policies", "surface", "survey")


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=[pytest.mark.long] if key in DEAR else [])
        for key in examples.SIMULATED
    ],
)
def test_an_example_is_what_the_command_prints(key: str, tmp_path: Path) -> None:
    """In virtual time and by a seed: run `bench/examples.py --save`, then `make figures`."""
    row = load("examples").row(key)
    assert row is not None
    assert row.cells["command"] == examples.SIMULATED[key]
    assert examples.example(key, tmp_path / "store.sqlite") == row.cells["text"]


@pytest.mark.long
def test_the_pictures_are_those_that_the_commands_draw(tmp_path: Path) -> None:
    """On simulated systems, by a seed: `bench/pictures .venv/bin/leadline docs/how-it-works`.

    The last digits of a model's arithmetic are the processor's.
    """
    done = subprocess.run(
        [str(ROOT / "bench/pictures"), LEADLINE, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kept = ROOT / "docs/how-it-works"
    names = {path.name for path in kept.iterdir()}
    assert names == {path.name for path in tmp_path.iterdir()}
    for name in names:
        drawn, told = (
            re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.6g}", path.read_text("utf-8"))
            for path in (tmp_path / name, kept / name)
        )
        assert drawn == told, name
