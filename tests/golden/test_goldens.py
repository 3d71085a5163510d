"""What Leadline says of every kind of record, letter by letter (`expected/`).

A golden is no judgement that an output is right: it says where one changed. After a change that is
meant, `make goldens` writes them anew, and the difference is read before it is kept.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_normal as normal
import pytest
from golden_cases import CASES, HERE, KINDS, WIRE, Case
from golden_wire import heard
from make_store import add_documents

from golden_run import Ran, fixed_ids, run
from leadline.engine.nfs_load import prepare_data, remove_data, run_nfs_load
from leadline.engine.targets.nfs_address import NfsAddress
from leadline.errors import LeadlineError
from leadline.record.jobs.nfs import NfsData
from leadline.record.workbench import TrialRequest
from leadline.store import open_store

EXPECTED = HERE / "expected"
STORE = HERE / "store-today.sqlite"
UPDATED = "UPDATE_GOLDENS" in os.environ
"""Whether goldens are written, not compared: `make goldens` says so."""
_DIFFERENCES_SHOWN = 60


@dataclass(frozen=True)
class Told:
    """What a command said, as it was and as it is compared."""

    ran: Ran
    text: str


Tell = Callable[[Case], Told]


@pytest.fixture(scope="session")
def tell(tmp_path_factory: pytest.TempPathFactory) -> Tell:
    """Run a case once, however many tests ask for it."""
    folder = tmp_path_factory.mktemp("golden")
    # A copy, for opening a store may bring it up to date.
    frozen = shutil.copyfile(STORE, folder / "frozen.sqlite")
    known: dict[str, Told] = {}

    def told(case: Case) -> Told:
        if case.name not in known:
            own = folder / case.name.replace("/", "-")
            own.mkdir()
            known[case.name] = _told(case, own, frozen)
        return known[case.name]

    return told


def _told(case: Case, folder: Path, store: Path) -> Told:
    if case.live:
        store = shutil.copyfile(STORE, folder / "store.sqlite")
    out = folder / "out"
    out.mkdir()
    with fixed_ids(case.name) as ids:
        done = run([word.replace("{out}", str(out)) for word in case.command], store)
    named = normal.places((store, "<store>"), (out, "<out>"), (HERE, "<golden>"))
    parts = [
        f"$ leadline {' '.join(case.command).replace(str(HERE), '<golden>')}",
        f"exit code {done.code}",
    ]
    parts += [f"--- stdout\n{_data(case, done.out)}"] if done.out.strip() else []
    parts += [f"--- stderr\n{done.err}"] if done.err.strip() else []
    parts += [f"--- {path.name}\n{_file(path)}" for path in sorted(out.glob("*.*"))]
    text = normal.plain("\n".join(parts), named)
    return Told(done, normal.live(text, [each.hex for each in ids.given]) if case.live else text)


def _data(case: Case, text: str) -> str:
    if "--json" not in case.command and not case.name.endswith("export-json"):
        return text
    return normal.document(text, host=case.live, rows="export" in case.name)


def _file(path: Path) -> str:
    text = path.read_text("utf-8")
    return normal.page(text) if path.suffix == ".html" else text


def _compare(name: str, text: str) -> None:
    path = EXPECTED / f"{name}.txt"
    text = text.rstrip("\n") + "\n"
    if UPDATED:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    expected = path.read_text("utf-8") if path.exists() else ""
    if text == expected:
        return
    lines = list(
        difflib.unified_diff(
            expected.splitlines(),
            text.splitlines(),
            f"expected/{name}.txt",
            "said now",
            lineterm="",
            n=2,
        )
    )
    more = len(lines) - _DIFFERENCES_SHOWN
    shown = lines[:_DIFFERENCES_SHOWN] + ([f"… {more} more lines"] if more > 0 else [])
    pytest.fail("\n".join([*shown, "if this is meant: make goldens"]), pytrace=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_command_says_what_it_said(case: Case, tell: Tell) -> None:
    _compare(case.name, tell(case).text)


@pytest.mark.parametrize("name", WIRE)
def test_the_wire_carries_what_it_carried(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with fixed_ids(name), heard(tmp_path / "wire.log") as lines:
        for words in WIRE[name]:
            done = run([word.replace("{out}", str(out)) for word in words], tmp_path / "store")
            assert done.code in (0, 2, 5), done.err
    real = name not in ("measure-simulated", "simulated-trial")
    text = "\n".join(_of_this_kind(name, lines, real=real))
    _compare(f"wire/{name}", normal.plain(text, normal.places((out, "<out>"))))


def test_a_study_of_plain_files_is_told_anew_as_it_was(tmp_path: Path) -> None:
    """A finished one is stored with its sentences, and no simulated drive makes another."""
    with fixed_ids("files"), open_store(str(tmp_path / "store.sqlite")) as kept:
        add_documents(kept)
    done = run(("show", "thing"), tmp_path / "store.sqlite")
    _compare("files-study/told-anew", normal.plain(done.out, []))


_TRIALS_KEPT = 9
"""Lines: three trials, each asked in two and answered in one."""


def _of_this_kind(name: str, lines: Sequence[str], *, real: bool) -> Iterator[str]:
    """Lines of the wire without what measures the generator first, as many jobs as processors."""
    wanted = True
    for line in lines[:_TRIALS_KEPT] if name == "simulated-trial" else lines:
        if line.startswith("> ") and name == "measure-directory":
            wanted = '"kind":"directory"' in line
        said = normal.wire(line, real=real) if wanted else None
        if said is not None:
            yield re.sub(r'"job-\d+"', '"job-<n>"', said) if name == "measure-directory" else said


def test_the_wire_carries_nfs_loads(tmp_path: Path) -> None:
    """Refused, for nobody serves there: what is asked is the same."""
    address = NfsAddress(host="127.0.0.1", port=1, mount_port=1, path="/none")
    data = NfsData(workload="db_tp", data_bytes=2**20, seed=7)
    request = TrialRequest(rate_per_s=100.0, seconds=2.0, abort_above_ms=400.0)
    asked: tuple[Callable[[], Any], ...] = (
        lambda: prepare_data(address, data),
        lambda: run_nfs_load(address, data, request, seed=5, limit_ms=20.0),
        lambda: remove_data(address),
    )
    with heard(tmp_path / "wire.log") as lines:
        for ask in asked:
            with pytest.raises(LeadlineError):
                ask()
    text = "\n".join(said for line in lines if (said := normal.wire(line, real=True)))
    _compare("wire/nfs-load", text)


COMMANDS = ("show", "show-json", "export-json", "export-csv", "report-html")


def test_every_command_takes_the_kinds_that_it_took(tell: Tell) -> None:
    """One table of what is refused: it shows each hole that closes, and each that opens."""
    by_name = {case.name: case for case in CASES}
    listed = {
        item["study_id"] for item in json.loads(tell(by_name["systems/systems-json"]).ran.out)
    }
    lines = []
    for kind, ref in KINDS.items():
        taken = {"systems": "lists it" if ref in listed else "does not list it"}
        for command in COMMANDS:
            done = tell(by_name[f"{kind}/{command}"]).ran
            taken[command] = "taken" if done.code == 0 else f"refused ({done.code}): {_why(done)}"
        shown = tell(by_name[f"{kind}/show"]).ran.out
        taken["show names its id"] = "yes" if ref[:8] in shown else "no"
        lines += [kind, *(f"  {command:<18} {said}" for command, said in taken.items()), ""]
    _compare("holes", "\n".join(lines))


def _why(done: Ran) -> str:
    """The message to its first colon or semicolon's end; the case's own golden has it whole."""
    return " ".join(done.err.removeprefix("leadline: ").split()).partition(" in /")[0]
