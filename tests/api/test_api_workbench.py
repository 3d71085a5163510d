"""`leadline.peak` and `leadline.surface` in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import leadline
from leadline.api.frames import FramesMissing
from leadline.record.workbench import EXPERIMENT, PeakVerdict
from leadline.store import StoreError, open_store
from leadline.studies.workbench.conversation import ExperimentRefused
from workbench_fixture import TEXT, peak_start


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT)
    return str(path)


def test_a_peak_comes_back_with_its_interval_and_shows_itself(
    experiment: str, tmp_path: Path
) -> None:
    store = str(tmp_path / "store.sqlite")
    found = leadline.peak(experiment, sample={"workers": 1}, store=store, compare=False)
    assert found.rate_per_s is not None
    assert found.rate_per_s.low is not None
    assert 80 < found.rate_per_s.low <= found.rate_per_s.value < 100
    assert found.peak is not None
    assert found.surface is None
    assert repr(found).startswith("tiny (workers=1): peak rate ")
    assert "<th>requests/s</th>" in found._repr_html_()
    kept = leadline.open("tiny", store=store)
    assert kept.experiment == found.experiment


def test_a_surface_comes_back_with_its_cells(experiment: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    found = leadline.surface(experiment, design="full-grid", store=store)
    assert found.surface is not None
    assert len(found.surface.cells) == 3
    assert (found.peak, found.rate_per_s) == (None, None)
    assert "3 of 3 samples measured" in repr(found)
    assert leadline.open("tiny", store=store).experiment == found.experiment


def test_frames_have_trials_or_cells(experiment: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    trials = leadline.peak(experiment, store=store, compare=False)
    cells = leadline.surface(experiment, design="full-grid", store=store)
    try:
        frames = trials.to_frame(), cells.to_frame()
    except FramesMissing:
        return
    assert len(frames[0]) == trials.experiment.peaks[0].peak.trials  # type: ignore[union-attr]
    assert list(frames[1]["factor_workers"]) == [1, 2, 4]


def test_a_deadline_is_written_as_people_do(experiment: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    found = leadline.peak(experiment, deadline="2m", store=store)
    assert found.peak is not None
    assert found.peak.verdict is PeakVerdict.DEADLINE
    assert found.peak.cost_s <= 120


def test_what_cannot_be_is_refused(experiment: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    with pytest.raises(ExperimentRefused, match="no factor 'cores'"):
        leadline.peak(experiment, sample={"cores": 1}, store=store)
    with open_store(store) as kept:  # an unfinished peak search is no surface
        kept.begin(EXPERIMENT, peak_start())
    with pytest.raises(ExperimentRefused, match="no unfinished surface of 'tiny'"):
        leadline.surface(experiment, resume=True, store=store)
    with pytest.raises(StoreError, match="no survey or system 'other'"):
        leadline.open("other", store=store)
