"""A database opened and checked; transactions, documents and their errors."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Select,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, IntegrityError, InvalidRequestError, SQLAlchemyError

from leadline.inputs import UNREADABLE_JSON
from leadline.machine.stop import shielded
from leadline.store._place import as_it_is, is_read_only, masked
from leadline.store._tables import SCHEMA_VERSION, metadata, schema
from leadline.store.errors import StoreError

PREFIX_MIN = 4
_BUSY_S = 30
_NOTHING = make_url("sqlite://")
"""In memory: what is seen where there is no file."""
D = TypeVar("D")

# What fails is said by StoreError; without a handler the pool's tracebacks go to the terminal.
logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())


class Database:
    """What every part of the store stands on."""

    def __init__(self, url: URL, *, reading: bool = False) -> None:
        """Open a database.

        Args:
            url: where it is.
            reading: only to look: nothing is made, and one that cannot be written will do.

        """
        own_file = url.get_backend_name() == "sqlite"
        self._shown = str(url.database) if own_file else masked(url.render_as_string())
        self._reading = reading
        fixed = own_file and reading and is_read_only(str(url.database))
        if own_file and reading and not Path(str(url.database)).exists():
            url = _NOTHING
        self._holds_nothing = url is _NOTHING
        self._engine = self._make_engine(as_it_is(url) if fixed else url)
        try:
            self._prepare()
            if own_file and not fixed:
                self._write_ahead()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the connections."""
        self._engine.dispose()

    @classmethod
    def of_bytes(cls, data: bytes, shown: str) -> Self:
        """Open what `serialized` returned, in memory; `shown` is where it came from."""
        own = cls(_NOTHING)
        own._shown = shown
        try:
            with own._raw() as connection:
                connection.deserialize(data)
            own._prepare()
        except BaseException:
            own.close()
            raise
        return own

    def serialized(self) -> bytes:
        """Return a database that is in memory, as a file of SQLite would hold it."""
        with self._raw() as connection:
            return connection.serialize()

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        pooled = self._engine.raw_connection()
        try:
            assert isinstance(pooled.driver_connection, sqlite3.Connection)  # noqa: S101 - in memory
            yield pooled.driver_connection
        except sqlite3.Error as error:
            raise self._damaged(str(error)) from error
        finally:
            pooled.close()

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close."""
        self.close()

    def _make_engine(self, url: URL) -> Engine:
        try:
            if url.get_backend_name() != "sqlite":
                return create_engine(url)
            engine = create_engine(url, connect_args={"timeout": _BUSY_S})
        except (ArgumentError, InvalidRequestError, ImportError) as error:
            raise StoreError(
                f"--store {self._shown}: {masked(str(error))}; use a file, or install the "
                "database's driver (for PostgreSQL: pip install leadline[postgresql])"
            ) from error
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_reading if self._reading else _begin_writing)
        return engine

    def _prepare(self) -> None:
        with self._transaction() as connection:
            names = set(inspect(connection).get_table_names())
            if schema.name not in names:
                if names:
                    raise StoreError(
                        f"{self._shown} is a database, but not a Leadline store (it holds "
                        f"{sorted(names)[0]!r}); name another file with --store"
                    )
                if self._reading and not self._holds_nothing:
                    raise StoreError(
                        f"{self._shown} is an empty database, and nothing is made in it only to "
                        "look; a first `leadline survey` makes a store of it"
                    )
                metadata.create_all(connection)
                connection.execute(schema.insert().values(version=SCHEMA_VERSION))
                return
            found = connection.execute(select(schema.c.version)).scalar()
            if isinstance(found, int) and found > SCHEMA_VERSION:
                raise StoreError(
                    f"{self._shown} was made by a newer Leadline (schema {found}, this one knows "
                    f"{SCHEMA_VERSION}); upgrade Leadline or name another file with --store"
                )
            if found != SCHEMA_VERSION or not set(metadata.tables) <= names:
                raise self._damaged("its tables are not complete")

    def _write_ahead(self) -> None:
        """Let readers and a writer work at once; only now, because it changes the file for good.

        Two processes that make one store at the same moment may both fail; then the next opening
        does it. Durability does not hang on it, `synchronous` holds in either mode.
        """
        with suppress(sqlite3.Error, SQLAlchemyError, MemoryError):
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
            finally:
                connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            # A stop waits: where it interrupts SQLAlchemy, the lock may stay held.
            with shielded(), self._engine.begin() as connection:
                yield connection
        except IntegrityError as error:
            raise StoreError(
                f"{self._shown}: another process has stored it already: {error.orig}"
            ) from error
        except (SQLAlchemyError, MemoryError) as error:
            raise self._translated(error) from error

    def _translated(self, error: SQLAlchemyError | MemoryError) -> StoreError:
        cause = getattr(error, "orig", None) or error
        said = masked(str(cause).strip())
        text = said.splitlines()[0] if said else type(cause).__name__
        if "is not a database" in text:
            return StoreError(
                f"{self._shown} is not a Leadline store: {text}; move it away or name another with "
                "--store"
            )
        if "malformed" in text or "corrupt" in text or "no such" in text:
            return self._damaged(text)
        return StoreError(f"{self._shown} cannot be used: {text}; name another with --store")

    def _damaged(self, why: str) -> StoreError:
        return StoreError(
            f"{self._shown} is damaged: {why}; move it away or name another with --store"
        )

    def _decode(self, document: str, kind: type[D]) -> D:
        try:
            return msgspec.json.decode(document, type=kind)
        except UNREADABLE_JSON as error:
            said = getattr(kind, "__name__", "document")
            raise self._damaged(f"a {said} in it cannot be read: {error}") from error

    def _by_prefix(
        self, connection: Connection, query: Select[Any], column: Column[Any], ref: str
    ) -> Any:
        if len(ref) < PREFIX_MIN:
            return None
        # Not LIKE: that ignores case in SQLite and has wildcards.
        rows = connection.execute(query.where(func.substr(column, 1, len(ref)) == ref)).all()
        if len(rows) > 1:
            found = ", ".join(sorted(getattr(row, column.name) for row in rows)[:5])
            raise StoreError(f"{ref!r} may be any of {found}; type more of it")
        return rows[0] if rows else None


def encode(document: object) -> str:
    text = msgspec.json.encode(document)
    try:
        # JSON has no nan and no infinity: what could not be read again is refused now.
        msgspec.json.decode(text, type=type(document))
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"this {type(document).__name__} cannot be stored, a value in it is not finite or not "
            f"of its type: {error}"
        ) from error
    return text.decode()


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own BEGIN comes too late and takes no write lock; _begin_writing's does.
    connection.isolation_level = None
    # FULL makes a commit survive a loss of power, not only a kill
    # (sqlite.org/pragma.html#pragma_synchronous).
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_writing(connection: Connection) -> None:
    # Two writers that both began by reading could not both go on; taking the lock first can wait.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
