"""The study of plain files on known truth: size, protocol, numbers, and what is said of them."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import pytest

from files_fixture import EXISTING, Kept, ScriptedTests, made, start_of, study_of
from leadline.engine import PointFailed, TargetRefused
from leadline.record import Status
from leadline.record.files import FilesCell, FilesStudy, SizeStep
from leadline.record.jobs.file_test import FILE_PROGRAMS, FileProgram
from leadline.studies.files.plan import PAPER_BYTES, next_size
from leadline.studies.files.run import run_files
from leadline.studies.files.text import format_how

ONE = [FilesCell(system=EXISTING, drives=1)]
MATRIX = [
    FilesCell(system=system, drives=drives)
    for system in (made("ext4", 1024), made("ext4", 4096), made("xfs", 4096))
    for drives in (1, 2)
]


def test_the_first_run_is_discarded_and_the_others_make_the_number() -> None:
    study = study_of(ScriptedTests(lambda *_: 9e5), ONE, runs=4)
    for row in study.rows:
        assert len(row.runs) == 4
        assert row.kbytes_s is not None
        assert row.kbytes_s.value == pytest.approx(9e5)
        assert row.kbytes_s.n == 3
        assert row.raw_percent is not None
        assert row.raw_percent.value == pytest.approx(45.0)
    assert [row.test for row in study.rows] == list(FILE_PROGRAMS)


def test_a_file_is_written_before_it_is_written_over_and_read() -> None:
    tests = ScriptedTests(lambda *_: 9e5)
    study_of(tests, ONE)
    order = tests.asked[-1][2]
    assert order.index("write_8192") < order.index("rewrite_8192") < order.index("read_8192")


@pytest.mark.long
def test_intervals_cover_the_truth() -> None:
    """Four programs, three kept runs, 80 studies: 95% must be near 95%."""
    covered = total = 0
    for seed in range(80):
        tests = ScriptedTests(lambda *_: 5e5, noise_frac=0.1)
        tests.chance.seed(seed)
        for row in study_of(tests, MATRIX, runs=4).rows:
            assert row.kbytes_s is not None
            covered += row.kbytes_s.covers(5e5)
            total += 1
    assert 0.92 < covered / total < 0.98, covered / total


def test_noise_is_pooled_over_the_file_systems_of_a_program() -> None:
    """Two kept runs alone would have a t quantile of 7 and more."""
    rows = study_of(ScriptedTests(lambda *_: 5e5, noise_frac=0.1), MATRIX).rows
    widths = [row.kbytes_s.half_width_frac for row in rows if row.kbytes_s is not None]
    assert max(width for width in widths if width is not None) < 0.35


def test_one_kept_run_has_no_interval() -> None:
    row = study_of(ScriptedTests(lambda *_: 5e5), ONE, runs=2).rows[0]
    assert row.kbytes_s is not None
    assert (row.kbytes_s.low, row.kbytes_s.high, row.kbytes_s.n) == (None, None, 1)


def slow_start(fixed_s: float) -> ScriptedTests:
    """Every file costs `fixed_s` beside its bytes."""
    return ScriptedTests(lambda _c, _t, size: size / 1024 / (size / 1024 / 5e5 + fixed_s))


def test_a_budget_that_lasts_is_spent_on_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first column tells how long a run takes; each look at this clock takes a millisecond."""
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) / 1000)
    monkeypatch.setattr("leadline.studies.files.run.time", clock)
    tests = ScriptedTests(lambda *_: 5e5)
    study = run_files(tests, Kept(), start_of(MATRIX), file_bytes=8 << 20, fill=True)
    counts = [len(row.runs) for row in study.rows if row.runs]
    programs = len(FILE_PROGRAMS)
    assert counts == [3] * programs + [30] * (len(counts) - programs)
    assert "means of 2 to 29 runs" in format_how(study)


def test_two_runs_compare_nothing_and_crash_nothing() -> None:
    """One is kept of each: no noise is known, so no ratio has an interval, however far apart."""

    def rate(cell: FilesCell, test: FileProgram, _size: int) -> float:
        return {"xfs": 9e5}.get(cell.system.fs, 1e3) * cell.drives * (2 if "read" in test else 1)

    study = study_of(ScriptedTests(rate), MATRIX, runs=2)
    assert study.status is Status.DONE
    assert all(row.kbytes_s and row.kbytes_s.low is None for row in study.rows)
    said = " ".join(study.sentences)
    assert "times" not in said, said


