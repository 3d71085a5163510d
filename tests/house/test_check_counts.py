"""What `make test` says last: skips counted apart, and nothing that disappears quietly."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_counts
from check_counts import report, tally

PYTHON = """\
....s..                                                                  [100%]
=========================== short test summary info ============================
SKIPPED [2] tests/real/test_nfs.py:30: no NFS server here: ganesha is missing
SKIPPED [1] tests/machine/test_space.py:53: no NFS server here: ganesha is missing
SKIPPED [1] tests/machine/test_throttles.py: needs root: and more
7 passed, 4 skipped in 3.21s
"""
RUST = """\
running 3 tests
..SKIPPED [rust] hot_loop::uring: io_uring is disabled here
.
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
running 1 test
.
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
"""


def test_a_rust_test_that_did_not_run_is_no_pass() -> None:
    found = tally(RUST)
    assert (found.passed, found.failed, found.skipped, found.exist) == (3, 0, 1, 4)
    assert found.reasons == {"io_uring is disabled here": 1}


def test_every_reason_is_one_line_with_its_count_and_the_numbers_come_last() -> None:
    said, whole = report({"rust": 4, "python": 11}, {"rust": tally(RUST), "python": tally(PYTHON)})
    assert whole
    assert said == [
        "skipped 3 times: no NFS server here: ganesha is missing",
        "skipped 1 time: io_uring is disabled here",
        "skipped 1 time: needs root: and more",
        "10 passed, 0 failed, 5 skipped",
    ]


def test_fewer_tests_than_there_were_are_no_success() -> None:
    said, whole = report({"rust": 5}, {"rust": tally(RUST)})
    assert not whole
    assert said[-2] == "rust: 4 tests passed or were skipped, counts.toml wants 5"


@pytest.mark.parametrize("closing", ["1 failed, 7 passed in 1s", "7 passed, 2 errors in 1s"])
def test_a_failure_or_an_error_is_no_success(closing: str) -> None:
    said, whole = report({"python": 7}, {"python": tally(closing)})
    assert not whole
    assert said[-1].startswith("7 passed, ")
    assert ", 0 failed" not in said[-1]


def test_the_counts_of_the_project_are_those_of_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = tmp_path / "counts.toml"
    counts.write_text("rust = 4\npython = 12\n")
    monkeypatch.setattr(check_counts, "COUNTS", counts)
    (tmp_path / "rust.log").write_text(RUST)
    (tmp_path / "python.log").write_text(PYTHON)
    assert check_counts.main(tmp_path) == 1
    counts.write_text("rust = 4\npython = 11\n")
    capsys.readouterr()
    assert check_counts.main(tmp_path) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "10 passed, 0 failed, 5 skipped"
