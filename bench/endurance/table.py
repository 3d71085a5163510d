"""Courses as tables: what was looked at, what became of it, and the verdict."""

from __future__ import annotations

import msgspec

from endurance.looks import KIB, Look
from endurance.trend import Trend, trend
from figures import Cell, Column, Content, Row, slug

VIRTUAL_MIB_MAX = 8.0
"""More memory than this for a longer virtual time is growth; a thousandth of what it once was."""
COUNTS = ("handles", "threads", "children", "temporary", "in_target")
_CHANGE = ("{value:+.2f} [{low:+.2f}, {high:+.2f}]", "{value:+.2f}")

COLUMNS = (
    Column("course", "course"),
    Column("looks", "looks", ("{value:.0f}",)),
    Column("memory", "memory", ("{value:.0f}",), unit=" MiB"),
    Column("growth", "grew by, MiB (95% CI)", _CHANGE),
    Column("engine", "engine grew by, MiB (95% CI)", _CHANGE),
    *(
        Column(key, title, ("{value:+.0f}",))
        for key, title in zip(
            COUNTS,
            ("handles", "threads", "processes", "temporary files", "in the target"),
            strict=True,
        )
    ),
    Column("store", "store, KiB a study: first half, second", ("{value:.0f}, {second:.0f}",)),
    Column("verdict", "verdict"),
)
VIRTUAL_COLUMNS = (
    Column("course", "course"),
    Column("memory", "most memory", ("{value:.1f}",), unit=" MiB"),
    Column("more", "more than the shortest of its kind", ("{value:+.1f}",), unit=" MiB"),
)


class Course(msgspec.Struct):
    """What was looked at in one course."""

    name: str
    looks: list[Look] = []
    note: str = ""
    code: int = 0
    """How its process ended."""

    @property
    def kind(self) -> str:
        """Return all but the last word: those of one kind differ in their length alone."""
        return self.name.rpartition(" ")[0]


def memory_of(course: Course) -> Trend:
    """Return the trend of what a controller takes, in MiB."""
    return trend([each.rss_kib / KIB for each in course.looks])


def engine_of(course: Course) -> Trend | None:
    """Return the trend of what its engine takes, in MiB; None where none lived at most looks."""
    found = [each.engine_kib / KIB for each in course.looks if each.engine_kib]
    return trend(found) if 2 * len(found) > len(course.looks) else None


def changes_of(course: Course) -> dict[str, int]:
    """Return how many more there were of each thing at the last look than at the first."""
    first, last = course.looks[0], course.looks[-1]
    return {key: getattr(last, key) - getattr(first, key) for key in COUNTS}


def verdict_of(course: Course) -> str:
    """Say what grows; `no growth` where nothing does."""
    grown = [key for key, change in changes_of(course).items() if change > 0]
    grown += ["memory"] * memory_of(course).grows
    engine = engine_of(course)
    grown += ["engine"] * (engine is not None and engine.grows)
    if course.code:
        return f"FAILED: exit code {course.code}"
    return f"GROWS: {', '.join(grown)}" if grown else "no growth"


def row_of(course: Course) -> Row:
    """Return a course as a line."""
    memory, engine = memory_of(course), engine_of(course)
    cells: dict[str, Content] = {
        "course": course.name,
        "looks": float(len(course.looks)),
        "memory": memory.level,
        "growth": _cell(memory),
        "engine": None if engine is None else _cell(engine),
        "store": _store(course),
        "verdict": verdict_of(course),
    }
    cells |= {key: Cell(change, most=0) for key, change in changes_of(course).items()}
    return Row(key=slug(course.name), cells=cells, note=course.note)


def _cell(found: Trend) -> Cell:
    return Cell(found.growth, low=found.low, high=found.high, n=found.n)


def _store(course: Course) -> Cell | None:
    """Return the room that a study takes in the store, of the first half and of the second."""
    if course.looks[0].engine_kib is not None or len(course.looks) < 3:
        return None
    sizes = [each.store_kib for each in course.looks]
    middle = len(sizes) // 2
    first = (sizes[middle] - sizes[0]) / middle
    second = (sizes[-1] - sizes[middle]) / (len(sizes) - 1 - middle)
    return Cell(first, also={"second": second})


def virtual_rows(found: list[Course]) -> list[Row]:
    """Return courses of virtual time, each beside the shortest of its kind."""
    rows, shortest = [], dict[str, float]()
    for course in found:
        peak_mib = course.looks[-1].peak_kib / KIB if course.looks else float("inf")
        more = peak_mib - shortest.setdefault(course.kind, peak_mib)
        cells: dict[str, Content] = {
            "course": course.name,
            "memory": peak_mib,
            "more": Cell(more, most=VIRTUAL_MIB_MAX),
        }
        rows.append(Row(key=slug(course.name), cells=cells, note=course.note))
    return rows
