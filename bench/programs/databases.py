"""Databases: SQLite with both of its journals, PostgreSQL under pgbench, DuckDB."""

from __future__ import annotations

import importlib.util
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

from programs.program import Program, Unavailable

ROWS = 400_000
"""Of 200 bytes each: 82 MiB."""
SQLITE = """
import random, sqlite3, sys
random.seed(5)
base = sqlite3.connect("base.sqlite", isolation_level=None)
base.execute("PRAGMA journal_mode = " + sys.argv[1])
base.execute("PRAGMA cache_size = 100")
for number in range(int(sys.argv[2])):
    key = (random.randrange(400000),)
    if number % 10 == 0:
        base.execute("UPDATE t SET v = randomblob(200) WHERE k = ?", key)
    else:
        base.execute("SELECT v FROM t WHERE k = ?", key).fetchall()
"""
DUCKDB = """
import duckdb
base = duckdb.connect("base.duckdb")
base.execute("SET memory_limit = '32MB'; SET threads = 1; SET temp_directory = 'spilled'")
for column in ("a", "b", "a + b", "c"):
    base.execute(f"SELECT {column}% 1000 AS g, sum(c) FROM t GROUP BY g").fetchall()
"""
DUCKDB_FILL = """
import duckdb
base = duckdb.connect("base.duckdb")
base.execute("CREATE TABLE t AS SELECT (random() * 1e9)::BIGINT AS a, (random() * 1e9)::BIGINT"
    " AS b, random() AS c FROM range(4000000)")
"""
PGBENCH_SERVER = Path(__file__).parents[2] / "workloads" / "pgbench" / "server.py"
BRANCHES, CLIENTS = 6, 2
"""About 95 MiB, and as many clients as this kind of machine has processors."""


def _sqlite(folder: Path, journal: str) -> None:
    (folder / "program.py").write_text(SQLITE, encoding="ascii")
    with closing(sqlite3.connect(folder / "base.sqlite", isolation_level=None)) as base:
        base.execute(f"PRAGMA journal_mode = {journal}")
        base.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
        base.execute("BEGIN")
        keys = ((key,) for key in range(ROWS))
        base.executemany("INSERT INTO t VALUES (?, randomblob(200))", keys)
        base.execute("COMMIT")


def _duckdb(folder: Path) -> None:
    if importlib.util.find_spec("duckdb") is None:
        raise Unavailable("there is no duckdb here: pip install duckdb")
    (folder / "program.py").write_text(DUCKDB, encoding="ascii")
    subprocess.run([sys.executable, "-I", "-c", DUCKDB_FILL], cwd=folder, check=True)


def _pgbench(folder: Path) -> None:
    if shutil.which("pgbench") is None:
        raise Unavailable("there is no pgbench here: apt-get install postgresql")
    folder.chmod(0o755)
    for each in folder.parents:  # the server is another user than root
        if each.stat().st_uid == 0 and each.stat().st_mode & 0o001 == 0:
            raise Unavailable(f"{each} is closed to PostgreSQL's user")
    _server(folder, "fill", str(BRANCHES))
    settings = folder / "postgresql" / "data" / "postgresql.auto.conf"
    with settings.open("a", encoding="ascii") as out:
        out.write("shared_buffers = 8MB\nmax_wal_size = 1GB\nautovacuum = off\n")


def _server(folder: Path, what: str, *words: str) -> None:
    subprocess.run([sys.executable, "-I", PGBENCH_SERVER, what, str(folder), *words], check=True)


def _sqlite_program(name: str, journal: str, operations: int) -> Program:
    return Program(
        name,
        partial(_sqlite, journal=journal),
        f"{sys.executable} -I program.py {journal} {operations}",
    )


_AS_SERVER = f"{sys.executable} -I {PGBENCH_SERVER}"

DATABASES = (
    _sqlite_program("sqlite-rollback", "DELETE", 20_000),
    _sqlite_program("sqlite-wal", "WAL", 40_000),
    Program(
        "pgbench",
        _pgbench,
        f"{_AS_SERVER} start $PWD on && pgbench -n -h $PWD/postgresql -U postgres -c {CLIENTS} "
        f"-t 4000 postgres > pgbench.log; {_AS_SERVER} stop $PWD",
    ),
    Program("duckdb", _duckdb, f"{sys.executable} -I program.py"),
)
