"""The direct method (KM83): how fast are plain files read, written and rewritten?"""

from leadline.studies.files.explain import explain_files
from leadline.studies.files.plan import EXISTING, FilesRefused, plan_cells
from leadline.studies.files.protocol import Asked, CellDone, begin_files, run_files

__all__ = [
    "EXISTING",
    "Asked",
    "CellDone",
    "FilesRefused",
    "begin_files",
    "explain_files",
    "plan_cells",
    "run_files",
]
