"""Trials on the workers of a Dask scheduler, whose answers are JSON and never a pickle."""

from __future__ import annotations

import asyncio
import hashlib
import pickletools
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple, ParamSpec, TypeVar

import distributed
import msgspec
from distributed.protocol import decompress
from distributed.protocol.pickle import dumps
from distributed.protocol.serialize import Serialized
from tornado.ioloop import IOLoop

from leadline.record.workbench import Trial, TrialOrder, TrialState
from leadline.studies.workbench.pool import (
    Pool,
    PoolLost,
    PoolRefused,
    Tell,
    encoded,
    read_answer,
    run_here,
)

# A client of Dask that loads no pickle of a worker's making.
#
# What workers send (results, errors, the types of results) Dask would unpickle in the client, and
# whoever makes a pickle decides which code runs. Here messages stay as they came: a result is taken
# as bytes, an error as the fact that there was one.

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


# The pool of a Dask scheduler: its workers that offer a testbed, one trial at a time on each.
#
# A worker is a machine under test: `dask worker ADDRESS --nthreads 1 --resources testbed=1`. TLS is
# Dask's own (`distributed.comm.tls` of its configuration); nothing of it is read here.
#
# Dask runs the task of a lost worker again on another. Every start is an event that the worker
# logs, which is how lost trials are counted. Results come back as bytes of JSON (`answers`),
# through a client that loads no pickle of a worker's making (`json_client`).

P = ParamSpec("P")
T = TypeVar("T")

RESOURCE = "testbed"
_CONNECT_S = 10.0
_WORKERS_S = 10.0
"""How long a scheduler may be without a worker before it is refused."""
_TIMEOUT_S = 60.0
"""How long trials wait for a machine while there is none: a worker's nanny restarts it in less."""
_LOOK_S = 1.0
_GONE = ("CommClosedError", "OSError", "TimeoutError", "ConnectionRefusedError")
"""What Dask says of a worker that was there a moment ago."""
_START_ONE = "dask worker {} --nthreads 1 --resources testbed=1"


class Handshake(NamedTuple):
    """What both ends must agree on, or a trial would not mean the same on both."""

    version: str
    records: str
    """Digest of the shapes of an order and of a trial."""


def own_handshake() -> Handshake:
    """Return this Leadline's."""
    shapes = msgspec.json.encode(msgspec.json.schema_components([TrialOrder, Trial])[1])
    return Handshake(metadata.version("leadline"), hashlib.sha256(shapes).hexdigest()[:16])


@dataclass(frozen=True)
class _Call:
    """What goes to a worker; no tuple, whose parts Dask would look into."""

    expected: Handshake
    topic: str
    name: str
    fn: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class _Run:
    """One submitted call, its future, and the workers that began it."""

    def __init__(self, fn: Callable[..., Any], order: TrialOrder | None) -> None:
        self.fn = fn
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()
        self.task: distributed.Future | None = None
        self.order = order
        self.began_on: list[str] = []
        self.since = time.monotonic()


