"""The style is enforced, not hoped for: sizes, names, layers, leftovers."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from places import ROOT
from retries import retries_in_python, retries_in_rust

PYTHON = sorted((ROOT / "python").rglob("*.py"))
RUST = sorted((ROOT / "crates").rglob("*.rs"))
SOURCES = (
    PYTHON + RUST + sorted((ROOT / "tests").rglob("*.py")) + sorted((ROOT / "bench").rglob("*.py"))
)

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
"""Rust's are counted by clippy (clippy.toml)."""
FOLDER_FILES_MAX = 20
LINE_LENGTH_MAX = 110

LAYERS = (
    ("units", "errors", "lazy_import", "sanitize", "profiles"),
    ("inputs", "outputs", "record"),
    ("stats", "fio", "machine", "charts"),
    ("engine", "models", "store"),
    ("servers",),
    ("studies",),
    ("terminal",),
    ("studies.measurement", "studies.files", "studies.streaming", "studies.workbench"),
    ("studies.cache",),
    ("studies.survey",),
    ("studies.prediction",),
    ("studies.validation",),
    ("studies.application",),
    ("studies.comparison",),
    ("commands", "api"),
    ("app",),
)
"""A module may import only from layers below its own, or from itself (HOUSE.md). Of `studies` its
own files are what all kinds have in common."""
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


CRATES = {
    "wire": set[str](),
    "stats": set[str](),
    "base": {"wire"},
    "sim": {"base", "wire"},
    "trace": {"base", "sim"},
    "capture": {"base", "trace"},
    "engine": {"base", "sim", "wire"},
    "kernels": {"base", "wire"},
    "python": {"base", "capture", "engine", "kernels", "sim", "stats", "trace", "wire"},
}
"""What each crate stands on, of ours."""


def none_has(paths: list[Path], faults: Callable[[Path], Iterator[str]]) -> None:
    """Assert that no file or folder has a fault; all are read before any is told.

    One test for all of them: three thousand tests of a millisecond took twelve seconds to count.
    """
    assert [f"{path.relative_to(ROOT)}: {fault}" for path in paths for fault in faults(path)] == []


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text_of(path))))


def test_files_can_be_read_at_one_sitting() -> None:
    leftover = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")

    def faults(path: Path) -> Iterator[str]:
        lines = text_of(path).splitlines()
        if len(lines) > FILE_LINES_MAX:
            yield f"{len(lines)} lines"
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_LENGTH_MAX:
                yield f"line {number} is over {LINE_LENGTH_MAX} characters"
            if leftover.search(line):
                yield f"line {number} was left for later"

    none_has(SOURCES, faults)


def test_functions_are_short() -> None:
    def faults(path: Path) -> Iterator[str]:
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES_MAX:
                    yield f"{node.name} has {length} lines"

    none_has(PYTHON, faults)


FOLDERS = sorted({path.parent for path in PYTHON + RUST})


def test_folders_can_be_seen_at_one_glance() -> None:
    """What a folder is and whom it lets in is no room of it."""

    def faults(folder: Path) -> Iterator[str]:
        for kind in ("py", "rs"):
            rooms = list(folder.glob(f"*.{kind}"))
            count = sum(path.stem not in ("__init__", "mod") for path in rooms)
            if count > FOLDER_FILES_MAX:
                yield f"{count} files"

    none_has(FOLDERS, faults)


def test_modules_and_tests_that_mutants_name_exist() -> None:
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    for package in table.values():
        for module, tests in package.get("modules", {}).items():
            for path in (f"python/leadline/{module}", *tests):
                assert (ROOT / path).is_file(), path


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    banned = {"utils", "util", "common", "helpers", "misc"}
    assert not [path for path in PYTHON + RUST if path.stem in banned]


