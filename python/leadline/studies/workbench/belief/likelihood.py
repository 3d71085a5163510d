"""How probable a trial is, for many servers at once.

The model and what is made of a trial are in Rust (crates/stats/src/belief/mod.rs); here is how
NumPy's arrays get there and back.
"""

from __future__ import annotations

import numpy as np

from leadline import _engine
from leadline.studies.workbench.belief.reading import Aim, Reading
from leadline.studies.workbench.belief.server import Floats, Servers


def log_likelihood(reading: Reading, servers: Servers, aim: Aim) -> Floats:
    """Logarithm of a trial's probability density, for each server."""
    return np.frombuffer(_engine.log_likelihood(reading, servers, aim))


def student_t_log(residual: Floats, sd: float) -> Floats:
    """Log density of Student's t with a scale, without its constant."""
    return np.frombuffer(_engine.student_t_log(residual, sd))
