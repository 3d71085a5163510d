"""A real child process that speaks the wire and misbehaves as told: `fake_child.py MODE`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from proving.samples import sample_result


def say(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def result(job: dict[str, Any]) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415

    said: dict[str, Any] = msgspec.to_builtins(sample_result(job["job_id"]))
    return {"event": "result", **said}


def write_data(job: dict[str, Any], size_bytes: int) -> None:
    path = Path(job["target"]["path"]) / "data.bin"
    piece = os.urandom(2**20)
    with path.open("wb") as file:
        for _ in range(size_bytes // len(piece)):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def hog() -> None:
    kept = []
    while True:
        kept.append(bytearray(os.urandom(2**20)))


def answer(mode: str, job: dict[str, Any]) -> None:  # noqa: C901, PLR0912 - one case per mode
    job_id = job["job_id"]
    if mode == "hangs":
        time.sleep(600)
    elif mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say({"event": "phase", "job_id": job_id, "phase": "measure", "elapsed_s": 0.0})
        time.sleep(600)
    elif mode == "dies":
        sys.stderr.write("panicked at the disco\n")
        raise SystemExit(7)
    elif mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "hog":
        hog()
    elif mode == "garbage":
        sys.stdout.write("Segmentation fault\n")
        sys.stdout.flush()
        time.sleep(600)
    elif mode == "wrong-job":
        say({"event": "result", "job_id": "another"})
    elif mode == "half":
        say({"event": "result", "job_id": job_id, "version": 1})
    elif mode.startswith("error-"):
        kind = mode.removeprefix("error-")
        say({"event": "error", "job_id": job_id, "kind": kind, "message": f"told to: {kind}"})
    elif mode == "closes":
        os.close(1)
        time.sleep(600)
    else:
        while mode in ("writes", "goes-on") and "path" in job["target"]:
            write_data(job, job["workload"]["unique_bytes"])
            if mode == "writes":
                break
        say({"event": "phase", "job_id": job_id, "phase": "prepare", "elapsed_s": 0.0})
        say({"event": "progress", "job_id": job_id, "phase": "measure", "done_frac": 0.5})
        say(result(job))


def main() -> None:
    if sys.argv[1] == "deaf":
        time.sleep(600)
    for line in sys.stdin:
        answer(sys.argv[1], json.loads(line))


if __name__ == "__main__":
    main()
