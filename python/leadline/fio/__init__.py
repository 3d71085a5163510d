"""fio job files: read as workloads, and written from them. Starts nothing; see engine/fio.py."""

from leadline.fio.errors import FioJobRefused
from leadline.fio.read import FioWorkload, read_job
from leadline.fio.write import FioRun, fitting_ramp_s, write_job

__all__ = ["FioJobRefused", "FioRun", "FioWorkload", "fitting_ramp_s", "read_job", "write_job"]