def imports(path: Path) -> Iterator[str]:
    """Modules of leadline that a file imports, or loads late."""
    for node in nodes_of(path):
        found: list[str] = []
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found = [module] if module != "leadline" else [f"leadline.{a.name}" for a in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        for name in found:
            parts = name.split(".")
            if parts[0] == "leadline" and len(parts) > 1 and not parts[1].startswith("_"):
                yield ".".join(parts[1:])
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "late":
            where = ast.literal_eval(node.args[0])
            yield where.removeprefix("leadline.").partition(":")[0]


def part_of(module: str) -> str:
    """The part of the plan that a module, named without `leadline.`, belongs to.

    A kind's command may use every kind: `leadline measure --application` is one command.
    """
    own, _, rest = module.partition(".")
    if own == "studies" and rest.rpartition(".")[2].startswith("command"):
        return "commands"
    kind = f"{own}.{rest.partition('.')[0]}"
    return kind if kind in LEVELS else own


def test_dependencies_point_one_way() -> None:
    def faults(path: Path) -> Iterator[str]:
        module = ".".join(path.relative_to(ROOT / "python" / "leadline").with_suffix("").parts)
        own = part_of(module)
        if own in ("__init__", "__main__"):
            return
        for name in imports(path):
            other = part_of(name)
            if other != own and LEVELS[other] >= LEVELS[own]:
                yield f"{own} must not import {name}"

    none_has(PYTHON, faults)


def test_crates_stand_on_each_other_as_drawn() -> None:
    found = {
        path.parent.name: {
            name.removeprefix("leadline-")
            for table in ("dependencies", "dev-dependencies", "build-dependencies")
            for name in tomllib.loads(text_of(path)).get(table, {})
            if name.startswith("leadline-")
        }
        for path in (ROOT / "crates").glob("*/Cargo.toml")
    }
    assert found == CRATES

    def faults(path: Path) -> Iterator[str]:
        own = path.relative_to(ROOT / "crates").parts[0]
        for other in re.findall(r'#\[path = "(?:\.\./)+(\w+)/', text_of(path)):
            if other in CRATES and other not in CRATES[own]:
                yield f"takes a file of {other}"

    none_has(RUST, faults)


def test_only_store_knows_sql_and_only_engine_starts_processes() -> None:
    def faults(path: Path) -> Iterator[str]:
        package = path.relative_to(ROOT / "python" / "leadline").parts[0]
        text = text_of(path)
        if package != "store" and "sqlalchemy" in text:
            yield "knows SQL"
        starts = re.search(r"^\s*(import|from) subprocess", text, flags=re.MULTILINE)
        if package not in ("engine", "machine", "servers") and path.name != "images.py" and starts:
            yield "starts processes"
        ends = re.search(r"\bsys\.exit\(|^\s*print\(", text, flags=re.MULTILINE)
        if path.name not in ("app.py", "command_run.py") and package != "terminal" and ends:
            yield "prints or exits"

    none_has(PYTHON, faults)


OPENS_IN_RUST = re.compile(
    r"\bFile::(?:open|create\w*|options)\b|\bOpenOptions\b"
    r"|\bfs::(?:open|openat2?|read|write|copy|rename\w*|remove_\w+|hard_link|create_dir\w*"
    r"|read_dir|set_permissions|unlink\w*|mkdir\w*|link\w*|symlink\w*)\b"
    r"|\b(?:openat2?|unlinkat|renameat|linkat|mkdirat|remove_file|remove_dir|hard_link)\("
    r"|\blibc::(?:open|openat|creat|unlink|rename|link|symlink|mkdir|mknod|truncate)\("
)
"""What opens, makes, names or removes by a path, or could."""
OPENS_IN_OS = {
    *("open", "unlink", "remove", "rename", "replace", "renames", "link", "symlink", "mkdir"),
    *("makedirs", "rmdir", "removedirs", "truncate", "mkfifo", "mknod", "chmod", "chown", "walk"),
}
OPENS_IN_PATH = {
    *("open", "unlink", "rename", "mkdir", "rmdir", "touch", "chmod", "symlink_to", "hardlink_to"),
    *("read_text", "read_bytes", "write_text", "write_bytes", "rmtree", "copyfile", "copytree"),
}
BENEATH = ("dirfd.py", "beneath.rs")
"""The one module of each language through which a target's files are reached."""
NO_TARGETS = {
    "targets/profiles.py": {"read_text"},
    "servers/striped_disks.py": {"write_text", "mkdir", "rmdir"},
}
"""What else is opened: a simulated system that its user named, and control groups."""


def product_of(path: Path) -> str:
    """A Rust file without the tests at its end."""
    return text_of(path).partition("#[cfg(test)]")[0]


def test_a_target_is_opened_beneath_its_handle_alone_in_rust() -> None:
    def faults(path: Path) -> Iterator[str]:
        parts = path.relative_to(ROOT / "crates").parts
        if parts[0] not in ("base", "engine", "kernels") or parts[1] != "src":
            return
        if path.name in (*BENEATH, "tests.rs") or "tests" in parts:
            return
        yield from OPENS_IN_RUST.findall(product_of(path))

    none_has(RUST, faults)
    assert OPENS_IN_RUST.search("std::fs::rename(from, to)?")
    assert not OPENS_IN_RUST.search('directory.open(FILE, Way::READ)?; read_to_string("/proc/x")')


def test_a_target_is_opened_beneath_its_handle_alone_in_python() -> None:
    def opens(node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call):
            return None
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            by_handle = bool(node.args) and ast.unparse(node.args[0]).startswith("open_input(")
            return None if by_handle else "open"
        if not isinstance(called, ast.Attribute):
            return None
        of_os = ast.unparse(called.value) == "os"
        return called.attr if called.attr in (OPENS_IN_OS if of_os else OPENS_IN_PATH) else None

    def faults(path: Path) -> Iterator[str]:
        package = path.relative_to(ROOT / "python" / "leadline").parts[0]
        if package != "engine" and "leadline.engine.targets" not in text_of(path):
            return
        if path.name in BENEATH:
            return
        name = "/".join(path.parts[-2:])
        found = filter(None, map(opens, nodes_of(path)))
        yield from (word for word in found if word not in NO_TARGETS.get(name, set()))

    none_has(PYTHON, faults)
    said = ast.parse("os.open(path)\nPath(x).unlink()\nopen(path)\nopen(open_input(path), 'rb')")
    assert list(map(opens, ast.walk(said))).count(None) == sum(1 for _ in ast.walk(said)) - 3


QUOTING = {"retries.py", "test_tidy.py"}
"""They spell out what they forbid."""
PYTHON_TESTS = [p for p in sorted((ROOT / "tests").rglob("*.py")) if p.name not in QUOTING]
RUST_TESTS = [path for path in RUST if "tests" in path.parts or path.stem == "tests"]


def test_what_is_left_to_test_long_is_there() -> None:
    lines = text_of(ROOT / "tests" / "long.txt").splitlines()
    for line in (each for each in lines if not each.startswith("#")):
        path, name = line.partition("[")[0].rsplit("::", 1)
        file = path.partition("::")[0]
        assert f"def {name}(" in text_of(ROOT / file), line


def test_no_python_test_retries_an_assertion() -> None:
    none_has(PYTHON_TESTS, lambda path: map(str, retries_in_python(text_of(path))))


def test_no_rust_test_retries_an_assertion() -> None:
    none_has(RUST_TESTS, lambda path: map(str, retries_in_rust(text_of(path))))


def test_waiting_and_words_about_trying_are_no_retries() -> None:
    waits = "def wait_until(tries: int) -> None:\n    for _ in range(tries):\n        sleep(1)"
    assert retries_in_python(waits + "\nfor entries in listed: ...\n") == []
    said = '// five attempts\nlet entries = "3 tries"; assert!(entries.take(5).count() == 5);'
    assert retries_in_rust(said) == []


FORBIDS = "#![forbid(unsafe_code)]"
RUST_SOURCES = [
    path for path in RUST if path.is_relative_to(ROOT / "crates") and "src" in path.parts
]
"""`crates/python` is left out: what PyO3's macros write into it is unsafe."""


def parent_of(module: Path) -> Path | None:
    """The file of the module that a Rust file is inside; None of a crate's root."""
    if module.name == "lib.rs":
        return None
    folder = module.parent.parent if module.name == "mod.rs" else module.parent
    places = (folder / "lib.rs", folder / "mod.rs", folder.with_suffix(".rs"))
    return next(place for place in places if place.exists() and place != module)


def with_parents(module: Path | None) -> Iterator[Path]:
    while module is not None:
        yield module
        module = parent_of(module)


def test_a_rust_module_that_needs_no_unsafe_code_forbids_it() -> None:
    own = [path for path in RUST_SOURCES if "python" not in path.relative_to(ROOT).parts]
    bare = {path: re.sub(r'//.*|"[^"\n]*"', "", text_of(path)) for path in own}
    unsafe = {path for path, text in bare.items() if re.search(r"\bunsafe\b", text)}
    needing = {each for path in unsafe for each in with_parents(path)}
    assert needing, "some need it"

    def faults(path: Path) -> Iterator[str]:
        forbidden = any(FORBIDS in text_of(each) for each in with_parents(path))
        if path not in needing and not forbidden:
            yield f"does not say {FORBIDS}"

    none_has(own, faults)


def test_a_rust_test_that_is_left_out_is_run_by_test_long() -> None:
    """Neither passed nor skipped, it is in no count: nothing else may be left out this way."""

    def faults(path: Path) -> Iterator[str]:
        for left_out in re.findall(r"#\[ignore\b.*", text_of(path)):
            if left_out != '#[ignore = "long: make test-long"]':
                yield left_out

    none_has(RUST, faults)
