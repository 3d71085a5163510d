"""Response surfaces of simulated servers: costs and errors of every way to map them (SH08 §5.3).

    .venv/bin/python bench/surface.py [--parts fig8 table4 seeds fig9 fig10] [--policy curve]
        [--workloads db_tp web_server mail] [--repeats 5] [--seed 1] [--processes 2]
        [--out FILE.md] [--json FILE.json]

The grid is SH08's 4 x 8 (disks x threads) of `proving.grids`, whose true peak rates are
known. Times are test time: virtual trials of real lengths, 15 s charged for each.

- fig8: the full grid with each of the paper's policies, costs as shares of the least, in the
  paper's way; beside them the mean error of the peaks found.
- table4: SH08 Table 4, its D-optimal quadratic from 6, 8 and 10 of 32 samples with its binary
  search; beside it the same in logarithms, and ours. Errors are means over all 32 samples of the
  absolute difference to the truth; `covers` is the share of samples, of those not measured, whose
  stated 95% interval holds the truth. `sequential:N` is held to N samples, `sequential` stops by
  itself.
- seeds: our design with and without its surface as the prior of each search, which SH08 §4 leaves
  to future work.
- fig9: DB_TP with the paper's binary search, cost against target accuracy and confidence.
- fig10: DB_TP, cost against the width s of the peak-rate region.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import msgspec

from figures import Cell, Column, Row, add_save_option, save, slug
from leadline.record.workbench import SimulatedServer, Surface
from leadline.studies.workbench.policies import POLICIES
from leadline.studies.workbench.surface.design import open_design
from proving.grids import FACTORS, WORKLOADS, grid_truth
from proving.searches import simulate_search
from proving.servers import GOAL

MEASURES = (
    "python/leadline/studies/workbench",
    "tests/proving/grids.py",
    "crates/sim/src/server/law",
    "crates/stats/src/belief",
)
PAPER = ("linear", "linear-seeded", "binary", "binary-seeded", "model-guided")
"""SH08 Fig. 8's, in its order."""
NAMES = {"db_tp": "DB_TP", "web_server": "Web server", "mail": "Mail"}
PUBLISHED = {"db_tp": (14, 14, 15), "web_server": (9, 9, 9), "mail": (3.3, 2.8, 2.7)}
"""SH08 Table 4: per cent from 6, 8 and 10 samples, on the paper's own machines."""
ACCURACIES = (0.70, 0.75, 0.80, 0.85, 0.90, 0.95)
CONFIDENCES = (0.75, 0.85, 0.95)
SHARES = ("fig9", "fig10")
"""Parts whose costs are shares of their least."""
WIDTHS = (0.02, 0.05, 0.10, 0.15, 0.20)


@dataclass(frozen=True)
class Task:
    """One surface to map."""

    workload: str
    design: str
    policy: str
    seed: int
    seeded: bool = True
    """Whether a search is told what the design knows beforehand."""
    accuracy: float = GOAL.accuracy
    confidence: float = GOAL.confidence
    width_frac: float = GOAL.threshold.width_frac
    error_frac: float | None = None
    """At which our design stops; 0: it does not."""


@dataclass(frozen=True)
class Mapped:
    """What came of it."""

    task: Task
    samples: int
    hours: float
    trials: int
    error: float
    """Mean absolute error over all cells, as a fraction of the truth."""
    peaks_error: float
    """The same over the measured ones."""
    worst: float
    covers: float | None
    """Share of the cells not measured whose interval holds the truth."""
    expected: float | None
    missing: int
    """Cells without a rate; they count in no error."""
    model: str
    seconds: float
    """Processor time."""


def run(task: Task) -> Mapped:
    """Map one surface in virtual time."""
    begin = time.process_time()
    truths = grid_truth(task.workload)
    threshold = msgspec.structs.replace(GOAL.threshold, width_frac=task.width_frac)
    goal = msgspec.structs.replace(
        GOAL, threshold=threshold, accuracy=task.accuracy, confidence=task.confidence
    )
    samples = tuple(sample for sample, _ in truths)
    design = open_design(
        task.design, FACTORS, goal, samples=samples, error_frac=task.error_frac, seed=task.seed
    )
    system = WORKLOADS[task.workload].system
    trials = 0
    while asked := design.ask():
        cell = samples.index(asked[0])
        server = SimulatedServer(system=dict(system) | dict(asked[0]))
        prior = design.prior_for(asked[0]) if task.seeded else None
        seed = 1000 * task.seed + cell
        peak, loads, _ = simulate_search(task.policy, server, goal, seed, prior)
        assert peak is not None, f"{task.policy} does not end on {asked[0]} of {task.workload}"
        trials += len(loads)
        design.tell(asked[0], peak)
    rates = [truth.rate_per_s for _, truth in truths]
    return _score(task, design.surface(), rates, trials, time.process_time() - begin)


