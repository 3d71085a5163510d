"""Numbers of systems drawn at random, each within a range that the generator states."""

from __future__ import annotations

import math
import random


class Draw(random.Random):
    """Numbers within ranges, to four digits: they are to be read."""

    def log(self, low: float, high: float) -> float:
        """Draw a number whose logarithm is uniform, to four digits."""
        return float(f"{math.exp(self.uniform(math.log(low), math.log(high))):.4g}")

    def linear(self, low: float, high: float) -> float:
        """Draw a uniform number, to four digits."""
        return float(f"{self.uniform(low, high):.4g}")

    def whole(self, low: float, high: float, unit: int = 1) -> int:
        """Draw a multiple of `unit` whose logarithm is uniform."""
        return max(round(self.log(low, high) / unit), 1) * unit

    def power(self, low: int, high: int) -> int:
        """Draw a power of two between two of them."""
        return 1 << self.randint(low.bit_length() - 1, high.bit_length() - 1)

    def chance(self, share: float) -> bool:
        """Return true in this share of the draws."""
        return self.random() < share
