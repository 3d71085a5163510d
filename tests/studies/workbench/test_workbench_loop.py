"""The loop of an experiment: every trial kept, replayed, ended in time; alone and on machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leadline.record import Status
from leadline.record.workbench import (
    EXPERIMENT,
    CommandServer,
    Experiment,
    ExperimentStart,
    PeakRate,
    PeakVerdict,
    Prior,
    Sample,
    Surface,
    Trial,
)
from leadline.servers import run_trial
from leadline.store import Store, open_store
from leadline.studies.workbench.answer import KeptExperiment, experiment_of, stored_experiment
from leadline.studies.workbench.conversation import ReplayRefused
from leadline.studies.workbench.policies import UnknownPolicy, open_policy
from leadline.studies.workbench.pool import open_pool
from leadline.studies.workbench.search import PeakSearch, TrialWatcher, run_experiment
from proving.samples import sample_trial
from workbench_fixture import TEXT, SeveralMachines, WatchedPool, peak_start, surface_start


class Killed(BaseException):
    """Whatever ends a process in the middle."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as kept:
        yield kept


def run(store: Store, start: ExperimentStart, **options: Any) -> Experiment:
    store.begin(EXPERIMENT, start)
    with open_pool() as pool:
        return run_experiment(start, store, pool, **({"compare": False} | options))


def run_until(store: Store, start: ExperimentStart, trials: int) -> Experiment:
    """Run until so many trials are kept; the next one never ends, and nothing cleans up."""

    def before(_: object) -> None:
        done = stored_experiment(store, start.study_id).peaks
        if sum(len(own.trials) for own in done) == trials:
            raise Killed

    store.begin(EXPERIMENT, start)
    with pytest.raises(Killed), WatchedPool(before) as pool:
        run_experiment(start, store, pool, compare=False)
    return stored_experiment(store, start.study_id)


def outcome(experiment: Experiment) -> list[Any]:
    """What a seed decides: not where or when trials ran."""
    return [
        (
            own.sample,
            own.peak,
            [msgspec.structs.replace(t, started_at="", worker=None) for t in own.trials],
        )
        for own in sorted(experiment.peaks, key=lambda own: str(own.sample))
    ]


def test_a_search_is_the_policys_conversation_with_the_server(store: Store) -> None:
    """The loop adds nothing: the same trials as asking, running and telling by hand."""
    start = peak_start()
    found = run(store, start)
    search = PeakSearch(start, start.samples[0])
    policy = open_policy("binary", start.goal, 1)
    while not isinstance(order := search.ask(), PeakRate):
        assert order.request == policy.ask()
        trial = run_trial(order)
        search.tell(trial)
        policy.tell(trial)
    assert outcome(found) == [(start.samples[0], order, search.trials)]
    assert order.verdict is PeakVerdict.FOUND
    assert found.status is Status.DONE
    assert stored_experiment(store, "tiny") == found


def test_the_peak_is_the_servers(store: Store) -> None:
    """Two workers of 10 ms can do 200 a second at most, and 40 ms come only near that."""
    peak = run(store, peak_start()).peaks[0].peak
    assert peak is not None
    assert peak.rate_per_s is not None
    assert 170 < peak.rate_per_s.value < 200
    assert peak.trials == len(stored_experiment(store, "tiny").peaks[0].trials) > 5


def test_every_trial_is_kept_before_the_next_begins(store: Store) -> None:
    start = peak_start()
    kept: list[int] = []

    def before(order: Any) -> None:
        peaks = stored_experiment(store, start.study_id).peaks
        kept.append(len(peaks[0].trials))
        assert kept[-1] == order.order

    store.begin(EXPERIMENT, start)
    with WatchedPool(before) as pool:
        run_experiment(start, store, pool, compare=False)
    assert kept == list(range(len(kept)))
    assert len(kept) > 5


def test_the_seed_decides_everything(store: Store) -> None:
    first, again, other = (run(store, peak_start(seed=seed)) for seed in (1, 1, 2))
    assert outcome(first) == outcome(again)
    seeds = [{trial.seed for trial in found.peaks[0].trials} for found in (first, other)]
    assert len(seeds[0]) == len(first.peaks[0].trials), "every trial draws its own numbers"
    assert not seeds[0] & seeds[1]


