"""Survey every simulated profile many times and hold the answers against the known truth.

Prints one row per profile: how often the number of regions was right, the boundary errors, and how
often the stated 95% intervals of all curve points covered the truth.

    .venv/bin/python bench/profiles.py [--runs 200] [--profile NAME ...] [--processes 2]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from dataclasses import dataclass
from functools import partial

from figures import Cell, Column, Content, add_save_option, save
from figures import Row as Line
from leadline.engine import profile_names
from proving.simulation import SimulatedSurvey, simulate_survey

MEASURES = (
    "python/leadline/studies/survey",
    "python/leadline/stats",
    "python/leadline/profiles",
    "crates/sim/src/law",
    "crates/stats/src",
)
COLUMNS = (
    Column("profile", "profile"),
    Column("regions", "regions right", ("{value:.0f} of {n}",)),
    Column("within_10", "boundaries within 10%, %", ("{value:.1f}",)),
    Column("median", "median % off", ("{value:.1f}",)),
    Column("worst", "worst % off", ("{value:.1f}",)),
    Column("boundary_cover", "boundary cover %", ("{value:.1f}",)),
    Column("point_cover", "points cover %", ("{value:.1f}",)),
    Column("half", "half width %", ("{value:.1f}",)),
    Column("points", "points", ("{value:.0f}",)),
    Column("time", "time, s", ("{value:.0f}",)),
)


@dataclass(frozen=True)
class Row:
    """One survey held against the truth."""

    regions_right: bool
    boundary_errors: tuple[float, ...]
    boundary_covered: tuple[bool, ...]
    points_covered: int
    points: int
    widths: tuple[float, ...]
    readings: int


def judge(seed: int, profile: str) -> Row:
    """Run one survey and compare it with the profile's truth."""
    run: SimulatedSurvey = simulate_survey(profile, seed)
    right = len(run.survey.regions) == run.true_regions
    pairs = list(zip(run.survey.boundaries, run.true_boundaries, strict=False)) if right else []
    covered = run.covered_points()
    return Row(
        regions_right=right,
        boundary_errors=tuple(abs(b.bytes.value / truth - 1) for b, truth in pairs),
        boundary_covered=tuple(b.bytes.covers(truth) for b, truth in pairs),
        points_covered=sum(covered),
        points=len(covered),
        widths=tuple(run.half_widths()),
        readings=run.survey.points,
    )


def percent(values: list[float] | list[bool], *, worst: bool = False) -> str:
    """Format a share or an error; a dash when there is none."""
    if not values:
        return "-"
    return f"{100 * (max(values) if worst else statistics.mean(values)):.1f}"


def print_row(profile: str, rows: list[Row], seconds: float) -> None:
    """Print one line of the table."""
    errors = [error for row in rows for error in row.boundary_errors]
    within = [error <= 0.10 for error in errors]
    coverage = sum(row.points_covered for row in rows) / max(1, sum(row.points for row in rows))
    print(
        f"{profile:<22}{sum(row.regions_right for row in rows):>5}/{len(rows):<5}"
        f"{percent(within):>9}{percent([statistics.median(errors)]) if errors else '-':>9}"
        f"{percent(errors, worst=True):>8}"
        f"{percent([c for row in rows for c in row.boundary_covered]):>10}"
        f"{100 * coverage:>10.1f}"
        f"{percent([statistics.median(w for row in rows for w in row.widths)]):>8}"
        f"{max(row.readings for row in rows):>8}{seconds:>8.0f}",
        flush=True,
    )


def line_of(profile: str, rows: list[Row], seconds: float) -> Line:
    """Return the same line, to be stored."""
    errors = [100 * error for row in rows for error in row.boundary_errors]
    found: dict[str, Content] = {
        "profile": profile,
        "regions": Cell(sum(row.regions_right for row in rows), n=len(rows)),
        "point_cover": 100
        * sum(row.points_covered for row in rows)
        / max(1, sum(row.points for row in rows)),
        "half": 100 * statistics.median(w for row in rows for w in row.widths),
        "points": max(row.readings for row in rows),
        "time": seconds,
    }
    if errors:
        covered = [held for row in rows for held in row.boundary_covered]
        found |= {
            "within_10": 100 * statistics.mean(error <= 10 for error in errors),
            "median": statistics.median(errors),
            "worst": max(errors),
            "boundary_cover": 100 * statistics.mean(covered),
        }
    return Line(profile, found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--profile", nargs="*", default=None)
    add_save_option(parser, "profiles")
    asked = parser.parse_args()
    lines = []
    print(
        f"{'profile':<22}{'regions':>7} ok {'boundary':>9}{'median':>9}{'worst':>8}{'boundary':>10}"
        f"{'points':>10}{'half':>8}{'points':>8}{'time':>8}\n"
        f"{'':<22}{'right':>7}    {'<10 off':>9}{'% off':>9}{'% off':>8}{'cover %':>10}"
        f"{'cover %':>10}{'width %':>8}{'<= 84':>8}{'s':>8}"
    )
    with multiprocessing.Pool(asked.processes) as pool:
        for profile in asked.profile or profile_names():
            begin = time.monotonic()
            seeds = range(asked.first_seed, asked.first_seed + asked.runs)
            rows = pool.map(partial(judge, profile=profile), seeds, chunksize=1)
            print_row(profile, rows, time.monotonic() - begin)
            lines.append(line_of(profile, rows, time.monotonic() - begin))
    save(asked, COLUMNS, lines, seeds=f"seeds {seeds[0]} to {seeds[-1]}")


if __name__ == "__main__":
    main()
