"""The list of commands: loaded one at a time, and told as each tells itself."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leadline.cli.app import COMMANDS, ROOMS, app, main, module_of
from leadline.errors import LeadlineError
from leadline.studies.survey import PlanRefused, ResumeMismatch


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
    package = Path(inspect.getfile(import_module("leadline.cli"))).parent
    with_command = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("*.py")
        if "\ndef command(" in path.read_text("utf-8")
    }
    assert with_command == {ROOMS.get(name, name) for name in COMMANDS}


def test_an_unknown_command_is_refused_with_the_nearest_name() -> None:
    done = CliRunner().invoke(app, ["survay"])
    assert done.exit_code == 2
    assert "No such command 'survay'. Did you mean 'survey', 'surface'?" in done.output


def test_the_help_waits_for_no_library_of_statistics_stores_or_charts() -> None:
    heavy = ("scipy", "sqlalchemy", "altair", "leadline.studies.survey")
    code = (
        "import sys; from typer.testing import CliRunner; from leadline.cli.app import app; "
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

    monkeypatch.setattr("leadline.cli.app.app", broken)
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 1
    said = capsys.readouterr().err
    assert "IndexError: list index out of range at test_commands.py:" in said
    assert "(broken)" in said