@pytest.mark.parametrize("trials", [0, 1, 7])
def test_a_search_that_was_killed_goes_on_where_it_was(store: Store, trials: int) -> None:
    whole = run(store, peak_start())
    start = peak_start()
    stored = run_until(store, start, trials)
    assert stored.status is Status.STOPPED
    assert stored.peaks[0].peak is None
    assert len(stored.peaks[0].trials) == trials
    assert "--resume" in stored.sentences[0]
    with open_pool() as pool:
        found = run_experiment(start, store, pool, stored=stored, compare=False)
    assert outcome(found) == outcome(whole)
    assert found.status is Status.DONE
    assert "--resume" not in found.sentences[0]


def test_a_seeded_search_goes_on_with_its_seed(store: Store) -> None:
    """Its prior is kept with it: another one would ask for other loads."""
    start = peak_start(policy="binary-seeded")
    prior = Prior(rate_per_s=150.0)
    whole = run(store, peak_start(policy="binary-seeded"), prior=prior)
    store.begin(EXPERIMENT, start)
    runs: list[object] = []

    def before(order: object) -> None:
        runs.append(order)
        if len(runs) == 4:
            raise Killed

    with pytest.raises(Killed), WatchedPool(before) as pool:
        run_experiment(start, store, pool, prior=prior)
    stored = stored_experiment(store, start.study_id)
    with open_pool() as here:
        found = run_experiment(start, store, here, stored=stored, compare=False)
    assert found.peaks[0].trials[0].request.rate_per_s == 150.0
    assert outcome(found) == outcome(whole)


def test_trials_of_another_policy_are_not_taken_for_ones_own(store: Store) -> None:
    start = peak_start()
    stored = run_until(store, start, 3)
    trials = stored.peaks[0].trials
    other = msgspec.structs.replace(
        trials[1], request=msgspec.structs.replace(trials[1].request, rate_per_s=77.0)
    )
    search = PeakSearch(start, start.samples[0])
    with pytest.raises(ReplayRefused, match=r"trial 1 of .* 77 requests/s.*without --resume"):
        search.replay([trials[0], other])


def test_a_deadline_is_kept_and_what_was_reached_is_the_answer(store: Store) -> None:
    found = run(store, peak_start(deadline_s=300.0))
    own = found.peaks[0]
    assert own.peak is not None
    assert own.peak.verdict is PeakVerdict.DEADLINE
    assert own.peak.limited_by == "time"
    assert 200 < sum(trial.cost_s for trial in own.trials) <= 300
    assert found.status is Status.DONE
    assert "as far as the time allowed" in found.sentences[0]


def test_a_deadline_too_short_for_a_single_trial(store: Store) -> None:
    found = run(store, peak_start(deadline_s=5.0))
    own = found.peaks[0]
    assert own.trials == ()
    assert own.peak is not None
    assert (own.peak.verdict, own.peak.rate_per_s) == (PeakVerdict.DEADLINE, None)
    assert "no peak rate, the time ended first" in found.sentences[0]


class Heedless:
    """A policy that knows no deadline, and always believes that it found the rate."""

    name = "heedless"

    def __init__(self, goal: Any) -> None:
        self._inner = open_policy("binary", msgspec.structs.replace(goal, deadline_s=None), 1)

    def ask(self) -> Any:
        return self._inner.ask()

    def tell(self, trial: Trial) -> None:
        self._inner.tell(trial)

    def answer_now(self) -> PeakRate:
        found = self._inner.answer_now()
        return msgspec.structs.replace(found, verdict=PeakVerdict.FOUND, limited_by="server")


def test_the_loop_minds_the_deadline_whatever_the_policy_does(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "leadline.studies.workbench.search.open_policy", lambda *asked: Heedless(asked[1])
    )
    own = run(store, peak_start(deadline_s=200.0)).peaks[0]
    assert sum(trial.cost_s for trial in own.trials) <= 200
    assert own.peak is not None
    assert (own.peak.verdict, own.peak.limited_by) == (PeakVerdict.DEADLINE, "time")


