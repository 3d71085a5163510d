"""How a study's time budget becomes the limits of its next point."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leadline.engine import BUDGET_SHARE, POINT_S_MIN, BudgetSpent, Limits, share_limits


@dataclass(frozen=True)
class Pace:
    """An equal share of what is left for every point that is left.

    A point that ends early leaves its time to the others; a slow one takes it from them.
    """

    end_s: float
    """Where the budget ends, on the study's clock."""
    points: int
    """How many are planned."""
    accuracy: float
    """Relative half-width of a point's own interval that ends it early; 0 where none does."""
    point_s_max: float = math.inf
    between: float = 0.0
    """What stands between two points, as a share of a point's time."""
    advice: str = ""
    """Said after what is missing, where a budget ends early."""

    def limits(self, now_s: float, done: int) -> Limits:
        """Time limits of the next point.

        Raises:
            BudgetSpent: nothing useful fits any more.

        """
        left, left_s = self.points - done, self.end_s - now_s
        share_s = min(self.point_s_max, BUDGET_SHARE * left_s / (left + self.between * (left - 1)))
        if share_s < POINT_S_MIN:
            raise BudgetSpent(self.ended(done) + self.advice)
        return share_limits(share_s, left_s=left_s, accuracy=self.accuracy)

    def ended(self, done: int) -> str:
        """Say that the budget ended after so many points."""
        left = self.points - done
        return f"the budget ended with {left} of {self.points} points still to measure"
