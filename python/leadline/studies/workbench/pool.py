"""Where trials run: this machine, or several through Dask; one `concurrent.futures.Executor`.

    with open_pool(scheduler) as pool:
        running = {pool.submit(run_trial, order): order for order in orders[: pool.machines]}
        done, _ = concurrent.futures.wait(running, return_when=FIRST_COMPLETED)

Never two trials at once on one machine (SH08 §2.2). A lost machine costs its trial, which runs
again on another and is counted; the experiment goes on.
"""

from __future__ import annotations

import ipaddress
import socket
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, get_type_hints

import msgspec

from leadline import errors
from leadline.errors import LeadlineError
from leadline.inputs import UNREADABLE_JSON
from leadline.machine.lock import machine_locked
from leadline.record.workbench import Trial, TrialOrder, is_simulated

P = ParamSpec("P")
T = TypeVar("T")
Tell = Callable[[str], None]
_SCHEMES = ("tcp", "tls", "ws", "wss")
"""Of Dask's addresses; with another one it starts threads first, and no process of it ends."""
_ENCRYPTED = ("tls", "wss")
"""Schemes of Dask's addresses that no third party can read or join."""


class PoolRefused(LeadlineError):
    """The pool cannot be used as asked; no trial ran."""

    exit_code = 2


class PoolLost(LeadlineError):
    """No machine is left to run a trial on; finished trials are kept, `--resume` goes on."""

    exit_code = 3


class Pool(Executor):
    """Machines that run trials. Close it with `with`, or `shutdown`."""

    @property
    @abstractmethod
    def machines(self) -> int:
        """How many trials may run at once, now: machines come and go."""

    @property
    def lost_trials(self) -> int:
        """How many trials lost their machine so far, and ran again on another."""
        return 0

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The machines, as `Trial.worker` names them."""


class LocalPool(Pool):
    """The machine it runs on, one trial after another, in the caller's own thread.

    A future is done when `submit` returns. So Ctrl-C reaches the trial itself, which tears down
    what it had set up; in another thread it would reach only whoever waits.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._name = socket.gethostname()

    @property
    def machines(self) -> int:
        """One."""
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the host."""
        return (self._name,)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run it, now and here; the future holds what it returned or raised."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(run_here(self._name, self._tell, fn, *args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def open_pool(
    scheduler: str | None = None, tell: Tell | None = None, *, insecure: bool = False
) -> Pool:
    """Open the pool: this machine alone, or the workers of a Dask scheduler.

    Args:
        scheduler: address of the scheduler (`tcp://host:8786`, `tls://…`); None for this machine.
        tell: is told what a person may want to know while it waits.
        insecure: take a scheduler of another machine without TLS.

    Raises:
        PoolRefused: no such scheduler, one without TLS, no worker that offers a testbed, or one
            that cannot run this Leadline's trials.

    """
    if scheduler is None:
        return LocalPool(tell or _silent)
    _require_tls(scheduler, tell or _silent, insecure=insecure)
    try:
        from leadline.studies.workbench.dask_pool import DaskPool  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise PoolRefused(
            f"--scheduler needs Dask, which is not installed here ({error}); type: "
            "pip install 'leadline[cluster]'"
        ) from error
    return DaskPool(scheduler, tell or _silent)


def _require_tls(address: str, tell: Tell, *, insecure: bool) -> None:
    """Warn of a scheduler that anybody can talk to; refuse one on another machine."""
    scheme, there, place = address.rpartition("://")
    if there and scheme.lower() not in _SCHEMES:
        raise PoolRefused(
            f"{address} cannot be used as a scheduler's address: {scheme} is none of "
            f"{', '.join(_SCHEMES)}; give one as tls://host:8786"
        )
    if there and scheme.lower() in _ENCRYPTED:
        return
    if not insecure and not _is_loopback(place):
        raise PoolRefused(
            f"{address} is a scheduler without TLS: whoever reaches it, or listens on the way, can "
            "run any code on its workers; give it certificates and write tls://… "
            "(docs/guide/pool.md), or on a network of your own add --insecure-scheduler"
        )
    tell(
        f"warning: {address} is a scheduler without TLS: whoever reaches it can run any code on "
        "its workers"
    )


def _is_loopback(place: str) -> bool:
    """Whether `host:port` is this machine itself."""
    host = place.partition("/")[0].rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run_here(
    machine: str, tell: Tell, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run it with this machine locked, and write on a trial where and when it ran.

    A simulated server needs no machine: its trials run side by side.
    """
    locked = nullcontext() if _is_simulated(args) else machine_locked(tell)
    with locked:
        started_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        found = fn(*args, **kwargs)
    if isinstance(found, Trial):
        found = msgspec.structs.replace(
            found, worker=found.worker or machine, started_at=found.started_at or started_at
        )
    return found


def _is_simulated(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(each, TrialOrder) and is_simulated(each.server) for each in arguments)


def _silent(_line: str) -> None:
    """Nobody listens."""


# What a machine of a pool sends back, as bytes of JSON: nothing in it can run where it is read.

_KNOWN: dict[str, type[LeadlineError]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), PoolLost, PoolRefused)
    if isinstance(kind, type) and issubclass(kind, LeadlineError)
}
"""What a trial may end by, by name; others arrive as the nearest of these."""


class _Failure(msgspec.Struct, frozen=True):
    kind: str
    said: str


class _Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call returned, or what it raised."""

    found: msgspec.Raw = msgspec.Raw(b"null")
    failure: _Failure | None = None


def encoded(call: Callable[[], Any]) -> bytes:
    """Run a call and write down what it returned, or what it raised."""
    try:
        answer = _Answer(found=msgspec.Raw(msgspec.json.encode(call())))
    except Exception as error:
        answer = _Answer(failure=_failure(error))
    return msgspec.json.encode(answer)


def _failure(error: Exception) -> _Failure:
    kind = next((each.__name__ for each in type(error).__mro__ if each in _KNOWN.values()), None)
    if kind is not None:
        return _Failure(kind, str(error))
    return _Failure("", f"{type(error).__name__}: {error}")


def read_answer(data: bytes, fn: Callable[..., Any]) -> Any:
    """Return what a call of `fn` returned on a machine, as the type that `fn` says it returns.

    Raises:
        LeadlineError: what the call raised there.
        PoolRefused: the machine sent something else.

    """
    try:
        answer = msgspec.json.decode(data, type=_Answer)
        if answer.failure is None:
            return msgspec.json.decode(answer.found, type=get_type_hints(fn).get("return", Any))
    except UNREADABLE_JSON as error:
        raise PoolRefused(
            f"a worker sent something that is no result ({error}); install the same Leadline there"
        ) from error
    failure = answer.failure
    if failure.kind in _KNOWN:
        raise _KNOWN[failure.kind](failure.said)
    raise LeadlineError(
        f"a trial failed on its machine by a defect in Leadline, please report it: {failure.said}"
    )
