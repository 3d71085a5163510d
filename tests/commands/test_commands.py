"""The list of commands: loaded one at a time, and told as each tells itself."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from golden_cases import HERE
from typer.testing import CliRunner

import leadline
from command import LEADLINE
from leadline.app import COMMANDS, app, main, module_of
from leadline.errors import LeadlineError
from leadline.machine.build import commit
from leadline.studies.survey.plan import PlanRefused
from leadline.studies.survey.strategy import ResumeMismatch

STREAMS = ("scan", "sort", "transpose", "generate", "check", "scale")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_tells_of_a_command_what_it_tells_itself(name: str) -> None:
    told = inspect.getdoc(import_module(module_of(name)).command)
    assert told is not None
    assert told.partition("\n")[0] == COMMANDS[name]
    assert f"`leadline {name}" in str(import_module(module_of(name)).__doc__)


def test_every_command_there_is_has_its_place_in_the_help() -> None:
    said = " ".join(CliRunner().invoke(app, ["--help"]).output.split())
    positions = [said.index(f" {name} {line}") for name, line in COMMANDS.items()]
    assert positions == sorted(positions)
    package = Path(inspect.getfile(leadline)).parent
    with_command = {
        ".".join(("leadline", *path.relative_to(package).with_suffix("").parts))
        for path in package.rglob("*.py")
        if "\ndef command(" in path.read_text("utf-8")
    }
    assert with_command == {module_of(name) for name in COMMANDS}


def test_an_unknown_command_is_refused_with_the_nearest_name() -> None:
    done = CliRunner().invoke(app, ["survay"])
    assert done.exit_code == 2
    assert "No such command 'survay'. Did you mean 'survey', 'surface'?" in done.output


def test_the_list_of_commands_waits_for_no_engine_and_no_record() -> None:
    heavy = ("msgspec", "numpy", "rich", "leadline.engine", "leadline.record", "leadline._engine")
    code = (
        "import sys; from typer.testing import CliRunner; from leadline.app import app; "
        "said = CliRunner().invoke(app, ['--help']).output; assert 'survey' in said; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def completed(variables: dict[str, str]) -> list[str]:
    """What the shell's completion is told."""
    done = subprocess.run(
        [LEADLINE], capture_output=True, text=True, check=False, env=os.environ | variables
    )
    return done.stdout.split("\n")


def test_a_shell_completes_commands_and_options() -> None:
    bash = {"_LEADLINE_COMPLETE": "complete_bash"}
    assert completed(bash | {"COMP_WORDS": "leadline su", "COMP_CWORD": "1"})[:2] == [
        "survey",
        "surface",
    ]
    words = {"COMP_WORDS": "leadline measure --prec", "COMP_CWORD": "2"}
    assert completed(bash | words)[0] == "--precondition"
    zsh = completed({"_LEADLINE_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "leadline sim"})
    assert '"sims":"List the simulated systems' in zsh[0]
    fish = {"_LEADLINE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    stream = completed(fish | {"_TYPER_COMPLETE_ARGS": "leadline stream so"})
    assert stream[0].startswith("sort\tOrder the 100-byte records")


def test_a_shell_completes_studies_of_the_store_and_simulated_systems(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    shutil.copyfile(HERE / "store-today.sqlite", store)
    zsh = {"_LEADLINE_COMPLETE": "complete_zsh", "LEADLINE_STORE": str(store)}
    shown = completed(zsh | {"_TYPER_COMPLETE_ARGS": "leadline show at"})
    assert '"atlas":"newest' in shown[0]
    ids = completed(zsh | {"_TYPER_COMPLETE_ARGS": "leadline predict 3f2a"})
    assert '"3f2a5b58":"survey of atlas"' in ids[0]
    bash = {"_LEADLINE_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    assert completed(bash | {"COMP_WORDS": "leadline survey si"})[0].startswith("sim:")
    assert not any(completed(bash | {"COMP_WORDS": "leadline survey "}))
    none = {"LEADLINE_STORE": str(tmp_path / "none.sqlite")}
    assert "atlas" not in str(completed(zsh | none | {"_TYPER_COMPLETE_ARGS": "leadline show "}))
    assert not (tmp_path / "none.sqlite").exists()


def test_the_version_has_the_commit_and_the_engine() -> None:
    said = CliRunner().invoke(app, ["--version"]).output.strip()
    assert re.fullmatch(r"leadline [\d.]+ \(commit [0-9a-f]{10}, (release|debug) engine\)", said)


def test_a_commit_is_read_of_a_checkout_a_worktree_or_a_wheel(tmp_path: Path) -> None:
    package, git = tmp_path / "python" / "leadline", tmp_path / ".git"
    package.mkdir(parents=True)
    assert commit(package) is None
    (package / "COMMIT").write_text("c" * 40 + "\n")
    assert commit(package) == "c" * 10
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{'a' * 40} refs/heads/main\n")
    assert commit(package) == "a" * 10
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text("b" * 40 + "\n")
    assert commit(package) == "b" * 10
    own = git / "worktrees" / "other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text("../..\n")
    other = tmp_path / "other"
    (other / "python" / "leadline").mkdir(parents=True)
    (other / ".git").write_text(f"gitdir: {own}\n")
    assert commit(other / "python" / "leadline") == "b" * 10


def test_a_page_without_its_extra_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacking() -> None:
        raise ModuleNotFoundError("No module named 'altair'", name="altair")

    monkeypatch.setattr("leadline.app.app", lacking)
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 2
    assert "pip install 'leadline[charts]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*COMMANDS, *(f"stream {each}" for each in STREAMS)])
def test_every_help_has_an_example_and_a_default_for_every_value(name: str) -> None:
    said = CliRunner().invoke(app, [*name.split(), "--help"]).output
    if name != "stream":
        assert f"Example: leadline {name}" in said
    options = [" ".join(block.split()) for block in re.split(r"\n  (?=-)", said)[1:]]
    valued = re.compile(r"(-\w, )?--[\w-]+ (TIME|SIZE|SHARE|<\w+ range>|N) ")
    options = [option for option in options if valued.match(option)]
    silent = [line for line in options if "default" not in line and "file's" not in line]
    assert silent == []


def test_the_help_waits_for_no_library_of_statistics_stores_or_charts() -> None:
    heavy = ("scipy", "sqlalchemy", "altair", "leadline.studies.survey")
    code = (
        "import sys; from typer.testing import CliRunner; from leadline.app import app; "
        "[CliRunner().invoke(app, a.split()) for a in ('--help', 'measure --help')]; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("refusal", [PlanRefused, ResumeMismatch])
def test_what_a_survey_refuses_ends_with_code_2(refusal: type[LeadlineError]) -> None:
    assert issubclass(refusal, LeadlineError)
    assert refusal.exit_code == 2


def test_a_defect_says_where_it_was_raised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr("leadline.app.app", broken)
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 1
    said = capsys.readouterr().err
    assert "IndexError: list index out of range at test_commands.py:" in said
    assert "(broken)" in said
