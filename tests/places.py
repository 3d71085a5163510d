"""Where the tests and the checkout lie, for tests in whichever folder."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
