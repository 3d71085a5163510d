"""The file's size: so long that neither a cache nor what every file costs decides the result.

KM83 §4 took eight Megabytes "to insure that the cache did not overly influence the results", twice
the machine's memory. Here the clock runs until the drive has the data and reads begin uncached, so
what is left to outgrow are the fixed costs: the size is doubled until a doubling changes neither
rate by more than SETTLED_FRAC, or until space or time forbid more.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.engine.file_tests import image_bytes
from leadline.record.files import FilesCell, SizeStep
from leadline.units import format_bytes

PAPER_BYTES = 8 * 2**20
"""KM83 §4: 1024 requests of 8192 bytes."""
SETTLED_FRAC = 0.10
PLAN_SHARE = 0.6
"""Share of the time left that the whole plan may take at the next size, by what this one took."""
_LAYOUT_BYTES_S = 300e6
"""Images are written once; slower drives show in the steps' own seconds."""
_CELL_S = 1.5
"""Making, mounting and unmounting a file system."""


def next_size(
    steps: Sequence[SizeStep],
    cells: Sequence[FilesCell],
    *,
    runs: int,
    bytes_max: int,
    left_s: float,
) -> tuple[int | None, str]:
    """Return the next size to try, or None and why the last one stays."""
    if not steps:
        return min(PAPER_BYTES, bytes_max), ""
    last = steps[-1]
    if len(steps) > 1 and _settled(steps[-2], last):
        return None, (
            f"doubling it to {format_bytes(last.file_bytes)} changed neither the write's nor the "
            f"read's rate by more than {100 * SETTLED_FRAC:.0f} %"
        )
    doubled = 2 * last.file_bytes
    if doubled > bytes_max:
        return None, f"there is room for files of {format_bytes(bytes_max)} at most"
    if plan_s(cells, doubled, runs=runs, step=last) > PLAN_SHARE * left_s:
        return None, (
            "a larger one would not fit the budget; the last doubling still changed a rate by more "
            f"than {100 * SETTLED_FRAC:.0f} % (a larger --budget lets it grow)"
        )
    return doubled, ""


def plan_s(cells: Sequence[FilesCell], file_bytes: int, *, runs: int, step: SizeStep) -> float:
    """Return the seconds that all cells will take, as one step foretells.

    A step ran two programs twice each, raw passes included; a cell runs four, `runs` times.
    """
    open_cells = [cell for cell in cells if cell.missing is None]
    unit_s = step.seconds * file_bytes / step.file_bytes
    images = max((cell.drives for cell in open_cells if cell.system.made), default=0)
    laid_s = images * image_bytes(file_bytes) / _LAYOUT_BYTES_S
    drives = sum(cell.drives for cell in open_cells)
    return laid_s + _CELL_S * len(open_cells) + drives * runs * unit_s


def _settled(before: SizeStep, after: SizeStep) -> bool:
    pairs = (
        (before.write_kbytes_s, after.write_kbytes_s),
        (before.read_kbytes_s, after.read_kbytes_s),
    )
    return all(abs(now / then - 1) <= SETTLED_FRAC for then, now in pairs)
