"""What is installed for development is what the lock file says, and that follows pyproject.toml."""

from __future__ import annotations

import re
import tomllib

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from places import ROOT

LOCKED = re.compile(
    r"^(?P<name>[\w.-]+)(?:\[[\w,-]+\])?==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\$",
    flags=re.MULTILINE,
)
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")


def wanted() -> list[Requirement]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    return [
        Requirement(each)
        for each in project["dependencies"] + project["optional-dependencies"]["dev"]
    ]


def test_every_package_is_locked_with_its_hashes() -> None:
    locked = list(LOCKED.finditer(LOCK))
    assert len(locked) > len(wanted())
    for found, after in zip(locked, [*locked[1:], None], strict=True):
        until = after.start() if after else len(LOCK)
        assert "--hash=sha256:" in LOCK[found.end() : until], found["name"]


def test_the_lock_holds_what_the_project_asks_for() -> None:
    here = {
        canonicalize_name(found["name"]): found["version"]
        for found in LOCKED.finditer(LOCK)
        if not found["marker"] or Marker(found["marker"]).evaluate()
    }
    stale = [
        str(each)
        for each in wanted()
        if not each.specifier.contains(here.get(canonicalize_name(each.name), "0"))
    ]
    assert stale == [], "make lock writes it anew"


def test_the_makefile_installs_by_the_lock_alone() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = [line for line in text.splitlines() if " install --quiet" in line]
    site = [line for line in installs if "release/site/requirements.txt" in line]
    assert len(site) == 1, "the documentation's generator has hashes and a folder of its own"
    assert "--require-hashes" in site[0]
    own = [line for line in installs if line not in site]
    assert len(own) == 3
    assert all("--require-hashes" in line for line in own)
    assert "requirements-dev.lock >$(VENV)/first.txt" in text, "of maturin and uv by themselves"
