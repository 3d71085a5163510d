"""Storage under a latency target: the peak against closed forms, and what a person sees of it.

The system is M/D/1: one slot, every request takes a millisecond, due at random. Its mean response
is s + λ s² / (2 (1 - λ s)) (Pollaczek and Khinchine), what share is within
a time Crommelin's sum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

from leadline.app import app
from leadline.engine import Engine, Stopped, TargetRefused, client
from leadline.engine.simulated import SimulatedEngine
from leadline.errors import LeadlineError
from leadline.record import Workload
from leadline.record.finding import Finding
from leadline.record.workbench import (
    Goal,
    Measured,
    PeakRate,
    PeakVerdict,
    Prior,
    StorageServer,
    Threshold,
    TrialOrder,
    TrialRequest,
    TrialState,
    Within,
)
from leadline.servers import run_trial, storage
from leadline.store import open_store
from leadline.studies.workbench.answer import format_sample, stored_experiment
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.experiments.read import begin_peak, read_experiment
from leadline.studies.workbench.policies import open_policy

SERVICE_S = 1e-3
PROFILE = """
[meta]
name = "one-by-one"

[copy]
read_overhead_us = 0.0
read_mb_s = 1e7

[device]
capacity_bytes = 137_438_953_472
read_mb_s = 1e7
read_overhead_us = 1000.0
"""
WORKLOAD = "bs=4k,rw=randread,size=1g"


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "one-by-one.toml"
    path.write_text(PROFILE)
    return f"sim:{path}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def run(*arguments: str, store: Path) -> Any:
    return CliRunner().invoke(app, ["--store", str(store), "peak", *arguments])


def found(target: str, *options: str, store: Path) -> dict[str, Any]:
    done = run(target, "--workload", WORKLOAD, *options, "--json", store=store)
    assert done.exit_code == 0, done.exception
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def refusal(target: str, *options: str, store: Path) -> str:
    done = run(target, *options, store=store)
    assert done.exit_code == 2 or isinstance(done.exception, LeadlineError), done.output
    assert getattr(done.exception, "exit_code", done.exit_code) in {2, 5}
    return f"{done.exception} {done.output}"


def mean_s(rate_per_s: float) -> float:
    busy = rate_per_s * SERVICE_S
    return SERVICE_S + SERVICE_S * busy / (2 * (1 - busy))


def share_within(limit_s: float, rate_per_s: float) -> float:
    """Of M/D/1's responses (Crommelin 1932)."""
    wait = (limit_s - SERVICE_S) / SERVICE_S
    busy = rate_per_s * SERVICE_S
    terms = (
        (busy * (j - wait)) ** j / math.factorial(j) * math.exp(-busy * (j - wait))
        for j in range(math.floor(wait) + 1)
    )
    return (1 - busy) * sum(terms)


def peak_of_mean(limit_s: float) -> float:
    return float(brentq(lambda rate: mean_s(rate) - limit_s, 1.0, 999.0))


def peak_of_share(share: float, limit_s: float) -> float:
    return float(brentq(lambda rate: share_within(limit_s, rate) - share, 1.0, 999.0))


# ---- the answer against the truth ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "truth"),
    [
        (("--mean", "3ms"), peak_of_mean(3e-3)),
        (("--p99", "5ms"), peak_of_share(0.99, 5e-3)),
        (("--p50", "2.5ms"), peak_of_share(0.5, 2.5e-3)),
        (("--within", "95%=6ms"), peak_of_share(0.95, 6e-3)),
    ],
    ids=["mean", "p99", "p50", "within"],
)
def test_the_peak_is_that_of_the_closed_form(
    options: tuple[str, ...], truth: float, target: str, store: Path
) -> None:
    answer = found(target, *options, "--seed", "3", store=store)
    assert answer["verdict"] == "found"
    rate = answer["peak_rate"]
    assert rate["value"] == pytest.approx(truth, rel=0.1)
    assert rate["low"] <= truth <= rate["high"]
    assert answer["cost_s"] <= 300.0


