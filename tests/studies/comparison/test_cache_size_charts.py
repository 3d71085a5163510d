"""CP93 Figs. 4 and 5 for any set of systems: two sizes where there are two, policies told."""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec
import pytest
from rich.console import Console

from compare_fixture import atlas, question, quicker, systems
from leadline.charts.theme import SYSTEM_DASHES
from leadline.record import Interval, Status, WritePolicy
from leadline.record.comparison import CacheSize, CommonCurve, CommonPoint, SystemsComparison
from leadline.store import Store, open_store
from leadline.studies.comparison.charts import comparison_charts
from leadline.studies.comparison.document import Terms, compare_systems
from leadline.studies.comparison.facts import known_cache
from leadline.studies.comparison.page import render_comparison_html
from leadline.studies.comparison.text import cache_rows, render_comparison
from leadline.studies.survey.study import load_survey
from proving.simulation import simulate_cache_study, simulate_survey

MB = 1e6
PROFILE = "decstation-5000-sprite"


@functools.cache
def _compared() -> SystemsComparison:
    return compare_systems(systems(atlas(), quicker(4.0), model="product"), Terms([question()]))


def sized(name: str, reads_mb: float, writes_mb: float | None = None, **told: Any) -> CacheSize:
    def around(size_mb: float) -> Interval:
        return Interval(size_mb * MB, size_mb * MB * 0.99, size_mb * MB * 1.01, 9)

    writes = around(writes_mb) if writes_mb else None
    share, written = (
        Interval(part, part * 0.99, part * 1.01, 9)
        for part in (0.5, (writes_mb or 0) / reads_mb / 2)
    )
    return CacheSize(
        name=name,
        bytes=around(reads_mb),
        memory_bytes=round(2 * reads_mb * MB),
        capped=False,
        share=share,
        writes_bytes=writes,
        writes_share=written if writes else None,
        **told,
    )


def spec(name: str, **changes: Any) -> dict[str, Any]:
    document = msgspec.structs.replace(_compared(), **changes)
    found: dict[str, Any] = comparison_charts(document)[name].to_dict(validate=False)
    return found