def _score(
    task: Task, surface: Surface, truths: Sequence[float], trials: int, seconds: float
) -> Mapped:
    pairs = [
        (cell, cell.rate_per_s, truth)
        for cell, truth in zip(surface.cells, truths, strict=True)
        if cell.rate_per_s is not None
    ]
    off = [abs(rate.value / truth - 1) for _, rate, truth in pairs]
    measured = [error for error, (cell, *_) in zip(off, pairs, strict=True) if cell.measured]
    covers = [
        rate.covers(truth)
        for cell, rate, truth in pairs
        if not cell.measured and rate.low is not None
    ]
    return Mapped(
        task=task,
        samples=sum(cell.measured for cell in surface.cells),
        hours=surface.cost_s / 3600,
        trials=trials,
        error=statistics.mean(off),
        peaks_error=statistics.mean(measured),
        worst=max(off),
        covers=statistics.mean(covers) if covers else None,
        expected=surface.error_frac,
        missing=len(surface.cells) - len(pairs),
        model=surface.model,
        seconds=seconds,
    )


def tasks_of(part: str, asked: argparse.Namespace) -> list[Task]:
    """Return everything that a part wants mapped."""
    base = Task("db_tp", "full-grid", "binary", asked.seed)
    ours = [name for name in ("mlrsearch", asked.policy) if name not in PAPER]
    repeated = [
        replace(base, workload=workload, seed=seed)
        for workload in asked.workloads
        for seed in range(asked.seed, asked.seed + asked.repeats)
    ]
    return {
        "fig8": [
            replace(base, workload=workload, policy=policy)
            for workload, policy in product(asked.workloads, (*PAPER, *ours))
        ],
        "table4": [
            replace(task, design=design, policy=policy, error_frac=error_frac)
            for task, (design, policy, error_frac) in product(repeated, designs(asked.policy))
        ],
        "seeds": [
            replace(task, design="sequential", policy=asked.policy, seeded=seeded)
            for task, seeded in product(repeated, (False, True))
        ],
        "fig9": [
            replace(base, accuracy=accuracy, confidence=confidence)
            for accuracy, confidence in product(ACCURACIES, CONFIDENCES)
        ],
        "fig10": [
            replace(base, policy=policy, width_frac=width)
            for policy, width in product(PAPER, WIDTHS)
        ],
    }[part]


def designs(policy: str) -> Iterator[tuple[str, str, float | None]]:
    """Designs of Table 4, the policy that finds their peaks, and the error at which they stop."""
    for design, finder in product(
        ("d-optimal-raw", "d-optimal-log", "sequential"), ("binary", policy)
    ):
        if (design, finder) in (("d-optimal-raw", policy), ("sequential", "binary")):
            continue
        for count in (6, 8, 10):
            yield f"{design}:{count}", finder, 0.0
    yield "sequential", policy, None


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def format_fig8(done: Sequence[Mapped]) -> list[str]:
    """Costs of the full grid as shares of the least of the paper's policies (SH08 Fig. 8)."""
    workloads = list(dict.fromkeys(item.task.workload for item in done))
    policies = list(dict.fromkeys(item.task.policy for item in done))
    by = {(item.task.policy, item.task.workload): item for item in done}
    least = min(item.hours for item in done if item.task.policy in PAPER)
    rows = []
    for policy in policies:
        found = [by[policy, workload] for workload in workloads]
        rows.append(
            [policy]
            + [f"{item.hours / least:.2f}" for item in found]
            + [f"{item.hours:.1f} h, {100 * item.error:.1f}%" for item in found]
        )
    names = [NAMES[workload] for workload in workloads]
    head = ["policy", *names, *(f"{name}: time, mean error" for name in names)]
    return [f"Fig. 8: 1.00 is {least:.1f} h.", "", *table(head, rows)]