def test_of_several_targets_the_one_that_gives_out_first_counts(target: str, store: Path) -> None:
    tight, loose = peak_of_share(0.5, 1.5e-3), peak_of_share(0.99, 20e-3)
    assert tight < 0.8 * loose
    answer = found(target, "--p99", "20ms", "--p50", "1.5ms", store=store)
    assert answer["peak_rate"]["value"] == pytest.approx(tight, rel=0.1)
    asked = answer["goal"]["threshold"]
    assert (asked["percentile"], asked["limit_ms"]) == (0.99, 20.0)
    assert asked["also"] == [{"percentile": 0.5, "limit_ms": 1.5}]
    batches = [trial["measured"]["batches"] for trial in answer["trial_records"]]
    over = [batch["also_over"][0] >= batch["over"] for each in batches for batch in each]
    assert all(over), "slower than 20 ms is slower than 1.5 ms"


def test_even_points_are_parts_of_the_peak_with_the_closed_forms_latencies(
    target: str, store: Path
) -> None:
    answer = found(target, "--p99", "5ms", "--curve", "4", "--run-length", "60s", store=store)
    peak = answer["peak_rate"]["value"]
    assert [point["rate"] / peak for point in answer["curve"]] == pytest.approx(
        [0.25, 0.5, 0.75, 1]
    )
    for point in answer["curve"]:
        assert point["response_ms"]["mean"] == pytest.approx(1e3 * mean_s(point["rate"]), rel=0.1)
        at_p99 = share_within(point["response_ms"]["p99"] / 1e3, point["rate"])
        assert at_p99 == pytest.approx(0.99, abs=0.004)
    assert answer["trials"] == len(answer["trial_records"]), "the curve's trials are its own"


def test_without_a_wish_the_curve_is_of_trials_that_kept_their_rate(
    target: str, store: Path
) -> None:
    answer = found(target, "--p99", "5ms", store=store)
    asked = {trial["request"]["rate_per_s"]: trial for trial in answer["trial_records"]}
    shown = {point["rate"] for point in answer["curve"]}
    assert shown
    assert shown <= asked.keys()
    assert max(asked) > 1000 / SERVICE_S / 1e3, "some trial overloads it"
    assert max(shown) < 1.03 / SERVICE_S


# ---- verdicts ------------------------------------------------------------------------------------


def test_a_target_below_the_unloaded_latency_is_said_to_be_that(target: str, store: Path) -> None:
    done = run(target, "--workload", WORKLOAD, "--p99", "500us", store=store)
    assert done.exit_code == 0
    assert ": saturated at every load tried" in done.stdout
    assert "the target is below unloaded latency" in done.stdout


def test_a_highest_load_that_is_kept_bounds_the_peak_from_below(target: str, store: Path) -> None:
    answer = found(target, "--p99", "5ms", "--rate-max", "300", store=store)
    assert (answer["verdict"], answer["peak_rate"]) == ("never-saturated", None)
    assert answer["lower_bound_per_s"] == 300.0


