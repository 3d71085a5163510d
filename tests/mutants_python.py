"""Mutants of the deciding Python code, each judged by the tests that hold its module.

Run as `tests/mutants python`. A sample is drawn by a hash of each mutant and the seed, so that it
stays the same when other code changes. Each mutant gets a process of its own, forked from one that
has the libraries loaded, in which the module's changed text is what `import` finds: no file is
touched. A mutant that uses up many times the processor time of the unchanged module is killed.

Fails when more than a tenth of a package's mutants survive, when one survives that
`mutants-survivors.toml` does not explain, and when that file explains one that is gone.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType

from mutations import Mutant, mutants_of

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGE = ROOT / "python" / "leadline"
LOGS = ROOT / "build" / "mutants"
SURVIVORS_FRAC_MAX = 0.10

CPU_FACTOR, CPU_S_SPARE = 6, 20
"""Processor time a mutant may take, of that of the unchanged module: more is an endless loop."""
WALL_S_MAX = 900
"""A mutant that waits for ever takes no processor time. Long, for the machine may be busy."""
NOT_IMPORTED = 99
_PR_SET_PDEATHSIG = 1
"""Linux: a process that ends with its parent, should the run be killed."""

LIBRARIES = (
    "numpy",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "msgspec",
    "hypothesis",
    "sqlalchemy",
    "pytest",
    "leadline._engine",
)


class Altered(importlib.abc.MetaPathFinder):
    """Finds one module of Leadline with another text, and knows whether it was asked for."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = str(path)
        self.name = ".".join(path.relative_to(ROOT / "python").with_suffix("").parts)
        self.source = source
        self.asked = False

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Return where the module is, when it is the one."""
        if fullname != self.name:
            return None
        self.asked = True
        loader = AlteredLoader(fullname, self.path, self.source)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=self.path)


class AlteredLoader(importlib.machinery.SourceFileLoader):
    """Compiles the text it was given in place of its file's."""

    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self.text = source

    def get_code(self, fullname: str) -> CodeType:
        """Return the changed module."""
        return compile(self.text, self.path, "exec")


@dataclass(frozen=True)
class Verdict:
    """What the tests said of a mutant."""

    mutant: Mutant
    killed_by: str | None
    """A test's name, or why no test could end; None when it survived."""


def judge(
    path: Path, source: str, tests: Sequence[str], cpu_s_max: float
) -> tuple[int, float, str]:
    """Run tests on a changed module in a process of its own: status, processor time, output."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{os.getpid()}.log"
    child = os.fork()
    if child == 0:
        _become_the_test(path, source, tests, cpu_s_max, log)
    end_s = time.monotonic() + WALL_S_MAX
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end_s:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    code = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding="utf-8", errors="replace")
    log.unlink()
    return code, used.ru_utime + used.ru_stime, text


def _become_the_test(
    path: Path, source: str, tests: Sequence[str], cpu_s_max: float, log: Path
) -> None:
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    code = 70
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        limit = int(cpu_s_max) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        altered = Altered(path, source)
        sys.meta_path.insert(0, altered)
        pytest = importlib.import_module("pytest")
        plain = [
            "-x",
            "-q",
            "-m",
            "not long",
            "--no-header",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
        code = int(pytest.main([*plain, "--hypothesis-seed=0", "--rootdir", str(ROOT), *tests]))
        if code == 0 and not altered.asked:
            code = NOT_IMPORTED
        sys.stdout.flush()
    finally:
        os._exit(code)


def sampled(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw `count` of the mutants, all when it is 0, in the order of their files."""

    def draw(mutant: Mutant) -> bytes:
        return hashlib.sha256(repr((seed, mutant.key)).encode()).digest()

    drawn = sorted(mutants, key=draw)[: count or None]
    return sorted(drawn, key=lambda mutant: (mutant.path, mutant.line, mutant.change))


class Judges:
    """The modules' tests, and what they take on unchanged modules."""

    def __init__(self, tests: dict[str, list[str]]) -> None:
        self._tests = tests
        self._cpu_s: dict[str, float] = {}

    def judge(self, mutant: Mutant) -> Verdict:
        """Say what kills a mutant, or that nothing does."""
        if mutant.path not in self._cpu_s:
            self._cpu_s[mutant.path] = self._unchanged_s(mutant.path)
        limit = CPU_FACTOR * self._cpu_s[mutant.path] + CPU_S_SPARE
        path = PACKAGE / mutant.path
        code, _, output = judge(path, mutant.source, self._tests[mutant.path], limit)
        return Verdict(mutant, None if code == 0 else killer(code, output))

    def _unchanged_s(self, name: str) -> float:
        path = PACKAGE / name
        source = path.read_text(encoding="utf-8")
        code, cpu_s, output = judge(path, source, self._tests[name], 600)
        if code == NOT_IMPORTED:
            raise SystemExit(f"mutants: the tests of {name} never import it")
        if code:
            raise SystemExit(f"{output}\nmutants: the tests of {name} fail without a mutant")
        return cpu_s


