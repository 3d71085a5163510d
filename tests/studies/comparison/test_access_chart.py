"""Local against through a server over the read fraction: CP93 Fig. 6, from stored surveys."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import survey_fixture as made
from compare_fixture import atlas, layers, question, quicker, renamed, rows, systems
from leadline.engine import Target
from leadline.record import Curve, CurvePoint, Interval, Survey
from leadline.record.comparison import AccessCurve
from leadline.studies.comparison.charts import (
    access_chart,
    format_costliest,
    line_names,
    missing_access,
)
from leadline.studies.comparison.document import Terms, compare_systems
from leadline.studies.comparison.facts import (
    access_curves,
    cache_sizes,
    format_protocol,
    format_waits,
)

SERVER = "nfs://10.0.0.2/exp"


def curve(rates: tuple[float, ...], spread: float = 1.02, size_mean: int = 32768) -> Curve:
    points = tuple(
        CurvePoint(
            at / (len(rates) - 1), Interval(rate, rate / spread, rate * spread, 5), (rate,), ("p",)
        )
        for at, rate in enumerate(rates)
    )
    focal = msgspec.structs.replace(question().workload, size_mean=size_mean)
    return Curve(
        parameter="read_frac", region=0, points=points, focal=focal, good_low=None, good_high=None
    )


def access(name: str, rates: tuple[float, ...], **changes: Any) -> AccessCurve:
    spread, size_mean = changes.pop("spread", 1.02), changes.pop("size_mean", 32768)
    ways = {"through": None, "discipline": "buffered", "level": "page cache"} | changes
    return AccessCurve(name=name, curve=curve(rates, spread, size_mean), **ways)


LOCAL = access("disk", (100.0, 100.0, 100.0))
REMOTE = access("server", (1.0, 1.9, 20.0), through="NFS", discipline="FILE_SYNC")


@pytest.mark.parametrize(
    ("target", "sync", "direct", "protocol", "waits"),
    [
        ("/data", "none", False, None, "buffered"),
        ("/data", "none", True, None, "direct"),
        ("/data", "dsync", False, None, "O_DSYNC"),
        (SERVER, "none", False, "NFS", "UNSTABLE"),
        (SERVER, "dsync", False, "NFS", "FILE_SYNC"),
        (SERVER, "fsync=8", False, "NFS", "UNSTABLE, COMMIT each 8"),
    ],
)
def test_a_survey_says_how_it_reached_its_data(
    target: str, sync: str, direct: bool, protocol: str | None, waits: str
) -> None:
    start = renamed(atlas(), "aaaa0001", target=target, sync=sync, direct=direct).start
    assert (format_protocol(start), format_waits(start)) == (protocol, waits)


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("hp-720-dux", "DUX"), ("sparcstation-1plus-nfs", "NFS"), ("hp-730", None)],
)
def test_a_profile_says_how_its_client_reaches_its_server(name: str, protocol: str | None) -> None:
    profile = Target.parse(f"sim:{name}").profile
    start = renamed(atlas(), "aaaa0001", target=f"sim:{name}", system_profile=profile).start
    assert format_protocol(start) == protocol


def test_a_servers_cache_is_no_share_of_the_clients_memory() -> None:
    far = renamed(
        quicker(),
        "bbbb0002",
        target=SERVER,
        facts=quicker().start.facts | {"memory_bytes": 2**34, "nfs_server": "10.0.0.2:2049"},
    )
    found = cache_sizes(systems(atlas(), far, model="product"))
    assert found[1].memory_bytes is None


def test_the_curves_are_those_stored_with_the_first_level() -> None:
    survey = atlas()
    found = access_curves(systems(survey, quicker(), model="product"))
    assert [each.name for each in found] == ["atlas", "rapid"]
    assert found[0].level == survey.regions[0].name
    assert found[0].curve == survey.families[0].curve("read_frac")


def without_curve(survey: Survey) -> Survey:
    families = tuple(
        msgspec.structs.replace(
            family, curves=tuple(c for c in family.curves if c.parameter != "read_frac")
        )
        for family in survey.families
    )
    return msgspec.structs.replace(survey, families=families)


def test_a_survey_without_the_curve_is_left_out_and_said() -> None:
    two = systems(atlas(), quicker(), model="product")
    document = compare_systems(two, Terms([question()]))
    assert missing_access(document.access_curves, ["atlas", "rapid"]) is None
    alone = document.access_curves[:1]
    assert missing_access(alone, ["atlas", "rapid"]) == (
        "no curve over the read fraction was surveyed on rapid"
    )
    bare = renamed(without_curve(made.two_region()), "cccc0003", system="bare")
    assert access_curves(systems(atlas(), bare, model="product"))[1:] == ()


def test_lines_are_named_by_what_differs() -> None:
    assert line_names([LOCAL, access("other", (1.0, 2.0))]) == ["disk", "other"]
    assert line_names([LOCAL, REMOTE]) == ["disk: local, buffered", "server: NFS, FILE_SYNC"]
    small = access("small", (1.0, 2.0), size_mean=4096)
    assert line_names([LOCAL, small]) == ["disk (32 KiB)", "small (4 KiB)"]


def test_between_two_points_times_are_mixed_and_the_points_are_as_measured() -> None:
    chart = access_chart([LOCAL, REMOTE])
    points = [row for row in rows(chart, "point") if row["system"].startswith("server")]
    assert [(row["x"], row["y"]) for row in points] == [(0.0, 1.0), (0.5, 1.9), (1.0, 20.0)]
    line = {
        round(row["x"], 6): row["y"]
        for row in rows(chart, "line")
        if row["system"].startswith("server")
    }
    assert line[0.5] == pytest.approx(1.9)
    assert line[0.9] == pytest.approx(1 / (0.2 / 1.9 + 0.8 / 20.0))
    assert min(row["low"] for row in rows(chart, "area")) > 0


def test_bands_stay_inside_the_axes() -> None:
    chart = access_chart([LOCAL, access("noisy", (1.0, 1.0, 1.0), spread=10.0)])
    low, high = next(
        layer["encoding"]["y"]["scale"]["domain"]
        for layer in layers(chart)
        if "scale" in layer["encoding"]["y"]
    )
    assert low <= min(row["low"] for row in rows(chart, "area"))
    assert high >= max(row["high"] for row in rows(chart, "area"))


@pytest.mark.parametrize(
    ("curves", "said"),
    [
        ([LOCAL, REMOTE], "Writes cost server the most: its reads are ×20 [19.4, 21] as fast"),
        ([LOCAL, access("even", (99.0, 100.0))], "whose writes cost most cannot be told"),
        ([LOCAL, access("noisy", (50.0, 100.0), spread=3.0)], "cost most cannot be told"),
        ([REMOTE, access("too", (1.0, 20.0))], "whose writes cost most cannot be told"),
        ([REMOTE], "Throughput against the read fraction"),
    ],
)
def test_the_costliest_writes_are_named_only_where_shown(
    curves: list[AccessCurve], said: str
) -> None:
    assert format_costliest(curves).endswith(said)


def test_the_gap_between_local_and_server_is_told_at_both_ends() -> None:
    subtitle = " ".join(access_chart([LOCAL, REMOTE]).to_dict(validate=False)["title"]["subtitle"])
    assert "×5.0 [" in subtitle
    assert "with only reads and ×100 [" in subtitle
    alone = " ".join(access_chart([LOCAL]).to_dict(validate=False)["title"]["subtitle"])
    assert "through a server" not in alone
