"""Which code a result measured, on which machine, and whether that code is still the same.

Every program that stores results has a constant MEASURES: the paths, from the root of the
repository, of the code that decides its figures. It is read without running the program.
"""

from __future__ import annotations

import ast
import datetime
import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from figures.stored import ROOT, Result
from leadline.machine.facts import host_facts, target_facts

DIRTY = "-dirty"


@functools.cache
def measures_of(program: str) -> tuple[str, ...]:
    """Return the paths of the code that a program measures.

    Raises:
        ValueError: it does not say so.

    """
    for node in ast.parse((ROOT / program).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "MEASURES" for target in targets):
            assert isinstance(node, ast.Assign)
            return tuple(ast.literal_eval(node.value))
    raise ValueError(f"{program} has no MEASURES")


def commit_now(paths: Sequence[str]) -> str | None:
    """Return the commit of the checkout, marked where these paths differ from it; None without."""
    done = _git("rev-parse", "--short=12", "HEAD")
    if done.returncode:
        return None
    differs = _git("status", "--porcelain", "--", *paths).stdout
    return done.stdout.strip() + (DIRTY if differs else "")


def today() -> str:
    """Return the date, in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def machine_of(directory: Path) -> dict[str, str]:
    """Say what machine this is, with the disk below a directory."""
    host, target = host_facts(), target_facts(directory)
    return {
        "processor": f"{host['cpu_model']}, {host['cpu_count']} CPUs",
        "memory": f"{(host['memory_bytes'] or 0) / 2**30:.1f} GiB",
        "kernel": f"Linux {host['kernel_release']}",
        "disk": f"{target['filesystem_type']} on {target['device_name']}",
    }


def why_stale(result: Result) -> str | None:
    """Say why a result is not known to be of the code that is checked out; None when it is."""
    commit, program = result.commit, result.made_by
    if program is None:
        return "no program of this repository makes it again"
    if commit is None:
        return "its commit was not written down"
    if commit.endswith(DIRTY):
        return f"measured on changes of {commit.removesuffix(DIRTY)} that were not committed"
    if _git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
        return f"its commit {commit} is not in this clone, which may be a shallow one"
    return _what_changed(commit, measures_of(program))


def _what_changed(commit: str, paths: Sequence[str]) -> str | None:
    changed = _git("diff", "--name-only", commit, "--", *paths)
    if changed.returncode:
        return f"git cannot compare it: {changed.stderr.strip()}"
    files = changed.stdout.split()
    if not files:
        return None
    more = ", …" if len(files) > 3 else ""
    return f"{len(files)} of its files changed since {commit}: {', '.join(files[:3])}{more}"


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
