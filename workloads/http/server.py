"""The web server Granian with a page that does some work: `server.py start|alive|stop STATE …`.

It listens on a free port of the loopback interface, which `start` writes into the state directory.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

READY_S_MAX = 20.0
END_S_MAX = 5.0
WAITING_MAX = 30_000
"""Requests that may wait: an open loop does not stop when the server is slow."""


def start(state: Path, threads: str, work_ms: str) -> None:
    """Return once it accepts connections."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port = asked.getsockname()[1]
    command = [
        "granian",
        "--interface",
        "wsgi",
        "--http",
        "2",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
        "--blocking-threads",
        threads,
        "--backpressure",
        str(WAITING_MAX),
        "--http2-max-concurrent-streams",
        str(WAITING_MAX),
        "--log-level",
        "warning",
        "app:page",
    ]
    with (state / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=Path(__file__).parent,
            env=os.environ | {"WORK_MS": work_ms},
        )
    (state / "pid").write_text(str(process.pid))
    (state / "port").write_text(str(port))
    end_s = time.monotonic() + READY_S_MAX
    while process.poll() is None and time.monotonic() < end_s:
        if accepts(port):
            return
        time.sleep(0.05)
    sys.exit(f"no web server: {(state / 'log').read_text()[-500:]}")


def accepts(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def stop(state: Path) -> None:
    """Ask it to end; what does not, ends with the trial."""
    pid = int((state / "pid").read_text())
    try:
        os.kill(pid, signal.SIGTERM)
        end_s = time.monotonic() + END_S_MAX
        while time.monotonic() < end_s:
            os.kill(pid, 0)
            time.sleep(0.02)
    except ProcessLookupError:
        return


def main() -> None:
    """Do one thing with the server of a state directory."""
    what, folder, *words = sys.argv[1:]
    state = Path(folder)
    if what == "start":
        start(state, *words)
    elif what == "alive":
        if not accepts(int((state / "port").read_text())):
            sys.exit("the web server does not accept connections")
    elif what == "stop":
        stop(state)
    else:
        sys.exit(f"no such thing to do: {what}")


if __name__ == "__main__":
    main()
