"""Facts of the machine: one table of names, units and titles, read without ever raising."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leadline.machine import block_device
from leadline.machine.block_device import Place
from leadline.machine.facts import (
    FACTS,
    HOST_FACTS,
    RUN_FACTS,
    TARGET_FACTS,
    Fact,
    host_facts,
    target_facts,
)
from leadline.machine.resources import hides_damon, reclaims_idle_file_cache
from leadline.studies.facts import fact_rows
from places import ROOT

REFERENCE = ROOT / "docs/reference/facts.md"
TYPES: dict[str, Any] = {
    "bytes": int,
    "percent": (int, float),
    "count": int,
    "text": str,
    "flag": bool,
    "MHz": float,
    "centiseconds": int,
    "requests/s": int,
    "version": str,
}
SUFFIXES = {
    "bytes": r"_bytes(_max)?$",
    "percent": "_percent$",
    "MHz": "_mhz$",
    "centiseconds": "_centisecs$",
}


def test_every_name_stands_once() -> None:
    assert len(FACTS) == len(HOST_FACTS) + len(TARGET_FACTS) + len(RUN_FACTS)


@pytest.mark.parametrize("fact", FACTS.values(), ids=list(FACTS))
def test_the_unit_comes_last_in_the_name(fact: Fact) -> None:
    for unit, suffix in SUFFIXES.items():
        assert bool(re.search(suffix, fact.name)) == (fact.unit == unit), fact


def test_every_value_has_the_type_of_its_unit(tmp_path: Path) -> None:
    for name, value in (host_facts() | target_facts(tmp_path)).items():
        assert value is None or isinstance(value, TYPES[FACTS[name].unit]), name


def test_the_reference_page_lists_exactly_these_facts() -> None:
    wanted = [f"| `{fact.name}` | {fact.unit} | {fact.title} |" for fact in FACTS.values()]
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    found = [line for line in lines if line.startswith("| `")]
    assert found == wanted, "put these rows there:\n" + "\n".join(wanted)


def test_what_a_machine_does_not_tell_is_none(tmp_path: Path) -> None:
    facts = target_facts(tmp_path / "missing")
    assert facts.keys() == {fact.name for fact in TARGET_FACTS}
    assert facts["free_bytes"] is None
    assert target_facts("/proc")["device_name"] is None


def scheme(root: Path, state: str, action: str) -> Path:
    """Make a DAMON directory with one thread and one scheme, as the kernel shows them."""
    thread = root / "kdamonds/0"
    (thread / "contexts/0/schemes/0").mkdir(parents=True)
    (thread / "state").write_text(f"{state}\n")
    (thread / "contexts/0/schemes/0/action").write_text(f"{action}\n")
    return root


@pytest.mark.parametrize(
    ("state", "action", "reclaims"),
    [("on", "pageout", True), ("off", "pageout", False), ("on", "stat", False)],
)
def test_idle_cache_goes_only_by_a_pageout_scheme_that_runs(
    tmp_path: Path, state: str, action: str, reclaims: bool
) -> None:
    assert reclaims_idle_file_cache(scheme(tmp_path, state, action)) is reclaims


def test_a_kernel_without_damon_does_not_tell(tmp_path: Path) -> None:
    assert reclaims_idle_file_cache(tmp_path) is None


def test_a_state_that_only_root_may_read_is_not_known(tmp_path: Path) -> None:
    admin = scheme(tmp_path, "on", "pageout")
    assert not hides_damon(admin)
    (admin / "kdamonds/0/state").unlink()
    assert hides_damon(admin)
    assert reclaims_idle_file_cache(admin) is None


def test_the_processors_that_serve_the_device_are_those_that_served_most(tmp_path: Path) -> None:
    disk = tmp_path / "devices/pci0/virtio1/block/vda"
    (tmp_path / "devices/pci0/msi_irqs").mkdir(parents=True)
    for irq in ("35", "36"):
        (tmp_path / "devices/pci0/msi_irqs" / irq).touch()
    disk.mkdir(parents=True)
    (disk / "device").symlink_to("../..")
    interrupts = tmp_path / "interrupts"
    interrupts.write_text(
        "           CPU0       CPU1       CPU2\n"
        " 34:   99999999          0          0   PCI-MSI  another-device\n"
        " 35:          3          0          0   PCI-MSI  virtio1-config\n"
        " 36:          0    4055126     900000   PCI-MSI  virtio1-req.0\n"
        "LOC:        100        100        100   Local timer interrupts\n"
    )
    place = Place(directory=tmp_path, mount=None, device=disk, space=None)
    assert block_device.interrupt_cpus(place, interrupts) == "1,2"
    interrupts.unlink()
    assert block_device.interrupt_cpus(place, interrupts) is None


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        ({"memory_bytes": 8 * 2**30}, ("Memory", "8 GiB")),
        ({"dirty_expire_centisecs": 3000}, ("Age at which unwritten data is written back", "30 s")),
        ({"rotational": False}, ("Device says that it rotates", "no")),
        ({"cpu_mhz": 2650.4}, ("Frequency of the first processor", "2,650 MHz")),
        ({"dirty_ratio_percent": 20}, ("Memory that unwritten data may take", "20%")),
        ({"governor": None}, ("Frequency governor", "not known")),
        (
            {"generator_ceiling_iops_one_issuer": 22300799},
            ("Leadline's own ceiling, one worker", "22,300,799 requests/s"),
        ),
        ({"of_another_version": 7}, ("of_another_version", "7")),
    ],
)
def test_the_report_shows_title_and_unit(facts: dict[str, Any], row: tuple[str, str]) -> None:
    assert fact_rows(facts) == [row]
