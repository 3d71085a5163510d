"""How often a watch tells of a change for nothing, and how soon of one: series of known truth.

    .venv/bin/python bench/monitor.py [--months 60] [--save]

A month is 4,320 probes, one every ten minutes. False alarms are counted on noise of one level
(normal, log-normal, and with one probe in fifty five times as slow); changes are planted at random
after a day, by so many standard deviations of the noise.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from figures import Cell, Column, Content, Row, add_save_option, markdown, save, slug
from leadline.stats.monitor import Monitor

MEASURES = ("python/leadline/stats/monitor.py",)
MONTH = 4320
DAY = 144
SD = 0.05
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
NOISES: dict[str, Draw] = {
    "normal": lambda rng, n: SD * rng.standard_normal(n),
    "log-normal of log-normal": lambda rng, n: SD * np.exp(rng.standard_normal(n)),
    "normal, 1 in 50 five times as slow": lambda rng, n: (
        SD * rng.standard_normal(n) - np.log(5) * (rng.random(n) < 0.02)
    ),
}
SHIFTS = (1.0, 2.0, 4.0)


def false_alarms(draw: Draw, rng: np.random.Generator) -> int:
    """Changes told in a month without one."""
    monitor = Monitor()
    return sum(monitor.take(float(x)) is not None for x in np.exp(draw(rng, MONTH)))


def found(shift: float, rng: np.random.Generator) -> tuple[int, bool, bool] | None:
    """Probes until a change is told, and whether the intervals hold its ratio and its moment."""
    at = DAY + int(rng.integers(DAY))
    logs = SD * rng.standard_normal(at + 4 * DAY)
    logs[at:] -= shift * SD
    monitor = Monitor()
    for number, log in enumerate(logs):
        change = monitor.take(float(np.exp(log)))
        if change is not None and number >= at:
            held = change.ratio.covers(float(np.exp(-shift * SD)))
            return number - at + 1, held, change.earliest <= at <= change.latest
    return None


COLUMNS = (
    Column("what", "series"),
    Column("alarms", "false alarms a month", ("{value:.2f}",)),
    Column("told", "changes told, %", ("{value:.0f}",)),
    Column("delay", "probes until then, median", ("{value:.0f}",)),
    Column("ratio", "95% CI holds the ratio, %", ("{value:.0f}",)),
    Column("moment", "95% CI holds the moment, %", ("{value:.0f}",)),
)


def rows_of(asked: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each kind of noise and each size of change."""
    for name, draw in NOISES.items():
        rng = np.random.default_rng(asked.seed)
        alarms = statistics.fmean(false_alarms(draw, rng) for _ in range(asked.months))
        what = f"no change, {name}"
        yield Row(slug(what), {"what": what, "alarms": Cell(alarms).aiming({"most": 1.0})})
    for shift in SHIFTS:
        rng = np.random.default_rng(asked.seed)
        told = [found(shift, rng) for _ in range(asked.months)]
        known = [each for each in told if each is not None]
        what = f"a change by {shift:g} standard deviations"
        held = [100 * statistics.fmean(each[at] for each in known) for at in (1, 2)]
        cells: dict[str, Content] = {
            "what": what,
            "told": 100 * len(known) / len(told),
            "delay": statistics.median(each[0] for each in known),
            "ratio": Cell(held[0]).aiming({"least": 90.0}),
            "moment": Cell(held[1]).aiming({"least": 90.0}),
        }
        yield Row(slug(what), cells)


def main() -> None:
    """Count, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--months", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    add_save_option(parser, "monitor")
    asked = parser.parse_args()
    rows = tuple(rows_of(asked))
    print("\n".join(markdown(COLUMNS, rows)))
    seeds = f"{asked.months} months from seed {asked.seed}"
    save(asked, COLUMNS, rows, seeds=seeds)


if __name__ == "__main__":
    main()
