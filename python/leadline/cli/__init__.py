"""The command line. Only this package prints or exits.

stdout is data, stderr is talk. Exit codes (DESIGN.md): 0 done, 1 fault, 2 usage or refused
target, 3 stopped early with what was measured kept, 4 the gate of `compare --fail-if` failed.
"""

from leadline.cli.app import main

__all__ = ["main"]
