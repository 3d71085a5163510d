"""`--resume` goes on with what was begun, or refuses and names what differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.record import Status
from leadline.record.workbench import EXPERIMENT, Experiment, ExperimentStart
from leadline.store import Store, open_store
from leadline.studies.workbench.answer import KeptExperiment
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.read import ExperimentFile, read_experiment
from leadline.studies.workbench.study import resume_peak, resume_surface
from workbench_fixture import TEXT, peak_start, surface_start


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as kept:
        yield kept


def changed(old: str, new: str) -> ExperimentFile:
    assert old in TEXT or not old
    return read_experiment(TEXT.replace(old, new, 1) if old else TEXT + new, "tiny.toml")


SAME = read_experiment(TEXT, "tiny.toml")


def begun(store: Store, start: ExperimentStart) -> ExperimentStart:
    store.begin(EXPERIMENT, start)
    return start


CHANGES = [
    ("service_ms = 10.0", "service_ms = 11.0", "server"),
    ("between_trials_sd = 0.01", "between_trials_sd = 0.02", "server"),
    ('mean = "40ms"', 'mean = "41ms"', "goal"),
    ('run_length = "20s"', 'run_length = "21s"', "goal"),
    ("rate_start = 40", "rate_start = 41", "goal"),
    ("[goal]", "[goal]\naccuracy = 0.8", "goal"),
    ("[goal]", "[goal]\nconfidence = 0.9", "goal"),
    ("[1, 2, 4]", "[1, 2, 4, 8]", "factors"),
]


@pytest.mark.parametrize(("old", "new", "named"), CHANGES, ids=[new for _, new, _ in CHANGES])
def test_a_file_that_asks_something_else_is_refused_by_name(
    store: Store, old: str, new: str, named: str
) -> None:
    """Trials of the one are no answer to the other."""
    begun(store, peak_start())
    with pytest.raises(ExperimentRefused, match=f"was begun with another {named}"):
        resume_peak(changed(old, new), store)


@pytest.mark.parametrize(("old", "new", "named"), CHANGES, ids=[new for _, new, _ in CHANGES])
def test_the_same_holds_for_a_surface(store: Store, old: str, new: str, named: str) -> None:
    begun(store, surface_start())
    with pytest.raises(ExperimentRefused, match=f"was begun with another {named}"):
        resume_surface(changed(old, new), store)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ({"sample": {"workers": 4}}, "samples"),
        ({"policy": "linear"}, "policy"),
        ({"seed": 7}, "seed"),
        ({"deadline_s": 999.0}, "deadline"),
    ],
)
def test_an_option_that_decides_otherwise_is_refused(
    store: Store, option: dict[str, Any], named: str
) -> None:
    begun(store, peak_start())
    with pytest.raises(ExperimentRefused, match=f"another .*{named}"):
        resume_peak(SAME, store, **option)


@pytest.mark.parametrize(
    ("option", "named"),
    [({"design": "sequential"}, "design"), ({"seed": 7}, "seed"), ({"policy": "linear"}, "policy")],
)
def test_an_option_of_a_surface_as_well(store: Store, option: dict[str, Any], named: str) -> None:
    begun(store, surface_start())
    with pytest.raises(ExperimentRefused, match=f"another .*{named}"):
        resume_surface(SAME, store, **option)


def test_everything_that_differs_is_named(store: Store) -> None:
    begun(store, peak_start())
    other = changed("service_ms = 10.0", "service_ms = 11.0")
    with pytest.raises(ExperimentRefused, match="another server, policy and seed;"):
        resume_peak(other, store, policy="linear", seed=7)


def test_what_is_not_given_again_is_as_it_was(store: Store) -> None:
    options: dict[str, Any] = {"policy": "linear", "seed": 5, "deadline_s": 420.0}
    start = begun(store, peak_start(sample={"workers": 1}, **options))
    assert resume_peak(SAME, store).start == start
    assert resume_peak(SAME, store, sample={"workers": 1}, **options).start == start


def test_a_surface_keeps_its_own_too(store: Store) -> None:
    start = begun(store, surface_start(policy="linear", seed=5, deadline_s=900.0))
    assert resume_surface(SAME, store).start == start
    same: dict[str, Any] = {"design": "full-grid", "policy": "linear", "seed": 5}
    assert resume_surface(SAME, store, deadline_s=900.0, **same).start == start


def test_only_the_unfinished_search_of_this_name_and_kind_is_meant(store: Store) -> None:
    surface = begun(store, surface_start())
    with pytest.raises(ExperimentRefused, match="no unfinished peak search of 'tiny'"):
        resume_peak(SAME, store)
    peak = begun(store, peak_start())
    assert resume_peak(SAME, store).start == peak
    assert resume_surface(SAME, store).start == surface
    with pytest.raises(ExperimentRefused, match="no unfinished surface of 'large'"):
        resume_surface(changed('name = "tiny"', 'name = "large"'), store)


def test_a_finished_one_is_not_gone_on_with(store: Store) -> None:
    start = begun(store, peak_start())
    KeptExperiment(store, start, None).end(Experiment(start=start, status=Status.DONE))
    with pytest.raises(ExperimentRefused, match="leave out --resume to start one"):
        resume_peak(SAME, store)
