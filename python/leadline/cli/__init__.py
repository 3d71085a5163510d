"""The command line. Only this package prints or exits.

stdout is data, stderr is talk. Exit codes (DESIGN.md): 0 done, 1 fault, 2 usage or refused
target, 3 stopped early with what was measured kept, 4 the gate of `compare --fail-if` failed.
"""

import os

# Our matrices are small: threads for them cost twice the time, on processors that are measured.
# Said before anything loads numpy, which reads it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from leadline.cli.app import main

__all__ = ["main"]
