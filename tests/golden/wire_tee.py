"""Stands between Leadline and its engine: passes every line on, and writes both ways down.

    wire_tee.py LOG COMMAND…

`> ` is a job, `< ` an event. One job at a time, as the protocol has it.
"""

import json
import subprocess
import sys
from pathlib import Path

ENDS = ("result", "answer", "error")


def main(log: Path, command: list[str]) -> int:
    """Pass lines on until nobody sends more."""
    # Handles that the engine is given pass through here.
    engine = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, close_fds=False
    )
    assert engine.stdin is not None
    assert engine.stdout is not None
    events = engine.stdout
    for job in sys.stdin.buffer:
        _write(log, b"> " + job)
        engine.stdin.write(job)
        for event in iter(events.readline, b""):
            _write(log, b"< " + event)
            sys.stdout.buffer.write(event)
            sys.stdout.buffer.flush()
            if json.loads(event)["event"] in ENDS:
                break
    engine.stdin.close()
    return engine.wait()


def _write(log: Path, line: bytes) -> None:
    with log.open("ab") as file:
        file.write(line)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
