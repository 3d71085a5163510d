"""The papers' figures beside what Leadline finds: every machine, every difference explained."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from figures.rendered import say
from figures.stored import load
from leadline.engine import Target, open_engine, profile_names
from leadline.engine.targets.profiles import load_profile
from leadline.record import Interval
from places import ROOT
from proving.published import (
    DIFFERENT,
    LIMITS,
    Figure,
    FiguresError,
    Place,
    Row,
    find,
    format_published,
    read_figures,
    table,
)

FIGURES = ROOT / "bench" / "published.toml"
PAGE = ROOT / "docs" / "concepts" / "published-machines.md"

CP93_TABLE_1 = {
    "alpha-axp-3000",
    "alpha-axp-3000-cancelling",
    "convex-c240-cp93",
    "decstation-5000-sprite",
    "decstation-5000-ultrix",
    "hp-720-dux",
    "hp-730-hpux9",
    "hp-730-hpux9-unflushed",
    "ibm-3090",
    "rs6000-550",
    "sparcstation-10",
    "sparcstation-1plus",
    "sparcstation-1plus-nfs",
}
"""Nine machines, two of them also set otherwise (section 4.2), and two clients (section 4.3)."""
CP94_FIG_2 = {
    "convex-c240",
    "decstation-5000-sprite",
    "hp-730",
    "solbourne-5e905",
    "sparcstation-1plus",
}


@functools.cache
def figures() -> tuple[Figure, ...]:
    return read_figures(FIGURES)


@functools.cache
def stored() -> list[list[str]]:
    """Rows that the bench stored, cell by cell as the documentation prints them."""
    result = load("published")
    columns = [column for column in result.columns if column.key not in ("within", "median")]
    return [
        [say(row.cells[column.key], column.forms, column.unit) for column in columns]
        for row in result.rows
        if not row.key.startswith("role.")
    ]


def test_every_machine_of_both_papers_is_in_the_table() -> None:
    machines = {figure.machine for figure in figures()}
    assert machines == CP93_TABLE_1 | CP94_FIG_2
    assert machines <= set(profile_names())
    assert all(figure.source.startswith(("CP93 ", "CP94 ")) for figure in figures())


def test_the_stored_rows_are_those_of_these_figures() -> None:
    rows = [row[:5] for row in stored()]
    assert rows == [[f.machine, f.what, format_published(f), f.source, f.role] for f in figures()]


def test_each_difference_over_15_percent_is_printed_with_a_cause_and_no_other_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for figure, row in zip(figures(), stored(), strict=True):
        number = re.match(r"([+-]?\d+)%", row[6])
        differs = row[6].startswith(("another", "n.m.")) or (
            number is not None and abs(int(number[1])) > 100 * DIFFERENT
        )
        assert bool(figure.why) == differs, row
        assert not figure.why or f". {figure.why}\n" in text, row
        assert (f"| {' | '.join([*row[:3], *row[4:]])} (" in text) == differs, row


POLICIES = {"write_back": "write-back", "write_through": "write-through"}
"""A profile's word for what a paper calls its policy on writes."""


def true_policy(machine: str) -> str:
    """What the page cache of the simulated machine does with a write."""
    return POLICIES[load_profile(machine)["cache"][0].get("write_policy", "write_back")]


def test_each_printed_policy_is_the_one_that_the_machine_has() -> None:
    """Of the profile itself: neither of the two cells of a row is taken at its word."""
    rows = [
        (figure.machine, figure.policy, row[2], row[5], row[6])
        for figure, row in zip(figures(), stored(), strict=True)
        if figure.policy
    ]
    assert len(rows) == 14
    names = [(machine, true_policy(machine)) for machine, *_ in rows]
    assert rows == [(machine, name, name, name, "the same") for machine, name in names]
    assert {name for _, name in names} == set(POLICIES.values())


@pytest.mark.parametrize("machine", ["alpha-axp-3000", "alpha-axp-3000-cancelling"])
def test_the_policy_found_is_the_one_that_the_machine_has(machine: str) -> None:
    """One machine, set in two ways: what is written into the table is what a study finds."""
    figure = next(f for f in figures() if f.machine == machine and f.policy)
    row = find(figure)
    assert row.said == true_policy(machine)
    cells = table([row])[-1].strip("| ").split(" | ")
    assert cells[4:] == [true_policy(machine), "the same"]


@functools.cache
def true_mb_s(machine: str, place: Place) -> float:
    """The law's own rate over the very window that is measured."""
    with open_engine(Target.parse(f"sim:{machine}"), run_seed=1) as engine:
        result = engine.run(place.workload, seed=1, limits=LIMITS)
    assert result.simulated is not None
    return result.simulated.law_mb_s


def test_the_printed_rates_are_those_of_the_profiles() -> None:
    """A profile that is changed without `bench/published.py --save` shows here."""
    outside = []
    for figure, row in zip(figures(), stored(), strict=True):
        if figure.at is None:
            continue
        truth = true_mb_s(figure.machine, figure.at)
        if figure.over is not None:
            truth /= true_mb_s(figure.over_machine or figure.machine, figure.over)
        found = float(row[5].split()[0])
        assert found == pytest.approx(truth, rel=0.12), row
        low, high = re.findall(r"\[([\d.]+), ([\d.]+)\]", row[5])[0]
        outside.append(not float(low) * 0.995 <= truth <= float(high) * 1.005)
    # All machines are read with the same five seeds, so their errors go together.
    assert sum(outside) <= 0.25 * len(outside), sum(outside)


