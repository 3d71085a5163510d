"""pgbench at a rate: `load.py STATE BRANCHES RATE SECONDS SEED [ABORT_ABOVE_MS]`.

With `--rate` pgbench draws Poisson arrivals and counts a transaction from when it was scheduled.
Its log (`--log`) has one line for each: client, number, time from scheduled to ended in µs, script,
when it ended (s, µs), schedule lag in µs. When all clients wait for the server, transactions begin
late: that is the server's queue, which here stands in front of the connections. Those that were
due and never begun are not in the log; they are added as unanswered.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

CLIENTS = 100
WARM_UP_S = 2.0
DRAIN_S = 2.0
"""Past the window: what was due in it may still end. Connecting, too, is in pgbench's own time."""
ABORT_AFTER_S = 10.0
BEHIND_US = 20_000
"""A transaction begun so late shows that all clients were busy."""
PROGRESS = re.compile(r"progress: ([0-9.]+) s, ([0-9.]+) tps, lat ([0-9.]+) ms")


class Transaction(NamedTuple):
    """One line of the log, in microseconds."""

    due_us: int
    response_us: int
    lag_us: int


def run(place: Path, words: list[str], abort_above_ms: float | None) -> bool:
    """Run pgbench to its end; True when it was ended because the mean is above the bound."""
    command = ["pgbench", "-h", str(place), "-U", "postgres", "--no-vacuum", "--progress=1", *words]
    process = subprocess.Popen(
        [*command, "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    ended, waited_ms, aborted, others = 0.0, 0.0, False, []
    for line in process.stderr:
        found = PROGRESS.match(line)
        if not found:
            others.append(line)
            continue
        now_s, per_s, mean_ms = map(float, found.groups())
        if now_s <= WARM_UP_S or abort_above_ms is None:
            continue
        ended, waited_ms = ended + per_s, waited_ms + per_s * mean_ms
        if now_s > WARM_UP_S + ABORT_AFTER_S and waited_ms > abort_above_ms * ended:
            process.send_signal(signal.SIGALRM)  # as when its time is over
            aborted, abort_above_ms = True, None
    if process.wait():
        sys.exit("".join(others[-3:]) or f"pgbench exited {process.returncode}")
    return aborted


def read(log: Path) -> list[Transaction]:
    """Read the log, in the order in which transactions were due."""
    found = []
    for line in log.read_text().splitlines():
        _, _, response_us, _, ended_s, ended_us, lag_us = line.split()[:7]
        due_us = int(ended_s) * 1_000_000 + int(ended_us) - int(response_us)
        found.append(Transaction(due_us, int(response_us), int(lag_us)))
    return sorted(found)


def document(
    transactions: list[Transaction], rate_per_s: float, seconds: float, aborted: bool
) -> dict[str, object]:
    """Say it as Leadline reads it; the load began when the first transaction was due."""
    begin_us = transactions[0].due_us
    due_s = [(each.due_us - begin_us) / 1e6 for each in transactions]
    response_ms: list[float | None] = [each.response_us / 1e3 for each in transactions]
    ended_s = max(each.due_us + each.response_us - begin_us for each in transactions) / 1e6
    end_s = WARM_UP_S + seconds
    aborted = aborted and ended_s < end_s
    end_s = min(end_s, ended_s) if aborted else end_s
    if transactions[-1].lag_us > BEHIND_US:
        never = max(0, round(rate_per_s * (end_s - due_s[-1])))
        due_s += [due_s[-1] + (k + 1) / rate_per_s for k in range(never)]
        response_ms += [None] * never
    return {
        "leadline_load": 1,
        "warm_up_s": WARM_UP_S,
        "seconds": end_s - WARM_UP_S,
        "ended_s": max(ended_s, end_s),
        "aborted": aborted,
        "requests": {"due_s": due_s, "response_ms": response_ms},
    }


def main() -> None:
    """Run pgbench and print the document."""
    state, branches, rate, seconds, seed, *rest = sys.argv[1:]
    abort_above_ms = float(rest[0]) if rest and rest[0] else None
    place, script = Path(state, "postgresql"), Path(__file__).with_name("transaction.sql")
    with tempfile.TemporaryDirectory() as folder:
        words = [
            f"--file={script}",
            f"--scale={branches}",
            f"--client={CLIENTS}",
            "--jobs=1",
            f"--rate={rate}",
            f"--time={round(WARM_UP_S + float(seconds) + DRAIN_S)}",
            f"--random-seed={seed}",
            "--log",
            f"--log-prefix={folder}/log",
        ]
        aborted = run(place, words, abort_above_ms)
        (log,) = Path(folder).iterdir()
        transactions = read(log)
    print(json.dumps(document(transactions, float(rate), float(seconds), aborted)))


if __name__ == "__main__":
    main()
