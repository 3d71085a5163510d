"""h2load at a rate: `load.py STATE RATE SECONDS [ABORT_ABOVE_MS]`.

With `--rps` h2load sends evenly, in steps of 10 ms, over one HTTP/2 connection with as many
requests outstanding as it takes. Its log (`--log-file`) has when each request was *sent* (µs since
1970), its status and the time of its answer. Counted from there a wait inside h2load would be lost
("coordinated omission"): here request k counts from when it was due, k / rate after the first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WARM_UP_S = 2.0
DRAIN_S = 2.0
"""Longest wait for answers after the window."""
ABORT_AFTER_S = 10.0
LOOK_S = 1.0
OUTSTANDING_MAX = 30_000
OK, LOST = 200, -1

Sent = tuple[int, int, int]
"""When (µs), status, response time (µs)."""


def read(log: Path) -> list[Sent]:
    """Read the log in the order of sending; its last line may be only half written."""
    rows: list[Sent] = []
    for line in log.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            sent_us, status, response_us = map(int, line.split()[:3])
            rows.append((sent_us, status, response_us))
    return sorted(rows)


def due_begin_us(rows: list[Sent], rate_per_s: float) -> float:
    """When request 0 was due: no request is sent before it is."""
    return min(sent_us - k * 1e6 / rate_per_s for k, (sent_us, _, _) in enumerate(rows))


def too_slow(rows: list[Sent], rate_per_s: float, abort_above_ms: float) -> bool:
    """Whether the mean of the window so far is above the bound."""
    if not rows:
        return False
    begin_us, first = due_begin_us(rows, rate_per_s), round(WARM_UP_S * rate_per_s)
    waits_us = [
        sent_us + response_us - begin_us - (first + k) * 1e6 / rate_per_s
        for k, (sent_us, _, response_us) in enumerate(rows[first:])
    ]
    return bool(waits_us) and sum(waits_us) > abort_above_ms * 1e3 * len(waits_us)


def run(url: str, rate_per_s: float, count: int, log: Path, abort_above_ms: float | None) -> bool:
    """Send all requests and wait for most answers; True when it gave up early."""
    command = [
        "h2load",
        f"--requests={count}",
        f"--rps={rate_per_s:.6g}",
        "--clients=1",
        f"--max-concurrent-streams={OUTSTANDING_MAX}",
        f"--log-file={log}",
        url,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    begin_s, aborted = time.monotonic(), False
    end_s = begin_s + count / rate_per_s + DRAIN_S
    while time.monotonic() < end_s and not aborted:
        try:
            process.wait(LOOK_S)
            break
        except subprocess.TimeoutExpired:
            now_s = time.monotonic() - begin_s
        if abort_above_ms is not None and WARM_UP_S + ABORT_AFTER_S < now_s < count / rate_per_s:
            aborted = too_slow(read(log), rate_per_s, abort_above_ms)
    if process.poll() is None:
        process.kill()
        process.wait()
    elif (answered := len(read(log))) < count:
        sys.exit(f"h2load lost its connection after {answered} of {count} requests")
    return aborted


def document(rows: list[Sent], rate_per_s: float, count: int, aborted: bool) -> dict[str, object]:
    """Say it as Leadline reads it. One connection: the answers missing are those of the last."""
    begin_us = due_begin_us(rows, rate_per_s)
    ended_s = max(sent_us + response_us - begin_us for sent_us, _, response_us in rows) / 1e6
    due = min(count, int(ended_s * rate_per_s)) if aborted else count
    late_ms = [
        (sent_us - begin_us) / 1e3 - k * 1e3 / rate_per_s for k, (sent_us, _, _) in enumerate(rows)
    ]
    response_ms = [
        late + response_us / 1e3 if status == OK else None
        for late, (_, status, response_us) in zip(late_ms, rows, strict=True)
    ]
    missing = max(0, due - len(rows))
    end_s = ended_s if aborted else count / rate_per_s
    return {
        "leadline_load": 1,
        "warm_up_s": WARM_UP_S,
        "seconds": end_s - WARM_UP_S,
        "ended_s": max(end_s, ended_s),
        "aborted": aborted,
        "requests": {
            "due_s": [k / rate_per_s for k in range(len(rows) + missing)],
            "response_ms": response_ms + [None] * missing,
            "sent_late_ms": late_ms + [0.0] * missing,
        },
    }


def main() -> None:
    """Run h2load and print the document."""
    state, rate, seconds, *rest = sys.argv[1:]
    rate_per_s = float(rate)
    count = round(rate_per_s * (WARM_UP_S + float(seconds)))
    url = f"http://127.0.0.1:{Path(state, 'port').read_text()}/"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        aborted = run(url, rate_per_s, count, log, float(rest[0]) if rest and rest[0] else None)
        rows = read(log)
    if not rows or any(status == LOST for _, status, _ in rows):
        sys.exit("the server closed its connection")
    print(json.dumps(document(rows, rate_per_s, count, aborted)))


if __name__ == "__main__":
    main()
