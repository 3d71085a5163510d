"""The conformance suite on PostgreSQL; LEADLINE_TEST_POSTGRESQL names a server that may be filled.

For example `postgresql+psycopg://postgres@/postgres?host=/tmp/socket`; each test makes and drops a
schema of its own there.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from leadline.store import Store, open_store
from leadline.testing.store_conformance import StoreConformance

SERVER = os.environ.get("LEADLINE_TEST_POSTGRESQL", "")
pytestmark = pytest.mark.skipif(not SERVER, reason="LEADLINE_TEST_POSTGRESQL names no server")


class TestPostgresql(StoreConformance):
    schema = ""

    @pytest.fixture(autouse=True)
    def own_schema(self) -> Iterator[None]:
        self.schema = f"test_{uuid.uuid4().hex}"
        server = create_engine(SERVER)
        with server.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {self.schema}"))
        yield
        with server.begin() as connection:
            connection.execute(text(f"DROP SCHEMA {self.schema} CASCADE"))
        server.dispose()

    def open(self, place: Path) -> Store:  # noqa: ARG002 - a server is no place
        url = make_url(SERVER).update_query_dict({"options": f"-csearch_path={self.schema}"})
        return open_store(url.render_as_string(hide_password=False))
