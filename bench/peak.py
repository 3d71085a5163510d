"""Every policy on a population of simulated servers, held against their true peak rates.

    .venv/bin/python bench/peak.py [--policies NAME ...] [--servers 200] [--seed 1] [--repeats 1]
        [--family law|stalls|parts] [--population 1] [--first 0] [--on population|grids]
        [--threshold mean|p95] [--truth-se 0.0025] [--processes 2] [--kinds] [--out FILE.md]

`--family law` are the servers of `proving.servers`, of which `--population 2` draws some
that nobody has looked at while writing a policy; `--family stalls` servers of which every second
one stands still for 20 to 500 ms once in 5 to 120 s, scored on `--population 3000` and tuned on
others; `--family parts` those of
`proving.parts_servers` with the seeds from `--first` on: policies may be tuned on seeds
below 1000 and are scored above. `--on grids` takes the samples of SH08's three surfaces instead:
disks and a processor behind the threads.

Each search is kept in build/peak under a digest of the policies' source, so a run that was stopped
goes on where it was, and a changed policy starts anew. Policies whose name ends in `-seeded`, or
that are asked for as `NAME+seed`, are told a rate that is off by 25% (one standard deviation).
`NAME@540` asks for runs of 540 s; the truth stays that of `GOAL`. `--truth-se` is the standard
error of truths that no one computed before: stalls make a trial's response so unsteady that 0.25%
takes hours.

The tables: cost of a peak in minutes (15 s charged per trial for set-up and warm-up); trials; share
of all searches within 10% and 5% of the truth; share of the stated intervals that hold the truth;
half their width; mean and median error of the rate; the error that 95% of the searches stay
within; false confidence: searches that say "found" and whose interval misses the truth; how often
the truth lies between the highest load seen unsaturated and the lowest seen saturated; and searches
that gave no rate. "In region": the mean response seen at the load nearest to the rate is within
R_sat ± 10%, which is where SH08's policies stop. In brackets 95% intervals of the shares.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import math
import multiprocessing
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import msgspec

import leadline
import proving
from figures import Cell, Column, Content, Row, add_save_option, save, share, slug
from leadline.record.workbench import Goal, PeakRate, SimulatedServer
from leadline.studies.workbench.policies import POLICIES
from proving.grids import WORKLOADS, grid_samples
from proving.parts_servers import draw_servers
from proving.peak_truth import SE_FRAC, NoPeak, known_truth, truth, truth_key
from proving.searches import Search, seed_for, simulate_search
from proving.servers import GOAL, PERCENTILE_GOAL, population, stalling_population

MEASURES = (
    "python/leadline/studies/workbench/policies",
    "python/leadline/studies/workbench/belief.py",
    "tests/proving/servers.py",
    "tests/proving/parts_servers.py",
    "tests/proving/searches.py",
    "crates/engine/src/load",
    "crates/sim/src/server",
    "crates/stats/src/belief",
)
SHARE = ("{value:.1f} [{low:.0f}, {high:.0f}]", "{value:.1f}")
ONE, WHOLE, SIGNED = ("{value:.1f}",), ("{value:.0f}",), ("{value:+.1f}",)
COLUMNS = (
    Column("policy", "policy"),
    Column("searches", "searches", WHOLE),
    Column("mean", "min: mean", ONE),
    Column("median", "median", ONE),
    Column("p90", "p90", ONE),
    Column("trials", "trials", ONE),
    Column("within_10", "within 10%", SHARE),
    Column("within_5", "within 5%", SHARE),
    Column("holds", "interval holds", SHARE),
    Column("half", "± %", ONE),
    Column("bias", "bias %", SIGNED),
    Column("p95_error", "p95 error %", ONE),
    Column("false", "false conf. %", ONE),
    Column("far", "found, more than half off, %", ONE),
    Column("in_region", "in region %", WHOLE),
    Column("found", "found", WHOLE),
    Column("gave_up", "gave up", WHOLE),
    Column("irregular", "irregular", WHOLE),
)
GOALS_OF_CURVE: dict[str, dict[str, float]] = {
    "mean": {"most": 6.5},
    "p90": {"most": 11},
    "within_10": {"least": 93},
    "holds": {"least": 93},
}
"""Issue 16's, of the policy that Leadline comes with."""
KEPT = Path("build/peak")
GOALS = {"mean": GOAL, "p95": PERCENTILE_GOAL}


class Server(msgspec.Struct, frozen=True):
    """One server to search."""

    index: int
    name: str
    kind: str
    server: SimulatedServer