def format_designs(done: Sequence[Mapped]) -> list[str]:
    """Errors, intervals and costs of designs (SH08 Table 4), means over repeats."""
    kinds: dict[tuple[str, str, str, bool], list[Mapped]] = {}
    for item in done:
        task = item.task
        kinds.setdefault((task.workload, task.design, task.policy, task.seeded), []).append(item)
    rows = []
    for (workload, design, policy, seeded), found in kinds.items():
        covers = [item.covers for item in found if item.covers is not None]
        expected = [item.expected for item in found if item.expected is not None]
        errors = [100 * item.error for item in found]
        peaks = 100 * statistics.mean(item.peaks_error for item in found)
        rows.append(
            [
                NAMES[workload],
                design,
                policy + ("" if seeded else ", no prior"),
                f"{statistics.mean(item.samples for item in found):.1f}",
                _published(workload, design),
                f"{statistics.mean(errors):.1f}",
                f"{max(errors):.1f}",
                f"{peaks:.1f}",
                f"{100 * statistics.mean(expected):.1f}" if expected else "",
                f"{100 * statistics.mean(covers):.0f}" if covers else "",
                f"{60 * statistics.mean(item.hours for item in found):.0f}",
                f"{60 * max(item.hours for item in found):.0f}",
            ]
        )
    head = [
        "workload",
        "design",
        "policy",
        "samples",
        "SH08%",
        "error %",
        "worst repeat %",
        "peaks' own %",
        "expected %",
        "covers %",
        "minutes",
        "most minutes",
    ]
    return table(head, rows)


def _published(workload: str, design: str) -> str:
    kind, _, count = design.partition(":")
    if kind != "d-optimal-raw":
        return ""
    return str(PUBLISHED[workload][(6, 8, 10).index(int(count))])


def format_fig9(done: Sequence[Mapped]) -> list[str]:
    """Cost against target accuracy, for each confidence (SH08 Fig. 9)."""
    by = {(item.task.accuracy, item.task.confidence): item for item in done}
    least = min(item.hours for item in done)
    rows = [
        [f"{100 * accuracy:.0f}%"]
        + [f"{by[accuracy, confidence].hours / least:.2f}" for confidence in CONFIDENCES]
        for accuracy in ACCURACIES
    ]
    head = ["accuracy", *(f"confidence {100 * c:.0f}%" for c in CONFIDENCES)]
    return [f"Fig. 9: 1.00 is {least:.1f} h.", "", *table(head, rows)]


def format_fig10(done: Sequence[Mapped]) -> list[str]:
    """Cost against the width of the peak-rate region (SH08 Fig. 10)."""
    by = {(item.task.policy, item.task.width_frac): item for item in done}
    least = min(item.hours for item in done)
    rows = [
        [policy, *(f"{by[policy, width].hours / least:.2f}" for width in WIDTHS)]
        for policy in PAPER
    ]
    head = ["policy", *(f"s = {100 * width:.0f}%" for width in WIDTHS)]
    return [f"Fig. 10: 1.00 is {least:.1f} h.", "", *table(head, rows)]


def stored_fig8(done: Sequence[Mapped]) -> tuple[list[Column], list[Row]]:
    """Fig. 8 as it is stored; costs are shares of the paper's least on each workload."""
    forms = ("{value:.2f} ({hours:.3g} h, {error:.1f}%)",)
    rows: dict[str, Row] = {}
    least: dict[str, float] = {}
    for item in done:
        task, so_far = item.task, least.get(item.task.workload, item.hours)
        if task.policy in PAPER:
            least[task.workload] = min(so_far, item.hours)
    for item in done:
        also = {"hours": item.hours, "error": 100 * item.error}
        cell = Cell(item.hours / least[item.task.workload], also=also)
        row = rows.setdefault(item.task.policy, Row(item.task.policy, {"policy": item.task.policy}))
        row.cells[item.task.workload] = cell
    columns = [Column(key, NAMES[key], forms) for key in least]
    return [Column("policy", "policy"), *columns], list(rows.values())


