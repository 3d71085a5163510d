"""Makes a store with at least one record of every kind: how `store-today.sqlite` was made.

    PYTHONPATH=tests:tests/golden python tests/golden/make_store.py FILE

Simulated systems answer the same each time; the two real points and the times do not.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import stream_fixture as streams
from application_fixture import add_application
from files_fixture import EXISTING, ScriptedTests, made, start_of
from golden_run import fixed_ids, run
from leadline.record import Measurement, SurveyStart
from leadline.record.file_cache import CACHE
from leadline.record.files import FilesCell
from leadline.record.jobs.file_test import FileProgram
from leadline.record.measurement import MEASUREMENT
from leadline.record.streaming import StreamStudy
from leadline.record.study import Records
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.record.workbench import EXPERIMENT, Experiment
from leadline.store import Store, Stored, open_store
from leadline.studies.files.run import run_files
from leadline.studies.workbench.answer import KeptExperiment, stored_experiment
from proving.samples import keep_study, stored_stream

_HERE = Path(__file__).resolve().parent
_SMALL = "unique_bytes=2MiB,size_mean=8KiB,process_num=2"
_SERIES_KEPT = 3
_FACTS = {"cpu_model": "a processor", "cpu_count": 2, "kernel_release": "6.18"}

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("survey", "sim:two-level", "--name", "atlas", "--budget", "60s", "--seed", "3"),
    ("survey", "sim:no-cache", "--name", "boreas", "--budget", "60s", "--seed", "4"),
    ("validate", "atlas", "--count", "4", "--no-rivals"),
    # A study with the name of a survey, as who studies one system names both.
    ("cache", "sim:solbourne-5e905", "--name", "atlas", "--budget", "200s"),
    ("measure", "sim:two-level", "--workload", _SMALL),
    ("measure", "sim:two-level", "--fio", str(_HERE / "two.fio")),
    ("measure", "null:", "--workload", _SMALL, "--seconds", "0.1", "--runs", "2"),
    ("measure", "{directory}", "--workload", _SMALL, "--seconds", "0.2", "--runs", "1"),
    ("peak", str(_HERE / "server.toml")),
    ("surface", str(_HERE / "server.toml"), "--design", "full-grid"),
)
POINTS_OF: dict[str, Records[Any, Any]] = {
    kind.kind: kind for kind in (SURVEY, VALIDATION, CACHE, MEASUREMENT)
}
POINTS_OF_CUT_SURVEY = 5
"""Of a survey that was killed."""


def make(path: Path) -> None:
    """Make the store; the file must not be there."""
    with tempfile.TemporaryDirectory() as made_in, fixed_ids("golden"):
        whole = Path(made_in) / "whole.sqlite"
        directory = Path(made_in) / "disk"
        directory.mkdir()
        for words in COMMANDS:
            done = run([word.format(directory=directory) for word in words], whole)
            assert done.code == 0, (words, done.err)
        with open_store(str(whole)) as source, open_store(str(path)) as kept:
            _copy(source, kept)
            add_documents(kept)
            add_application(kept, uuid.uuid4().hex, "program", Path(made_in))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 512")  # documents of 2.5 KB fill larger ones badly
        connection.execute("VACUUM")


def _copy(source: Store, kept: Store) -> None:
    for summary in reversed(source.list()):
        if summary.kind == EXPERIMENT.kind:
            _copy_experiment(stored_experiment(source, summary.study_id), kept)
            continue
        found: Stored[Any, Any] = source.find(summary.study_id)
        points = source.items(summary.study_id, "")  # not the runs beside them
        start = found.start
        if Path(summary.target).is_absolute():
            start = msgspec.structs.replace(start, system="directory")
        kept.begin(POINTS_OF[summary.kind], start)
        _add(kept, summary.study_id, points)
        assert found.answer is not None
        kept.end(summary.study_id, found.answer, found.status)
        if summary.system == "boreas":
            _cut(kept, found.start, points)


def _copy_experiment(experiment: Experiment, kept: Store) -> None:
    kept.begin(EXPERIMENT, experiment.start)
    copied = KeptExperiment(kept, experiment.start, None)
    for own in experiment.peaks:
        copied.begin_sample(own.sample, own.prior)
        for trial in own.trials:
            copied.add_trial(own.sample, trial)
        assert own.peak is not None
        copied.end_sample(own.sample, own.peak)
    copied.end(experiment)


def _cut(kept: Store, start: SurveyStart, points: Sequence[Measurement]) -> None:
    """The same survey, killed after some points."""
    begun = msgspec.structs.replace(start, study_id=uuid.uuid4().hex, system="cut")
    kept.begin(SURVEY, begun)
    _add(
        kept,
        begun.study_id,
        [
            msgspec.structs.replace(point, point_id=uuid.uuid4().hex)
            for point in points[:POINTS_OF_CUT_SURVEY]
        ],
    )


def _add(kept: Store, study_id: str, points: Sequence[Measurement]) -> None:
    """Add points with short series, of all but the first with none: whole ones are 30 KB each."""
    for number, point in enumerate(points):
        kept.add(study_id, _light(point, _SERIES_KEPT if number == 0 else 0))


def _light(point: Measurement, kept: int) -> Measurement:
    result = point.result
    replace = msgspec.structs.replace
    light = replace(
        result,
        read=replace(result.read, histogram=result.read.histogram[:kept]),
        write=replace(result.write, histogram=result.write.histogram[:kept]),
        warm_up=replace(result.warm_up, intervals=result.warm_up.intervals[:kept]),
        intervals=result.intervals[:kept],
    )
    return replace(point, result=light)


def add_documents(kept: Store) -> None:
    """Add what has no simulated target: plain files and streams, of known truth."""
    cells = [
        FilesCell(system=system, drives=drives)
        for system in (EXISTING, made("xfs", 4096))
        for drives in (1, 2)
    ]
    tests = ScriptedTests(_kbytes_s, noise_frac=0.02)
    for name in ("thing", "other"):
        start = msgspec.structs.replace(
            start_of(cells), study_id=uuid.uuid4().hex, system=name, facts=dict(_FACTS)
        )
        run_files(tests, kept, start, file_bytes=8 << 20)
    keep_study(kept, stored_stream(_named(streams.run_study(), "sorter")))
    for machine, name in ((streams.ATLAS, "scaled"), (streams.BOREAS, "counted")):
        study = streams.scaling_study(machine, disks=3, repetitions=2, kernels=("scan", "sort"))
        keep_study(kept, stored_stream(_named(study, name)))


def _named(study: StreamStudy, name: str) -> StreamStudy:
    start = msgspec.structs.replace(study.start, study_id=uuid.uuid4().hex, system=name)
    return msgspec.structs.replace(study, start=start)


def _kbytes_s(cell: FilesCell, program: FileProgram, file_bytes: int) -> float:
    del file_bytes
    reads = 2.0 if program == "read_8192" else 1.0
    return 100_000.0 * reads * float(cell.drives**0.8) * (0.9 if cell.system.made else 1.0)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
