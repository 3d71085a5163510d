"""A load generator, and a server beside it, that behave as told: `fake_generator.py MODE …`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def answer(rate_per_s: float, due_for_s: float, response_ms: float, **more: object) -> None:
    """Print a document of evenly due requests, all answered alike."""
    due_s = [k / rate_per_s for k in range(round(rate_per_s * due_for_s))]
    requests = {"due_s": due_s, "response_ms": [response_ms] * len(due_s)}
    print(json.dumps({"leadline_load": 1, "requests": requests, **more}))


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
    elif mode == "floods":
        while True:
            sys.stdout.write("x" * 2**20)
    return mode in ("nonsense", "silent")


def daemon(pids: Path) -> None:
    """Leave a process behind as daemons do: own session, orphaned, with an empty environment."""
    child = subprocess.Popen(
        ["setsid", "-f", "sh", "-c", f"echo $$ >>{pids}; exec sleep 600"],
        env={"PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
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
    elif not misbehave(mode):
        measure(mode, float(words[0]), float(words[1]))


if __name__ == "__main__":
    main()
