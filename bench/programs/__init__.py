"""Programs that people run, each in a folder of its own, for bench/applications.py.

A program is prepared once, and then run as often as one likes: what a run leaves behind is removed
before the next. None of them is Leadline's, and nothing in Leadline was made from them.
"""

from programs.databases import DATABASES
from programs.program import Program, Unavailable
from programs.tools import TOOLS

PROGRAMS: dict[str, Program] = {each.name: each for each in (*TOOLS, *DATABASES)}

__all__ = ["PROGRAMS", "Program", "Unavailable"]