def servers_of(asked: argparse.Namespace) -> list[Server]:
    """Return the first servers of a family, or the samples of SH08's grids."""
    count = asked.servers
    if asked.on == "population":
        members = {
            "law": lambda: population(count, asked.population),
            "stalls": lambda: stalling_population(count, asked.population),
            "parts": lambda: draw_servers(asked.first, count),
        }[asked.family]()
        return [Server(item.index, item.name, item.kind.value, item.server) for item in members]
    cells = [(name, sample) for name in WORKLOADS for sample in grid_samples()]
    return [
        Server(
            index,
            f"{name} {sample['disks']} x {sample['workers']}",
            name,
            SimulatedServer(system=dict(WORKLOADS[name].system) | dict(sample)),
        )
        for index, (name, sample) in enumerate(cells[:count])
    ]


class Task(msgspec.Struct, frozen=True):
    """One search to do."""

    policy: str
    server: Server
    seed: int
    threshold: str
    truth_se_frac: float = SE_FRAC

    @property
    def goal(self) -> Goal:
        """What is asked of the policy."""
        return GOALS[self.threshold]

    @property
    def path(self) -> Path:
        """Where its outcome is kept."""
        server = truth_key(self.server.server, self.goal)
        return KEPT / self.policy / source_digest(self.name) / f"{server}-{self.seed}.json"

    @property
    def name(self) -> str:
        """Of the policy itself, without what it is told."""
        return self.policy.partition("@")[0].removesuffix("+seed")


@cache
def source_digest(policy: str) -> str:
    """Digest of all source that decides what a policy does, and how it is searched with."""
    # The belief's arithmetic is Rust's.
    rust = sorted(Path("crates/stats/src/belief").glob("*.rs"))
    modules = {POLICIES[policy].__module__, "proving.searches"}
    pending, seen = sorted(modules), set[Path]()
    while pending:
        path = source_of(pending.pop())
        if path is None or path in seen:
            continue
        seen.add(path)
        pending += imported(path)
    texts = sorted(path.read_bytes() for path in (*seen, *rust))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:12]


def source_of(module: str) -> Path | None:
    """File of a module that may decide; registries and engines do not."""
    home = Path(proving.__file__ if module.startswith("proving.") else leadline.__file__).parent
    kind = module.removeprefix("leadline.").partition(".")[0]
    if kind not in ("studies", "stats", "proving"):
        return None
    path = home.joinpath(*module.split(".")[1:])
    whole = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    return whole if whole.exists() and path.name != "policies" else None


