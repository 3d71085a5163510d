"""Commands in processes of their own that need not load Leadline first.

Loading it takes longer than most commands take. A server that has loaded everything forks for each
command (multiprocessing's `forkserver`); such a process has its own id, descriptors, signals and
exit code, as one that a shell starts has. What is tested of the start itself starts `LEADLINE`.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from leadline.cli import main

_ROOMS = ("leadline.cli", "leadline.report")


def _modules() -> list[str]:
    """Name what commands load: the rooms here, whatever those need, and what is loaded late."""
    found = list(_ROOMS)
    for name in _ROOMS:
        inside = pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}.")
        found += [module.name for module in inside]
    return [*found, "leadline.api", "altair", "vl_convert"]


_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(_modules())


def run_forked(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float,
    *,
    steer: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `leadline ARGUMENTS` to its end, as subprocess.run does with text captured.

    Args:
        arguments: what stands behind `leadline`.
        environment: all its variables.
        timeout_s: it is killed after this.
        steer: called in the process first; a function of a module.

    Raises:
        subprocess.TimeoutExpired: it had not ended.

    """
    with tempfile.TemporaryDirectory(prefix="leadline-command-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        child = _SERVER.Process(
            target=_command, args=(list(arguments), dict(environment), str(out), str(err), steer)
        )
        child.start()
        child.join(timeout_s)
        late = child.is_alive()
        if late:
            child.kill()
            child.join()
        said, told = out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
    if late:
        raise subprocess.TimeoutExpired(["leadline", *arguments], timeout_s, said, told)
    assert child.exitcode is not None
    return subprocess.CompletedProcess(["leadline", *arguments], child.exitcode, said, told)


def _command(
    arguments: list[str],
    environment: dict[str, str],
    out: str,
    err: str,
    steer: Callable[[], None] | None,
) -> None:
    for descriptor, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["leadline", *arguments]
    if steer is not None:
        steer()
    main()
