"""A page that waits for its data base: the answer takes 5 ms on average, exponentially drawn."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable

WORK_S = float(os.environ.get("WORK_MS", "5")) / 1e3
PAGE = b"<!doctype html><title>A page</title>" + b"<p>Words.</p>" * 300

Headers = list[tuple[str, str]]


def page(_environ: object, start_response: Callable[[str, Headers], object]) -> Iterable[bytes]:
    """Answer one request (WSGI); as many at a time as the server has threads."""
    time.sleep(random.expovariate(1 / WORK_S))
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(PAGE)))])
    return [PAGE]