def test_an_unknown_policy_is_refused_before_anything_is_kept(store: Store) -> None:
    with pytest.raises(UnknownPolicy, match="no policy 'linaer'"):
        peak_start(policy="linaer")
    assert store.list() == ()


def test_a_surface_measures_its_samples_and_says_what_they_tell(store: Store) -> None:
    found = run(store, surface_start())
    assert [own.sample for own in found.peaks] == [{"workers": n} for n in (1, 2, 4)]
    seeds = [trial.seed for own in found.peaks for trial in own.trials]
    assert len(set(seeds)) == len(seeds), "samples share their randomness"
    assert found.surface is not None
    rates = [cell.rate_per_s.value for cell in found.surface.cells if cell.rate_per_s]
    assert rates == sorted(rates)
    assert rates[2] / rates[0] == pytest.approx(4, rel=0.2)
    assert found.surface.ideal == {"workers": 4}
    assert "3 of 3 samples measured" in found.sentences[1]
    assert stored_experiment(store, found.start.study_id) == found


def test_several_machines_measure_several_samples_at_once(store: Store) -> None:
    """And find the same: nothing depends on who is first."""
    alone = run(store, surface_start())
    text = TEXT.replace('kind = "simulated"', 'kind = "simulated"\nwall_scale = 0.0002', 1)
    start = surface_start(text)
    store.begin(EXPERIMENT, start)
    with SeveralMachines(2) as pool:
        found = run_experiment(start, store, pool, compare=False)
    assert pool.most_at_once == 2
    assert outcome(found) == outcome(alone)
    start = surface_start(text)
    store.begin(EXPERIMENT, start)
    with SeveralMachines(3) as pool:
        run_experiment(start, store, pool, at_once=1)
    assert pool.most_at_once == 1


def test_lost_machines_are_counted_in_the_answer(store: Store) -> None:
    start = peak_start()
    store.begin(EXPERIMENT, start)
    with SeveralMachines(1, lost=2) as pool:
        found = run_experiment(start, store, pool, compare=False)
    assert "2 trials lost their machine and ran again on another" in map(str, found.findings)


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_a_surface_that_was_killed_goes_on_where_it_was(store: Store, ended: int) -> None:
    whole = run(store, surface_start())
    trials = 3 + sum(len(own.trials) for own in whole.peaks[:ended])
    start = surface_start()
    stored = run_until(store, start, trials)
    assert sum(own.peak is not None for own in stored.peaks) == ended
    with open_pool() as pool:
        found = run_experiment(start, store, pool, stored=stored, compare=False)
    assert outcome(found) == outcome(whole)
    assert found.surface == whole.surface
    first = stored_experiment(store, start.study_id).peaks[0].trials[:1]
    assert first == stored.peaks[0].trials[:1], "what was measured was measured again"


def test_the_deadline_of_a_surface_ends_it_with_what_is_known(store: Store) -> None:
    whole = run(store, surface_start())
    first_s = sum(trial.cost_s for trial in whole.peaks[0].trials)
    found = run(store, surface_start(deadline_s=first_s + 100))
    spent_s = sum(trial.cost_s for own in found.peaks for trial in own.trials)
    assert first_s < spent_s <= first_s + 100
    assert found.status is Status.DONE
    assert len(found.peaks) == 2, "samples were begun for which there was no time"
    assert all(own.trials for own in found.peaks)
    assert found.peaks[-1].peak is not None
    assert found.peaks[-1].peak.verdict is PeakVerdict.DEADLINE
    assert "(deadline)" in str(found.findings[-1])


def test_a_watcher_hears_of_every_trial_and_peak_once_it_is_kept(store: Store) -> None:
    heard: list[tuple[Sample, object]] = []
    start = surface_start()

    class Listener(TrialWatcher):
        def on_trial(self, sample: Sample, trial: Trial) -> None:
            kept = stored_experiment(store, start.study_id).peaks[-1]
            assert kept.trials[-1] == trial
            heard.append((sample, trial.order))

        def on_peak(self, sample: Sample, peak: PeakRate, surface: Surface | None) -> None:
            assert surface is not None
            assert stored_experiment(store, start.study_id).peaks[-1].peak == peak
            heard.append((sample, peak.verdict))

    found = run(store, start, watcher=Listener())
    expected = [
        (own.sample, what)
        for own in found.peaks
        for what in [*range(len(own.trials)), PeakVerdict.FOUND]
    ]
    assert heard == expected


