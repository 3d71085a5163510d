"""`leadline watch`: a step is found, probes are stored and bounded, metrics can be scraped."""

from __future__ import annotations

import json
import re
import signal
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from command import LEADLINE, leadline, running
from leadline.engine import Limits
from leadline.record import Workload
from leadline.studies.watch import run
from leadline.studies.watch.run import DeviceLatency, WatchAsked, WatchRefused, watch

CLIFF = ("watch", "sim:credit-cliff", "unique_bytes=256MiB", "size_mean=64KiB", "--every", "1m")


def test_the_step_of_a_disk_whose_credits_are_spent_is_found(tmp_path: Path) -> None:
    store, textfile = tmp_path / "store.sqlite", tmp_path / "leadline.prom"
    words = (*CLIFF, "--for", "4h", "--textfile", str(textfile), "--json")
    done = leadline(*words, store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (change,) = [each for each in answer["changes"] if each["metric"] == "throughput"]
    low, high = change["ratio"]["low"], change["ratio"]["high"]
    assert low <= 0.6 <= high
    began = datetime.fromisoformat(first_probe(store)["started_at"])
    moments = [datetime.fromisoformat(change[key]) for key in ("earliest", "latest")]
    earliest_s, latest_s = ((each - began).total_seconds() for each in moments)
    assert earliest_s - 60 <= 5400 <= latest_s + 60
    assert answer["probes"] == 241
    metrics = textfile.read_text("utf-8")
    assert re.search(
        r'^leadline_watch_probes_total\{target="sim:credit-cliff"\} 241$', metrics, re.M
    )
    assert 'changes_total{target="sim:credit-cliff",metric="throughput"} 1' in metrics
    assert_exposition(metrics)


@pytest.mark.parametrize(("virtual", "most"), [(False, 50), (True, None)])
def test_a_probe_ends_after_so_many_requests_on_a_real_clock(
    *, virtual: bool, most: int | None
) -> None:
    seen: list[Limits] = []

    class Engine:
        clock_s = 0.0

        def skip_to(self, clock_s: float) -> None:
            assert clock_s == 0.0

    class Probed(Exception):
        pass

    class Diary:
        def read(self, _system: Any, _workload: Workload, _seed: int, limits: Limits) -> None:
            seen.append(limits)
            raise Probed

    engine: Any = Engine()
    engine.virtual = virtual
    system, diary = cast(Any, SimpleNamespace(engine=engine)), cast(Any, Diary())
    asked = WatchAsked(workload=run_workload(), every_s=60.0, seconds=0.1, requests=50)
    with pytest.raises(Probed):
        next(watch(system, None, asked, diary))
    (limits,) = seen
    assert limits.operations_max == most
    assert (limits.warm_up_s_max, limits.measure_s_max) == (0.0, 0.1)


def first_probe(store: Path) -> dict[str, Any]:
    (row,) = json.loads(leadline("systems", "--json", store=store).stdout)
    points = json.loads(leadline("export", row["study_id"], store=store).stdout)
    assert len(points) == 241
    first: dict[str, Any] = points[0]
    return first


def assert_exposition(text: str) -> None:
    """Of Prometheus' text format 0.0.4: comments, and samples of a metric that was declared."""
    declared = set[str]()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            declared.add(line.split()[2])
        elif not line.startswith("# HELP "):
            found = re.fullmatch(r'(\w+)\{(\w+="[^"]*",?)+\} \S+', line)
            assert found is not None, line
            assert found[1] in declared
    assert text.endswith("\n")


def test_a_steady_system_has_no_change(tmp_path: Path) -> None:
    words = ("watch", "sim:two-level", "unique_bytes=256MiB", "--every", "10m", "--for", "3d")
    done = leadline(*words, "--seconds", "200ms", store=tmp_path / "store.sqlite", timeout_s=300)
    assert done.returncode == 0, done.stderr
    assert "no change of level in 433 probes" in done.stdout


@pytest.mark.real
def test_probes_of_a_directory_are_told_and_leave_nothing(tmp_path: Path) -> None:
    data, store, board = tmp_path / "data", tmp_path / "store.sqlite", tmp_path / "board.json"
    data.mkdir()
    words = ("watch", str(data), "size=8m", "--every", "2s", "--seconds", "100ms", "--for", "5s")
    done = leadline(*words, "--requests", "50", "--grafana", str(board), store=store)
    assert done.returncode == 0, done.stderr
    assert "at most 0.1 s (5.0%), about 50 requests, 200 KiB" in done.stderr
    assert list(data.iterdir()) == []
    (row,) = json.loads(leadline("systems", "--json", store=store).stdout)
    shown = json.loads(leadline("show", row["study_id"], "--json", store=store).stdout)
    operations = [point["result"]["read"]["operations"] for point in shown]
    assert len(operations) == 3
    assert sum(operations) > 0
    titles = [panel["title"] for panel in json.loads(board.read_text())["panels"]]
    assert titles[:2] == ["Throughput", "Latency"]


@pytest.mark.real
@pytest.mark.parametrize(("until", "code"), [((), 0), (("--for", "1h"), 3)])
def test_ctrl_c_ends_a_watch_with_its_answer(
    tmp_path: Path, until: tuple[str, ...], code: int
) -> None:
    """Without --for that is its end, and with it an early one."""
    store = tmp_path / "store.sqlite"
    words = ("watch", str(tmp_path), "size=8m", "--every", "1h", "--json", *until)
    with running([LEADLINE, *words], store) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if "p99" in line:  # the first probe is told once it is stored
                break
        child.send_signal(signal.SIGINT)
        said, error = child.communicate(timeout=60)
    assert child.returncode == code, error
    assert json.loads(said)["probes"] == 1
    (row,) = json.loads(leadline("systems", "--json", store=store).stdout)
    assert row["status"] == ("stopped" if code else "done")


def test_probes_that_would_be_a_load_are_refused(tmp_path: Path) -> None:
    done = leadline("watch", "sim:two-level", "--every", "10s", store=tmp_path / "s.sqlite")
    assert done.returncode == 2
    assert "raise --every" in done.stderr
    asked = WatchAsked(workload=run_workload(), every_s=40.0, seconds=2.0, requests=20)
    asked.require_gentle()
    with pytest.raises(WatchRefused):
        WatchAsked(workload=run_workload(), every_s=39.0, seconds=2.0, requests=20).require_gentle()


def run_workload() -> Any:
    from leadline.studies.watch.command import USUAL  # noqa: PLC0415 - it loads the command line

    return USUAL


def test_a_device_that_is_busy_with_others_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten looks at 1 ms each tell what is usual; at 4 ms no probe is added, at 2 ms one is."""
    stat = tmp_path / "stat"
    place = type("Place", (), {"device": tmp_path})()
    monkeypatch.setattr(run, "place_of", lambda _: place)
    requests = took_ms = 0

    def others(each_ms: int) -> None:
        nonlocal requests, took_ms
        requests, took_ms = requests + 100, took_ms + 100 * each_ms
        stat.write_text(f"{requests} 0 0 {took_ms} 0 0 0 0 0 0 0")

    others(1)
    device = DeviceLatency("/data")
    for _ in range(10):
        others(1)
        assert not device.busy()
    others(4)
    assert device.busy()
    others(2)
    assert not device.busy()
    others(9)
    device.skip()
    assert not device.busy(), "nobody asked anything since"