def test_a_peak_of_too_few_requests_under_way_is_warned_of(target: str, store: Path) -> None:
    done = run(target, "--workload", WORKLOAD, "--p99", "5ms", store=store)
    assert "only 1 can be outstanding" in done.stdout
    # Of a machine made of parts as many may be under way as no disk serves at once.
    parts = run(
        "sim:bcache-hybrid",
        "--workload",
        WORKLOAD,
        "--p99",
        "50ms",
        "--rate-max",
        "5000",
        store=store,
    )
    assert parts.exit_code == 0, parts.exception
    assert "can be outstanding" not in parts.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "there is no target"),
        (("--p99", "0ms"), "no time at all"),
        (("--p99", "2"), "has no unit"),
        (("--within", "99.9%"), "is not SHARE=TIME"),
        (("--within", "fast=2ms"), "is no share"),
        (("--within", "99%=2ms", "--p99", "3ms"), "has two limits"),
        (("--p99", "2ms", "--p50", "3ms"), "needless"),
        (("--p99", "2ms", "--workload", "bs=4k,rate_iops=500"), "is what is searched for"),
        (("--p99", "2ms", "--workload", "bs=4k,runtime=5"), "run length"),
        (("--p99", "2ms", "--workload", "bs=4k,thinktime=100"), "think time"),
        (("--p99", "2ms", "--workload", "nonsense=1"), "nonsense"),
        (("--p99", "2ms", "--direct"), "sim:"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(
    options: tuple[str, ...], said: str, target: str, store: Path
) -> None:
    assert said in refusal(target, *options, store=store)
    assert not store.exists() or not open_store(str(store)).list()


def test_what_is_no_storage_is_refused(tmp_path: Path, store: Path) -> None:
    assert "null: has no latency" in refusal("null:", "--p99", "2ms", store=store)
    assert "does not exist" in refusal(str(tmp_path / "gone"), "--p99", "2ms", store=store)
    file = tmp_path / "server.toml"
    file.write_text("[server]\n")
    assert "goes with a target" in refusal(str(file), "--p99", "2ms", store=store)
    assert "goes with a target" in refusal(str(file), "--direct", store=store)


# ---- stopped and gone on with --------------------------------------------------------------------


def decided(document: dict[str, Any]) -> list[Any]:
    """What the seed decides."""
    trials = [*document["trial_records"], *document["curve_records"]]
    told = ("order", "request", "seed", "state", "measured", "cost_s")
    return [document["peak_rate"], document["curve"]] + [
        [trial[name] for name in told] for trial in trials
    ]


@pytest.mark.parametrize("left_of_the_curve", [True, False])
def test_a_stopped_search_goes_on_to_the_answer_it_would_have_had(
    left_of_the_curve: bool,
    target: str,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = ("--p99", "5ms", "--curve", "3")
    whole = found(target, *options, store=tmp_path / "other.sqlite")
    at = whole["trials"] + 1 if left_of_the_curve else 2
    began, ran = SimulatedEngine.run, 0

    def stopped(self: SimulatedEngine, *arguments: Any, **options: Any) -> Any:
        nonlocal ran
        ran += 1
        if ran > at:
            raise Stopped("Ctrl-C")
        return began(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedEngine, "run", stopped)
        run(target, "--workload", WORKLOAD, *options, store=store)
    with open_store(str(store)) as kept:
        (left,) = kept.list()
        half = stored_experiment(kept, left.study_id)
    assert sum(len(own.trials) + len(own.curve) for own in half.peaks) == at
    resumed = found(target, *options, "--resume", store=store)
    assert decided(resumed) == decided(whole)
    assert "no unfinished peak search" in refusal(
        target, "--workload", WORKLOAD, *options, "--resume", store=store
    )


def test_another_target_does_not_go_on(target: str, store: Path) -> None:
    assert "no unfinished" in refusal(target, "--p99", "5ms", "--resume", store=store)


# ---- one trial -----------------------------------------------------------------------------------


def order_of(target: str, rate_per_s: float = 500.0, **sample: Any) -> TrialOrder:
    workload = Workload(unique_bytes=2**30, size_mean=4096, read_frac=1.0, seq_frac=0.0)
    return TrialOrder(
        server=StorageServer(target=target, workload=workload),
        sample=sample,
        threshold=Threshold(
            percentile=0.99, limit_ms=5.0, also=(Within(percentile=0.5, limit_ms=2.0),)
        ),
        request=TrialRequest(rate_per_s=rate_per_s, seconds=10.0),
        order=0,
        seed=7,
    )


def test_a_trial_is_the_window_of_the_engines_own_open_loop(target: str) -> None:
    trial = run_trial(order_of(target))
    measured = trial.measured
    assert (trial.state, trial.failure) == (TrialState.DONE, None)
    assert measured is not None
    assert measured.seconds == pytest.approx(10.0)
    assert len(measured.batches) == 60
    assert measured.due == sum(batch.due for batch in measured.batches)
    assert measured.due == pytest.approx(5000, abs=4 * math.sqrt(5000))
    over = [sum(batch.over_each[place] for batch in measured.batches) for place in range(2)]
    assert over[0] / measured.due == pytest.approx(1 - share_within(5e-3, 500.0), abs=0.002)
    assert over[1] / measured.due == pytest.approx(1 - share_within(2e-3, 500.0), abs=0.03)
    assert measured.sent_late_ms_p99 is None, "no virtual generator is late"
    assert trial.cost_s == pytest.approx(11.0, abs=0.1), "a second of warm-up, and the window"
    again = run_trial(order_of(target))
    told = msgspec.structs.replace(trial, started_at=again.started_at)
    assert again == told, "a seed decides all of it"


def test_a_hopeless_trial_is_given_up_after_ten_seconds(target: str) -> None:
    order = order_of(target, 2000.0)
    request = TrialRequest(rate_per_s=2000.0, seconds=60.0, abort_above_ms=100.0)
    trial = run_trial(msgspec.structs.replace(order, request=request))
    assert trial.state is TrialState.ABORTED
    assert trial.measured is not None
    assert trial.measured.seconds == pytest.approx(10.0, abs=0.2)
    assert len(trial.measured.batches) == 10
    assert trial.measured.completed_per_s == pytest.approx(1000.0, rel=0.02)


def test_levels_of_factors_are_parameters_of_the_workload(target: str) -> None:
    twice = run_trial(order_of(target, size_mean="8KiB")).measured
    assert twice is not None
    with pytest.raises(TargetRefused, match="did you mean 'size_mean'"):
        run_trial(order_of(target, size_meen=4096))
    with pytest.raises(TargetRefused, match="read_frac is 7"):
        run_trial(order_of(target, read_frac=7))


@contextmanager
def told(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> Iterator[None]:
    """Have the engine's results say something else."""
    began = SimulatedEngine.run

    def run(self: SimulatedEngine, *arguments: Any, **options: Any) -> Any:
        result = began(self, *arguments, **options)
        values = {name: change(getattr(result, name)) for name, change in changed.items()}
        return msgspec.structs.replace(result, **values)

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedEngine, "run", run)
        yield


def test_whose_limit_it_was_is_told_apart(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(offered: Any) -> Any:
        return msgspec.structs.replace(offered, fell_short="generator", late_generator=900)

    def late(load: Measured) -> Measured:
        return msgspec.structs.replace(load, sent_late_ms_p99=1.2)

    with told(monkeypatch, offered=short):
        trial = run_trial(order_of(target))
        assert trial.state is TrialState.GENERATOR_LIMITED
        assert "late or not at all" in (trial.failure or "")
        assert trial.can_offer_per_s == pytest.approx(500.0, rel=0.1)
    with told(monkeypatch, load=late):
        trial = run_trial(order_of(target))
        assert trial.state is TrialState.GENERATOR_LIMITED, "half of the least limit is 1 ms"
    with told(monkeypatch, load=late, foreign_cpu=lambda _: 1.5):
        trial = run_trial(order_of(target))
        assert trial.state is TrialState.FAILED, "it may be tried again at the same load"
        assert "1.5 processors" in (trial.failure or "")
        overloaded = run_trial(order_of(target, 2000.0))
        assert overloaded.state is TrialState.DONE, "1.2 ms are nothing beside seconds"
    missed = {"completed_per_s": 1.0, "due_per_s": 2.0, "short_frac": 0.5, "waiting_requests": 1}
    with told(monkeypatch, findings=lambda _: (Finding.of("missed_rate", **missed),)):
        assert run_trial(order_of(target)).state is TrialState.DONE, "that is what is asked about"
    cold = Finding.of("memory_file_system", file_system="ramfs")
    with told(monkeypatch, findings=lambda _: (cold,)):
        trial = run_trial(order_of(target))
        assert (trial.state, trial.failure) == (TrialState.FAILED, str(cold))


def test_a_generator_that_never_keeps_up_ends_the_search_with_that(
    target: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(load: Measured) -> Measured:
        return msgspec.structs.replace(load, sent_late_ms_p99=40.0)

    with told(monkeypatch, load=late):
        answer = found(target, "--p99", "5ms", store=store)
    assert answer["verdict"] == PeakVerdict.GENERATOR_LIMITED
    assert "trials_generator_short" in [each["code"] for each in answer["findings"]]


def test_a_real_target_stays_open_from_one_trial_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    began = client.open_engine

    @contextmanager
    def counted(*arguments: Any, **options: Any) -> Iterator[Engine]:
        with began(*arguments, **options) as engine:
            opened.append(engine)
            yield engine

    monkeypatch.setattr(storage, "open_engine", counted)
    workload = Workload(unique_bytes=2**20, size_mean=4096, read_frac=1.0)
    request = TrialRequest(rate_per_s=200.0, seconds=0.5)
    server = StorageServer(target=str(tmp_path), workload=workload, warm_up_s=0.1)
    order = msgspec.structs.replace(order_of(str(tmp_path)), server=server, request=request)
    with storage.hold_storage():
        trials = [run_trial(order), run_trial(order)]
        assert (tmp_path / ".leadline").exists()
    assert len(opened) == 1
    assert not (tmp_path / ".leadline").exists(), "nothing is left behind"
    run_trial(order)
    assert len(opened) == 2
    assert not any(tmp_path.iterdir())
    for trial in trials:
        assert trial.measured is not None
        assert trial.measured.due == sum(batch.due for batch in trial.measured.batches)
        assert trial.measured.sent_late_ms_p99 is not None, "a real one can be late"


# ---- a surface of it -----------------------------------------------------------------------------

FILE = """
name = "volume"

[server]
kind = "storage"
target = "sim:cloud-gp3"
workload = "bs=4k,rw=randread,size=64g"
max_bytes = "32GiB"

[threshold]
p99 = "5ms"
p50 = "2ms"
also = [{ percentile = "99.9%", limit = "20ms" }]

[goal]
run_length = "10s"

[factors]
size_mean = ["16KiB", "64KiB"]
read_frac = [1.0, 0.5]
unique_bytes = ["16GiB"]

[sample]
size_mean = "64KiB"
read_frac = 1.0
"""
VOLUME_PER_S = 3000.0
VOLUME_BYTES_PER_S = 131_072_000.0


def test_a_file_of_storage_is_read_with_its_usual_goal() -> None:
    file = read_experiment(FILE, "volume.toml")
    server = file.server
    assert isinstance(server, StorageServer)
    assert (server.target, server.workload.read_frac, server.max_bytes) == (
        "sim:cloud-gp3",
        1.0,
        32 * 2**30,
    )
    assert server.workload.queue_depth == 128, "more than any disk serves at once"
    assert (file.goal.run_length_s, file.goal.rate_start_per_s) == (10.0, 500.0)
    shares = [(each.percentile, each.limit_ms) for each in file.goal.threshold.shares]
    assert shares == [(0.999, 20.0), (0.99, 5.0), (0.5, 2.0)]
    size, reads, _ = file.factors
    assert (size.levels, size.scale, size.role) == ((16384, 65536), "log", "workload")
    assert reads.levels == (1.0, 0.5)
    assert file.sample == {"size_mean": 65536, "read_frac": 1.0, "unique_bytes": 16 * 2**30}
    other = begin_peak(file, sample={"size_mean": "16KiB"})
    assert format_sample(other.samples[0]).startswith("size_mean=16 KiB, read_frac=1.0")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sim:cloud-gp3", "sim:none-such", r"volume.toml:6: server.target: .*none-such"),
        ("bs=4k", "bs=4q", r"volume.toml:7: server.workload: "),
        ("bs=4k", "rate_iops=5", r"volume.toml:7: server.workload: .*is what is searched for"),
        ("size_mean = [", "size_men = [", r"volume.toml:19: factors.size_men: .*no parameter"),
        ('"16KiB", "64KiB"', '"16KiB", "16384"', r"volume.toml:19: factors.size_mean: .*twice"),
        ("[1.0, 0.5]", "[1.0, 7]", r"volume.toml:.*read_frac is 7"),
        ('p50 = "2ms"', 'p50 = "9ms"', r"volume.toml:10: \[threshold\]: .*needless"),
        ('limit = "20ms"', 'limt = "20ms"', r"volume.toml:13: threshold.also"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_its_line(old: str, new: str, said: str) -> None:
    assert old in FILE
    with pytest.raises(ExperimentRefused, match=said):
        read_experiment(FILE.replace(old, new, 1), "volume.toml")


def test_an_nfs_servers_load_is_counted_over_one_limit() -> None:
    server = FILE[FILE.index("[server]") : FILE.index("[threshold]")]
    nfs = '[server]\nkind = "nfs"\ndirectory = "/d"\nworkload = "mail"\ndata = "1GiB"\n\n'
    text = FILE.replace(server, nfs)
    text = text[: text.index("[factors]")]
    with pytest.raises(ExperimentRefused, match="counted over one limit"):
        read_experiment(text, "mail.toml")


@pytest.mark.long
def test_a_volumes_peaks_are_its_limits(tmp_path: Path, store: Path) -> None:
    """It serves 3000 requests or 125 MiB a second; an eighth of 16 GiB is in the page cache."""
    path = tmp_path / "volume.toml"
    path.write_text(FILE.replace("[1.0, 0.5]", "[1.0]"))
    done = CliRunner().invoke(app, ["--store", str(store), "surface", str(path), "--json"])
    assert done.exit_code == 0, done.exception
    document = json.loads(done.stdout)
    assert document["samples"]
    missed = 1 - 2 / 16
    for own in document["samples"]:
        limit = min(VOLUME_PER_S, VOLUME_BYTES_PER_S / own["sample"]["size_mean"]) / missed
        assert own["peak_rate"]["value"] == pytest.approx(limit, rel=0.15)
        assert own["peak_rate"]["value"] <= 1.05 * limit


def test_a_rate_lies_between_the_loads_seen_on_either_side(store: Path) -> None:
    """A volume that is throttled steps over the target, which no queue's response does."""
    volume = ("sim:cloud-gp3", "--p99", "5ms", "--workload", "bs=16k,rw=randread,size=8g")
    done = run(*volume, "--json", store=store)
    answer = json.loads(done.stdout)
    rate = answer["peak_rate"]
    assert answer["verdict"] == "found"
    assert rate["low"] <= rate["value"] <= rate["high"]
    # 10% was asked, and the middle of a step of that width is anywhere in it.
    assert rate["value"] == pytest.approx(VOLUME_PER_S / (1 - 2 / 8), rel=0.1)
    assert rate["low"] <= VOLUME_PER_S / (1 - 2 / 8) <= 1.01 * rate["high"]
    assert "The response steps over the target between" in " ".join(answer["sentences"])


@pytest.mark.long
def test_one_overload_is_no_proof_that_no_load_is_held(target: str) -> None:
    """A first trial far above the peak leaves the model with servers that hold nothing."""
    for seed in range(3):
        goal = Goal(threshold=Threshold(percentile=0.99, limit_ms=5.0), run_length_s=10.0)
        prior = Prior(rate_per_s=20_000.0)
        policy = open_policy("curve", goal, seed, prior)
        order = order_of(target)
        for number in range(40):
            asked = policy.ask()
            if isinstance(asked, PeakRate):
                break
            trial = msgspec.structs.replace(order, request=asked, order=number, seed=number)
            policy.tell(run_trial(trial))
        assert isinstance(asked, PeakRate)
        assert asked.verdict is not PeakVerdict.ALWAYS_SATURATED