# ---- orderings that the text gives without numbers ------------------------------------------


def reads_at(machine: str, unique_mb: float) -> float:
    return true_mb_s(machine, Place(unique_mb, 32, 1.0))


DISK_MB = {
    "alpha-axp-3000": 75,
    "convex-c240-cp93": 1376,
    "decstation-5000-sprite": 36,
    "decstation-5000-ultrix": 6,
    "hp-730-hpux9": 75,
    "ibm-3090": 42,
    "rs6000-550": 80,
    "sparcstation-10": 157,
    "sparcstation-1plus": 42,
}
"""Working set of CP93 Table 2."""
CACHED_MB = {
    "alpha-axp-3000": 21,
    "convex-c240-cp93": 450,
    "decstation-5000-sprite": 2,
    "decstation-5000-ultrix": 2,
    "hp-730-hpux9": 39,
    "ibm-3090": 13,
    "rs6000-550": 26,
    "sparcstation-10": 48,
    "sparcstation-1plus": 12,
}


def test_fig_2_the_convex_reads_its_disks_fastest_and_the_3090_comes_sixth() -> None:
    order = sorted(DISK_MB, key=lambda machine: -reads_at(machine, DISK_MB[machine]))
    assert order[:2] == ["convex-c240-cp93", "sparcstation-10"]
    assert order.index("ibm-3090") == 5


def test_fig_3_four_machines_read_their_caches_at_30_mb_s_and_the_convex_is_not_one() -> None:
    order = sorted(CACHED_MB, key=lambda machine: -reads_at(machine, CACHED_MB[machine]))
    assert set(order[:4]) == {"alpha-axp-3000", "rs6000-550", "hp-730-hpux9", "ibm-3090"}


def test_fig_5_three_of_the_fastest_readers_fall_back_below_90_percent_reads() -> None:
    def at(machine: str, read_frac: float) -> float:
        return true_mb_s(machine, Place(CACHED_MB[machine], 32, read_frac))

    write_through = ("alpha-axp-3000", "rs6000-550", "ibm-3090")
    for machine in write_through:
        assert at(machine, 1.0) > 4 * at("decstation-5000-sprite", 1.0)
        assert at(machine, 0.8) < at("decstation-5000-sprite", 0.8)
        assert at(machine, 0.5) < at("sparcstation-1plus", 0.5)
    flushed = at("hp-730-hpux9", 0.0)
    assert all(at(machine, 0.0) < flushed / 4 for machine in write_through)


# ---- the arithmetic of a row ----------------------------------------------------------------


def rated(**told: object) -> Figure:
    base = {"machine": "m", "what": "w", "source": "CP93 Table 3", "role": "free", "unit": "x"}
    return Figure(**(base | {"at": Place(1, 1, 1.0)} | told))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("told", "found", "difference", "differs"),
    [
        ({"published": 2.0}, 2.2, 0.1, False),
        ({"published": 2.0}, 1.6, -0.2, True),
        ({"low": 1.5, "high": 2.8}, 2.0, 0.0, False),
        ({"low": 1.5, "high": 2.8}, 1.2, -0.2, True),
        ({"low": 1.5, "high": 2.8}, 3.5, 0.25, True),
        ({"low": 4.0}, 40.0, 0.0, False),
        ({"high": 1.0}, 0.1, 0.0, False),
    ],
)
def test_a_difference_is_to_the_figure_or_to_the_nearer_end(
    told: dict[str, float], found: float, difference: float, differs: bool
) -> None:
    row = Row(rated(**told), Interval(found, None, None, 5), "")
    assert row.difference == pytest.approx(difference)
    assert row.differs is differs
    assert row.settled is not differs
    explained = Row(rated(why="Because.", **told), Interval(found, None, None, 5), "")
    assert explained.settled is differs


def test_words_are_compared_as_words() -> None:
    figure = rated(at=None, policy="write-through", unit="")
    assert not Row(figure, None, "write-through").differs
    assert Row(figure, None, "inconclusive").differs
    assert "| another |" in "\n".join(table([Row(figure, None, "inconclusive")]))


def test_what_was_not_found_needs_a_sentence() -> None:
    row = Row(rated(published=2.0), None, "n.m.: 1 regions were found")
    assert row.differs
    assert "n.m." in table([row])[-1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[figure]]\nmachine = 'm'\n", "what"),
        ("nonsense", "published.toml"),
        (
            "[[figure]]\nmachine='m'\nwhat='w'\nsource='s'\nrole='free'\nunit='x'\npublished=1\n",
            "say one of at, cache",
        ),
        (
            "[[figure]]\nmachine='m'\nwhat='w'\nsource='s'\nrole='free'\nunit='x'\ncache='reads'\n",
            "no published figure",
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    path.write_text(text)
    with pytest.raises(FiguresError, match=said):
        read_figures(path)
