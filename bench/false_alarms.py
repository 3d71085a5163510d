"""How often findings come on systems that are steady, and how often they find a planted fault.

    .venv/bin/python bench/false_alarms.py [--seeds 20] [--processes 2] [--save]

Steady: surveys of 30 virtual minutes of simulated systems without drift, steps, bursts and
writeback, two of the papers' and two invented ones. A finding of a point counts over all points,
one of a survey over all surveys; whatever comes is a false alarm.

Planted, in single runs of 20 s after 2 s of warm-up: a speed that falls to a half in the middle of
the window (`level_shift`), a quarter of the speed by turns (`two_rates`), a speed that climbs by a
half of its first value each second (`not_steady`), standstills of half a second (`stall`), an open
loop at 1.2 times the capacity (`missed_rate`). In surveys of 30 minutes: a loss of 30% an hour
(`drift`), a fall by a fifth in the middle (`step`).
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from figures import Cell, Column, Content, Row, add_save_option, markdown, save
from leadline.engine import Limits, Simulated, open_engine
from leadline.engine.targets.profiles import load_profile
from leadline.record import Workload
from leadline.record.job import Arrivals
from leadline.record.survey import SURVEY
from leadline.store import open_store
from leadline.studies.survey.study import SurveyOptions, begin_survey, run_survey

MEASURES = (
    "python/leadline/studies/survey",
    "python/leadline/record/findings.toml",
    "crates/engine/src/evidence",
    "crates/engine/src/run",
    "crates/sim/src/law",
    "crates/stats/src",
)
COUNT = ("{value:.0f} of {n}",)
COLUMNS = (
    Column("code", "finding"),
    Column("of", "of"),
    Column("alarms", "on steady systems", COUNT),
    Column("alarm_share", "false alarms", ("{value:.1f}%",), "%"),
    Column("found", "planted faults found", COUNT),
    Column("found_share", "hit rate", ("{value:.0f}%",), "%"),
)
STEADY = ("two-level", "four-level", "hp-730", "decstation-5000-ultrix")
ALARMS_MOST, FOUND_LEAST = 5.0, 90.0
BUDGET_S = 1800.0
LIMITS = Limits(
    warm_up_s_max=2.0, measure_s_min=20.0, measure_s_max=20.0, accuracy=0.0, total_s_max=60.0
)
MIDDLE_S = 12.0
WORKLOAD = Workload(
    unique_bytes=8 << 30, size_mean=16384, read_frac=1.0, seq_frac=0.0, process_num=4
)

Profile = dict[str, Any]


class Seen(NamedTuple):
    """What one survey found."""

    points: int
    of_points: Counter[str]
    of_survey: frozenset[str]


def main() -> None:
    """Survey, plant, print and store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    add_save_option(parser, "false_alarms")
    asked = parser.parse_args()
    seeds = range(1, asked.seeds + 1)
    with multiprocessing.Pool(asked.processes) as pool:
        jobs = [(load_profile(name), seed) for name in STEADY for seed in seeds]
        steady = pool.starmap(surveyed, jobs)
        single = {code: sum(pool.map(partial(finds, code), seeds)) for code in PLANTED_IN_RUNS}
        in_surveys = {
            code: sum(code in seen.of_survey for seen in pool.starmap(surveyed, planted))
            for code, change in PLANTED_IN_SURVEYS.items()
            if (planted := [(_changed(change), seed) for seed in seeds])
        }
    rows = tuple(rows_of(steady, single | in_surveys, asked.seeds))
    print("\n".join(markdown(COLUMNS, rows)))
    save(asked, COLUMNS, rows, seeds=f"seeds 1 to {asked.seeds}")


