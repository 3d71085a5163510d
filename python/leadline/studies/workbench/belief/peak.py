"""The peak rate of a server of the model: where its expected response is at the threshold."""

from __future__ import annotations

import numpy as np

from leadline import _engine
from leadline.studies.workbench.belief.reading import Aim
from leadline.studies.workbench.belief.server import Floats, Servers


def log_peak(servers: Servers, aim: Aim, run_length_s: float, warm_up_s: float) -> Floats:
    """Logarithm of the rate at which trials of the run length are expected at the threshold."""
    return np.frombuffer(_engine.log_peak(servers, aim, run_length_s, warm_up_s))
