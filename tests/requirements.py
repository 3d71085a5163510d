"""Print what pip has to install for development, from pyproject.toml alone."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
print(" ".join(requirement.replace(" ", "") for requirement in wanted))