def marks(chart: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    sets = chart.get("datasets", {})
    layer = next(layer for layer in chart["layer"] if layer["mark"]["type"] == mark)
    data = layer["data"]
    rows: list[dict[str, Any]] = sets.get(data.get("name"), data.get("values"))
    return rows


def test_a_cache_of_two_sizes_has_two_rows_and_writes_that_go_through_are_said() -> None:
    sizes = (
        sized("sprite", 20, 5, policy=WritePolicy.CANCELLING),
        sized("sun", 21, 21, policy=WritePolicy.CANCELLING),
        sized("aix", 46, policy=WritePolicy.THROUGH),
        sized("mixed", 30),
    )
    for chart in ("cache_bytes", "cache_share"):
        names = {row["name"] for row in marks(spec(chart, cache_sizes=sizes), "bar")}
        assert {
            "sprite: reads",
            "sun: reads and writes",
            "aix: reads; writes go through",
            "mixed",
        } <= names
    written = [
        row
        for row in marks(spec("cache_bytes", cache_sizes=sizes), "bar")
        if row["name"] == "sprite: writes"
    ]
    assert written[0]["said"] == "4.77 MiB [4.72, 4.82]"


def test_sizes_far_apart_are_points_on_a_log_scale() -> None:
    chart = spec("cache_bytes", cache_sizes=(sized("small", 3), sized("huge", 890)))
    assert {layer["mark"]["type"] for layer in chart["layer"]} == {"point", "text", "rule"}
    scales = [layer["encoding"]["x"].get("scale", {}) for layer in chart["layer"]]
    assert {scale["type"] for scale in scales if scale} == {"log"}
    assert "log scale" in str(chart)
    assert "huge" in chart["title"]["text"]


def test_studies_are_named_as_the_source_of_sizes() -> None:
    both = (sized("a", 3, studied=True), sized("b", 4, studied=True))
    assert (
        "From studies of the caches." in spec("cache_bytes", cache_sizes=both)["title"]["subtitle"]
    )
    one = (sized("a", 3, studied=True), sized("b", 4))
    assert "on 1 of 2" in spec("cache_share", cache_sizes=one)["title"]["subtitle"]


def curves(names: list[str]) -> tuple[CommonCurve, ...]:
    at = _compared().curves[0].at
    return tuple(
        CommonCurve(
            name=name,
            parameter="read_frac",
            at=at,
            points=tuple(
                CommonPoint(x, Interval(y, y * 0.9, y * 1.1, 5))
                for x, y in ((0.0, 1.0 + number), (1.0, 30.0))
            ),
        )
        for number, name in enumerate(names)
    )


def test_fig_5_marks_what_cancels_writes_and_keeps_its_legend() -> None:
    sizes = (
        sized("hp", 3, 3, policy=WritePolicy.CANCELLING),
        sized("aix", 46, policy=WritePolicy.THROUGH),
        sized("who", 4),
    )
    chart = spec("read_share", curves=curves(["hp", "aix", "who"]), cache_sizes=sizes)
    halo = chart["layer"][0]
    assert halo["mark"]["strokeWidth"] > 5
    sets = chart["datasets"]
    assert {row["system"] for row in sets[halo["data"]["name"]]} == {"hp (cancels writes)"}
    colours = [
        layer["encoding"]["color"] for layer in chart["layer"] if "color" in layer["encoding"]
    ]
    for colour in colours:
        domain = colour.get("scale", {}).get("domain")
        assert domain in (None, ["hp (cancels writes)", "aix (writes through)", "who"])
        assert colour.get("legend", {}) is not None
    assert chart["title"]["subtitle"].endswith("Broad: cancels writes.")


def test_a_dozen_systems_have_a_look_of_their_own_each() -> None:
    names = [f"system {number}" for number in range(12)]
    chart = spec("read_share", curves=curves(names), cache_sizes=())
    lines = next(layer for layer in chart["layer"] if "strokeDash" in layer["encoding"])
    points = next(layer for layer in chart["layer"] if "shape" in layer["encoding"])
    dashes = [str(dash) for dash in lines["encoding"]["strokeDash"]["scale"]["range"]]
    shapes = points["encoding"]["shape"]["scale"]["range"]
    colours = len(SYSTEM_DASHES)
    looks = [(at % colours, dashes[at], shapes[at]) for at in range(len(names))]
    assert len({look[:2] for look in looks}) == len({(c, s) for c, _, s in looks}) == 12


def test_the_page_and_the_terminal_show_the_policies_and_what_they_rest_on() -> None:
    sizes = (
        sized(
            "sprite",
            20,
            5,
            policy=WritePolicy.CANCELLING,
            studied=True,
            evidence=("of 1 GiB <written> nothing reached the device",),
        ),
        sized("aix", 46, policy=WritePolicy.THROUGH, evidence=("the speed of the disk",)),
        sized("boundary only", 4),
    )
    document = msgspec.structs.replace(_compared(), cache_sizes=sizes)
    page = render_comparison_html(document)
    table = page[page.index('id="caches"') : page.index("</section>", page.index('id="caches"'))]
    told = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "|", table).replace("\N{NO-BREAK SPACE}", " "))
    assert "Of 1 GiB &lt;written&gt; nothing reached the device." in told
    assert "write-back (study)" in told
    assert "none: they go through" in told
    assert "write-through (survey)" in told
    assert "boundary only" not in told
    console = Console(width=200)
    console.verbose = True  # type: ignore[attr-defined]
    with console.capture() as captured:
        console.print(render_comparison(document))
    said = captured.get()
    assert said.index("Page caches") < said.index(" workload, ")
    assert "write-back (study)" in said
    assert cache_rows(_compared()) == []


# ---- where sizes and policies come from ------------------------------------------------------


@functools.cache
def kept() -> tuple[Store, str]:
    store = open_store("sqlite://")
    survey = simulate_survey(PROFILE, 11, store=store).survey
    simulate_cache_study(PROFILE, 12, store=store)
    return store, survey.start.study_id


def test_the_newest_study_of_the_same_system_tells_the_sizes() -> None:
    store, survey_id = kept()
    survey, points = load_survey(store, survey_id)
    known = known_cache(store, survey, points)
    assert known.studied
    reads, writes = known.found.reads.bytes, known.found.writes.bytes
    assert reads is not None
    assert writes is not None
    assert reads.value == pytest.approx(20 * MB, rel=0.1)
    assert writes.value == pytest.approx(5 * MB, rel=0.1)
    assert known.found.policy is WritePolicy.CANCELLING


@pytest.mark.parametrize("changes", [{"direct": True}, {"sync": "dsync"}, {"target": "/else"}])
def test_a_study_run_in_another_way_does_not_count(changes: dict[str, Any]) -> None:
    store, survey_id = kept()
    survey, points = load_survey(store, survey_id)
    other = msgspec.structs.replace(
        survey, start=msgspec.structs.replace(survey.start, **changes), status=Status.DONE
    )
    known = known_cache(store, other, points)
    assert not known.studied
    assert known.found.reads.bytes is not None
