"""Charts of streaming studies hold the numbers of the study, and say what they cannot show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest

import balance_fixture as balance
import stream_fixture as made
from leadline.charts.drawable import drawable
from leadline.record import Interval
from leadline.record.balance import RESOURCES, Saturation, StreamBalance
from leadline.studies.streaming.answer import balance_of
from leadline.studies.streaming.charts import bound_chart, ratio_chart, scaling_chart
from leadline.studies.streaming.use_charts import balance_charts, spread, stream_charts, use_chart

Row = dict[str, Any]


class Drawn:
    """A chart as its specification: layers flat, each with its data."""

    def __init__(self, chart: Any) -> None:
        assert chart is not None
        self.spec = drawable(chart)
        self.layers = list(self._flat(self.spec))

    def _flat(self, part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Layers take what their parent has, as Altair moves up what they share."""
        for layer in part["layer"]:
            whole = {"data": part.get("data")} | layer
            yield from self._flat(whole) if "layer" in layer else [whole]

    def points(self, channel: str) -> dict[str, Any]:
        """The only layer of points that has a channel."""
        (found,) = (
            layer
            for layer in self.layers
            if layer["mark"].get("type") == "point" and channel in layer["encoding"]
        )
        return found

    def data(self, layer: dict[str, Any]) -> list[Row]:
        data = layer["data"]
        found: list[Row] = data.get("values") or self.spec["datasets"][data["name"]]
        return found

    def styled(self, style: str) -> list[dict[str, Any]]:
        return [layer for layer in self.layers if layer["mark"].get("style") == style]

    def rows(self, style: str) -> list[Row]:
        return [row for layer in self.styled(style) for row in self.data(layer)]

    @property
    def words(self) -> str:
        """All that the chart writes, its titles included."""
        title = self.spec["title"]
        subtitle = title.get("subtitle", "")
        said = [title["text"], subtitle if isinstance(subtitle, str) else " ".join(subtitle)]
        for layer in self.layers:
            if layer["mark"].get("type") == "text":
                field = layer["encoding"].get("text", {}).get("field")
                said += [str(row[field]) for row in self.data(layer) if field]
                said.append(str(layer["mark"].get("text", "")))
        return " | ".join(said)


@pytest.fixture(scope="module")
def atlas() -> StreamBalance:
    return balance.atlas()[1]


@pytest.fixture(scope="module")
def boreas() -> StreamBalance:
    return balance.boreas()[1]


def test_every_disk_has_a_bar_of_what_it_brought(atlas: StreamBalance) -> None:
    said = atlas
    chart = Drawn(scaling_chart(said.scaling))
    drawn = {
        (row["group"], row["disks"]): row
        for style in ("gain", "short-gain")
        for row in chart.rows(style)
    }
    steps = [step for each in said.scaling for step in each.steps]
    assert len(drawn) == len(steps) == 24
    ideals = {(row["group"], row["disks"]): row["line2"] for row in chart.rows("model-bar")}
    for step in steps:
        key = f"{step.kernel} {step.phase}", step.disks
        assert drawn[key]["y"] == step.gained_mb_s.value
        assert (drawn[key]["low"], drawn[key]["high"]) == (
            step.gained_mb_s.low,
            step.gained_mb_s.high,
        )
        assert ideals[key] == step.ideal_gain_mb_s
    assert [row["kernel"] for row in chart.rows("region-label")] == ["scan", "sort", "transpose"]
    numbers = [row["disks"] for row in chart.rows("small-label") if "disks" in row]
    assert numbers == [1, 2, 3, 4] * 6


def test_the_resource_that_stopped_a_disk_stands_on_its_bar_alone(
    atlas: StreamBalance, boreas: StreamBalance
) -> None:
    said = atlas
    chart = Drawn(scaling_chart(said.scaling))
    short = {(row["group"], row["disks"]) for row in chart.rows("short-gain")}
    assert short == {(f"sort {phase}", n) for phase in ("read", "write") for n in (3, 4)}
    labels = chart.rows("short-label") + chart.rows("bar-label")
    assert {row["limit"] for row in labels} == {"CPU"}
    assert len(labels) == 4
    assert "Disk 3 falls short in sort: CPU" in chart.words
    other = Drawn(scaling_chart(boreas.scaling))
    assert "Disk 3 falls short in every phase: I/O path" in other.words


def test_a_name_too_near_the_ideal_goes_into_its_bar(boreas: StreamBalance) -> None:
    """boreas' third disk brings most of its ideal in writes and half of it in reads."""
    said = boreas
    chart = Drawn(scaling_chart(said.scaling))
    inside = {(row["group"], row["disks"]) for row in chart.rows("bar-label")}
    assert inside == {(f"{kernel} write", 3) for kernel in ("scan", "sort", "transpose")}


def test_a_shortfall_that_nothing_explains_says_so() -> None:
    study = made.scaling_study(made.ATLAS, kernels=("sort",))
    said = balance_of(study)
    bare = [
        msgspec.structs.replace(
            each,
            limited_by=None,
            steps=tuple(msgspec.structs.replace(step, limited_by=None) for step in each.steps),
        )
        for each in said.scaling
    ]
    chart = Drawn(scaling_chart(bare))
    assert "Disk 3 falls short in every phase: not found why" in chart.words
    labels = chart.rows("short-label") + chart.rows("bar-label")
    assert {row["limit"] for row in labels} == {"not found"}


