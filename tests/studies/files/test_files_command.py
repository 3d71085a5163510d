"""`leadline files` as a user meets it: what it refuses, and what it promises in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import leadline
from leadline.store import open_store
from leadline.studies.files.text import files_document
from proving.samples import keep_study, sample_files_study, stored_files


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["DIR", "--filesystems", "ext5"], "'ext5' is not known; it takes existing, ext4, xfs"),
        (["DIR", "--filesystems", ","], "none was given"),
        (["DIR", "--block-sizes", "tiny"], "tiny"),
        (["DIR", "--block-sizes", ","], "names no size"),
        (["DIR", "--file-size", "10000"], "no multiple of 8 KiB"),
        (["DIR", "--file-size", "16MiB", "--paper"], "8 MB by itself"),
        (["DIR", "--runs", "1"], "runs"),
        (["DIR", "--budget", "0"], "no time at all"),
        (["DIR", "-o", "table.doc"], ".csv, .txt"),
        (["DIR", "-o", "/no/such/place/table.html"], "does not exist"),
        (["DIR", "--max-bytes", "1MiB", "--filesystems", "existing"], "room for files of 0 B"),
        (["DIR", "DIR"], "given twice"),
        (["null:"], "plain files need a directory"),
        (["sim:two-level"], "plain files need a directory"),
        (["/no/such/directory"], "/no/such/directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    place = tmp_path / "drive"
    place.mkdir()
    spelled = [str(place) if word == "DIR" else word for word in arguments]
    done = leadline("files", *spelled, store=tmp_path / "store.sqlite")
    of_target = said in {"room for files of 0 B", "/no/such/directory"}
    assert done.returncode == (5 if of_target else 2), done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split()), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(place.iterdir()) == []


def test_a_directory_with_foreign_things_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "drive" / ".leadline"
    own.mkdir(parents=True)
    (own / "image-0.bin").write_text("somebody's")
    done = leadline("files", str(own.parent), store=tmp_path / "store.sqlite")
    assert done.returncode == 5
    assert "was not made by this Leadline" in done.stderr
    assert (own / "image-0.bin").read_text() == "somebody's"


def test_the_document_has_the_promised_keys() -> None:
    document = files_document(sample_files_study())
    row = document["rows"][0]
    promised = {"test", "fs", "block_bytes", "drives", "kbytes_s", "cpu_percent", "raw_percent"}
    assert promised <= set(row)
    assert (row["cpu_percent"], row["raw_percent"]) == (40.0, 20.0)
    assert row["kbytes_s"].value == 16.0


def test_a_stored_study_is_shown_and_drawn(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    study = sample_files_study()
    with open_store(str(store)) as kept:
        keep_study(kept, stored_files(study))
    shown = leadline("show", "files-a", store=store)
    assert shown.returncode == 0, shown.stderr
    assert "existing ext4 4 KiB   1        16 " in shown.stdout
    whole = leadline("--verbose", "show", "files-a", store=store)
    assert "read_8192      16 (40%)" in whole.stdout
    answer = json.loads(leadline("show", "tiny-files", "--json", store=store).stdout)
    assert answer["study"] == "files-a"
    drawn = leadline("report", "files-a", "-o", str(tmp_path / "t.csv"), store=store)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "t.csv").read_text().startswith("study_id,")