def test_an_experiment_that_still_runs_is_told_as_far_as_it_went(store: Store) -> None:
    start = peak_start()
    store.begin(EXPERIMENT, start)
    KeptExperiment(store, start, None).begin_sample(start.samples[0], None)
    told = experiment_of(store, "tiny")
    assert told.sentences[1].startswith("tiny (workers=2): no answer yet, after 0 ms, 0 trials")


def test_what_two_machines_had_begun_one_machine_ends(store: Store) -> None:
    """Killed with two searches under way; each goes on from its own trials."""
    whole = run(store, surface_start())
    start = surface_start()
    store.begin(EXPERIMENT, start)
    kept = KeptExperiment(store, start, None)
    begun: list[tuple[Sample, int]] = [({"workers": 1}, 4), ({"workers": 2}, 3)]
    for sample, trials in begun:
        search = PeakSearch(start, sample)
        kept.begin_sample(sample, None)
        for _ in range(trials):
            order = search.ask()
            assert not isinstance(order, PeakRate)
            trial = run_trial(order)
            kept.add_trial(sample, trial)
            search.tell(trial)
    stored = stored_experiment(store, start.study_id)
    with open_pool() as pool:
        found = run_experiment(start, store, pool, stored=stored)
    assert [own.sample for own in found.peaks[:2]] == [{"workers": 1}, {"workers": 2}]
    assert [own.trials[:3] for own in found.peaks[:2]] == [own.trials[:3] for own in stored.peaks]
    assert outcome(found)[0] == outcome(whole)[0]
    assert found.status is Status.DONE


def test_whoever_does_not_wait_for_the_comparison_has_the_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(found: Experiment) -> Experiment:
        assert found.sentences
        raise Killed

    monkeypatch.setattr("leadline.studies.workbench.search.with_fares", interrupted)
    with pytest.raises(Killed):
        run(store, peak_start(), compare=True)
    kept = stored_experiment(store, "tiny")
    assert kept.status is Status.DONE
    assert kept.peaks[0].peak is not None


class Clock:
    """A wall clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr("leadline.studies.workbench.search.time", moved)
    return moved


def real_start(deadline_s: float) -> ExperimentStart:
    start = peak_start(deadline_s=deadline_s)
    return msgspec.structs.replace(start, server=CommandServer(load=("load", "{rate}")))


def told(search: PeakSearch, trials: int) -> None:
    for _ in range(trials):
        order = search.ask()
        assert not isinstance(order, PeakRate)
        answer = sample_trial(order.order)
        search.tell(msgspec.structs.replace(answer, request=order.request, cost_s=15.0))


def test_on_a_real_server_time_passes_between_trials_too(clock: Clock) -> None:
    """The deadline is the wall's, whatever the trials themselves cost."""
    search = PeakSearch(real_start(100.0), {"workers": 2})
    told(search, 2)
    clock.now_s += 74.0
    assert not isinstance(search.ask(), PeakRate)
    clock.now_s += 2.0
    answer = search.ask()
    assert isinstance(answer, PeakRate)
    assert answer.verdict is PeakVerdict.DEADLINE
    simulated = PeakSearch(peak_start(deadline_s=100.0), {"workers": 2})
    clock.now_s += 1000.0
    assert not isinstance(simulated.ask(), PeakRate)


def test_what_was_spent_before_a_kill_counts_against_the_deadline(clock: Clock) -> None:
    first = PeakSearch(real_start(100.0), {"workers": 2})
    told(first, 3)
    again = PeakSearch(first.start, {"workers": 2})
    again.replay(first.trials)
    clock.now_s += 29.0
    assert not isinstance(again.ask(), PeakRate)
    clock.now_s += 2.0
    assert isinstance(again.ask(), PeakRate)