def test_when_every_disk_pays_the_title_says_it() -> None:
    study = made.scaling_study(replace(made.ATLAS, processors=16))
    chart = Drawn(scaling_chart(balance_of(study).scaling))
    assert "Every disk pays" in chart.words
    assert chart.rows("short-gain") == []


def test_measured_ratios_stand_beside_model_and_correction(boreas: StreamBalance) -> None:
    said = boreas
    chart = Drawn(ratio_chart(said.ratios, "memory"))
    bars = {(row["group"], row["disks"]): row["y"] for row in chart.rows("gain")}
    found = [ratio for ratio in said.ratios if ratio.bus == "memory"]
    assert len(bars) == len(found) == 24
    for ratio in found:
        assert ratio.measured is not None
        assert bars[f"{ratio.kernel} {ratio.phase}", ratio.disks] == ratio.measured.value
    assert {row["group"]: row["modelled"] for row in chart.rows("model")} == {
        f"{ratio.kernel} {ratio.phase}": ratio.modelled for ratio in found
    }
    assert {row["group"]: row["corrected"] for row in chart.rows("corrected")} == {
        f"{ratio.kernel} {ratio.phase}": ratio.corrected
        for ratio in found
        if ratio.corrected is not None
    }
    assert "2.2× what the model says in sort read" in chart.words
    assert "not measurable" not in chart.words


def test_where_nothing_counts_the_chart_says_so_in_words_and_has_no_bar(
    atlas: StreamBalance,
) -> None:
    said = atlas
    chart = Drawn(ratio_chart(said.ratios, "memory"))
    assert chart.rows("gain") == []
    assert len(chart.rows("model")) == 6
    words = chart.words
    assert "not measurable here" in words
    assert "neither resctrl nor an uncore memory controller" in words.replace("', '", " ")
    assert "measurable" not in Drawn(ratio_chart(said.ratios, "io")).words


def test_a_clusters_reads_cross_the_io_bus_again() -> None:
    _, said = balance.cluster()
    chart = Drawn(ratio_chart(said.ratios, "io"))
    bars = {row["group"]: row["y"] for row in chart.rows("gain")}
    assert bars["sort read"] == pytest.approx(2.5, rel=0.01)
    assert bars["scan read"] == pytest.approx(1.0, rel=0.01)
    assert "within 1%" in chart.words


def test_utilisation_has_a_line_for_each_resource_that_was_measured(boreas: StreamBalance) -> None:
    said = boreas
    scaling = next(each for each in said.scaling if (each.kernel, each.phase) == ("sort", "read"))
    chart = Drawn(use_chart(scaling, said.costs))
    drawn = {(row["resource"], row["disks"]): row["y"] for row in chart.data(chart.points("shape"))}
    assert {name for name, _ in drawn} == {"disks", "I/O path", "CPU", "memory"}
    assert drawn["I/O path", 4] == pytest.approx(100)
    assert drawn["disks", 4] == pytest.approx(100 * scaling.steps[3].utilisation["disks"].value)
    cpi = {row["disks"]: row["cpi"] for row in chart.rows("cpi-point")}
    assert cpi == {
        cost.disks: cost.cycles_per_instruction.value
        for cost in said.costs
        if (cost.kernel, cost.phase) == ("sort", "read") and cost.cycles_per_instruction
    }
    assert chart.spec["resolve"] == {"scale": {"y": "independent"}}


def test_without_counters_there_is_no_right_axis(atlas: StreamBalance) -> None:
    said = atlas
    spec = Drawn(use_chart(said.scaling[2], said.costs)).spec
    assert "resolve" not in spec
    assert "Cycles" not in str(spec)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [([10.0, 50.0], [10, 50]), ([50, 52], [46, 56]), ([0, 1, 2], [0, 10, 20]), ([], [])],
)
def test_names_at_the_ends_of_lines_are_moved_apart(
    wanted: list[float], expected: list[float]
) -> None:
    assert spread(wanted, 10.0) == pytest.approx(expected)


def test_names_keep_their_order_and_distance_whatever_is_wanted() -> None:
    places = spread([3, 4, 30, 31, 32, 33, 90, 99], 8.0)
    assert all(b - a >= 8 - 1e-9 for a, b in pairwise(places))
    assert places[0] >= 0


def test_balance_holds_every_saturation_of_every_system(
    atlas: StreamBalance, boreas: StreamBalance
) -> None:
    found = balance_charts([atlas, boreas])
    assert list(found) == [
        f"balance-{kernel}-{phase}"
        for kernel in ("scan", "sort", "transpose")
        for phase in ("read", "write")
    ]
    chart = Drawn(found["balance-sort-read"])
    drawn = {
        (row["system"], row["resource"]): (row["y"], row["high"])
        for row in chart.data(chart.points("shape"))
    }
    assert drawn["atlas, threads", "CPU"][0] == pytest.approx(657.9, abs=0.1)
    assert drawn["boreas, threads", "I/O path"][0] == pytest.approx(130)
    assert "CPU first on atlas, I/O path first on boreas" in chart.words
    assert "no number" in chart.words