class DaskPool(Pool):
    """Workers of a scheduler that offer `testbed=1`."""

    def __init__(self, address: str, tell: Tell, timeout_s: float = _TIMEOUT_S) -> None:
        self._address = address
        self._tell = tell
        self._timeout_s = timeout_s
        self._client = _connect(address)
        self._handshake = own_handshake()
        self._topic = f"leadline-{uuid.uuid4().hex}"
        self._runs: dict[str, _Run] = {}
        self._lost_trials = 0
        self._change = threading.Lock()
        self._closed = threading.Event()
        try:
            self._greet()
            self._client.subscribe_topic(self._topic, self._began)
        except BaseException:
            self._client.close(timeout=_CONNECT_S)
            raise
        self._watch = threading.Thread(target=self._watch_machines, daemon=True)
        self._watch.start()

    @property
    def machines(self) -> int:
        """How many workers offer a testbed now; at least 1, so that trials wait for the next."""
        return max(1, len(self._workers()))

    @property
    def names(self) -> tuple[str, ...]:
        """The workers' names: `--name`, or their addresses."""
        return tuple(str(each["name"]) for each in self._workers().values())

    @property
    def busy(self) -> tuple[str, ...]:
        """The workers that run something now, as far as they have said so."""
        with self._change:
            return tuple(run.began_on[-1] for run in self._runs.values() if run.began_on)

    @property
    def lost_trials(self) -> int:
        """How many trials lost their machine so far, and ran again on another."""
        return self._lost_trials

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run it on the next free machine; on another when that one is lost.

        What it returns comes back as JSON and is read as the type that `fn` says it returns. The
        future raises `PoolLost` when no machine is left, `PoolRefused` when one runs another
        Leadline. A trial that loses one machine after another ends as `FAILED`.
        """
        if self._closed.is_set():
            raise RuntimeError("cannot submit to a pool that was shut down")
        order = next((each for each in args if isinstance(each, TrialOrder)), None)
        run, name = _Run(fn, order), f"leadline-{uuid.uuid4().hex}"
        with self._change:
            self._runs[name] = run
        call = _Call(self._handshake, self._topic, name, fn, args, kwargs)
        run.task = self._client.submit(
            _run_on_worker, call, key=name, resources={RESOURCE: 1}, pure=False
        )
        run.task.add_done_callback(lambda task: self._settle(name, task))
        return run.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the scheduler; trials in flight end by themselves and are forgotten."""
        if wait and not cancel_futures:
            for run in tuple(self._runs.values()):
                run.future.exception()
        self._closed.set()
        self._fail_all(PoolLost("the pool was shut down"))
        self._client.close(timeout=_CONNECT_S)
        self._watch.join()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Wait for what still runs, unless an error leads out of here."""
        self.shutdown(wait=True, cancel_futures=kind is not None)

    def _workers(self) -> dict[str, Any]:
        found = self._client.scheduler_info().get("workers", {})
        return {at: each for at, each in found.items() if each["resources"].get(RESOURCE)}

    def _greet(self) -> None:
        """Wait for the first worker; refuse one that cannot run our trials, before any runs."""
        end = time.monotonic() + _WORKERS_S
        while not self._workers():
            if time.monotonic() > end:
                raise PoolRefused(
                    f"the scheduler at {self._address} has no worker that offers a testbed; "
                    f"start one on every machine: {_START_ONE.format(self._address)}"
                )
            time.sleep(0.1)
        answers = self._client.ask_workers(
            _encoded_refusal, self._handshake, workers=list(self._workers())
        )
        for worker, answer in answers.items():
            said = answer if isinstance(answer, str) else read_answer(answer, _refusal)
            gone = isinstance(answer, str) and any(word in answer for word in _GONE)
            if said is not None and not gone:
                raise PoolRefused(_cannot_run(worker, said))

    def _began(self, event: tuple[float, Any]) -> None:
        """A worker says that it begins a run: the second to say so does it again."""
        _, said = event
        with self._change:
            run = self._runs.get(str(said["run"]))
            if run is None:
                return
            if run.began_on:
                self._lost_trials += 1
            run.began_on.append(str(said["machine"]))
        if len(run.began_on) > 1:
            before, now = run.began_on[-2:]
            self._tell(f"worker {before} was lost; its trial runs again on {now}")

    def _settle(self, name: str, task: distributed.Future) -> None:
        with self._change:
            run = self._runs.pop(name, None)
        if run is None:
            return
        try:
            run.future.set_result(read_answer(content(task.result(timeout=_CONNECT_S)), run.fn))
        except TaskKilled:
            _end_lost(run)
        except TaskFailed:
            why = "its log says why"
            run.future.set_exception(PoolRefused(_cannot_run("a worker", why)))
        except (distributed.CancelledError, OSError, TimeoutError):
            run.future.set_exception(PoolLost(self._gone()))
        except Exception as error:
            run.future.set_exception(error)

    def _watch_machines(self) -> None:
        """End what waits when there is no machine for it: Dask would wait for ever."""
        seen = time.monotonic()
        while not self._closed.wait(_LOOK_S):
            if not self._runs or (self._client.status == "running" and self._workers()):
                seen = time.monotonic()
            elif time.monotonic() - seen > self._timeout_s:
                self._fail_all(PoolLost(self._gone()))

    def _fail_all(self, error: PoolLost) -> None:
        with self._change:
            runs = dict(self._runs)
            self._runs.clear()
        for run in runs.values():
            run.future.set_exception(error)
        if self._client.status == "running":
            self._client.cancel([run.task for run in runs.values() if run.task], force=True)

    def _gone(self) -> str:
        if self._client.status != "running":
            return (
                f"the scheduler at {self._address} went away; start it again, its workers too, "
                "and go on with --resume"
            )
        return (
            f"no machine of the pool at {self._address} is left to run trials on; start workers "
            f"({_START_ONE.format(self._address)}) and go on with --resume"
        )


@cache
def _loop() -> IOLoop:
    """Return an event loop that runs.

    Dask starts its own in a thread, which a busy host may begin so late that Dask gives up, by
    an AssertionError; ours is waited for.
    """
    running: Future[IOLoop] = Future()

    async def run() -> None:
        running.set_result(IOLoop.current())
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(run()), name="dask loop", daemon=True).start()
    return running.result()


def _connect(address: str) -> JsonClient:
    try:
        return JsonClient(
            address, loop=_loop(), timeout=_CONNECT_S, set_as_default=False, name="leadline"
        )
    except (OSError, TimeoutError) as error:
        raise PoolRefused(
            f"no Dask scheduler answers at {address} ({_first_line(error)}); start one: "
            "dask scheduler"
        ) from error
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise PoolRefused(
            f"{address} cannot be used as a scheduler's address: {_first_line(error)}; give one "
            "as tcp://host:8786, or tls://host:8786 with Dask's own TLS settings"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _cannot_run(worker: str, why: str) -> str:
    return (
        f"{worker} cannot run these trials: {why}; install the same Leadline there "
        f"(pip install 'leadline[cluster]=={own_handshake().version}') and start its worker again"
    )


def _refusal(expected: Handshake, dask_worker: Any = None) -> str | None:
    """Say why the worker that this runs on must not run our trials; None when it may."""
    worker = dask_worker or distributed.get_worker()
    own = own_handshake()
    if own.version != expected.version:
        return f"it has Leadline {own.version}, and this is {expected.version}"
    if own.records != expected.records:
        return f"it has another Leadline {own.version}, with other records"
    offered = worker.state.total_resources.get(RESOURCE, 0)
    if offered > 1:
        return f"it offers testbed={offered:g}, but two trials at once would measure each other"
    return None


def _encoded_refusal(expected: Handshake, dask_worker: Any = None) -> bytes:
    """Say as JSON what `_refusal` says; Dask gives the worker."""
    return encoded(lambda: _refusal(expected, dask_worker))


def _run_on_worker(call: _Call) -> bytes:
    """Run a call on the worker that this runs on; what came of it, as JSON."""
    return encoded(lambda: _begun_here(call))


def _begun_here(call: _Call) -> Any:
    """Run a call, once this worker has said that it begins."""
    worker = distributed.get_worker()
    machine = str(worker.name)
    refusal = _refusal(call.expected, worker)
    if refusal is not None:
        raise PoolRefused(_cannot_run(f"worker {machine}", refusal))
    worker.log_event(call.topic, {"run": call.name, "machine": machine})
    return run_here(machine, _log, call.fn, *call.arguments, **call.named)


def _log(line: str) -> None:
    distributed.get_worker().log_event("leadline", line)


def _end_lost(run: _Run) -> None:
    """A trial that takes one machine after another with it says nothing; it is not repeated."""
    where = ", ".join(run.began_on) or "workers that never answered"
    why = f"every machine that began it was lost ({where}); look at the workers' logs"
    if run.order is None:
        run.future.set_exception(PoolLost(why))
        return
    run.future.set_result(
        Trial(
            order=run.order.order,
            request=run.order.request,
            seed=run.order.seed,
            state=TrialState.FAILED,
            cost_s=time.monotonic() - run.since,
            measured=None,
            failure=f"{why}: the trial may be what kills them",
        )
    )
