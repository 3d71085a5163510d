"""A client of Dask that loads no pickle of a worker's making.

What workers send (results, errors, the types of results) Dask would unpickle in the client, and
whoever makes a pickle decides which code runs. Here messages stay as they came: a result is taken
as bytes, an error as the fact that there was one.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Sequence
from typing import Any

import distributed
from distributed.protocol import decompress
from distributed.protocol.pickle import dumps
from distributed.protocol.serialize import Serialized

_WORDS_MAX = 300


class TaskKilled(Exception):
    """Every worker that began a task was lost: the scheduler says so."""


class TaskFailed(Exception):
    """A worker could not run a task; why is in its log, and is not read here."""


class JsonClient(distributed.Client):  # type: ignore[misc]
    """The client; its results are of `Serialized`, for `content`."""

    connection_args: dict[str, Any]

    def start(self, **options: Any) -> None:
        """Connect, so that nothing that arrives is made into objects."""
        # The pool has a switch of its own, the stream of reports takes it from here.
        self.connection_args = {**self.connection_args, "deserialize": False}
        self.rpc.deserialize = False
        super().start(**options)

    def _handle_key_in_memory(
        self,
        key: Any = None,
        type: Any = None,  # noqa: A002 - Dask calls it so
        workers: Any = None,
    ) -> None:
        super()._handle_key_in_memory(key=key, type=None, workers=workers)

    def _handle_task_erred(
        self, key: Any = None, exception: Any = None, traceback: Any = None
    ) -> None:
        # What the scheduler says is plain bytes; a worker's error it hands on as it came.
        killed = isinstance(exception, bytes) and b"KilledWorker" in exception
        found = TaskKilled() if killed else TaskFailed()
        super()._handle_task_erred(key=key, exception=found, traceback=None)

    def ask_workers(
        self, fn: Callable[..., bytes], *arguments: Any, workers: Sequence[str]
    ) -> dict[str, bytes | str]:
        """Run a function on workers; what each returned, or in words what went wrong there."""
        asked = {
            "op": "run",
            "function": dumps(fn),
            "args": dumps(arguments),
            "kwargs": dumps({}),
            "wait": True,
        }
        answers = self.sync(
            self.scheduler.broadcast, msg=asked, workers=list(workers), on_error="return_pickle"
        )
        return {worker: _said(answer) for worker, answer in answers.items()}


def _said(answer: Any) -> bytes | str:
    if isinstance(answer, bytes):
        return _words_in(answer)
    if answer.get("status") == "OK":
        return content(answer.get("result"))
    return str(answer.get("exception_text", "no reason is given"))


def _words_in(pickled: bytes) -> str:
    """Return the texts in a pickle, its class first, without loading it."""
    try:
        found = [each for _, each, _ in pickletools.genops(pickled) if isinstance(each, str)]
    except ValueError:
        return "no reason is given"
    return " ".join(found)[:_WORDS_MAX]


def content(found: Any) -> bytes:
    """Return the bytes of a result, whatever is said of how they were made.

    Raises:
        TypeError: it is no bytes.

    """
    if isinstance(found, bytes):
        return found
    if not isinstance(found, Serialized):
        raise TypeError(f"a result is {type(found).__name__}, not bytes")
    frames = found.frames
    if "compression" in found.header:
        frames = decompress(found.header, frames)
    return b"".join(map(bytes, frames))
