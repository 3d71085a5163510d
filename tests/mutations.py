"""Mutants of a Python module: each one small change, as text, that a test should notice.

What is changed is what decides: numbers (constants of a module included), comparisons, arithmetic,
conditions, what is returned, raised, called or passed on. What is said (strings, messages) and what
only declares (annotations, imports, decorators, `zip`'s strict) is left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_CALCULATED: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
_SWAPPED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
    "floor": "ceil",
    "ceil": "floor",
    "sorted": "list",
}
_DECLARED = ("strict", "dtype")
"""Named arguments that only say what is so: leaving them out changes no answer."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module, by what it says rather than by where it stands."""

    path: str
    line: int
    text: str
    """The source line it begins on, stripped."""
    change: str
    source: str
    """The whole module, changed."""
    turn: int = 0
    """Which one of those with the same text and change, counted from the top."""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is known by when lines above it come or go."""
        return self.path, self.text, self.change, self.turn


class _Source:
    """A module's text, and where each node of its tree stands in it, in bytes."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.lines = text.splitlines()
        self._starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError(f"no end of {ast.dump(node)}")
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        begin, end = self.span(node)
        return self.raw[begin:end].decode()


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """Every mutant of a module that is known as `name`, from its top to its end."""
    text = path.read_text(encoding="utf-8")
    source = _Source(text)
    found: list[Mutant] = []
    turns: dict[tuple[str, str], int] = {}
    for node, old, new in _changes(ast.parse(text), source):
        begin, end = source.span(node)
        changed = (source.raw[:begin] + new.encode() + source.raw[end:]).decode()
        line = source.lines[node.lineno - 1].strip()
        left_out = _left_out(node, new)
        change = f"without {left_out}" if left_out else f"{_short(old)} -> {_short(new)}"
        turn = turns.get((line, change), 0)
        turns[line, change] = turn + 1
        found.append(Mutant(name, node.lineno, line, change, changed, turn))
    return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def _changes(
    tree: ast.AST, source: _Source
) -> Iterator[tuple[ast.expr | ast.stmt | ast.keyword, str, str]]:
    """(node, its text, the text put there instead)."""
    for node in _deciding(tree):
        old = source.of(node)
        for new in dict.fromkeys(_instead(node, source)):
            yield node, old, new
        if isinstance(node, ast.If | ast.While):  # no `while True`: it only costs time
            old = source.of(node.test)
            for fixed in ("False", "True") if isinstance(node, ast.If) else ("False",):
                yield node.test, old, fixed


def _deciding(node: ast.AST) -> Iterator[ast.expr | ast.stmt | ast.keyword]:
    """Every node that may be changed, from the top down."""
    for child in ast.iter_child_nodes(node):
        if _declares(child, node):
            continue
        if isinstance(child, ast.expr | ast.stmt | ast.keyword):
            yield child
        if not isinstance(child, ast.Raise):
            yield from _deciding(child)


def _declares(child: ast.AST, parent: ast.AST) -> bool:
    """Whether a node is text, or says what something is rather than what is done."""
    if isinstance(child, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(child, ast.keyword) and (
        isinstance(parent, ast.ClassDef) or child.arg in _DECLARED
    ):
        return True
    if child in (getattr(parent, "annotation", None), getattr(parent, "returns", None)):
        return True
    if isinstance(child, ast.Call) and getattr(child.func, "id", "") == "TypeVar":
        return True
    return child in getattr(parent, "decorator_list", ())


def _instead(node: ast.expr | ast.stmt | ast.keyword, source: _Source) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield from _other_values(node)
    elif isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.stmt):
        yield from _other_statements(node)
    else:
        yield from _operated(node, source.of)


def _operated(node: ast.AST, text: Callable[[ast.expr], str]) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for sign in _COMPARED[type(node.ops[0])]:
            yield f"({text(node.left)}) {sign} ({text(node.comparators[0])})"
    elif isinstance(node, ast.Compare):
        yield from _wider(node, text(node.left), [text(part) for part in node.comparators])
    elif isinstance(node, ast.BinOp) and type(node.op) in _CALCULATED:
        sign = _CALCULATED[type(node.op)]
        yield f"(({text(node.left)}) {sign} ({text(node.right)}))"
    elif isinstance(node, ast.BoolOp):
        sign = " or " if isinstance(node.op, ast.And) else " and "
        yield f"({sign.join(f'({text(part)})' for part in node.values)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield f"({text(node.operand)})"
    elif isinstance(node, ast.IfExp):
        yield f"({text(node.body)})"
        yield f"({text(node.orelse)})"


def _other_values(node: ast.Constant) -> Iterator[str]:
    value = node.value
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int):
        yield str(value + 1 if value < 10 else 2 * value)
        if value > 0:
            yield str(value - 1 if value < 10 else value // 2)
    elif isinstance(value, float):
        yield from (repr(2 * value), repr(0.7 * value)) if value else ("1.0",)


def _wider(node: ast.Compare, left: str, others: list[str]) -> Iterator[str]:
    """A chain `low <= x <= high` without one end, or with one end moved by its edge."""
    signs = [ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")])) for op in node.ops]
    plain = [sign[2:-2] for sign in signs]
    parts = [left, *others]
    yield f"({parts[1]}) {plain[1]} ({parts[2]})"
    yield f"({parts[0]}) {plain[0]} ({parts[1]})"
    for at, op in enumerate(node.ops):
        moved = [*plain[:at], _COMPARED[type(op)][0], *plain[at + 1 :]]
        yield left + "".join(f" {s} ({part})" for s, part in zip(moved, others, strict=True))


def _called(node: ast.Call) -> Iterator[str]:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    whole = ast.unparse(node)
    head = ast.unparse(node.func)
    if name in _SWAPPED:
        yield head[: len(head) - len(name)] + _SWAPPED[name] + whole[len(head) :]
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in _DECLARED:
            continue
        kept = [other for other in node.keywords if other is not keyword]
        yield ast.unparse(ast.Call(node.func, node.args, kept))


def _left_out(node: ast.AST, new: str) -> str:
    """Which named argument the new text of a call lacks, if that is what has changed."""
    if not isinstance(node, ast.Call) or new.startswith("("):
        return ""
    kept = ast.parse(new, mode="eval").body
    there = {keyword.arg for keyword in getattr(kept, "keywords", [])}
    return next((f"{k.arg}=" for k in node.keywords if k.arg and k.arg not in there), "")


def _other_statements(node: ast.stmt) -> Iterator[str]:
    value = getattr(node, "value", None)
    called = isinstance(node, ast.Expr) and isinstance(value, ast.Call)
    if called or isinstance(node, ast.Raise | ast.AugAssign | ast.Continue):
        yield "pass"
    elif (
        isinstance(node, ast.Return) and value and getattr(value, "value", "something") is not None
    ):
        yield "return None"
