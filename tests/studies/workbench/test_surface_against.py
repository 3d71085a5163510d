"""A surface held against a measured grid: its error, of which cells, how well they are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from leadline.app import app
from leadline.record import Interval, Status
from leadline.record.workbench import Experiment, MeasuredGrid, Surface, SurfaceCell
from leadline.studies.workbench.answer import explain
from leadline.studies.workbench.surface.models import surface_error
from leadline.studies.workbench.surface.text import surface_tiles
from proving.samples import sample_experiment_start
from workbench_fixture import TEXT


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT)
    return str(path)


def run(*arguments: str, store: Path) -> Any:
    return CliRunner().invoke(app, ["--store", str(store), "surface", *arguments])


def cell(workers: int, rate: float | None, half: float = 10.0, *, measured: bool) -> SurfaceCell:
    interval = None if rate is None else Interval(rate, rate - half, rate + half, 5)
    return SurfaceCell(sample={"workers": workers}, rate_per_s=interval, measured=measured)


def held(own: tuple[SurfaceCell, ...], grid: tuple[SurfaceCell, ...]) -> Experiment:
    start = msgspec.structs.replace(
        sample_experiment_start(),
        design="sequential",
        against=MeasuredGrid(study_id="0123456789abcdef", cells=grid),
    )
    surface = Surface(
        model="soft-min", cells=own, error_frac=0.05, cost_s=10.0, ideal=None, flat=()
    )
    return Experiment(start=start, status=Status.DONE, surface=surface)


GRID = (cell(1, 100, measured=True), cell(2, 200, measured=True), cell(4, 400, 40, measured=True))
OWN = (
    cell(1, 102, measured=True),
    cell(2, 180, 5, measured=False),
    cell(4, 380, 30, measured=False),
)


def test_the_error_is_the_mean_over_cells_of_both_and_of_those_not_measured() -> None:
    error = surface_error(held(OWN, GRID))
    assert error is not None
    assert error.mape.value == pytest.approx((0.02 + 0.10 + 0.05) / 3)
    assert error.mape.n == 3
    assert error.mape.low is not None
    assert error.mape.low < error.mape.value
    assert error.predicted_mape is not None
    assert error.predicted_mape.value == pytest.approx(0.075)
    assert (error.predicted, error.within_intervals) == (2, 1), "180 ± 5 misses 200 ± 10"
    assert error.worst == {"workers": 2}
    assert error.worst_frac == pytest.approx(0.1)
    assert error.grid_half_frac == pytest.approx((0.1 + 0.05 + 0.1) / 3)


def test_cells_that_only_one_of_them_has_count_for_nothing() -> None:
    error = surface_error(held((OWN[0], cell(2, None, measured=True)), GRID))
    assert error is not None
    assert (error.mape.n, error.mape.low) == (1, None), "one cell has no interval"
    assert (error.predicted, error.predicted_mape) == (0, None)
    assert surface_error(held((cell(8, 50, measured=True),), GRID)) is None
    without = held(OWN, GRID)
    start = msgspec.structs.replace(without.start, against=None)
    assert surface_error(msgspec.structs.replace(without, start=start)) is None


def test_it_is_said_and_on_the_page() -> None:
    found = held(OWN, GRID)
    (said,) = [words for words in explain(found).sentences if words.startswith("Against")]
    assert said.startswith(
        "Against the grid of experiment 01234567 its mean absolute error is 5.7%"
    )
    assert "over the 2 cells that were not measured 7.5%" in said
    assert "1 of them meet the grid's interval. The worst is 10.0% off." in said
    assert said.endswith("The grid's own rates are known to ± 8.3%.")
    assert found.surface is not None
    assert ("5.7%", "mean absolute error against a measured grid of 3") in surface_tiles(
        found, found.surface
    )


def test_a_surface_of_some_cells_is_held_against_the_stored_grid(
    experiment: str, store: Path
) -> None:
    grid = json.loads(run(experiment, "--design", "full-grid", "--json", store=store).stdout)
    assert grid["error"] is None
    words = (experiment, "--design", "full-grid:2", "--seed", "2")
    own = json.loads(run(*words, "--against", "tiny", "--json", store=store).stdout)
    error = own["error"]
    assert error["against"] == grid["experiment"], "by name that with most cells"
    true = [each["rate_per_s"]["value"] for each in grid["surface"]["cells"]]
    got = [each["rate_per_s"] and each["rate_per_s"]["value"] for each in own["surface"]["cells"]]
    off = [abs(one / other - 1) for one, other in zip(got, true, strict=True) if one]
    assert len(off) == 2
    assert error["mape"]["value"] == pytest.approx(sum(off) / 2)
    shown = CliRunner().invoke(app, ["--store", str(store), "show", own["experiment"]]).stdout
    assert "Against the grid of experiment" in " ".join(shown.split()), "it is kept with it"


def test_what_is_no_grid_of_it_is_refused(experiment: str, store: Path, tmp_path: Path) -> None:
    refused = run(experiment, "--against", "tiny", store=store)
    assert "no finished surface" in str(refused.exception)
    run(experiment, "--design", "full-grid", store=store)
    for old, new, words in (
        ("[1, 2, 4]", "[1, 2]", "other factors or levels"),
        ('"40ms"', '"50ms"', "another threshold"),
    ):
        other = tmp_path / "other.toml"
        other.write_text(TEXT.replace(old, new))
        refused = run(str(other), "--against", "tiny", store=store)
        assert words in str(refused.exception)
        assert getattr(refused.exception, "exit_code", None) == 2
    both = run(experiment, "--against", "tiny", "--resume", store=store)
    assert both.exit_code == 2
    assert "leave out --against" in " ".join(both.output.split())