def imported(path: Path) -> Iterator[str]:
    """Modules of leadline that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("leadline.", "proving.")
        ):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def run_task(task: Task) -> Search | None:
    """Return the outcome of a search, from the last run or anew; it is held against the truth.

    None where the truth could not be found: nothing could be said of an answer.
    """
    if task.path.exists():
        found = msgspec.json.decode(task.path.read_bytes(), type=Search)
    else:
        try:
            found = search(task)
        except NoPeak as error:
            print(f"{task.server.name}: {error}", file=sys.stderr)
            return None
        task.path.parent.mkdir(parents=True, exist_ok=True)
        part = task.path.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(found))
        part.replace(task.path)
    best = known_truth(truth_key(task.server.server, task.goal))
    if best is None:
        return found
    return msgspec.structs.replace(found, truth_per_s=best.rate_per_s, truth_se_frac=best.se_frac)


def search(task: Task) -> Search:
    """Run one search."""
    server = task.server.server
    true = truth(server, task.goal, se_frac=task.truth_se_frac)
    spelled, _, run_length_s = task.policy.partition("@")
    name = task.name
    seeded = name != spelled or name.endswith("-seeded")
    goal = task.goal
    if run_length_s:
        goal = msgspec.structs.replace(goal, run_length_s=float(run_length_s))
    told = Search(
        policy=task.policy,
        server=task.server.name,
        kind=task.server.kind,
        seed=task.seed,
        truth_per_s=true.rate_per_s,
        truth_se_frac=true.se_frac,
        verdict="endless",
    )
    seed = task.seed * 1000 + task.server.index
    prior = seed_for(true.rate_per_s, seed) if seeded else None
    try:
        peak, loads, policy_s = simulate_search(name, server, goal, seed, prior)
    except Exception as error:  # a fault of a policy is a row of the table
        return msgspec.structs.replace(told, verdict=f"fault: {type(error).__name__}: {error}")
    told = msgspec.structs.replace(
        told, trials=len(loads), loads_per_s=loads, policy_s=round(policy_s, 4)
    )
    if peak is None:
        return told
    rate = peak.rate_per_s
    return msgspec.structs.replace(
        told,
        verdict=peak.verdict.value,
        rate_per_s=None if rate is None else rate.value,
        low_per_s=None if rate is None else rate.low,
        high_per_s=None if rate is None else rate.high,
        accuracy=peak.accuracy,
        lower_bound_per_s=peak.lower_bound_per_s,
        upper_bound_per_s=peak.upper_bound_per_s,
        response_ms=response_at(peak),
        cost_s=peak.cost_s,
    )


def response_at(peak: PeakRate) -> float | None:
    """Return the mean response seen at the load nearest to the answer."""
    rows = [load for load in peak.loads if load.response_ms is not None]
    if peak.rate_per_s is None or not rows:
        return None
    rate = peak.rate_per_s.value
    nearest = min(rows, key=lambda load: abs(math.log(load.rate_per_s / rate)))
    return None if nearest.response_ms is None else nearest.response_ms.value


def in_region(item: Search) -> bool:
    """Whether that is within the peak-rate region (SH08 §3.3)."""
    limit_ms, width = GOAL.threshold.mean_ms, GOAL.threshold.width_frac
    if item.response_ms is None or limit_ms is None:
        return False
    return abs(item.response_ms / limit_ms - 1.0) <= width


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share stays at or below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def share_of(flags: Sequence[bool]) -> str:
    """Return the same in words."""
    found = share(flags)
    return f"{found.value:.1f} ({found.low:.0f}-{found.high:.0f})" if found else "-"


HEAD = (
    "searches",
    "min: mean",
    "median",
    "p90",
    "trials",
    "within 10%",
    "within 5%",
    "interval holds",
    "± %",
    "bias %",
    "median %",
    "p95 error %",
    "false conf. %",
    "found, more than half off, %",
    "bounds hold",
    "in region %",
    "no rate",
)


def row_of(found: Sequence[Search]) -> list[str]:
    """Return the columns of `HEAD`."""
    costs = [item.cost_s / 60 for item in found if not item.verdict.startswith("fault")] or [0.0]
    errors = [item.error_frac for item in found if item.error_frac is not None]
    stated = [item for item in found if item.has_interval]
    widths = [half_width_frac(item) for item in stated]
    false = [item.verdict == "found" and not item.covers for item in stated]
    between = [item.bounds_hold for item in found if item.bounds_hold is not None]
    magnitude = [abs(error) for error in errors]
    return [
        str(len(found)),
        f"{statistics.mean(costs):.1f}",
        f"{statistics.median(costs):.1f}",
        f"{quantile(costs, 0.9):.1f}",
        f"{statistics.mean(item.trials for item in found):.1f}",
        share_of([item.within(0.10) for item in found]),
        share_of([item.within(0.05) for item in found]),
        share_of([item.covers for item in stated]),
        f"{100 * statistics.median(widths):.1f}" if widths else "-",
        f"{100 * statistics.mean(errors):+.1f}" if errors else "-",
        f"{100 * statistics.median(errors):+.1f}" if errors else "-",
        f"{100 * quantile(magnitude, 0.95):.1f}" if errors else "-",
        f"{100 * sum(false) / len(found):.1f}" if stated else "-",
        f"{100 * sum(item.verdict == 'found' and is_far(item) for item in found) / len(found):.1f}",
        share_of(between),
        f"{100 * statistics.mean(in_region(item) for item in found):.0f}",
        str(len(found) - len(errors)),
    ]


def cells_of(name: str, found: Sequence[Search]) -> dict[str, Content]:
    """Return what is stored of a policy, by the keys of `COLUMNS`."""
    costs = [item.cost_s / 60 for item in found if not item.verdict.startswith("fault")] or [0.0]
    errors = [100 * item.error_frac for item in found if item.error_frac is not None]
    stated = [item for item in found if item.has_interval]
    false = sum(item.verdict == "found" and not item.covers for item in stated)
    verdicts = Counter(item.verdict for item in found)
    cells: dict[str, Content] = {
        "policy": name,
        "searches": len(found),
        "mean": statistics.mean(costs),
        "median": statistics.median(costs),
        "p90": quantile(costs, 0.9),
        "trials": statistics.mean(item.trials for item in found),
        "within_10": share([item.within(0.10) for item in found]),
        "within_5": share([item.within(0.05) for item in found]),
        "holds": share([item.covers for item in stated]),
        "in_region": 100 * statistics.mean(in_region(item) for item in found),
        **{name.replace("-", "_"): verdicts[name] for name in ("found", "gave-up", "irregular")},
    }
    if stated:
        cells["half"] = 100 * statistics.median(half_width_frac(item) for item in stated)
        cells["false"] = 100 * false / len(found)
    if errors:
        cells["bias"] = statistics.mean(errors)
        far = [item for item in found if item.verdict == "found" and is_far(item)]
        cells["far"] = 100 * len(far) / len(found)
        cells["p95_error"] = quantile([abs(error) for error in errors], 0.95)
    return cells


def is_far(item: Search) -> bool:
    """Whether a rate is off by more than a factor of 1.5."""
    error = item.error_frac
    return error is not None and abs(math.log1p(error)) > math.log(1.5)


def with_goals(cells: dict[str, Content], goals: dict[str, dict[str, float]]) -> dict[str, Content]:
    """Return the cells, those that have a goal with it."""
    found = dict(cells)
    for key, goal in goals.items():
        cell = found[key]
        if isinstance(cell, float | int):
            cell = Cell(cell)
        if isinstance(cell, Cell):
            found[key] = cell.aiming(goal)
    return found


def rows_of(found: dict[str, list[Search]], *, kinds: bool) -> Iterator[Row]:
    """Yield what is stored: a row for each policy, and `POLICY.CLASS` for each class."""
    for name, searches in found.items():
        cells = cells_of(name, searches)
        yield Row(name, with_goals(cells, GOALS_OF_CURVE) if name == "curve" else cells)
        for kind in dict.fromkeys(item.kind for item in searches) if kinds else ():
            own = [item for item in searches if item.kind == kind]
            yield Row(f"{name}.{slug(kind)}", cells_of(kind, own))


def half_width_frac(item: Search) -> float:
    """Half of the stated interval, as a fraction of the rate."""
    if item.low_per_s is None or item.high_per_s is None or not item.rate_per_s:
        return math.inf
    return (item.high_per_s - item.low_per_s) / (2 * item.rate_per_s)


def table(first: str, head: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {first} | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(row) + " |" for name, row in rows]
    return "\n".join(lines) + "\n"


def cost_table(found: dict[str, list[Search]]) -> str:
    """Return the quantiles of the cost, in minutes."""
    shares = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
    head = [f"{share:.0%}" for share in shares] + ["policy's own s", "verdicts"]
    rows = []
    for name, searches in found.items():
        costs = [item.cost_s / 60 for item in searches]
        verdicts = Counter(item.verdict.split(":")[0] for item in searches)
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        own = statistics.mean(item.policy_s for item in searches)
        row = [f"{quantile(costs, share):.1f}" for share in shares] + [f"{own:.2f}", said]
        rows.append((name, row))
    return table("minutes that this share stays within", head, rows)


def kind_tables(found: dict[str, list[Search]]) -> str:
    """Return one table for each class of servers."""
    text = ""
    for kind in dict.fromkeys(item.kind for searches in found.values() for item in searches):
        of_kind = {
            name: [item for item in searches if item.kind == kind]
            for name, searches in found.items()
        }
        rows = [(name, row_of(some)) for name, some in of_kind.items() if some]
        text += f"\n**{kind}**\n\n" + table("policy", HEAD, rows)
    return text


def main() -> None:
    """Run every policy and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", nargs="*", default=None)
    parser.add_argument("--on", choices=("population", "grids"), default="population")
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the searches")
    parser.add_argument("--family", choices=("law", "stalls", "parts"), default="law")
    parser.add_argument("--first", type=int, default=0, help="seed of the first server of parts")
    parser.add_argument("--population", type=int, default=1, help="seed of the servers")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threshold", choices=list(GOALS), default="mean")
    parser.add_argument("--truth-se", type=float, default=SE_FRAC, metavar="FRACTION")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", action="store_true", help="a table for each class as well")
    parser.add_argument("--out", type=Path, default=None)
    add_save_option(parser, "peak")
    asked = parser.parse_args()
    servers = servers_of(asked)
    seeds = range(asked.seed, asked.seed + asked.repeats)
    found: dict[str, list[Search]] = {}
    with multiprocessing.Pool(asked.processes) as pool:
        for name in asked.policies or POLICIES:
            tasks = [
                Task(name, item, seed, asked.threshold, asked.truth_se)
                for seed, item in product(seeds, servers)
            ]
            outcomes = pool.map(run_task, tasks, chunksize=1)
            found[name] = [outcome for outcome in outcomes if outcome is not None]
            print(f"{name:20}" + " | ".join(row_of(found[name])), file=sys.stderr, flush=True)
    text = table("policy", HEAD, [(name, row_of(rows)) for name, rows in found.items()])
    text += "\n" + cost_table(found)
    if asked.kinds:
        text += kind_tables(found)
    print(text)
    last = asked.seed + asked.repeats - 1
    servers_said = (
        f"{asked.first} to {asked.first + asked.servers - 1}"
        if asked.family == "parts"
        else f"{asked.population}"
    )
    seeds_said = f"seeds {asked.seed} to {last} of the searches, {servers_said} of the servers"
    save(asked, COLUMNS, rows_of(found, kinds=asked.kinds), seeds=seeds_said)
    if asked.out is not None:
        asked.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
