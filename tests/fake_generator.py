"""A load generator, and a server beside it, that behave as told: `fake_generator.py MODE …`."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path


def answer(rate_per_s: float, due_for_s: float, response_ms: float, **more: object) -> None:
    """Print a document of evenly due requests, all answered alike."""
    due_s = [k / rate_per_s for k in range(round(rate_per_s * due_for_s))]
    requests = {"due_s": due_s, "response_ms": [response_ms] * len(due_s)}
    print(json.dumps({"leadline_load": 1, "requests": requests, **more}))


def queue(
    rate_per_s: float, seconds: float, seed: int, capacity_per_s: float, more_ms: float = 0.0
) -> None:
    """Print what an M/M/1 queue answers; what is in it at the end has no answer."""
    draws = random.Random(seed)
    due_s, free_s, dues_s, responses_ms = 0.0, 0.0, [], []
    while True:
        due_s += draws.expovariate(rate_per_s)
        if due_s >= seconds:
            break
        free_s = max(free_s, due_s) + draws.expovariate(capacity_per_s)
        dues_s.append(due_s)
        responses_ms.append((free_s - due_s) * 1e3 + more_ms if free_s < seconds else None)
    requests = {"due_s": dues_s, "response_ms": responses_ms}
    print(json.dumps({"leadline_load": 1, "ended_s": seconds, "requests": requests}))


def serve(mode: str, rate_per_s: float, seconds: float, seed: int) -> bool:
    """Be a server that ends 200 requests/s, with something the matter; False: another mode."""
    if mode == "slow":  # as real ones are
        time.sleep(seconds)
        queue(rate_per_s, seconds, seed, 200.0)
    elif mode == "dies-at-high-load" and rate_per_s > 120:
        print(json.dumps({"leadline_load": 1, "server_lost": "connection reset by peer"}))
    elif mode == "generator-ends-at-100":
        queue(min(rate_per_s, 100.0), seconds, seed, 200.0)
    elif mode == "never-saturated":
        queue(rate_per_s, seconds, seed, 20_000.0)
    elif mode == "always-saturated":
        queue(rate_per_s, seconds, seed, 200.0, 400.0)
    elif mode == "always-400-ms":
        answer(rate_per_s, seconds, 400.0)
    elif mode == "two-modes":
        queue(rate_per_s, seconds, seed, 200.0 if seed % 2 else 50.0)
    elif mode in ("queue", "dies-at-high-load"):
        queue(rate_per_s, seconds, seed, 200.0)
    else:
        return False
    return True


def measure(mode: str, rate_per_s: float, seconds: float) -> None:
    """Print a whole document, of a server or generator in this mode."""
    if mode == "good":
        answer(rate_per_s, seconds, 5.0)
    elif mode == "saturated":
        answer(rate_per_s, seconds / 6, 900.0, seconds=seconds / 6, aborted=True)
    elif mode == "short":
        answer(rate_per_s * 0.5, seconds, 5.0)
    elif mode == "late":
        answer(rate_per_s, seconds, 50.0, sent_late_ms_p99=45.0)
    elif mode == "errors":
        failed = [k / 10 for k in range(round(seconds * 10))]
        answer(rate_per_s, seconds, 5.0, failed_due_s=failed)
    elif mode == "lost":
        print(json.dumps({"leadline_load": 1, "server_lost": "reset after 312 requests"}))
    else:
        sys.exit(f"no such mode: {mode}")


def misbehave(mode: str) -> bool:
    """End without a document, or not at all; False when the mode is another."""
    if mode == "nonsense":
        print("Requests/sec: 312.5")
    elif mode == "dies":
        sys.exit("first line\nsecond: cannot connect\nlast: giving up")
    elif mode == "killed":
        os.abort()
    elif mode == "hangs":
        time.sleep(600)
    elif mode in ("floods", "floods-stderr"):
        flooded = sys.stdout if mode == "floods" else sys.stderr
        while True:
            flooded.write("x" * 2**20)
    return mode in ("nonsense", "silent")


def daemon(pids: Path) -> None:
    """Leave a process behind as daemons do: own session, orphaned, with an empty environment."""
    child = subprocess.Popen(
        ["setsid", "-f", "sh", "-c", f"echo $$ >>{pids}; exec sleep 600"],
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.DEVNULL,
    )
    child.wait()
    while not pids.exists() or not pids.read_text().endswith("\n"):
        time.sleep(0.01)


def main() -> None:
    mode, *words = sys.argv[1:]
    if mode == "daemon":
        daemon(Path(words[0]))
    elif mode == "note":  # append the words to a file
        with Path(words[0]).open("a", encoding="utf-8") as file:
            file.write(" ".join(words[1:]) + "\n")
    elif mode == "fail":
        sys.exit(" ".join(words))
    elif len(words) > 2 and serve(mode, float(words[0]), float(words[1]), int(words[2])):
        pass
    elif not misbehave(mode):
        measure(mode, float(words[0]), float(words[1]))


if __name__ == "__main__":
    main()
