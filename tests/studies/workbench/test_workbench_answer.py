"""What is said of an experiment: the right words for each way in which it can end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from leadline.record import Interval, Status
from leadline.record.finding import Finding
from leadline.record.workbench import (
    Experiment,
    Goal,
    Load,
    PeakVerdict,
    SamplePeak,
    Surface,
    SurfaceCell,
    Threshold,
    Trial,
    TrialState,
)
from leadline.studies.workbench.answer import explain, format_peak, format_target
from proving.samples import sample_experiment_start, sample_peak, sample_trial

RATE = Interval(412.0, 395.0, 430.0, 5)


GAP = Finding.of("trials_of_two_kinds")


def experiment(
    verdict: PeakVerdict = PeakVerdict.FOUND,
    trials: tuple[Trial, ...] = (sample_trial(), sample_trial(1)),
    deadline_s: float | None = None,
    **peak: Any,
) -> Experiment:
    start = sample_experiment_start()
    goal = msgspec.structs.replace(start.goal, deadline_s=deadline_s)
    start = msgspec.structs.replace(start, goal=goal, samples=start.samples[:1])
    answer = msgspec.structs.replace(
        sample_peak(2), **({"verdict": verdict, "rate_per_s": RATE, "sentences": ()} | peak)
    )
    own = SamplePeak(sample=start.samples[0], trials=trials, peak=answer)
    return Experiment(start=start, status=Status.DONE, peaks=(own,))


VERDICTS: dict[PeakVerdict, tuple[dict[str, Any], str]] = {
    PeakVerdict.FOUND: (
        {},
        (
            "tiny-server (workers=1): peak rate 412 requests/s, 95% CI [395, 430], at mean "
            "response time 40 ms."
        ),
    ),
    PeakVerdict.DEADLINE: (
        {"accuracy": 0.8, "limited_by": "time"},
        (
            "peak rate 412 requests/s, 95% CI [395, 430], at mean response time 40 ms; as far as "
            "the time allowed, accuracy 0.8 of 0.9."
        ),
    ),
    PeakVerdict.GAVE_UP: (
        {"accuracy": 0.8, "limited_by": "server"},
        (
            "peak rate 412 requests/s, 95% CI [395, 430], at mean response time 40 ms; as far as "
            "the policy could tell, accuracy 0.8 of 0.9."
        ),
    ),
    PeakVerdict.NEVER_SATURATED: (
        {"rate_per_s": None, "lower_bound_per_s": 800.0},
        "not saturated at any load; peak rate at least 800 requests/s.",
    ),
    PeakVerdict.ALWAYS_SATURATED: (
        {"rate_per_s": None},
        (
            "saturated at every load tried, down to 100 requests/s; target: mean response time "
            "40 ms."
        ),
    ),
    PeakVerdict.GENERATOR_LIMITED: (
        {"rate_per_s": None, "lower_bound_per_s": 800.0},
        (
            "tiny-server (workers=1): not saturated, the load generator is the bottleneck; peak "
            "rate at least 800 requests/s."
        ),
    ),
    PeakVerdict.SERVER_LOST: (
        {"rate_per_s": None},
        "died or stopped answering under load; peak rate not known.",
    ),
    PeakVerdict.IRREGULAR: (
        {},
        "no single peak rate, its trials contradict each other. About 412 requests/s, 95% CI [395",
    ),
    PeakVerdict.FAILED: ({"rate_per_s": None}, "no answer, trials failed repeatedly."),
}


@pytest.mark.parametrize("verdict", PeakVerdict)
def test_every_verdict_has_its_words(verdict: PeakVerdict) -> None:
    changes, words = VERDICTS[verdict]
    found = explain(experiment(verdict, **changes))
    assert words in found.sentences[0]
    assert "Test time: 50 s, 2 trials; peak rate of 3 min trials." in found.sentences[-1]


def test_a_deadline_says_that_it_was_the_time() -> None:
    late: dict[str, Any] = {"accuracy": 0.8, "limited_by": "time", "deadline_s": 600.0}
    said = explain(experiment(PeakVerdict.DEADLINE, **late)).sentences
    assert "as far as the time allowed, accuracy 0.8 of 0.9." in said[0]
    assert said[-1].startswith("Limited by time: a longer deadline would narrow the interval.")
    none = explain(experiment(PeakVerdict.DEADLINE, **late, rate_per_s=None)).sentences
    assert "no peak rate, the time ended first." in none[0]
    sure = late | {"accuracy": 0.95}
    assert (
        "; not confirmed, as far as"
        in explain(experiment(PeakVerdict.DEADLINE, **sure)).sentences[0]
    )


@pytest.mark.parametrize("deadline_s", [None, 600.0])
def test_a_policy_that_gave_up_asks_for_no_longer_deadline(deadline_s: float | None) -> None:
    """Whether there was one or not: it was not the time."""
    gave_up: dict[str, Any] = {"accuracy": 0.8, "limited_by": "server", "deadline_s": deadline_s}
    said = explain(experiment(PeakVerdict.GAVE_UP, **gave_up)).sentences
    assert "longer deadline" not in " ".join(said)
    assert said[-1].startswith("Bottleneck: server; another seed or policy may narrow")
    none = explain(experiment(PeakVerdict.GAVE_UP, **gave_up, rate_per_s=None))
    assert "no peak rate, the policy gave up first." in none.sentences[0]


@pytest.mark.parametrize(
    ("limited_by", "words"),
    [
        ("server", "Bottleneck: server."),
        ("generator", "Bottleneck: load generator, not the server."),
        ("unknown", "Bottleneck: unknown."),
    ],
)
def test_what_limited_is_said(limited_by: str, words: str) -> None:
    assert explain(experiment(limited_by=limited_by)).sentences[-1].startswith(words)


def test_both_bounds_are_said_when_there_are_both() -> None:
    both = explain(experiment(lower_bound_per_s=400.0, upper_bound_per_s=425.0)).sentences
    assert both[0].endswith("40 ms (met at 400, exceeded at 425 requests/s).")
    only: tuple[dict[str, Any], ...] = ({"lower_bound_per_s": 400.0}, {"upper_bound_per_s": 425.0})
    for bounds in only:
        assert "met at" not in " ".join(explain(experiment(**bounds)).sentences)


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        (Threshold(mean_ms=40.0), "mean response time 40 ms"),
        (Threshold(percentile=0.95, limit_ms=100.0), "95% of responses within 100 ms"),
        (
            Threshold(mean_ms=2.5, percentile=0.99, limit_ms=8.0),
            "mean response time 2.5 ms and 99% of responses within 8 ms",
        ),
    ],
)
def test_target_names_every_limit(threshold: Threshold, words: str) -> None:
    assert format_target(threshold) == words


def test_a_rate_without_an_interval_says_so() -> None:
    assert format_peak(Interval(12.34, None, None, 1), 0.95) == "12.3 requests/s (no interval)"
    assert format_peak(Interval(12345.6, 12000.0, 12800.0, 9), 0.9) == (
        "12,346 requests/s, 90% CI [12,000, 12,800]"
    )


def test_trials_that_say_nothing_are_warned_of() -> None:
    def ended(state: TrialState, failure: str) -> Trial:
        return msgspec.structs.replace(sample_trial(), state=state, failure=failure, measured=None)

    measured = sample_trial().measured
    assert measured is not None
    late = msgspec.structs.replace(
        sample_trial(), measured=msgspec.structs.replace(measured, sent_late_ms_p99=7.5)
    )
    trials = (
        ended(TrialState.FAILED, "no room"),
        ended(TrialState.FAILED, "the disk is full"),
        ended(TrialState.SERVER_LOST, "it died"),
        late,
    )
    warnings = tuple(map(str, explain(experiment(trials=trials, findings=(GAP,))).findings))
    assert warnings == (
        "2 trials failed and are not counted; last: the disk is full",
        "the server was lost in 1 trial; last: it died",
        "the generator sent up to 7.5 ms late (99%) in 1 trial; response times include that",
        f"workers=1: {GAP}",
    )
    assert explain(experiment()).findings == ()
    assert explain(experiment(PeakVerdict.DEADLINE)).findings == (), "its first sentence says it"


def surface(measured: int, **changes: Any) -> Experiment:
    start = msgspec.structs.replace(
        sample_experiment_start(), design="full-grid", surface_error_frac=0.06
    )
    cells = tuple(
        SurfaceCell(sample=sample, rate_per_s=RATE, measured=place < measured)
        for place, sample in enumerate(start.samples)
    )
    whole = Surface(
        model="soft-min",
        cells=cells,
        error_frac=0.045,
        cost_s=50.0,
        ideal={"workers": 4},
        flat=("workers changes nothing from 2 on",),
    )
    peaks = tuple(
        SamplePeak(sample=sample, trials=(sample_trial(),), peak=sample_peak())
        for sample in start.samples[:measured]
    )
    found = Experiment(
        start=start,
        status=Status.DONE,
        peaks=peaks,
        surface=msgspec.structs.replace(whole, **changes),
    )
    return explain(found)


def test_a_surface_says_what_was_measured_and_what_is_the_models() -> None:
    said = surface(1).sentences
    assert said[1] == "tiny-server: 1 of 2 samples measured; test time: 25 s, 1 trial."
    assert said[2] == ("Others by model soft-min: expected mean error 4.5%; 6.0% was asked.")
    assert said[0] == (
        "Smallest configuration at peak: workers=4: 412 requests/s, 95% CI [395, 430], by the "
        "model."
    )
    assert said[3] == "workers changes nothing from 2 on."
    assert len(said) == 4


def test_a_surface_that_was_wholly_measured_needs_no_model() -> None:
    said = " ".join(surface(2).sentences)
    assert "Others by" not in said
    assert "measured." in said


def test_a_surface_that_missed_its_error_says_so() -> None:
    for error in (0.08, None):
        said = surface(1, error_frac=error).sentences
        assert said[-1].startswith("Requested error not reached")


def test_a_surface_without_a_best_sample_names_none() -> None:
    for ideal in (surface(1), surface(1, ideal=None)):
        best = [said for said in ideal.sentences if said.startswith("Smallest configuration")]
        assert len(best) == (ideal.surface is not None and ideal.surface.ideal is not None)


def test_samples_without_their_rate_are_named() -> None:
    found = surface(2)
    lost = msgspec.structs.replace(sample_peak(), verdict=PeakVerdict.SERVER_LOST)
    peaks = (found.peaks[0], msgspec.structs.replace(found.peaks[1], peak=lost))
    said = tuple(map(str, explain(msgspec.structs.replace(found, peaks=peaks)).findings))
    assert said[-1] == "not found as asked: workers=4 (server-lost)"


def test_a_search_without_an_answer_says_what_it_has_spent() -> None:
    begun = experiment()
    peaks = (msgspec.structs.replace(begun.peaks[0], peak=None),)
    said = explain(msgspec.structs.replace(begun, peaks=peaks, status=Status.STOPPED)).sentences
    assert said[1].endswith(": no answer yet, after 50 s, 2 trials.")
    assert len(said) == 2


def test_a_stop_comes_first() -> None:
    stopped = msgspec.structs.replace(experiment(), status=Status.STOPPED)
    assert explain(stopped).sentences[0] == ("It was stopped early; --resume goes on from here.")
    empty = msgspec.structs.replace(stopped, peaks=())
    assert explain(empty).sentences[1] == "No trial was begun."


def test_a_goal_of_the_record_is_half_the_interval() -> None:
    assert Goal(threshold=Threshold(mean_ms=1.0), accuracy=0.9).error_frac == pytest.approx(0.1)


@pytest.mark.parametrize(
    "verdict", [PeakVerdict.ALWAYS_SATURATED, PeakVerdict.FAILED, PeakVerdict.SERVER_LOST]
)
def test_a_search_of_no_load_is_told_as_well(verdict: PeakVerdict) -> None:
    said = explain(experiment(verdict, rate_per_s=None, loads=())).sentences
    assert said[0].startswith("tiny-server (workers=1)")
    if verdict is PeakVerdict.ALWAYS_SATURATED:
        assert "down to 0 requests/s" in said[0]


def test_an_accuracy_that_was_just_reached_in_time_is_not_confirmed() -> None:
    for accuracy, words in ((0.9, "not confirmed"), (0.89, "accuracy 0.89 of 0.9")):
        late = experiment(PeakVerdict.DEADLINE, accuracy=accuracy, limited_by="time")
        assert words in explain(late).sentences[0]
    none = experiment(PeakVerdict.DEADLINE, accuracy=None, limited_by="time")
    assert "no accuracy of 0.9" in explain(none).sentences[0]


def test_bounds_that_are_one_or_crossed_are_none() -> None:
    for low, high, told in ((400.0, 425.0, 1), (425.0, 425.0, 0), (430.0, 425.0, 0)):
        found = explain(experiment(lower_bound_per_s=low, upper_bound_per_s=high)).sentences
        assert sum("(met at " in said for said in found) == told


def load(rate_per_s: float, trials: int, *, saturated: bool | None) -> Load:
    return Load(
        rate_per_s=rate_per_s,
        trials=trials,
        response_ms=None,
        percentile_ms=None,
        saturated=saturated,
    )


CONTRARY: list[tuple[tuple[Load, ...], Interval, str]] = [
    (
        (load(390.0, 1, saturated=False), load(408.0, 4, saturated=True)),
        RATE,
        (
            "The peak lies 1.0% above a load that was found saturated, by 4 trials at 408 "
            "requests/s, at 95%; the peak is what all 2 trials say together, at 95%. 408 "
            "requests/s lies in the peak's interval, so they agree."
        ),
    ),
    (
        (load(390.0, 1, saturated=True), load(400.0, 3, saturated=True)),
        RATE,
        "found saturated, by 1 trial at 390 requests/s, one reading of a response that varies;",
    ),
    ((load(390.0, 1, saturated=True),), RATE, "so they contradict each other; another --seed"),
    (
        (load(415.0, 2, saturated=False), load(420.0, 2, saturated=False)),
        RATE,
        "The peak lies 1.9% below a load that was found unsaturated, by 2 trials at 420 requests",
    ),
    (
        (load(408.0, 4, saturated=True),),
        Interval(412.0, None, None, 2),
        "The peak is told without an interval.",
    ),
]


@pytest.mark.parametrize(("loads", "rate", "words"), CONTRARY)
def test_a_peak_beyond_a_load_that_was_found_otherwise_says_why(
    loads: tuple[Load, ...], rate: Interval, words: str
) -> None:
    found = explain(experiment(loads=loads, rate_per_s=rate)).sentences
    assert words in " ".join(found), found
    assert sum(said.startswith("The peak lies") for said in found) == 1


def test_loads_on_their_own_side_of_the_peak_need_no_reason() -> None:
    loads = (
        load(390.0, 1, saturated=False),
        load(411.0, 2, saturated=None),
        load(413.0, 2, saturated=True),
    )
    for rate in (RATE, None):
        found = explain(experiment(loads=loads, rate_per_s=rate)).sentences
        assert not [said for said in found if said.startswith("The peak lies")]


def test_the_best_sample_of_a_surface_without_its_rate_is_named_alone() -> None:
    """Its peak was lost, or nobody has a number for the cell."""
    found = surface(1)
    assert found.surface is not None
    without = tuple(msgspec.structs.replace(cell, rate_per_s=None) for cell in found.surface.cells)
    for cells in ((), without):
        said = surface(1, cells=cells).sentences
        assert "Smallest configuration at peak: workers=4." in said
    measured = surface(2).sentences
    assert any(said.endswith("95% CI [395, 430], measured.") for said in measured)


def test_samples_without_their_rate_are_listed_up_to_five() -> None:
    found = surface(2)
    (whole, other) = found.peaks
    lost = msgspec.structs.replace(
        other, peak=msgspec.structs.replace(sample_peak(), verdict=PeakVerdict.GAVE_UP)
    )

    def said(count: int) -> list[str]:
        peaks = (whole, *[lost] * count)
        warnings = map(str, explain(msgspec.structs.replace(found, peaks=peaks)).findings)
        return [each for each in warnings if each.startswith("not found as asked")]

    assert said(0) == []
    assert said(5)[0].count("workers=4 (gave-up)") == 5
    assert "more" not in said(5)[0]
    assert said(7)[0].count("workers=4 (gave-up)") == 5
    assert said(7)[0].endswith("and 2 more")
    begun = msgspec.structs.replace(other, peak=None)
    peaks = (whole, begun)
    assert not explain(msgspec.structs.replace(found, peaks=peaks)).findings


def test_a_warning_says_of_which_sample_it_is_where_there_is_one() -> None:
    found = experiment(findings=(GAP,))
    assert explain(found).findings == (msgspec.structs.replace(GAP, where="workers=1"),)
    only = msgspec.structs.replace(found.peaks[0], sample={})
    assert explain(msgspec.structs.replace(found, peaks=(only,))).findings == (GAP,)
