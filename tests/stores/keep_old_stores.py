"""Makes the stores of schemas 1 to 3 that are in `kept/`, with the code that wrote them then.

    python tests/stores/keep_old_stores.py

It takes that code from git's history, so it runs where the whole history is; nobody needs to run it
again. Nothing was released with these schemas: that such a store is refused by name is all that is
promised.
"""

from __future__ import annotations

import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from kept_stores import KeptStore

ROOT = Path(__file__).resolve().parents[2]
_SURVEYS = """
import sys
from leadline.store import open_store
from leadline.testing import samples
store = open_store(sys.argv[1])
for name in ("survey-a", "survey-b"):
    start = samples.sample_start(name)
    store.start_survey(start)
    store.add_point(samples.sample_point(f"{name}-point", survey_id=name))
store.finish_survey(samples.sample_survey(samples.sample_start("survey-a")))
"""
_VALIDATIONS = """
for name in ("validation-a", "validation-b"):
    store.start_validation(samples.sample_validation_start(name, "survey-a"))
store.finish_validation(
    samples.sample_validation(samples.sample_validation_start("validation-a", "survey-a")))
"""
_OTHERS = """
for name in ("study-a", "study-b"):
    store.start_cache_study(samples.sample_cache_start(name))
store.finish_cache_study(samples.sample_cache_study(samples.sample_cache_start("study-a")))
store.save_files(samples.sample_files_study())
store.save_stream(samples.sample_stream_study())
start = samples.sample_experiment_start()
store.start_experiment(start)
store.begin_sample(start.experiment_id, start.samples[0])
store.add_trial(start.experiment_id, start.samples[0], samples.sample_trial())
"""
MADE_BY = {
    1: ("7e9cb98", _SURVEYS),
    2: ("39b8630", _SURVEYS + _VALIDATIONS),
    3: ("bd47e20", _SURVEYS + _VALIDATIONS + _OTHERS),
}
"""The last commit with each schema, and what it stores: samples of what there was by then."""


def make(schema: int, folder: Path) -> bytes:
    """Return a store as the code of a commit writes it."""
    commit, code = MADE_BY[schema]
    packed = subprocess.run(
        ["git", "archive", commit, "python"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    path = folder / "store.sqlite"
    ending = "\nstore.close()\n"
    subprocess.run(
        [sys.executable, "-c", code + ending, str(path)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(folder / "python")},
    )
    return path.read_bytes()


def main() -> None:
    """Make all of them anew."""
    for schema in MADE_BY:
        with tempfile.TemporaryDirectory() as folder:
            packed = lzma.compress(make(schema, Path(folder)), preset=9)
        KeptStore(schema, 1).packed.write_bytes(packed)
        print(f"schema {schema}: {len(packed)} bytes packed")


if __name__ == "__main__":
    main()
