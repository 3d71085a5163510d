"""Disk scaling of the real kernels: on this disk, and on loop devices of known speed."""

from __future__ import annotations

from pathlib import Path

import pytest
from stream_throttle import loop_disks, throttle, why_no_throttles

from leadline.engine.streams.disks import DATA_MULTIPLE_BYTES, Effort, open_stream_disks
from leadline.record import Status
from leadline.record.streaming import KERNELS
from leadline.store import open_store
from leadline.studies.streaming.answer import balance_of
from leadline.studies.streaming.study import ScalingOptions, begin_scaling, options_of, run_scaling

pytestmark = pytest.mark.real

CREDIT_S = 0.2
"""What a disk that was idle may catch up on: the throttle counts by slices of a tenth of a second.
That much data is written at once however low the rate, so a rate is no promise of the kernel's."""


def test_every_kernel_on_one_and_two_directories(tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        home.mkdir()
    asked = ScalingOptions(
        system="here",
        data_bytes=10 * DATA_MULTIPLE_BYTES,
        memory_bytes=96 << 20,
        threads=2,
        repetitions=1,
        capacity_bytes=8 << 20,
    )
    with open_stream_disks([str(home) for home in homes]) as disks:
        study = run_scaling(
            disks, open_store("sqlite://"), begin_scaling(disks.directories, asked), asked
        )
        left = [file for home in homes for file in home.rglob("stream-out*")]
        assert not left, "an output is removed as soon as it was verified"
    assert study.status is Status.DONE
    assert {(run.options.kernel, run.disks) for run in study.runs} == {
        (kernel, count) for kernel in KERNELS for count in (1, 2)
    }
    assert all(run.result.verified for run in study.runs)
    assert not [found for home in homes for found in home.iterdir()]
    said = balance_of(study)
    assert "one_disk" in [each.code for each in study.findings]
    for ratio in said.ratios:
        if ratio.bus == "io":
            assert ratio.error_frac == pytest.approx(0, abs=0.05), ratio
    assert not [each for each in said.findings if each.code == "copies_off_model"]


def test_throttled_disks_are_no_faster_than_they_should_be_and_nothing_stays(
    tmp_path: Path,
) -> None:
    """That they are no slower either, a calm machine says."""
    if why := why_no_throttles():
        pytest.skip(f"no throttled disks here: {why}")
    mb_s, size = 60.0, 30 * DATA_MULTIPLE_BYTES
    asked = ScalingOptions(system="s", data_bytes=size, memory_bytes=128 << 20)
    effort = Effort(data_bytes=size, memory_bytes=128 << 20, threads=1, seed=1, total_s_max=60.0)
    with loop_disks(tmp_path, 2, 3 * size) as made, throttle() as held:
        held.limit_disks(made, mb_s)
        homes = [str(disk.directory) for disk in made]
        with open_stream_disks(homes, command=held.command) as disks:
            disks.lay(2, effort)
            result = disks.run(options_of("transpose", asked), 2, seed=1, total_s_max=60.0)
    written = result.phases[-1]
    assert written.bytes_written == size
    assert size <= 2e6 * mb_s * (written.seconds + CREDIT_S)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_quota_of_processors_is_known_to_the_capacities(tmp_path: Path) -> None:
    if why := why_no_throttles():
        pytest.skip(f"no quota here: {why}")
    asked = ScalingOptions(
        system="few",
        kernels=("scan",),
        data_bytes=4 * DATA_MULTIPLE_BYTES,
        memory_bytes=64 << 20,
        repetitions=1,
        capacity_bytes=4 << 20,
    )
    with throttle() as held:
        held.limit_processors(0.5)
        with open_stream_disks([str(tmp_path)], command=held.command) as disks:
            study = run_scaling(
                disks, open_store("sqlite://"), begin_scaling(disks.directories, asked), asked
            )
    assert study.capacities is not None
    assert study.capacities.processors == pytest.approx(0.5)
