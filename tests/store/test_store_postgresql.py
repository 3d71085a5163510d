"""The conformance suite on a real PostgreSQL: a throwaway server on a Unix socket.

LEADLINE_TEST_POSTGRESQL names another server instead, one that may be filled, for example
`postgresql+psycopg://postgres@/postgres?host=/tmp/socket`. Each test makes and drops a schema of
its own there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from leadline.store import Store, open_store
from proving.store_conformance import StoreConformance


def _programs() -> Path | None:
    """Folder of initdb and pg_ctl, which Debian keeps off the PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def _as_server(*command: str) -> None:
    """Run a command as a user that PostgreSQL accepts: it refuses root."""
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*user, *command], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """URL of a server that lives as long as this module's tests."""
    named = os.environ.get("LEADLINE_TEST_POSTGRESQL")
    if named:
        yield named
        return
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed here (initdb not found)")
    place = Path("/tmp") / f"leadline-pg-{uuid.uuid4().hex[:8]}"  # noqa: S108 - short: a socket
    place.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(place, "postgres")
    data = str(place / "data")
    control = str(programs / "pg_ctl")
    try:
        _as_server(str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-N")
        options = f"-k {place} -h '' -c fsync=off"
        _as_server(control, "-D", data, "-o", options, "-l", f"{place}/log", "-w", "start")
        yield f"postgresql+psycopg://postgres@/postgres?host={place}"
        _as_server(control, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


class TestPostgresql(StoreConformance):
    schema = ""
    server = ""

    @pytest.fixture(autouse=True)
    def own_schema(self, server: str) -> Iterator[None]:
        self.server = server
        self.schema = f"test_{uuid.uuid4().hex}"
        engine = create_engine(server)
        with engine.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {self.schema}"))
        yield
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {self.schema} CASCADE"))
        engine.dispose()

    def open(self, place: Path) -> Store:
        url = make_url(self.server).update_query_dict({"options": f"-csearch_path={self.schema}"})
        return open_store(url.render_as_string(hide_password=False))
