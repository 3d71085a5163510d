"""D-optimal designs: the samples that make a quadratic's terms known best (SH08 §4)."""

from __future__ import annotations

import numpy as np

from leadline.studies.workbench.surface.grid import Floats, GridError

STARTS = 20
"""Random beginnings of the exchange; each ends at a design that no single exchange betters."""


def d_optimal(terms: Floats, count: int, seed: int) -> list[int]:
    """Return the cells of a D-optimal design, ascending: Fedorov's exchange (1972).

    The determinant of X'X over the chosen rows is raised by the best exchange of a chosen cell for
    one that is not, until none raises it. No cell is chosen twice.

    Args:
        terms: of the model, for all cells, (cells, terms).
        count: cells to choose.
        seed: of the random beginnings.

    Raises:
        GridError: there are fewer samples than terms, or more than cells.

    """
    cells, size = terms.shape
    if count < size:
        raise GridError(
            f"a quadratic in these factors has {size} terms; a design of {count} samples cannot "
            f"find them: give {size} or more"
        )
    if count > cells:
        raise GridError(f"the grid has {cells} cells; a design cannot have {count} samples")
    random = np.random.default_rng(seed)
    found = [exchange(terms, _beginning(terms, count, random)) for _ in range(STARTS)]
    return max(found, key=lambda chosen: (round(_log_determinant(terms[chosen]), 9), chosen))


def _beginning(terms: Floats, count: int, random: np.random.Generator) -> list[int]:
    """Half of the design by chance; the rest where the model is known least so far."""
    chosen: list[int] = random.choice(len(terms), size=count // 2, replace=False).tolist()
    while len(chosen) < count:
        unknown = _unknown(terms, chosen)
        unknown[chosen] = -1.0
        chosen.append(int(np.argmax(unknown)))
    return chosen


def _unknown(terms: Floats, chosen: list[int]) -> Floats:
    """Variance of the model in each cell, where a little is known of every term."""
    information = terms[chosen].T @ terms[chosen] + 1e-6 * np.eye(terms.shape[1])
    return np.asarray(np.einsum("ij,jk,ik->i", terms, np.linalg.inv(information), terms))


def exchange(terms: Floats, chosen: list[int]) -> list[int]:
    """Exchange one cell for another, the best pair each time, until the determinant is highest."""
    size = terms.shape[1]
    while True:
        rows = terms[chosen]
        inverse = np.linalg.inv(rows.T @ rows + 1e-12 * np.eye(size))
        across = terms @ inverse @ terms.T
        own = np.diag(across)
        # Fedorov's delta: what adding row j and taking row i away does to the determinant.
        delta = (
            own[None, :]
            - own[chosen][:, None]
            - own[chosen][:, None] * own[None, :]
            + across[chosen] ** 2
        )
        delta[:, chosen] = -np.inf
        out, new = np.unravel_index(int(np.argmax(delta)), delta.shape)
        if not delta[out, new] > 1e-9:
            return sorted(chosen)
        chosen[int(out)] = int(new)


def _log_determinant(rows: Floats) -> float:
    sign, value = np.linalg.slogdet(rows.T @ rows)
    return float(value) if sign > 0 else -np.inf
