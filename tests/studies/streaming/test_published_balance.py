"""The balance of AD98's platforms, against arithmetic by hand from the paper's own figures."""

from __future__ import annotations

import pytest

from leadline.errors import TargetRefused
from leadline.record.balance import RESOURCES, Balance, Resource
from leadline.record.streaming import KERNELS
from leadline.studies.streaming.balance_text import format_systems
from leadline.studies.streaming.page import render_balance_html
from leadline.studies.streaming.published import published_balance, published_titles


def of_phase(name: str, kernel: str, phase: str) -> Balance:
    """Return one phase's balance on a platform."""
    found = published_balance(f"sim:{name}").balances
    return next(each for each in found if (each.kernel, each.phase) == (kernel, phase))


def limit(balance: Balance, resource: Resource) -> float:
    """Return the disk bandwidth per processor at which a resource is used up."""
    rates = {each.resource: each.mb_s_per_processor for each in balance.saturations}
    found = rates[resource]
    assert found is not None
    return found.value


def test_every_platform_has_every_phase() -> None:
    for name in published_titles():
        found = published_balance(f"sim:{name}")
        assert {(each.kernel, each.phase) for each in found.balances} == {
            (kernel, phase) for kernel in KERNELS for phase in ("read", "write")
        }
        assert all(each.resource in RESOURCES for one in found.balances for each in one.saturations)
        assert found.sentences[0].startswith("Bottleneck: CPU, sort")


def test_limits_by_hand() -> None:
    """Fig. 8: 4.1 million instructions for every MB at 167 MHz; Fig. 2: 2.75 bytes on the bus."""
    assert limit(of_phase("ultra-1", "sort", "read"), "cpu") == pytest.approx(167 / (4.1 * 2))
    cluster = of_phase("ultra-1-cluster", "transpose", "read")
    assert limit(cluster, "io_path") == pytest.approx(55 / 2.75)
    assert limit(cluster, "network") == pytest.approx(160 * 8 / 7)
    assert limit(of_phase("ultra-1", "transpose", "read"), "memory") == pytest.approx(800 / 4.5)


def test_nothing_crosses_the_network_of_a_scan() -> None:
    assert all(
        each.resource != "network"
        for each in of_phase("ultra-1-cluster", "scan", "read").saturations
    )


def test_disks_stop_paying_where_the_processor_is_used_up() -> None:
    found = published_balance("sim:ultra-1").scaling
    sort = next(each for each in found if (each.kernel, each.phase) == ("sort", "read"))
    assert [step.achieved_mb_s.value for step in sort.steps] == pytest.approx(
        [5.5, 11.0, 16.5, 167 / 8.2]
    )
    assert [step.limited_by for step in sort.steps] == [None, None, None, "cpu"]
    assert sort.steps[0].utilisation["io_path"].value == pytest.approx(5.5 / 80)


def test_an_upgrade_moves_the_bottleneck() -> None:
    found = published_balance("sim:ultra-1", {"cores": 2.0}).what_if
    sort = next(each for each in found if (each.kernel, each.phase) == ("sort", "read"))
    assert (sort.limited_before, sort.limited_after) == ("cpu", "disks")
    assert sort.after_mb_s.value == pytest.approx(22)
    assert sort.gain_frac.low is None, "exact numbers have no interval"


def test_a_platform_that_is_none() -> None:
    with pytest.raises(TargetRefused, match="the platforms with a published balance are: ent"):
        published_balance("sim:hp-730")


def test_the_page_says_that_it_is_published() -> None:
    found = [published_balance(f"sim:{name}") for name in published_titles()]
    assert "as published" in format_systems(found)[0][1]
    assert "ultra-1-cluster" in render_balance_html(found)
