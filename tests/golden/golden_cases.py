"""The table: every kind of record, and what is asked of it.

A case is a folder of `expected/` and a list of commands; its name is a file's. What Leadline
refuses today is in the table as what it does: when a hole closes, its golden shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

KINDS = {
    "survey": "3f2a5b58da90523294d55888f52cccd9",
    "survey-unfinished": "282bcc82a04a52cfbaa3ea06379c1343",
    "measurement-simulated": "53c3b57073fd5122a9e2654bf7070bce",
    "measurement-fio-job": "a284a68e881f5ec695046675e4b10549",
    "measurement-directory": "acbd8c7800b0547385aece6cfe27ed1b",
    "validation": "410f0a1c3fac5ba49f93806048f220ff",
    "cache-study": "964407dd3033518b82e4d3c5281e0112",
    "files-study": "c321c241f311538bb7976bcb2fafe275",
    "stream-run": "4c8639ad38055462934c7e3c77c262fc",
    "stream-scaling": "b25e6251b43e5168b5182801af2e5f0d",
    "peak": "11703719f2045d1e923ffb6760875262",
    "surface": "8b41a6effe4e59d7a1904357bfb9f5bd",
    "application": "9df69f5744c95339bcd9fdd5579642b8",
}
"""A record of each kind in store-today.sqlite, by its id. Comparisons, balances and predictions
are not stored: they are asked for below."""

_SMALL = "unique_bytes=2MiB,size_mean=8KiB,process_num=2"
_TWO_LEVEL = "unique_bytes=2GiB,size_mean=64KiB,read_frac=0.6,seq_frac=0.6,process_num=8"
_SERVER = str(HERE / "server.toml")
_QUICK = ("--policy", "mlrsearch", "--no-compare")
"""Other policies think for a second over each trial."""


@dataclass(frozen=True)
class Case:
    """A command and the name of its golden."""

    name: str
    command: tuple[str, ...]
    live: bool = False
    """It measures now: on a store of its own, with times and ids of its own."""


def _of_kinds() -> Iterator[Case]:
    for kind, ref in KINDS.items():
        for name, words in {
            "show": ("show", ref),
            "show-json": ("show", ref, "--json"),
            "export-json": ("export", ref, "--format", "json"),
            "export-csv": ("export", ref, "--format", "csv"),
            "report-html": ("report", ref, "-o", "{out}/page.html"),
        }.items():
            yield Case(f"{kind}/{name}", words)
    for kind in ("survey", "cache-study", "files-study", "stream-run", "peak", "application"):
        yield Case(f"{kind}/show-verbose", ("--verbose", "show", KINDS[kind]))


def _live(name: str, *words: str) -> Case:
    return Case(f"live/{name}", words, live=True)


ASKED = (
    Case("systems/systems", ("systems",)),
    Case("systems/systems-json", ("systems", "--json")),
    # Three records are called atlas or belong to what is called so; only the survey is seen.
    Case("systems/show-by-name-of-two", ("show", "atlas")),
    Case("systems/show-by-name-of-experiments", ("show", "tiny-server")),
    Case("systems/show-unknown", ("show", "nothing")),
    Case("cache-study/report-svg", ("report", KINDS["cache-study"], "-o", "{out}/cache.svg")),
    Case("files-study/report-csv", ("report", KINDS["files-study"], "-o", "{out}/page.csv")),
    Case("files-study/report-with", ("report", "thing", "--with", "other", "-o", "{out}/page.csv")),
    Case("prediction/text", ("predict", "atlas", "--workload", _TWO_LEVEL, "--named")),
    Case(
        "prediction/json",
        (
            "predict",
            "atlas",
            "--workload",
            _TWO_LEVEL,
            "--named",
            "--fio",
            str(HERE / "two.fio"),
            "--json",
        ),
    ),
    Case("prediction/of-one-json", ("predict", "atlas", "--workload", _TWO_LEVEL, "--json")),
    Case(
        "prediction/refused", ("predict", "atlas", "--workload", _TWO_LEVEL.replace("2GiB", "2TiB"))
    ),
    Case("comparison/verbose", ("--verbose", "compare", "atlas", "boreas")),
    Case("comparison/text", ("compare", "atlas", "boreas", "--fail-if", "slower=5%")),
    Case(
        "comparison/json-and-html",
        ("compare", "atlas", "boreas", "-o", "{out}/page.html", "--workload", _TWO_LEVEL, "--json"),
    ),
    Case("comparison/of-cache-study", ("compare", "atlas", KINDS["cache-study"])),
    Case("balance/text", ("balance", "scaled", "counted")),
    Case("balance/json", ("balance", "counted", "--json")),
    Case("balance/html", ("balance", "scaled", "counted", "-o", "{out}/page.html")),
    Case("balance/what-if", ("balance", "counted", "--what-if", "cores=2,disks=2")),
    Case("balance/of-one-run", ("balance", "sorter")),
    Case("balance/of-survey", ("balance", "atlas")),
)

LIVE = (
    _live("survey-json", "survey", "sim:no-cache", "--budget", "60s", "--json"),
    _live("survey-resume", "survey", "sim:no-cache", "--name", "cut", "--resume"),
    _live("validate", "validate", "boreas", "--count", "4", "--no-rivals"),
    _live("cache-json", "cache", "sim:solbourne-5e905", "--budget", "60s", "--json"),
    _live("measure", "measure", "sim:two-level", "--workload", _SMALL),
    _live("measure-json", "measure", "sim:two-level", "--workload", _SMALL, "--json"),
    _live(
        "measure-rate-json",
        "measure",
        "sim:two-level",
        "--workload",
        _SMALL,
        "--rate",
        "2000",
        "--json",
    ),
    _live("measure-fio", "measure", "sim:two-level", "--fio", str(HERE / "two.fio")),
    _live(
        "measure-write-fio",
        "measure",
        "sim:two-level",
        "--workload",
        _SMALL,
        "--write-fio",
        "{out}/written.fio",
    ),
    _live("peak", "peak", _SERVER, *_QUICK),
    _live("peak-json", "peak", _SERVER, *_QUICK, "--json"),
    # Nothing is unfinished that could be resumed.
    _live("resume-measure", "measure", "null:", "--workload", _SMALL, "--resume"),
    _live("resume-files", "files", "{out}", "--name", "plain", "--resume"),
    _live("resume-stream", "stream", "sort", "{out}/in", "{out}/sorted", "--resume"),
    _live("resume-stream-scale", "stream", "scale", "{out}", "--resume"),
    _live("resume-peak-none", "peak", _SERVER, "--resume"),
    _live("resume-validate-none", "validate", "boreas", "--resume"),
    _live("resume-cache-none", "cache", "sim:solbourne-5e905", "--resume"),
)

CASES = (*_of_kinds(), *ASKED, *LIVE)

WIRE: dict[str, tuple[tuple[str, ...], ...]] = {
    "measure-null": (("measure", "null:", "--workload", _SMALL, "--seconds", "1", "--runs", "1"),),
    "measure-simulated": (
        (
            "measure",
            "sim:two-level",
            "--workload",
            f"{_SMALL},queue_depth=4",
            "--seconds",
            "0.01",
            "--rate",
            "100000",
            "--sync",
            "dsync",
        ),
    ),
    "measure-directory": (
        (
            "measure",
            "{out}",
            "--workload",
            _SMALL,
            "--seconds",
            "1",
            "--rate",
            "200",
            "--arrivals",
            "constant",
            "--sync",
            "fsync=8",
            "--placement",
            "free",
            "--precondition",
            "1MiB",
        ),
    ),
    "ask-nfs-refused": (("measure", "nfs://127.0.0.1:1/none?mountport=1", "--workload", _SMALL),),
    "file-test": (
        (
            "files",
            "{out}",
            "--filesystems",
            "existing",
            "--file-size",
            "64KiB",
            "--runs",
            "2",
            "--budget",
            "60s",
        ),
    ),
    "file-test-paper": (
        (
            "files",
            "{out}",
            "--filesystems",
            "existing",
            "--paper",
            "--runs",
            "2",
            "--budget",
            "60s",
        ),
    ),
    "stream": (
        ("stream", "generate", "{out}/in", "--records", "1000", "--memory", "32MiB", "--buffered"),
        (
            "stream",
            "scan",
            "{out}/in",
            "{out}/found",
            "--memory",
            "32MiB",
            "--buffered",
            "--no-bound",
            "--match",
            "0.25",
        ),
        (
            "stream",
            "sort",
            "{out}/in",
            "{out}/sorted",
            "--memory",
            "32MiB",
            "--buffered",
            "--no-bound",
            "--threads",
            "2",
            "--temp",
            "{out}",
            "--io",
            "mmap",
        ),
        ("stream", "check", "{out}/sorted", "--memory", "32MiB", "--buffered"),
        (
            "stream",
            "generate",
            "{out}/blocks",
            "--bytes",
            "16384",
            "--memory",
            "32MiB",
            "--stripe",
            "{out}",
        ),
    ),
    "simulated-trial": (("peak", _SERVER, *_QUICK),),
}
"""What a job of each kind is on the wire. An NFS load is asked for in the test itself: no command
offers one without a server of its own."""
