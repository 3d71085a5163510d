"""fio job files: read as workloads, and written from them. Starts nothing; see engine/fio.py."""

from leadline.fio.errors import FioJobRefused
from leadline.fio.read import FioWorkload, read_job
from leadline.fio.write import FioRun, write_job

__all__ = ["FioJobRefused", "FioRun", "FioWorkload", "read_job", "write_job"]
