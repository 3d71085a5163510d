"""Claims about speed that hold on a calm machine, tried on this one: `make check-machine`.

`make test` asserts what is true however busy a machine is. What needs a calm one is here. Before
every claim it is seen whether others use the processors or the device; afterwards, whether they
did meanwhile. Each claim ends in one of three words:

    holds               the figure is what was wanted
    FAILS               it is not, on a machine that was calm all the time
    cannot tell here    why this machine cannot say; printed and counted, never taken for a success

    .venv/bin/python bench/check_machine.py [--only WORDS] [--in DIR]

Ends with 1 when a claim fails.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "real"))

import check_caches
import check_rust
import check_servers
import check_streams
from check_claims import BrokenError, CannotTellError, Claim
from check_conditions import look, why_no_room, why_not_calm, why_not_calm_between
from leadline.engine import stop_on_signals
from leadline.errors import LeadlineError

HOLDS, FAILS, OPEN = "holds", "FAILS", "cannot tell here"
CLAIMS = (*check_caches.CLAIMS, *check_streams.CLAIMS, *check_servers.CLAIMS, *check_rust.CLAIMS)


def tried(claim: Claim, folder: Path) -> tuple[str, str]:
    """Return the outcome of a claim and what is to be said of it."""
    if why := why_no_room(folder) or why_not_calm(folder):
        return OPEN, why
    before = look(folder)
    try:
        found = claim.measure(folder)
    except CannotTellError as reason:
        return OPEN, str(reason)
    except (BrokenError, LeadlineError) as error:
        broken = getattr(error, "exit_code", 1) == 1  # no refusal, and no time that was up
        return (FAILS if broken else OPEN), f"{type(error).__name__}: {error}"
    if why := why_not_calm_between(before, look(folder)):
        return OPEN, f"{why} meanwhile (measured: {found.measured})"
    if found.holds:
        return HOLDS, found.measured
    return FAILS, f"{found.measured}; wanted: {claim.wanted}"


def run(claims: Sequence[Claim], parent: Path) -> Counter[str]:
    """Try every claim, with one line for each; return how many ended how."""
    ends: Counter[str] = Counter()
    for claim in claims:
        with tempfile.TemporaryDirectory(dir=parent, prefix="leadline-check-") as folder:
            outcome, said = tried(claim, Path(folder))
        ends[outcome] += 1
        print(f"{outcome}: {claim.name}: {' '.join(said.split())}", flush=True)
    return ends


def main() -> int:
    """Print one line for each claim and a closing one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="WORDS", default="", help="claims with this in the name")
    parser.add_argument("--in", dest="place", type=Path, default=Path("/var/tmp"))  # noqa: S108
    asked = parser.parse_args()
    claims = [claim for claim in CLAIMS if asked.only in claim.name]
    with stop_on_signals():
        ends = run(claims, asked.place)
    print(f"{ends[HOLDS]} hold, {ends[FAILS]} fail, {ends[OPEN]} cannot be told here")
    return 1 if ends[FAILS] else 0


if __name__ == "__main__":
    sys.exit(main())
