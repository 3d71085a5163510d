"""One measured curve as a function between its points, with the weight of every point.

How throughput goes between two points is physics, not taste, and it matters where points are far
apart:

    logarithmic  ln throughput is straight over ln x: unique_bytes, process_num
    mixed        time per byte is straight over x: read_frac, seq_frac. A fraction of the requests
                 takes one time and the rest another, so their mean time is a weighted mean
    per request  time per request is straight over x: size_mean. A request costs a fixed time and
                 a time for each byte

Beyond its ends a curve stays at the end's value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

Between = Literal["logarithmic", "mixed", "per request"]

BETWEEN: dict[str, Between] = {
    "unique_bytes": "logarithmic",
    "size_mean": "per request",
    "read_frac": "mixed",
    "seq_frac": "mixed",
    "process_num": "logarithmic",
}


@dataclass(frozen=True)
class CurveLine:
    """A curve over nodes (workloads measured), which other curves may share."""

    between: Between
    x: Floats
    """Where its points lie, ascending, one or more."""
    nodes: Indices
    """Which node stands at each."""
    alone: tuple[float, int] | None = None
    """An x that holds for itself only, and its node (see `leadline.predict.seq_frac_one`)."""

    def read(self, values: Floats, node_ln_mb_s: Floats) -> tuple[Floats, Floats]:
        """Read the curve.

        Args:
            values: where, (workloads,).
            node_ln_mb_s: ln throughput at every node, (nodes,).

        Returns:
            ln throughput (workloads,), and its derivative by each node's, (workloads, nodes).

        """
        x = np.clip(values, self.x[0], self.x[-1])
        right = np.clip(np.searchsorted(self.x, x), min(1, self.x.size - 1), self.x.size - 1)
        left = np.maximum(right - 1, 0)
        share = self._share(x, left, right)
        ends = (self.nodes[left], self.nodes[right])
        shares = (1.0 - share, share)
        if self.between == "logarithmic":
            found = shares[0] * node_ln_mb_s[ends[0]] + shares[1] * node_ln_mb_s[ends[1]]
            parts = shares
        else:
            times = [
                s * self._time(at, node_ln_mb_s)
                for s, at in zip(shares, (left, right), strict=True)
            ]
            whole = times[0] + times[1]
            found = -np.log(whole) + (np.log(x) if self.between == "per request" else 0.0)
            parts = (times[0] / whole, times[1] / whole)
        weights = np.zeros((values.size, node_ln_mb_s.size))
        rows = np.arange(values.size)
        for node, part in zip(ends, parts, strict=True):
            np.add.at(weights, (rows, node), part)
        return self._alone_read(values, node_ln_mb_s, found, weights)

    def embedded(self) -> dict[str, Any]:
        """Return it as plain JSON values, see `ProductModel.embedded`."""
        return {
            "between": self.between,
            "x": self.x.tolist(),
            "nodes": self.nodes.tolist(),
            "alone": None if self.alone is None else list(self.alone),
        }

    def _share(self, x: Floats, left: Indices, right: Indices) -> Floats:
        """How far x lies from its left point to its right one, 0 to 1."""
        if self.x.size == 1:
            return np.zeros(x.size)
        if self.between == "logarithmic":
            return np.asarray(np.log(x / self.x[left]) / np.log(self.x[right] / self.x[left]))
        return np.asarray((x - self.x[left]) / (self.x[right] - self.x[left]))

    def _time(self, at: Indices, node_ln_mb_s: Floats) -> Floats:
        """Time per byte at points of the curve, or per request."""
        per_byte = np.exp(-node_ln_mb_s[self.nodes[at]])
        return np.asarray(per_byte * self.x[at] if self.between == "per request" else per_byte)

    def _alone_read(
        self, values: Floats, node_ln_mb_s: Floats, found: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        if self.alone is not None:
            at, node = self.alone
            exactly = values == at
            found[exactly] = node_ln_mb_s[node]
            weights[exactly] = 0.0
            weights[exactly, node] = 1.0
        return found, weights