def stored_designs(done: Sequence[Mapped]) -> tuple[list[Column], list[Row]]:
    """Table 4, or what priors do, as it is stored: one row for each design with its samples."""
    percent = ("{value:.1f} {unit}",)
    columns = [
        Column("workload", "workload"),
        Column("design", "design, policy"),
        Column("sh08", "SH08", ("{value:.3g} {unit}",), "%"),
        Column("samples", "samples", ("{value:.1f}",)),
        Column("error", "error", percent, "%"),
        Column("worst", "worst repeat", percent, "%"),
        Column("covers", "covers", ("{value:.0f} {unit}",), "%"),
        Column("hours", "test time", ("{value:.3g} {unit}",), "h"),
        Column("most", "most", ("{value:.3g} {unit}",), "h"),
    ]
    kinds: dict[tuple[str, str], list[Mapped]] = {}
    for item in done:
        prior = "" if item.task.seeded else ", no prior"
        kinds.setdefault(
            (item.task.workload, f"`{item.task.design}`, {item.task.policy}{prior}"), []
        ).append(item)
    rows = []
    for (workload, said), found in kinds.items():
        covers = [100 * item.covers for item in found if item.covers is not None]
        published = _published(workload, found[0].task.design)
        rows.append(
            Row(
                slug(f"{workload} {said}"),
                {
                    "workload": NAMES[workload],
                    "design": said,
                    "sh08": float(published) if published else None,
                    "samples": statistics.mean(item.samples for item in found),
                    "error": Cell(100 * statistics.mean(i.error for i in found), n=len(found)),
                    "worst": 100 * max(item.error for item in found),
                    "covers": statistics.mean(covers) if covers else None,
                    "hours": statistics.mean(item.hours for item in found),
                    "most": max(item.hours for item in found),
                },
            )
        )
    return columns, rows


def stored_fig9(done: Sequence[Mapped]) -> tuple[list[Column], list[Row]]:
    """Fig. 9 as it is stored."""
    least = min(item.hours for item in done)
    rows = {a: Row(f"{100 * a:.0f}", {"accuracy": f"{100 * a:.0f}%"}) for a in ACCURACIES}
    for item in done:
        key = f"c{100 * item.task.confidence:.0f}"
        rows[item.task.accuracy].cells[key] = item.hours / least
    columns = [
        Column(f"c{100 * c:.0f}", f"confidence {100 * c:.0f}%", ("{value:.2f}",))
        for c in CONFIDENCES
    ]
    return [Column("accuracy", "accuracy"), *columns], list(rows.values())


def stored_fig10(done: Sequence[Mapped]) -> tuple[list[Column], list[Row]]:
    """Fig. 10 as it is stored."""
    least = min(item.hours for item in done)
    rows = {policy: Row(policy, {"policy": policy}) for policy in PAPER}
    for item in done:
        rows[item.task.policy].cells[f"s{100 * item.task.width_frac:.0f}"] = item.hours / least
    columns = [Column(f"s{100 * s:.0f}", f"s = {100 * s:.0f}%", ("{value:.2f}",)) for s in WIDTHS]
    return [Column("policy", "policy"), *columns], list(rows.values())


STORED = {
    "fig8": stored_fig8,
    "table4": stored_designs,
    "seeds": stored_designs,
    "fig9": stored_fig9,
    "fig10": stored_fig10,
}
PARTS = {
    "fig8": format_fig8,
    "table4": format_designs,
    "seeds": format_designs,
    "fig9": format_fig9,
    "fig10": format_fig10,
}


def main() -> None:
    """Map all surfaces that were asked for, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--policy", choices=POLICIES, default="curve")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path)
    add_save_option(parser, "surface")
    asked = parser.parse_args()
    lines: list[str] = []
    kept: dict[str, list[dict[str, object]]] = {}
    seeds = f"seeds {asked.seed} to {asked.seed + asked.repeats - 1}"
    with multiprocessing.Pool(asked.processes) as pool:
        for part in asked.parts:
            done = pool.map(run, list(tasks_of(part, asked)), chunksize=1)
            said = [f"## {part}", "", *PARTS[part](done), ""]
            kept[part] = [asdict(item) for item in done]
            lines += said
            print("\n".join(said), flush=True)
            note = f"1.00 is {min(i.hours for i in done):.1f} h." if part in SHARES else ""
            save(asked, *STORED[part](done), part=part, seeds=seeds, note=note)
    if asked.out is not None:
        asked.out.write_text("\n".join(lines), encoding="utf-8")
    if asked.json is not None:
        asked.json.write_bytes(msgspec.json.encode(kept))


if __name__ == "__main__":
    main()
