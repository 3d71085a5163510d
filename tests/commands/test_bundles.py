"""Studies taken to another machine: bundles, and whole stores."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from command import leadline
from places import ROOT

KEPT = ROOT / "tests" / "golden" / "store-today.sqlite"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store with studies of every kind."""
    return Path(shutil.copy(KEPT, tmp_path / "old.sqlite"))


def studies(store: Path) -> list[dict[str, Any]]:
    found = json.loads(leadline("systems", "--json", store=store).stdout)
    assert isinstance(found, list)
    return found


def ids(store: Path, *kinds: str) -> list[str]:
    return [each["study_id"] for each in studies(store) if not kinds or each["kind"] in kinds]


def bundle(store: Path, study_id: str, name: str) -> Path:
    path = store.with_name(name)
    done = leadline("export", study_id, "-o", str(path), store=store)
    assert (done.returncode, done.stderr) == (0, f"wrote {path}\n")
    return path


def test_a_bundle_has_a_study_with_what_it_is_about_and_the_same_answer(
    old: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.sqlite"
    (validation,) = ids(old, "validation")
    path = bundle(old, validation, "checked.leadline")
    done = leadline("import", str(path), store=new)
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [
        ["imported", "survey"],
        ["imported", "validation"],
    ]
    (survey,) = ids(new, "survey")
    assert ids(new) == [validation, survey]
    for study_id in (validation, survey):
        shown = [leadline("show", study_id, "--json", store=each).stdout for each in (old, new)]
        assert shown[0] == shown[1] != ""
    again = leadline("import", str(path), store=new)
    assert again.stderr.count("stored already: ") == 2
    assert ids(new) == [validation, survey]


def test_a_whole_store_is_imported_in_its_order(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    assert leadline("import", str(old), store=new).returncode == 0
    assert sorted(ids(new)) == sorted(ids(old))
    assert leadline("systems", store=new).stdout == leadline("systems", store=old).stdout


def test_bundles_are_compared_predicted_and_shown_in_place_of_names(
    old: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.sqlite"
    done = [each for each in studies(old) if each["status"] == "done"]
    surveys = [each["study_id"] for each in done if each["kind"] == "survey"][:2]
    paths = [str(bundle(old, each, f"{each[:4]}.leadline")) for each in surveys]
    by_id = leadline("compare", *surveys, "--json", store=old)
    by_file = leadline("compare", *paths, "--json", store=new)
    assert by_file.stdout == by_id.stdout != ""
    words = "bs=32k", "rw=randrw", "size=1m", "--extrapolate", "--json"
    told = [
        leadline("predict", ref, *words, store=store).stdout
        for ref, store in ((surveys[0], old), (paths[0], new))
    ]
    assert told[0] == told[1] != ""
    shown = leadline("show", paths[0], "--json", store=new)
    assert "stored already: survey" in shown.stderr
    assert shown.stdout == leadline("show", surveys[0], "--json", store=old).stdout


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "gzip of text", "damaged pages"])
def test_a_file_that_is_no_bundle_is_refused_and_changes_nothing(
    old: Path, tmp_path: Path, damage: str
) -> None:
    new = tmp_path / "new.sqlite"
    path = bundle(old, ids(old, "survey")[0], "some.leadline")
    whole = path.read_bytes()
    pages = bytearray(gzip.decompress(whole))
    pages[4096:] = bytes(len(pages) - 4096)
    path.write_bytes(
        {
            "empty": b"",
            "text": b"studies",
            "cut": whole[: len(whole) // 2],
            "gzip of text": gzip.compress(b"studies"),
            "damaged pages": gzip.compress(pages),
        }[damage]
    )
    done = leadline("import", str(path), store=new)
    assert done.returncode == 2
    assert done.stderr.startswith("leadline: ")
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    assert ids(new) == []


def test_a_bundle_that_is_not_there_is_a_name_like_any_other(tmp_path: Path) -> None:
    done = leadline("show", "nosuch.leadline", store=tmp_path / "s.sqlite")
    assert done.returncode == 2
    assert "nosuch.leadline" in done.stderr
