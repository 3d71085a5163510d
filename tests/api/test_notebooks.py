"""The notebooks of docs/: every cell runs, in its order, and what it shows can be shown."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from leadline.api.progress import progress_line
from leadline.engine import Progress
from places import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def cells_of(path: Path) -> list[str]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def shown_by(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does; return what its last line shows."""
    tree = ast.parse(cell)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own notebooks
        return None
    tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - as above
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307 - as above


def _is_chart(shown: Any) -> bool:
    return type(shown).__module__.startswith("altair.")


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "cache-and-peak",
        "first-survey",
        "predict-and-compare",
    ]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.long] * (path.stem != "first-survey"))
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_every_cell_of_a_notebook_runs(path: Path) -> None:
    names: dict[str, Any] = {}
    shown = [shown_by(cell, names) for cell in cells_of(path)]
    charts = [each.to_dict() for each in shown if _is_chart(each)]
    tables = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    assert charts
    assert all("vega-lite" in chart["$schema"] for chart in charts)
    assert any("<table>" in table or "<h4>" in table for table in tables)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells), "a notebook is kept without its answers"


class _Line:
    """What a notebook shows and changes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.texts.append(data["text/plain"])


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> _Line:
    """A notebook that listens."""
    found = _Line()

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> _Line:
        assert raw
        assert display_id
        found.texts.append(data["text/plain"])
        return found

    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    room = ModuleType("IPython.display")
    room.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", room)
    return found


def _at(done: int) -> Progress:
    return Progress(done, 10, "scout", 30.0, 100.0)


def test_a_notebook_has_one_line_that_changes(line: _Line) -> None:
    with progress_line(None) as told:
        told(_at(5))
    assert len(line.texts) == 3
    assert line.texts[0] == "begins"
    assert line.texts[1].count("\N{FULL BLOCK}") == 15
    assert "5 of 10: 30 s left, last 100 MB/s (scout)" in line.texts[1]
    assert line.texts[2] == "done"


def test_a_study_that_ends_early_says_so(line: _Line) -> None:
    with pytest.raises(KeyboardInterrupt), progress_line(None):
        raise KeyboardInterrupt
    assert line.texts[-1] == "stopped"


def test_nothing_is_shown_where_it_is_not_wanted_or_nobody_listens(line: _Line) -> None:
    with progress_line(False) as told:
        told(_at(5))
    assert line.texts == []
    sys.modules["IPython"].get_ipython = lambda: None  # type: ignore[attr-defined]
    with progress_line(None) as told:
        told(_at(5))
    assert line.texts == []
