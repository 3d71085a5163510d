"""What must change to add an access option, a workload parameter or a result field.

A toy of each is really added, to a copy of the tree; nothing else of Leadline's Python is told
about it, and it travels all the way. The engine's files are named, not built: they are those that
name an example of the same kind.
"""

from __future__ import annotations

import re
from pathlib import Path

from toy_tree import ROOT, Edits, run_toy

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def listed(what: str) -> list[str]:
    """The files that CONTRIBUTING says must change, in its order."""
    (said,) = re.findall(rf"^\*\*{what}\*\*.*?(?=^\*\*|\Z)", CONTRIBUTING, re.M | re.S)
    shared = " ".join(said.split()).partition("Beside these")[0]
    return re.findall(r"`((?:python|crates|protocol)/[^`]+\.\w+)`", shared)


def naming(pattern: str) -> set[str]:
    """The files of the wire in which something stands, as it would for a new one."""
    wire = [*(ROOT / "crates/wire/src").rglob("*.rs"), *(ROOT / "protocol").glob("*.json")]
    return {
        str(path.relative_to(ROOT))
        for path in wire
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


ACCESS: Edits = {
    "python/leadline/record/access.py": [
        (
            "    cache_limit_bytes: int | None = None\n",
            """
    urgency: Annotated[
        str, Meta(title="How soon", description="A toy.", extra={"metavar": "W"})
    ] = "usual"
""",
        ),
        ("    sync: Waits | UnsetType = UNSET\n", "    urgency: str | UnsetType = UNSET\n"),
        ("return Backend(", 'urgency=UNSET if self.urgency == "usual" else self.urgency, '),
        ('    """By direct I/O (O_DIRECT)."""\n', '    urgency: str = "usual"\n'),
        ("    backend: str\n    direct: bool = False\n", '    urgency: str = "usual"\n'),
    ]
}
"""A toy like `sync`: how soon requests are served."""


def test_an_access_option_takes_at_most_4_shared_files(tmp_path: Path) -> None:
    run_toy(tmp_path, ACCESS, "toy_access.py")
    wire = naming(r'pub sync: WriteSync|"sync": \{')
    assert wire == {"crates/wire/src/job/backend.rs", "protocol/job.schema.json"}
    obeyed = "crates/engine/src/target/directory.rs"
    assert "job.backend.sync" in (ROOT / obeyed).read_text(encoding="utf-8")
    assert {*listed("An access option")} == {*ACCESS, *wire, obeyed}
    assert len(listed("An access option")) <= 4


FIELD: Edits = {
    "python/leadline/record/result.py": [
        (
            """    clock: Annotated[Literal["tsc", "vdso", "virtual"] | None, LAST] = None\n""",
            """
    throttled_share: Annotated[
        float | None, Meta(title="held back by its own heat", extra={"runs": "mean"})
    ] = None
""",
        )
    ]
}
"""A toy like `foreign_cpu`: how much of the window the device held itself back."""


def test_a_result_field_takes_at_most_4_shared_files(tmp_path: Path) -> None:
    run_toy(tmp_path, FIELD, "toy_field.py")
    wire = naming(r'pub foreign_cpu:|"foreign_cpu": \{')
    assert wire == {"crates/wire/src/event/measure.rs", "protocol/event.schema.json"}
    filled = "crates/engine/src/target/assemble.rs"
    assert "foreign_cpu: run." in (ROOT / filled).read_text(encoding="utf-8")
    assert {*listed("A result field")} == {*FIELD, *wire, filled}
    assert len(listed("A result field")) <= 4


PARAMETER: Edits = {
    "python/leadline/record/workload.py": [
        (
            "    queue_depth: Annotated[int, Quantity(_whole, 1, QUEUE_DEPTH_MAX)] = 1\n",
            "    burst_num: Annotated[int, Quantity(int, 1, 64)] = 1\n",
        )
    ]
}
"""A toy like `queue_depth`: how many requests a worker makes in a row."""


def test_a_workload_parameter_takes_at_most_8_shared_files(tmp_path: Path) -> None:
    run_toy(tmp_path, PARAMETER, "toy_parameter.py")
    wire = naming(r'pub think_time_s: f64|pub const THINK_S|"think_time_s": \{')
    assert wire == {
        "crates/wire/src/job/workload.rs",
        "crates/wire/src/ranges.rs",
        "protocol/job.schema.json",
    }
    obeyed = "crates/engine/src/access/stream.rs"
    assert "workload.seq_frac" in (ROOT / obeyed).read_text(encoding="utf-8")
    assert {*listed("A workload parameter")} == {*PARAMETER, *wire, obeyed}
    assert len(listed("A workload parameter")) <= 8
