"""Hooks of every Python test: one browser for all pages, what goes to which process, and when.

Under `--dist loadgroup` a process takes whole groups, in the order of the tests. Tests that do
real I/O are one group, so that only one of them at a time is on this machine's disk; those that
start servers or ranks and mostly wait for them are another; tests that open a page are a third, so
that one browser is started; any other file is a group of its own.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from opened_page import start_browser
from shared_results import FOLDER, share

SERVED = frozenset(
    {
        "test_cluster.py",
        "test_nfs.py",
        "test_nfs_load.py",
        "test_nfs_target.py",
        "test_pool_dask.py",
        "test_servers_examples.py",
        "test_servers_nfs.py",
    }
)
"""Real tests of servers and ranks, which ask little of the disk."""

WATCHED = frozenset({"test_capture.py", "test_capture_hostile.py"})
"""Programs watched as they run: most of the time passes in waiting for them."""

HARMED = frozenset({"test_attack.py", "test_faults.py", "test_measure_resume.py"})
"""Tests of commands that are killed or attacked: what they wait for is mostly an end."""

LONGEST_FIRST = (
    "real",
    "served",
    "test_capture.py",
    "test_capture_hostile.py",
    "pages",
    "harmed",
    "test_profiles.py",
    "test_file_caches.py",
    "test_boundaries.py",
    "test_policy_conformance.py",
    "test_comparison.py",
    "test_predictions.py",
    "test_learning.py",
    "test_bad_input.py",
    "test_stream_command.py",
)
"""Groups that take longest, the longest first: what begins last must not be what ends last."""

_OWN = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that the processes of this run share; they inherit its name."""
    gc.set_threshold(50_000, 20, 100)  # a twentieth of the time went into looking for garbage
    if FOLDER not in os.environ:
        folder = tempfile.mkdtemp(prefix="leadline-tests-")
        os.environ[FOLDER] = config.stash[_OWN] = folder
        if config.getoption("numprocesses", None) and not config.option.collectonly:
            from forked_command import offer  # noqa: PLC0415 - the processes of a run load it anyway

            offer()
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            # A script's background job ignores Ctrl-C, and so would every command a test starts.
            signal.signal(number, usual)


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_OWN, None):
        shutil.rmtree(folder)
        del os.environ[FOLDER]


def group_of(item: pytest.Item) -> str:
    """Name the tests that go to one process, one after the other."""
    if item.path.name in HARMED:
        return "harmed"
    if item.path.name in WATCHED:
        return item.path.name
    if item.get_closest_marker("real"):
        return "served" if item.path.name in SERVED else "real"
    if "browser" in getattr(item, "fixturenames", ()):
        return "pages"
    return item.path.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the groups, and tell the process that deals them out which test belongs where."""
    long = set(Path(__file__).with_name("long.txt").read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.long)
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(group_of(item), len(rank)))
    groups = {item.nodeid: group_of(item) for item in items}
    own = Path(os.environ[FOLDER]) / f"groups-{os.getpid()}"
    own.write_text(json.dumps(groups), encoding="utf-8")
    own.replace(own.with_name("groups.json"))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist tells no types
    """Deals out whole groups, in the order of the tests.

    xdist's own `loadgroup` writes the group into a test's id, which pytest 9.2 no longer lets it:
    every test then is a group by itself, without a word.
    """

    @functools.cached_property
    def _groups(self) -> dict[str, str]:
        told = Path(os.environ[FOLDER]) / "groups.json"
        found: dict[str, str] = json.loads(told.read_text(encoding="utf-8"))
        return found

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session", autouse=True)
def _shared() -> None:
    """What takes long, and is the same each time, is made by one process for all."""
    share()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One headless browser for the pages of all tests."""
    yield from start_browser(tmp_path_factory.mktemp("chromium"))


_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Put handlers back: `leadline.app.main` ends with signals ignored, as a process's last act."""
    kept = {number: signal.getsignal(number) for number in _STOPS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)
