"""Other programs that sort and filter the sort benchmark's printable records, under the same limit.

Each runs in a process of its own, in a memory cgroup where this machine allows one, with its
temporary files in the same directory, and is timed until its output is on the disk. DuckDB and
Polars read the records as one column of text; starting Python is not counted for them. Of
`leadline stream sort` everything is counted: starting Python, and reading the output back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leadline.engine import CacheLimitRefused, memory_cgroup

TIMEOUT_S = 900.0

DUCKDB = """
import duckdb
c = duckdb.connect()
c.execute("SET threads={threads}; SET memory_limit='{memory}B'; "
          "SET temp_directory='{folder}/duckdb'; SET preserve_insertion_order={keep}; "
          "SET enable_progress_bar=false")
records = c.read_csv('{input}', header=False, auto_detect=False, columns={{'r': 'VARCHAR'}},
                     delimiter='\\t', quotechar='', escapechar='', strict_mode=False)
begin()
records{what}.project("r || chr(13)").to_csv(
    '{output}', header=False, sep='\\t', quotechar='', escapechar='')
"""
POLARS = """
import os
os.environ.update(POLARS_MAX_THREADS='{threads}', POLARS_TEMP_DIR='{folder}/polars')
import polars as pl
begin()
records = pl.scan_csv('{input}', has_header=False, separator='\\t', quote_char=None,
                      schema={{'r': pl.String}})
{what}.sink_csv('{output}', include_header=False, separator='\\t', quote_style='never',
                line_terminator={end!r})
"""
TIMED = """
import os, time
def begin():
    global begun
    begun = time.monotonic()
{query}
file = os.open('{output}', os.O_RDONLY)
os.fsync(file)
print(time.monotonic() - begun)
"""


@dataclass(frozen=True)
class Task:
    """One file to sort or filter, and with what."""

    input: Path
    folder: Path
    """For temporary files and the output, on the same disk."""
    memory_bytes: int
    group_bytes: int
    """The memory cgroup's limit, the same for every program."""
    threads: int
    below: str = ""
    """Least key that does not match a filter; empty: sort."""
    cached: bool = False
    """The input is in the page cache, and not out of it, when the run begins."""

    @property
    def output(self) -> Path:
        """Where the answer goes."""
        return self.folder / "output"


@dataclass(frozen=True)
class Timed:
    """How long one run took, or why there is no time."""

    seconds: float | None
    why: str = ""


def forget(path: Path) -> None:
    """Drop a file from the page cache."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def fill(path: Path) -> None:
    """Read a file into the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(2**20):
            pass


def leadline(task: Task) -> Timed:
    """`leadline stream sort`; capacities are measured by the first run in a folder alone."""
    command = [
        *(str(Path(sys.executable).with_name("leadline")), "stream", "sort"),
        *(str(task.input), str(task.output)),
        *("--memory", f"{task.memory_bytes}", "--threads", f"{task.threads}", "--name", "bench"),
    ]
    return _run(command, task, LEADLINE_STORE=str(task.folder / "store.sqlite"))


def gnu_sort(task: Task) -> Timed:
    """`sort` of whole lines in the C locale: keys come first and are fixed in length."""
    command = [
        "sort",
        f"--parallel={task.threads}",
        "-S",
        f"{task.memory_bytes}b",
        "-T",
        str(task.folder),
        "-o",
        str(task.output),
        str(task.input),
    ]
    done = _run(command, task)
    if done.seconds is None:
        return done
    begun = time.monotonic()
    with task.output.open("rb") as file:
        os.fsync(file.fileno())
    return Timed(done.seconds + time.monotonic() - begun)


def duckdb(task: Task) -> Timed:
    """DuckDB with its memory limit and its own temporary files."""
    below = task.below.replace("'", "''")
    what = f""".filter({f"r < '{below}'"!r})""" if below else ".order('r')"
    return _python(DUCKDB, task, what=what, keep="true" if task.below else "false")


def polars(task: Task) -> Timed:
    """Polars' streaming engine; it has no memory limit but the cgroup's."""
    what = f"records.filter(pl.col('r') < {task.below!r})" if task.below else "records.sort('r')"
    return _python(POLARS, task, what=what)


def _python(query: str, task: Task, **words: str) -> Timed:
    query = query.format(
        input=task.input,
        output=task.output,
        folder=task.folder,
        threads=task.threads,
        memory=task.memory_bytes,
        end="\r\n",
        **words,
    )
    text = TIMED.format(query=query, output=task.output)
    return _run([sys.executable, "-c", text], task)


def _run(command: list[str], task: Task, **environment: str) -> Timed:
    """Run to the end in the group; standard output, where it is a number, is the seconds."""
    task.output.unlink(missing_ok=True)
    (fill if task.cached else forget)(task.input)
    with _group(task.group_bytes) as inside:
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [*inside, *command],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                env=os.environ | {"LC_ALL": "C"} | environment,
            )
        except subprocess.TimeoutExpired:
            return Timed(None, f"not done in {TIMEOUT_S:.0f} s")
    if done.returncode:
        if done.returncode == -signal.SIGKILL:
            return Timed(None, "killed for want of memory")
        lines = done.stderr.strip().splitlines() or ["without a word"]
        said = next(
            (line for line in lines if "Error: " in line or "Exception: " in line), lines[-1]
        )
        return Timed(None, f"failed: {said[:120]}")
    took = time.monotonic() - begun
    with contextlib.suppress(ValueError):
        took = float(done.stdout)
    return Timed(took)


@contextlib.contextmanager
def _group(limit_bytes: int) -> Iterator[list[str]]:
    """Yield the words before a command that put it into a memory cgroup; none where there is none.

    A shell enters the group and then becomes the command, so nothing runs outside it.
    """
    try:
        with memory_cgroup(limit_bytes) as group:
            yield ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group.path / "cgroup.procs")]
    except CacheLimitRefused:
        yield []
