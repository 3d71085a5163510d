"""What is published beside the code: man pages, extras, workflows, the version in other files."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from types import ModuleType

import pytest
import readme_renderer.markdown

from leadline.app import COMMANDS
from leadline.machine.build import EXTRAS
from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LISTED = ("release/zig.txt", "release/pex.txt", "release/site/requirements.txt")
"""What a release installs beside what a checkout has."""
OF_MODULES = {"vl-convert-python": "vl_convert"}
"""Packages whose modules have other names."""


@pytest.fixture(scope="module")
def man_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("man_pages", ROOT / "release" / "man_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_a_page_for_every_command_with_every_option(man_pages: ModuleType) -> None:
    pages = man_pages.pages()
    assert {f"leadline-{name}.1" for name in COMMANDS} <= pages.keys()
    assert {"leadline.1", "leadline-stream-sort.1"} <= pages.keys()
    assert "\\-\\-cache\\-limit SIZE|none" in pages["leadline-survey.1"]
    assert "Example: leadline stream sort" in pages["leadline-stream-sort.1"]
    for name, text in pages.items():
        heads = re.findall(r"^\.SH (.+)$", text, re.M)
        assert heads[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff: apt-get install groff-base")
def test_troff_understands_every_page(man_pages: ModuleType) -> None:
    for name, text in man_pages.pages().items():
        words = ["groff", "-K", "utf8", "-man", "-Tutf8", "-ww", "-z"]
        done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
        # A list of names without a blank is longer than a line; that is all it may say.
        said = [line for line in done.stderr.splitlines() if "can't break line" not in line]
        assert said == [], name


def packages(named: list[str]) -> set[str]:
    found = {re.split(r"[\[><=~]", each)[0].strip() for each in named}
    return {OF_MODULES.get(name, name) for name in found}


def test_the_extras_bring_what_is_asked_of_them() -> None:
    optional = PROJECT["optional-dependencies"]
    told: dict[str, set[str]] = {}
    for extra, _, modules in EXTRAS:
        told.setdefault(extra, set()).update(modules)
        assert not packages(PROJECT["dependencies"]) & set(modules)
    assert {name: packages(optional[name]) for name in told} == told
    assert set(optional) == {*told, "dev"}


def test_the_citation_has_the_version_of_the_package() -> None:
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in cited
    assert f"\nlicense: {PROJECT['license']}\n" in cited


def test_the_release_runs_what_a_checkout_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for name in ("release", "test"):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
        asked = set(re.findall(r"\bmake ([a-z-]+)", text))
        assert asked, name
        assert asked <= targets, name
    assert "release/check_wheel" in (ROOT / "Containerfile").read_text("utf-8")


def test_the_readme_is_whole_on_a_package_index() -> None:
    """Rendered as PyPI does, every link and picture leads somewhere without the checkout."""
    words = (sys.executable, ROOT / "release" / "readme.py", "https://example.org/o/leadline", "v1")
    text = (ROOT / "README.md").read_text("utf-8")
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    page = readme_renderer.markdown.render(done.stdout)
    assert page is not None
    leads = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert [each for each in leads if not each.startswith(("https://", "#"))] == []
    own = [each for each in leads if "/leadline/" in each]
    assert len(own) > 20
    for each in own:
        path = each.removeprefix("https://example.org/o/leadline/").split("/", 2)[2]
        assert (ROOT / path.partition("#")[0]).exists(), each
    assert "<!--" not in done.stdout


def test_whatever_runs_in_a_release_is_known_by_its_digest() -> None:
    """A tag or a version can be given to other code afterwards; a digest cannot."""
    workflows = "\n".join(
        path.read_text("utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")
    )
    used = re.findall(r"uses:\s*(\S+)", workflows)
    assert used
    assert [each for each in used if not re.search(r"@[0-9a-f]{40}$", each)] == []
    for listed in ("requirements-dev.lock", *LISTED):
        text = (ROOT / listed).read_text("utf-8").replace("\\\n", " ")
        packages = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
        assert packages
        assert [line for line in packages if "--hash=sha256:" not in line] == [], listed
    scripts = [ROOT / "Makefile", ROOT / "release" / "wheel", ROOT / "release" / "onefile"]
    installs = "".join(path.read_text("utf-8").replace("\\\n", " ") for path in scripts)
    lines = [line for line in installs.splitlines() if "pip install" in line]
    assert len(lines) >= 4
    assert [line for line in lines if "--require-hashes" not in line] == []