def test_the_file_grows_until_a_doubling_decides_nothing() -> None:
    tests = slow_start(0.02)
    study = run_files(tests, Kept(), start_of(ONE))
    assert study.file_bytes is not None
    step = study.size_steps[-1]
    doubled = 2 * step.file_bytes
    next_rate = doubled / 1024 / (doubled / 1024 / 5e5 + 0.02)
    assert next_rate / step.write_kbytes_s < 1.1
    assert study.file_bytes == step.file_bytes > PAPER_BYTES
    assert "changed neither" in study.size_reason
    assert run_files(slow_start(0.0), Kept(), start_of(ONE)).file_bytes == 2 * PAPER_BYTES


def test_room_and_budget_end_the_growth_and_are_named() -> None:
    tests = slow_start(10.0)
    tests.room_bytes = 64 << 20
    study = run_files(tests, Kept(), start_of(ONE))
    assert study.file_bytes == 64 << 20
    assert "room" in study.size_reason
    step = SizeStep(file_bytes=8 << 20, write_kbytes_s=1e3, read_kbytes_s=1e3, seconds=20.0)
    size, why = next_size([step], MATRIX, runs=3, bytes_max=2**40, left_s=300.0)
    assert size is None
    assert "budget" in why


def test_the_paper_takes_its_8_megabytes_without_scaling() -> None:
    tests = ScriptedTests(lambda *_: 5e5)
    study = run_files(tests, Kept(), start_of(ONE, paper=True))
    assert study.file_bytes == 8 << 20
    assert len(tests.asked) == 1
    assert "paper_cached" in [each.code for each in study.findings]
    assert not any("The drive limits" in said for said in study.sentences)


def test_too_little_room_is_refused_before_a_file_is_made() -> None:
    tests = ScriptedTests(lambda *_: 5e5, room_bytes=4 << 20)
    with pytest.raises(TargetRefused, match="room for files"):
        run_files(tests, Kept(), start_of(ONE))
    assert tests.asked == []


def test_without_room_for_images_the_existing_file_system_is_tested() -> None:
    tests = ScriptedTests(lambda *_: 5e5, image_room_bytes=0)
    study = study_of(tests, [*ONE, *MATRIX])
    assert {row.missing for row in study.rows if row.made} == {
        "no room for the images of file systems; free some space"
    }
    assert all(row.kbytes_s is not None for row in study.rows if not row.made)
    with pytest.raises(TargetRefused, match="room for files of 0 B"):
        study_of(tests, MATRIX)


def test_where_nothing_can_be_measured_the_reasons_are_told() -> None:
    cells = [FilesCell(system=made("xfs", 4096), drives=1, missing="needs root")]
    kept = Kept()
    with pytest.raises(TargetRefused, match="nothing can be measured here: needs root"):
        run_files(ScriptedTests(lambda *_: 5e5), kept, start_of(cells))
    assert kept.documents == []


def test_what_fails_is_not_measured_for_that_reason_and_the_rest_goes_on() -> None:
    def fail(cell: FilesCell) -> Exception | None:
        if cell.system.fs == "xfs":
            return PointFailed("writing failed: no space") if cell.drives == 2 else None
        return TargetRefused("mkfs failed") if cell.drives == 2 else None

    study = study_of(ScriptedTests(lambda *_: 5e5, fail=fail), MATRIX)
    missing = {(row.fs, row.drives): row.missing for row in study.rows}
    assert missing["ext4", 2] == "mkfs failed"
    assert missing["xfs", 2] == "writing failed: no space"
    assert missing["xfs", 1] is None
    assert study.status is Status.DONE
    assert all(row.kbytes_s is None for row in study.rows if row.missing)


def test_a_spent_budget_leaves_the_rest_unmeasured() -> None:
    study = study_of(ScriptedTests(lambda *_: 5e5), MATRIX, budget_s=0.1)
    assert {row.missing for row in study.rows} == {
        "the budget was spent before (give a larger --budget)"
    }
    assert study.sentences == ("Nothing was measured.",)


def test_a_stop_keeps_the_cells_that_were_done() -> None:
    def stop(cell: FilesCell) -> Exception | None:
        if cell.system.fs == "xfs":
            raise KeyboardInterrupt
        return None

    kept = Kept()
    with pytest.raises(KeyboardInterrupt):
        run_files(
            ScriptedTests(lambda *_: 5e5, fail=stop), kept, start_of(MATRIX), file_bytes=8 << 20
        )
    last = kept.documents[-1]
    assert last.status is Status.STOPPED
    assert len([row for row in last.rows if row.kept]) == 16
    assert last.sentences
    assert kept.documents[0].status is Status.RUNNING


