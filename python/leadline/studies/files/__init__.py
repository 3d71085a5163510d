"""The direct method (KM83): how fast are plain files read, written and rewritten?"""

from leadline.studies.files.plan import FilesRefused, plan_cells
from leadline.studies.files.run import Asked, CellDone, PlainFiles, begin_files, run_files

__all__ = [
    "Asked",
    "CellDone",
    "FilesRefused",
    "PlainFiles",
    "begin_files",
    "plan_cells",
    "run_files",
]
