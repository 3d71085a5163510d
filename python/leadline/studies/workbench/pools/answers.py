"""What a machine of a pool sends back, as bytes of JSON: nothing in it can run where it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from leadline import errors
from leadline.errors import LeadlineError
from leadline.inputs import UNREADABLE_JSON
from leadline.studies.workbench.pools.pool import PoolLost, PoolRefused

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