def test_a_stopped_study_goes_on_with_the_cells_that_are_left() -> None:
    whole = study_of(ScriptedTests(lambda *_: 5e5), MATRIX)

    def stop(cell: FilesCell) -> Exception | None:
        if cell.system.fs == "xfs":
            raise KeyboardInterrupt
        return None

    kept, start = Kept(), start_of(MATRIX)
    with pytest.raises(KeyboardInterrupt):
        run_files(ScriptedTests(lambda *_: 5e5, fail=stop), kept, start, file_bytes=8 << 20)
    stored = kept.documents[-1]
    assert stored.cells_done == 4
    again = ScriptedTests(lambda *_: 5e5)
    told: list[int] = []
    resumed = run_files(
        again, kept, start, stored=stored, on_cell=lambda cell: told.append(cell.done)
    )
    assert told == [5, 6]
    assert [asked[0].system.fs for asked in again.asked] == ["xfs", "xfs"]
    assert resumed.status is Status.DONE
    assert resumed.file_bytes == 8 << 20
    assert [(row.fs, row.drives, row.test) for row in resumed.rows] == [
        (row.fs, row.drives, row.test) for row in whole.rows
    ]
    assert resumed.wall_s >= stored.wall_s


def test_a_study_without_a_size_is_not_gone_on_with() -> None:
    start = start_of(ONE)
    stored = FilesStudy(start=start, status=Status.RUNNING)
    tests = ScriptedTests(lambda *_: 5e5)
    with pytest.raises(TargetRefused, match="before the size"):
        run_files(tests, Kept(), start, stored=stored)
    assert tests.asked == []


def test_runs_that_differ_and_reads_from_the_cache_are_suspect() -> None:
    tests = ScriptedTests(lambda *_: 5e5, cached_share=0.4)
    rows = study_of(tests, ONE).rows
    assert rows[0].suspect == ("40% of the file lay in the page cache",)
    assert not rows[1].suspect
    served = study_of(ScriptedTests(lambda *_: 5e5, device_share=0.5), ONE).rows
    assert served[0].suspect == ("a block device gave 50% of what was read",)
    shaky = study_of(ScriptedTests(lambda *_: 5e5, noise_frac=0.5), ONE, runs=8)
    assert all("run-to-run CV" in row.suspect[0] for row in shaky.rows)
    assert "numbers_starred" in [each.code for each in shaky.findings]


def truth(cell: FilesCell, test: FileProgram, _size: int) -> float:
    """1 KiB blocks halve writes; two drives double reads and slow writes; xfs is as ext4."""
    rate = 4e5
    if cell.system.block_bytes == 1024 and test.startswith("write"):
        rate /= 2
    if cell.drives == 2:
        rate *= 2 if test == "read_8192" else 0.5
    return rate


def test_the_sentences_find_the_wrong_block_size_and_what_drives_do() -> None:
    said = study_of(ScriptedTests(truth, noise_frac=0.02), MATRIX, runs=6).sentences
    block = next(one for one in said if one.startswith("Block size of ext4"))
    assert "write_8192 is" in block
    assert "with 4 KiB blocks as with 1 KiB blocks" in block
    assert "inconclusive for read_8192 and rewrite_8192" in block
    assert "Here 1 KiB is a wrong block size for ext4." in said
    drives = next(one for one in said if one.startswith("2 drives at once, against one"))
    assert "read_8192 1.9" in drives or "read_8192 2" in drives
    assert any("stand in each other's way" in one for one in said)
    systems = next(one for one in said if one.startswith("File systems on the same drive"))
    assert systems.endswith(": inconclusive for any program.")


@pytest.mark.long
def test_nothing_is_called_faster_on_equal_systems() -> None:
    wrong = 0
    for seed in range(24):
        tests = ScriptedTests(lambda *_: 5e5, noise_frac=0.1)
        tests.chance.seed(seed)
        said = " ".join(study_of(tests, MATRIX, runs=4).sentences)
        wrong += "as fast" in said or "times" in said
    assert wrong <= 24 * 0.25, wrong  # five kinds of sentences, each wrong in 5% at most


@pytest.mark.parametrize(
    ("cpu_percent", "raw_kbytes_s", "wanted"),
    [
        (97.0, 1e6, "The processor limits"),
        (30.0, 5.2e5, "The drive limits"),
        (30.0, 5e6, "Neither the processor nor the drive"),
    ],
)
def test_the_limit_is_named(cpu_percent: float, raw_kbytes_s: float, wanted: str) -> None:
    tests = ScriptedTests(lambda *_: 5e5, cpu_percent=cpu_percent, raw_kbytes_s=raw_kbytes_s)
    said = [one for one in study_of(tests, ONE).sentences if "limits" in one or "Neither" in one]
    assert [one.startswith(wanted) for one in said] == [True]


def test_numbers_are_finite() -> None:
    for row in study_of(ScriptedTests(truth, noise_frac=0.3), MATRIX).rows:
        for number in (row.kbytes_s, row.cpu_percent, row.raw_percent):
            assert number is not None
            assert all(math.isfinite(end) for end in (number.value, number.low or 0.0))