def _levels(said: StreamBalance, rates: list[float]) -> StreamBalance:
    one = said.balances[0]
    saturations = tuple(
        Saturation(
            resource=name,
            mb_s_per_processor=Interval(rate, 0.9 * rate, 1.1 * rate, 5),
            why="",
            use_at_most=None,
        )
        for name, rate in zip(RESOURCES, rates, strict=True)
    )
    changed = msgspec.structs.replace(one, saturations=saturations)
    return msgspec.structs.replace(said, balances=(changed,))


@pytest.mark.parametrize(
    ("most", "kind", "mark"), [(990.0, "linear", "bar"), (1010.0, "log", "point")]
)
def test_only_a_spread_over_ten_takes_a_log_axis_and_then_there_are_no_bars(
    most: float, kind: str, mark: str, atlas: StreamBalance
) -> None:
    said = _levels(atlas, [100, 100, 300, 300, most])
    (chart,) = balance_charts([said]).values()
    marks = Drawn(chart).styled("gain")
    assert {layer["mark"]["type"] for layer in marks} == {mark}
    assert {layer["encoding"]["y"]["scale"]["type"] for layer in marks} == {kind}


def test_all_panels_have_one_axis_and_the_first_to_give_out_stands_out(
    atlas: StreamBalance,
) -> None:
    domains = set()
    for name, chart in balance_charts([atlas]).items():
        drawn = Drawn(chart)
        (first,) = drawn.rows("short-gain")
        assert first["resource"] == ("CPU" if "sort" in name else "disks"), name
        domains |= {
            tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in drawn.styled("gain")
        }
    assert len(domains) == 1


def test_a_number_that_the_line_of_the_disks_would_cross_stands_below_its_mark(
    atlas: StreamBalance,
) -> None:
    said = _levels(atlas, [1000, 850, 100, 3000, 9000])
    now = Interval(1000.0, 990.0, 1010.0, 5)
    balances = (msgspec.structs.replace(said.balances[0], disks_mb_s_per_processor=now),)
    (chart,) = balance_charts([msgspec.structs.replace(said, balances=balances)]).values()
    drawn = Drawn(chart)
    below = [layer for layer in drawn.styled("small-label") if layer["mark"]["baseline"] == "top"]
    assert [row["number"] for layer in below for row in drawn.data(layer)] == ["850"]


def test_a_name_for_which_there_is_no_room_stands_over_the_ideals_line(
    atlas: StreamBalance,
) -> None:
    """A low bar with a wide interval leaves no room below the line of the ideal."""
    scaling = next(each for each in atlas.scaling if each.stops_at is not None)
    step = scaling.steps[3]
    wide = msgspec.structs.replace(step, gained_mb_s=Interval(16.0, -400.0, 450.0, 3))
    changed = msgspec.structs.replace(scaling, steps=(*scaling.steps[:3], wide))
    (label,) = (
        row for row in Drawn(scaling_chart([changed])).rows("short-label") if row["disks"] == 4
    )
    assert label["at_y"] == step.ideal_gain_mb_s


def test_wide_intervals_do_not_flatten_the_lines_of_use(atlas: StreamBalance) -> None:
    scaling = atlas.scaling[0]
    step = scaling.steps[0]
    wild = step.utilisation | {"cpu": Interval(0.15, 0.01, 9.0, 2)}
    steps = (msgspec.structs.replace(step, utilisation=wild), *scaling.steps[1:])
    chart = Drawn(use_chart(msgspec.structs.replace(scaling, steps=steps), atlas.costs))
    domain = chart.points("shape")["encoding"]["y"]["scale"]["domain"]
    assert domain == [0, pytest.approx(130)]


def test_a_run_is_drawn_against_its_bound_and_says_what_bounds_it() -> None:
    study = made.run_study(passes=2)
    chart = Drawn(bound_chart(study))
    bars = {row["phase"]: row["y"] for row in chart.rows("gain")}
    assert bars == {phase.name: phase.mb_s for phase in study.runs[0].result.phases}
    assert {row["phase"]: row["limit"] for row in chart.rows("model")} == {
        "runs": "CPU",
        "merge": "disks",
    }
    bare = msgspec.structs.replace(study, capacities=None)
    assert Drawn(bound_chart(bare)).rows("model") == []


def test_the_catalogue_has_what_the_study_measured() -> None:
    study, said = balance.atlas()
    uses = [f"use-{k}-{p}" for k in ("scan", "sort", "transpose") for p in ("read", "write")]
    assert list(stream_charts(study, said)) == ["scaling", "io-bus", "memory-bus", *uses]
    run = made.run_study()
    assert list(stream_charts(run, balance_of(run))) == ["bound", "io-bus", "memory-bus"]
    empty = msgspec.structs.replace(run, runs=())
    assert stream_charts(empty, balance_of(empty)) == {}
