"""Limits of cgroups on a device are facts: nothing else tells two such systems apart."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from leadline.machine.facts import target_facts
from leadline.machine.hierarchy import groups_above
from leadline.machine.kernel_files import text
from leadline.machine.throttles import format_limits, least_limits
from leadline.studies.comparison.facts import differing_facts
from proving.samples import sample_start

V1 = "blkio.throttle.{}_device"


def test_the_least_limit_on_the_way_to_the_root_counts(tmp_path: Path) -> None:
    own = tmp_path / "outer/own"
    own.mkdir(parents=True)
    (own / V1.format("read_bps")).write_text("254:0 52428800\n7:1 1000000\n")
    (tmp_path / "outer" / V1.format("read_bps")).write_text("254:0 20000000\n")
    (own / V1.format("write_iops")).write_text("254:0 300\n")
    limits = least_limits("254:0", [own, own.parent, tmp_path])
    assert limits == {"rbps": 20_000_000, "wiops": 300}
    assert format_limits(limits) == "reads 20 MB/s, writes 300/s"
    assert format_limits(least_limits("254:1", [own])) == "none"


def test_version_2_spells_it_otherwise(tmp_path: Path) -> None:
    (tmp_path / "io.max").write_text("8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:0 rbps=1\n")
    assert least_limits("8:16", [tmp_path]) == {"rbps": 2_097_152, "wiops": 120}


def test_it_is_listed_among_what_differs() -> None:
    facts = ({"device_throttle": "none"}, {"device_throttle": "reads 50 MB/s"})
    told = differing_facts([msgspec.structs.replace(sample_start(), facts=each) for each in facts])
    assert [fact.name for fact in told] == ["device_throttle"]


@pytest.mark.real
def test_a_real_throttle_is_seen(tmp_path: Path) -> None:
    place = Path(__file__)
    number = f"{os.major(place.stat().st_dev)}:{os.minor(place.stat().st_dev)}"
    group = next(
        (each for each in groups_above("blkio") if (each / V1.format("read_bps")).exists()), None
    )
    if os.geteuid() != 0 or group is None:
        pytest.skip("needs root and a blkio cgroup of version 1")
    knob = group / V1.format("read_bps")
    if text(knob):
        pytest.skip(f"{knob} is in use")
    before = target_facts(tmp_path)["device_throttle"]
    knob.write_text(f"{number} 900000000000")
    try:
        assert target_facts(tmp_path)["device_throttle"] == "reads 900000 MB/s"
    finally:
        knob.write_text(f"{number} 0")
    assert target_facts(tmp_path)["device_throttle"] == before
