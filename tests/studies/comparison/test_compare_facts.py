"""What differs between two systems is listed, and what merely changes from hour to hour is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from leadline.machine.facts import FACTS
from leadline.record import SurveyStart
from leadline.record.comparison import FactDifference
from leadline.studies.comparison.facts import GROUPS, NOISE, TOLERANCES, differing_facts
from proving.samples import sample_start

FACTS_OF_A = {
    "kernel_release": "6.8.0",
    "filesystem_type": "ext4",
    "mount_options": "rw,relatime",
    "scheduler": "none",
    "memory_bytes": 8 * 2**30,
    "free_bytes": 10**9,
    "cpu_mhz": 2450.0,
    "leadline_version": "0.1.0",
}


def start(facts: dict[str, Any], **changes: Any) -> SurveyStart:
    return msgspec.structs.replace(sample_start(), facts=facts, **changes)


def differences(*starts: SurveyStart) -> dict[str, FactDifference]:
    return {each.name: each for each in differing_facts(starts)}


def test_every_fact_has_one_group_or_is_named_as_noise() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) | NOISE == set(FACTS)
    assert not set(grouped) & NOISE
    assert set(TOLERANCES) <= set(FACTS)


def test_the_same_facts_differ_in_nothing() -> None:
    assert differing_facts([start(FACTS_OF_A), start(dict(FACTS_OF_A))]) == ()


@pytest.mark.parametrize(
    ("name", "value", "group"),
    [
        ("kernel_release", "6.9.1", "Kernel"),
        ("filesystem_type", "xfs", "File system"),
        ("mount_options", "rw,noatime", "File system"),
        ("scheduler", "bfq", "Device"),
        ("memory_bytes", 16 * 2**30, "Memory"),
        ("leadline_version", "0.2.0", "Leadline"),
    ],
)
def test_a_fact_that_differs_is_listed_with_every_system_s_value(
    name: str, value: Any, group: str
) -> None:
    found = differences(start(FACTS_OF_A), start(FACTS_OF_A | {name: value}), start(FACTS_OF_A))
    assert list(found) == [name]
    assert found[name].group == group
    assert found[name].title == FACTS[name].title
    assert found[name].unit == FACTS[name].unit
    assert found[name].values == (FACTS_OF_A[name], value, FACTS_OF_A[name])


def test_a_fact_in_which_only_the_last_of_three_differs_is_listed() -> None:
    last = start(FACTS_OF_A | {"scheduler": "bfq"})
    found = differences(start(FACTS_OF_A), start(FACTS_OF_A), last)
    assert found["scheduler"].values == ("none", "none", "bfq")


def test_how_a_survey_was_run_is_compared_too() -> None:
    one, other = start({}), start({}, direct=True, backend="uring", target="/other")
    found = differences(one, other)
    assert list(found) == ["target", "backend", "direct"]
    assert found["direct"].values == (False, True)
    capped = start({"cache_limit_bytes": 2**29})
    assert differences(one, capped)["cache_limit_bytes"].group == "Cgroup"


def test_what_changes_from_hour_to_hour_is_no_difference() -> None:
    later = FACTS_OF_A | {
        "free_bytes": 5,
        "memory_available_bytes": 7,
        "cpu_mhz": 2300.0,
        "memory_bytes": 8 * 2**30 - 4096,
    }
    moved = start(later, started_at="2027-01-01T00:00:00+00:00", seed=9, study_id="other")
    assert differing_facts([start(FACTS_OF_A), moved]) == ()


def test_a_noisy_fact_that_differs_by_much_is_listed() -> None:
    found = differences(start(FACTS_OF_A), start(FACTS_OF_A | {"cpu_mhz": 4800.0}))
    assert list(found) == ["cpu_mhz"]


def test_a_fact_that_one_system_does_not_tell_is_a_difference() -> None:
    without = {name: value for name, value in FACTS_OF_A.items() if name != "scheduler"}
    assert differences(start(FACTS_OF_A), start(without))["scheduler"].values == ("none", None)
    assert differing_facts([start(without), start(without | {"scheduler": None})]) == ()


def test_a_fact_of_another_version_comes_last_under_its_own_name() -> None:
    newer = start(FACTS_OF_A | {"flux_capacitor": 88, "scheduler": "bfq"})
    found = differing_facts([start(FACTS_OF_A), newer])
    assert [(each.group, each.name) for each in found] == [
        ("Device", "scheduler"),
        ("Other", "flux_capacitor"),
    ]


def test_what_a_simulated_system_says_of_itself_is_compared() -> None:
    profiles = [{"meta": {"facts": {"cpu": cpu, "memory": "32 MB"}}} for cpu in ("MIPS", "SPARC")]
    found = differences(*(start({}, system_profile=profile) for profile in profiles))
    assert [(each.group, each.title, each.values) for each in found.values()] == [
        ("System", "Cpu", ("MIPS", "SPARC"))
    ]
