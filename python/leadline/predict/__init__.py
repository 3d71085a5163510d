"""Models of a surveyed system: throughput of workloads nobody measured (CP94 §9). Pure, no I/O."""

from leadline.predict.model import Expected, Model

__all__ = ["Expected", "Model"]