def surveyed(profile: Profile, seed: int) -> Seen:
    """Survey one simulated system for thirty virtual minutes."""
    target = Simulated(text=f"sim:{profile['meta']['name']}", profile=profile)
    store = open_store("sqlite://")
    with open_engine(target, run_seed=seed) as engine:
        asked = SurveyOptions(target.name, BUDGET_S, None, seed)
        start = begin_survey(engine, target, asked, study_id=f"{target.name}-{seed}")
        store.begin(SURVEY, start)
        survey = run_survey(engine, store, start)
    points = store.items(start.study_id)
    codes = [
        {found.code for found in point.result.findings if not found.is_note} for point in points
    ]
    of_points = Counter(code for each in codes for code in each)
    of_survey = frozenset(found.code for found in survey.findings if not found.is_note)
    return Seen(len(points), of_points, of_survey - {"points_found"})  # which repeats the points'


def rows_of(steady: list[Seen], planted: dict[str, int], seeds: int) -> Iterator[Row]:
    """Yield a row for every finding that was planted or that came by itself."""
    points = sum(seen.points for seen in steady)
    by_point = sum((seen.of_points for seen in steady), Counter[str]())
    by_survey = Counter(code for seen in steady for code in seen.of_survey)
    runs = dict.fromkeys([*PLANTED_IN_RUNS, *sorted(by_point)])
    for code in runs:
        yield _row(code, "points", Cell(by_point[code], n=points), planted.get(code), seeds)
    for code in dict.fromkeys([*PLANTED_IN_SURVEYS, *sorted(by_survey)]):
        if code not in runs:
            yield _row(
                code, "surveys", Cell(by_survey[code], n=len(steady)), planted.get(code), seeds
            )


def _row(code: str, of: str, alarms: Cell, found: int | None, seeds: int) -> Row:
    cells: dict[str, Content] = {
        "code": f"`{code}`",
        "of": of,
        "alarms": alarms,
        "alarm_share": Cell(100 * alarms.value / (alarms.n or 1), most=ALARMS_MOST),
    }
    if found is not None:
        cells["found"] = Cell(found, n=seeds)
        cells["found_share"] = Cell(100 * found / seeds, least=FOUND_LEAST)
    return Row(f"{of}.{code}", cells)


def _changed(change: Callable[[Profile], None]) -> Profile:
    profile = copy.deepcopy(load_profile("two-level"))
    change(profile)
    return profile


def _step(at_s: float, factor: float) -> Callable[[Profile], None]:
    return lambda profile: profile.update(drift={"shape": "step", "at_s": at_s, "factor": factor})


def _climb(profile: Profile) -> None:
    profile["drift"] = {"shape": "linear", "rate_per_hour": 0.5 * 3600.0}


def _standstills(profile: Profile) -> None:
    profile["bursts"] = {"mean_slow_s": 0.5, "mean_normal_s": 2.0, "slow_factor": 1e4}


def _turns(profile: Profile) -> None:
    profile["bursts"] = {"mean_slow_s": 0.4, "mean_normal_s": 0.6, "slow_factor": 4.0}


PLANTED_IN_RUNS: dict[str, Callable[[Profile], None]] = {
    "level_shift": _step(MIDDLE_S, 0.5),
    "two_rates": _turns,
    "not_steady": _climb,
    "stall": _standstills,
    "missed_rate": lambda _: None,
}
PLANTED_IN_SURVEYS: dict[str, Callable[[Profile], None]] = {
    "drift": lambda profile: profile.update(drift={"rate_per_hour": -0.3}),
    "step": _step(BUDGET_S / 2, 0.8),
}


def finds(code: str, seed: int) -> bool:
    """Whether a single run finds what was planted."""
    profile = _changed(PLANTED_IN_RUNS[code])
    with open_engine(Simulated(text="sim:planted", profile=profile), run_seed=seed) as engine:
        arrivals = Arrivals()
        if code == "missed_rate":
            calm = engine.run(WORKLOAD, seed=seed, limits=LIMITS)
            arrivals = Arrivals("poisson", 1.2 * calm.iops.value)
        result = engine.run(WORKLOAD, seed=seed, limits=LIMITS, arrivals=arrivals)
    return code in {found.code for found in result.findings}


if __name__ == "__main__":
    main()
