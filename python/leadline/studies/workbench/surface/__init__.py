"""Response surfaces (SH08 §4): which samples to measure, and what the others would give."""

from __future__ import annotations

from leadline.studies.workbench.surface.design import (
    DEFAULT,
    DESIGNS,
    SurfaceDesign,
    UnknownDesign,
    open_design,
)
from leadline.studies.workbench.surface.grid import Grid, GridError, full_grid

__all__ = [
    "DEFAULT",
    "DESIGNS",
    "Grid",
    "GridError",
    "SurfaceDesign",
    "UnknownDesign",
    "full_grid",
    "open_design",
]
