"""Simulated systems by name or from a TOML file (docs/reference has the format)."""

from __future__ import annotations

import difflib
import json
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from leadline.errors import TargetRefused
from leadline.inputs import InputRefused, parse_toml, read_text

MACHINES = "machines"
"""Their folder: a machine and a system that obeys a law may not have the same name."""


def profile_names() -> tuple[str, ...]:
    """Return the names of the systems that ship with Leadline and obey a law, sorted."""
    return _names(_folder())


def machine_names() -> tuple[str, ...]:
    """Return the names of the machines made of parts that ship with Leadline, sorted."""
    return _names(_folder() / MACHINES)


def _names(folder: Traversable) -> tuple[str, ...]:
    if not folder.is_dir():
        return ()
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def profile_titles(*, machines: bool = False) -> dict[str, str]:
    """Return what the systems that ship with Leadline are, by name.

    They are those that obey a law or, instead, the machines made of parts.
    """
    folder = _folder() / MACHINES if machines else _folder()
    texts = {name: (folder / f"{name}.toml").read_text(encoding="utf-8") for name in _names(folder)}
    metas = {name: parse_toml(text).get("meta", {}) for name, text in texts.items()}
    return {name: str(meta.get("title", "")) for name, meta in metas.items()}


def load_profile(name_or_file: str) -> dict[str, Any]:
    """Return the system called so, or described in the `.toml` file at this path, validated.

    Raises:
        TargetRefused: no such name or file, not TOML, or not a system that makes sense.

    """
    if name_or_file.endswith(".toml"):
        try:
            text = read_text(name_or_file)
        except InputRefused as error:
            raise TargetRefused(f"sim:{name_or_file}: {error}") from error
        return _read(text, name_or_file, f"sim:{name_or_file}")
    names, machines = profile_names(), machine_names()
    if name_or_file not in names + machines:
        raise TargetRefused(_unknown(name_or_file, names + machines))
    folder = _folder() / MACHINES if name_or_file in machines else _folder()
    text = (folder / f"{name_or_file}.toml").read_text(encoding="utf-8")
    return _read(text, f"{name_or_file}.toml", f"sim:{name_or_file}")


def _folder() -> Traversable:
    return resources.files("leadline") / "profiles"


def _unknown(name: str, names: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    guess = f"did you mean sim:{near[0]}? " if near else ""
    said = f"there is no simulated system called {name!r}" if name else "sim: needs a name"
    return (
        f"{said}; {guess}The systems are: {', '.join(names) or 'none in this installation'}. "
        "Your own goes into a file: sim:FILE.toml; `leadline sims` tells what each is"
    )


def _read(text: str, file: str, spelled: str) -> dict[str, Any]:
    try:
        profile = parse_toml(text)
    except ValueError as error:
        raise TargetRefused(f"{spelled}: {file} is not valid TOML: {error}") from error
    _check(profile, spelled)
    return profile


def _check(profile: dict[str, Any], spelled: str) -> None:
    # Imported here: Target.parse of a directory must not need the native module.
    from leadline import _engine  # noqa: PLC0415

    try:
        # TOML knows dates, inf and nan; JSON does not, so the engine could not be given them.
        text = json.dumps(profile, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TargetRefused(f"{spelled}: a value is neither number, text nor table: {error}") from (
            error
        )
    try:
        _engine.check_system(text)
    except ValueError as error:
        raise TargetRefused(f"{spelled}: {error}") from error
