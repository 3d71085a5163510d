"""Write the first inputs of the fuzz targets: the wire's examples and the shipped profiles.

fuzz/seeds.py FOLDER     fills FOLDER/job, FOLDER/profile and FOLDER/histogram
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    """Fill one folder per target."""
    for target in ("job", "profile", "histogram"):
        (folder / target).mkdir(parents=True, exist_ok=True)
    for example in ROOT.glob("protocol/examples/**/*valid/*.json"):
        seed = folder / "job" / f"{example.parent.parent.name}-{example.parent.name}-{example.name}"
        # Without white space, which would waste the mutations.
        document = json.loads(example.read_text(encoding="utf-8"))
        seed.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
    for profile in ROOT.glob("python/leadline/profiles/**/*.toml"):
        system = tomllib.loads(profile.read_text(encoding="utf-8"))
        seed = folder / "profile" / f"{profile.stem}.json"
        seed.write_text(json.dumps(system, separators=(",", ":")), encoding="utf-8")
    (folder / "histogram" / "counting").write_bytes(bytes(range(256)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