def killer(code: int, output: str) -> str:
    """Say which test failed first, or how the process ended."""
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ")[1]
    return "time" if code in (-signal.SIGXCPU, -signal.SIGKILL) else f"status {code}"


def on_processes(jobs: int, judges: Judges, mutants: Sequence[Mutant]) -> list[Verdict]:
    """Judge mutants, each module's on one process, and print each as it comes."""
    if jobs == 1:
        return [_told(judges.judge(mutant)) for mutant in mutants]
    pool = importlib.import_module("concurrent.futures").ProcessPoolExecutor(
        jobs, importlib.import_module("multiprocessing").get_context("fork")
    )
    by_path: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_path[mutant.path].append(mutant)
    whole = sorted(by_path.values(), key=len, reverse=True)
    with pool:
        parts = list(pool.map(on_processes, [1] * len(whole), [judges] * len(whole), whole))
    return [verdict for part in parts for verdict in part]


def _told(verdict: Verdict) -> Verdict:
    mutant = verdict.mutant
    by = verdict.killed_by or "SURVIVED"
    print(f"{mutant.path}:{mutant.line}: {mutant.change[:160]}  [{by}]", flush=True)
    return verdict


def explained() -> set[tuple[str, str, str, int]]:
    """The survivors that `mutants-survivors.toml` gives a reason for."""
    path = TESTS / "mutants-survivors.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("survivor", [])
    without = [row for row in rows if not row["why"].strip()]
    if without:
        raise SystemExit(f"mutants: no reason given for {without}")
    return {(row["path"], row["line"], row["change"], row.get("turn", 0)) for row in rows}


def survivor_entry(mutant: Mutant) -> str:
    """Return what to add to `mutants-survivors.toml`, once there is a reason."""
    turn = f"turn = {mutant.turn}\n" if mutant.turn else ""
    return (
        f"[[survivor]]\npath = '{mutant.path}'\nline = '''{mutant.text}'''\n"
        f"change = '''{mutant.change}'''\n{turn}why = \"\"\n"
    )


def verdict_table(verdicts: dict[str, list[Verdict]]) -> list[str]:
    """Print mutants, killed, survived and their share; return the packages with too many."""
    over = []
    print(f"\n{'package':12} {'mutants':>8} {'killed':>8} {'survived':>9} {'share':>7}")
    for package, found in verdicts.items():
        survived = sum(verdict.killed_by is None for verdict in found)
        share = survived / max(1, len(found))
        row = (len(found), len(found) - survived, survived)
        print("{:12} {:8} {:8} {:9} {:7.1%}".format(package, *row, share))
        if share > SURVIVORS_FRAC_MAX:
            over.append(package)
    return over


def _asked() -> argparse.Namespace:
    asked = argparse.ArgumentParser(prog="tests/mutants python")
    asked.add_argument("--sample", type=int, help="mutants of each package; 0 is all of them")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked.add_argument("paths", nargs="*", help="only packages, or modules as in mutants.toml")
    return asked.parse_args()


def main() -> int:
    """Judge a sample of each package's mutants."""
    asked = _asked()
    table = tomllib.loads((TESTS / "mutants.toml").read_text(encoding="utf-8"))
    tests = {path: held for each in table.values() for path, held in each["modules"].items()}
    every = {path: mutants_of(PACKAGE / path, path) for path in tests}
    known = explained()
    gone = known - {mutant.key for mutants in every.values() for mutant in mutants}
    for name in LIBRARIES:
        importlib.import_module(name)
    for loaded in [name for name in sys.modules if name.split(".")[0] == "leadline"]:
        if loaded != "leadline._engine":
            del sys.modules[loaded]
    judges = Judges(tests)
    verdicts: dict[str, list[Verdict]] = {}
    for package, each in table.items():
        wanted = [path for path in each["modules"] if _wanted(package, path, asked.paths)]
        if wanted:
            mutants = [mutant for path in wanted for mutant in every[path]]
            count = each["sample"] if asked.sample is None else asked.sample
            drawn = sampled(mutants, count, asked.seed)
            verdicts[package] = on_processes(asked.jobs, judges, drawn)
    return _closing(verdicts, known, gone)


def _wanted(package: str, path: str, paths: Sequence[str]) -> bool:
    return not paths or any(given == package or given.endswith(path) for given in paths)


def _closing(
    verdicts: dict[str, list[Verdict]],
    known: set[tuple[str, str, str, int]],
    gone: set[tuple[str, str, str, int]],
) -> int:
    survived = [v.mutant for found in verdicts.values() for v in found if v.killed_by is None]
    unknown = [mutant for mutant in survived if mutant.key not in known]
    over = verdict_table(verdicts)
    if unknown:
        print(f"\n{len(unknown)} survived without a reason in tests/mutants-survivors.toml:\n")
        print("\n".join(map(survivor_entry, unknown)))
    for key in sorted(gone):
        print(f"explained, but there is no such mutant any more: {key}")
    for package in over:
        print(f"{package}: more than {SURVIVORS_FRAC_MAX:.0%} survived")
    return 1 if unknown or gone or over else 0


if __name__ == "__main__":
    sys.exit(main())
