"""A PostgreSQL of its own for each sample: `server.py fill|start|alive|stop STATE …`.

It listens on a Unix socket in its directory and nowhere else. PostgreSQL does not run as root, so
for root it is the user `postgres`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CONNECTIONS_MAX = 128


def programs() -> Path:
    """Folder of initdb and pg_ctl, which Debian keeps off the PATH."""
    found = shutil.which("initdb")
    debian = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    folder = Path(found).resolve().parent if found else debian
    if folder is None:
        sys.exit("PostgreSQL is not installed (no initdb): apt-get install postgresql")
    return folder


def run(*command: str) -> None:
    """Run one of PostgreSQL's programs as a user that it accepts."""
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*user, *command], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} exited {done.returncode}")


def control(place: Path, *words: str) -> None:
    """Ask pg_ctl."""
    run(str(programs() / "pg_ctl"), "-D", str(place / "data"), "-s", "-w", *words)


def start(place: Path, synchronous_commit: str) -> None:
    """Return once it answers."""
    settings = (
        f"-k {place} -c listen_addresses= -c max_connections={CONNECTIONS_MAX} "
        f"-c synchronous_commit={synchronous_commit} -c checkpoint_timeout=1d"
    )
    try:
        control(place, "-l", str(place / "log"), "-o", settings, "start")
    except SystemExit:
        print(*(place / "log").read_text().splitlines()[-3:], sep="\n", file=sys.stderr)
        raise


def fill(place: Path, branches: str) -> None:
    """Make the database and its tables: 100 000 accounts a branch."""
    place.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(place, "postgres")
    run(
        str(programs() / "initdb"), "-D", str(place / "data"), "-A", "trust", "-U", "postgres", "-N"
    )
    start(place, "off")
    run(
        str(programs() / "pgbench"),
        "-h",
        str(place),
        "-U",
        "postgres",
        "-i",
        "-q",
        "-s",
        branches,
        "postgres",
    )
    control(place, "-m", "fast", "stop")


def main() -> None:
    """Do one thing with the server of a state directory."""
    what, state, *words = sys.argv[1:]
    place = Path(state, "postgresql")
    if what == "fill":
        fill(place, *words)
    elif what == "start":
        start(place, *words)
    elif what == "alive":
        run(str(programs() / "pg_isready"), "-h", str(place), "-t", "5", "-q")
    elif what == "stop":
        control(place, "-m", "immediate", "stop")
    else:
        sys.exit(f"no such thing to do: {what}")


if __name__ == "__main__":
    main()
