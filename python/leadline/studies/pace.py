"""How a study's time budget becomes the limits of its next point."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leadline.engine import BUDGET_SHARE, POINT_S_MIN, BudgetSpent, Limits, share_limits


@dataclass(frozen=True)
class Pace:
    """An equal share of what is left for every point that is left.

    A slow point takes time from the others. One that ends early leaves its time to them where
    points end by their accuracy; where none does, what is left over is for the slow ones, and no
    point gets more than its share of the whole: what a system does in its first second and in its
    tenth differs, and points are held against each other.
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
        left_s = self.end_s - now_s
        share_s = min(self.point_s_max, self._share_s(left_s, self.points - done))
        if not self.accuracy:
            share_s = min(share_s, self._share_s(self.end_s, self.points))
        if share_s < POINT_S_MIN:
            raise BudgetSpent(self.ended(done) + self.advice)
        return share_limits(share_s, left_s=left_s, accuracy=self.accuracy)

    def _share_s(self, seconds: float, points: int) -> float:
        """What each of so many points gets of a time, the pauses between them taken off."""
        return BUDGET_SHARE * seconds / (points + self.between * (points - 1))

    def ended(self, done: int) -> str:
        """Say that the budget ended after so many points."""
        return f"the budget ended with {self.left(done)} still to measure"

    def left(self, done: int) -> str:
        """Say how many points are left after so many."""
        return f"{self.points - done} of {self.points} points"
