"""Rival explanations of a `unique_bytes` curve and the criterion that ranks them.

Smooth curves without a boundary compete with hierarchies of one to three boundaries of three
shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leadline.stats import hierarchy
from leadline.stats.hierarchy import SHAPE_OF_CODE, STEP, Codes, CurveReadings, Fits, Floats

CONTRAST_MIN = 1.25
"""Least ratio of times per byte across a boundary that is worth a region of its own."""
CONTRAST_SIGMAS = 4.0
"""Least ln contrast in standard deviations of one reading (LITERATURE §2.3)."""
PLATEAU_FACTOR_MIN = 2.0
"""A plateau spans at least this factor in unique_bytes (LITERATURE §2.3)."""
PLATEAU_READINGS_MIN = 2
"""A plateau rests on at least this many readings: one wild reading is no region."""
EVIDENCE_MARGIN = 4.0
"""BIC by which the first boundary must beat every smooth curve; each further one must gain twice
that over fewer boundaries. Tuned by bench/boundaries.py: boundaries that exist gain 10 to 100."""

NOISE_PRIOR_FRAC = 0.03
NOISE_PRIOR_DF = 3.0
"""Weak prior on the noise, so that few readings on a fitted curve do not look exact."""
SLOPE_PRIOR_SD = (0.05, 0.10)
"""Priors of the weak slopes of hits and misses: 12% and 26% per decade of unique_bytes."""
_HUBER_SIGMAS = 2.5
_KEPT = 10
"""Fits refined per number of boundaries."""


SEEK = "seek"
"""Name of the smooth rival a * (1 + g * sqrt(V)): seeks over a growing span, no cache."""


@dataclass(frozen=True)
class Explanation:
    """One rival explanation of the curve; the smaller its BIC the better."""

    name: str
    boundaries: int
    bic: float
    parameters: int
    cost: float
    coefficients: tuple[float, ...]
    """As hierarchy.Fits has them; of a smooth curve, the powers of (ln U - middle) in ln time."""
    codes: tuple[int, ...] = ()

    def ln_time(self, x: Floats, middle: float) -> Floats:
        """Return ln(seconds per MB) at x = ln U."""
        if self.name == SEEK:
            return self.coefficients[0] + _seek_growth(x - middle, self.coefficients[1])
        if self.boundaries == 0:
            return np.asarray(np.polynomial.polynomial.polyval(x - middle, self.coefficients))
        theta = np.array([self.coefficients])
        return np.asarray(hierarchy.ln_time(x, middle, np.array([self.codes]), theta)[0][0])


def readings_of(
    unique_bytes: Sequence[float] | Floats,
    throughput_mb_s: Sequence[float] | Floats,
    reading_sd_frac: Sequence[float] | Floats | None,
) -> tuple[CurveReadings, float]:
    """Return the curve on log axes and the noise to expect of a reading."""
    x = np.log(np.asarray(unique_bytes, dtype=np.float64))
    y = -np.log(np.asarray(throughput_mb_s, dtype=np.float64))
    if x.ndim != 1 or x.shape != y.shape or x.size < 2:
        raise ValueError("a curve needs two or more readings, one throughput per unique_bytes")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("unique_bytes and throughput must be positive and finite")
    weight = np.ones_like(x)
    prior_sd = NOISE_PRIOR_FRAC
    if reading_sd_frac is not None:
        sd = np.asarray(reading_sd_frac, dtype=np.float64)
        prior_sd = max(prior_sd, float(np.median(sd)))
        # Run-to-run noise adds to each reading's own, so the weights differ less than the sds do.
        weight = 1 / (sd**2 + prior_sd**2)
        weight /= weight.mean()
    room = np.log(PLATEAU_FACTOR_MIN) * 0.75
    low, high = float(x.min()) + room, float(x.max()) - room
    return CurveReadings(x, y, weight, (1.0, 1.0), np.inf, min(low, high), max(low, high)), prior_sd


def explain(data: CurveReadings, prior_sd: float) -> tuple[list[Explanation], CurveReadings]:
    """Fit every rival twice: by least squares, then robustly at the scale that showed."""
    rivals: list[Explanation] = []
    scale = max(prior_sd, 0.05)
    for final in (False, True):
        data = replace(
            data,
            slope_penalty=((scale / SLOPE_PRIOR_SD[0]) ** 2, (scale / SLOPE_PRIOR_SD[1]) ** 2),
            huber_scale=_HUBER_SIGMAS * scale if final else np.inf,
        )
        rivals = _smooth(data, prior_sd) + _hierarchies(data, prior_sd, scale, rivals)
        rivals.sort(key=lambda rival: rival.bic)
        scale = noise_of(rivals[0], data, prior_sd)
    return rivals, data


def choose(rivals: Sequence[Explanation], margin_bic: float) -> Explanation:
    """Pick the explanation, boundaries paying the margin on top of their parameters."""
    return min(rivals, key=lambda rival: rival.bic + margin_bic * max(2 * rival.boundaries - 1, 0))


def noise_of(rival: Explanation, data: CurveReadings, prior_sd: float) -> float:
    """Estimate the sd of a reading about this fit, held up by the weak prior."""
    free = max(data.x.size - rival.parameters, 0) + NOISE_PRIOR_DF
    return float(np.sqrt((rival.cost + NOISE_PRIOR_DF * prior_sd**2) / free))


def bic(cost: Floats | float, parameters: int, count: int, prior_sd: float) -> Floats:
    """BIC of ln time, the noise level being unknown but for its weak prior.

    Fitted parameters leave fewer residuals to judge the noise by, so each counts N / (N - p - 2)
    fold, as in the small-sample form of Akaike's criterion: a curve has some 16 readings.
    """
    total = count + NOISE_PRIOR_DF
    variance = (np.asarray(cost) + NOISE_PRIOR_DF * prior_sd**2) / total
    penalty = parameters * np.log(count) * total / max(total - parameters - 2, 1)
    return np.asarray(total * np.log(variance) + penalty)


def _smooth(data: CurveReadings, prior_sd: float) -> list[Explanation]:
    """Curves without a boundary; the constant shares the weak slope that every rival has."""
    found = []
    for name, degree in (("constant", 1), ("power", 1), ("quadratic", 2)):
        if degree + 1 > data.x.size:
            continue
        penalty = data.slope_penalty[0] if name == "constant" else 0.0
        solved = _polynomial(data, degree, penalty)
        fitted = np.polynomial.polynomial.polyval(data.x - data.middle, solved)
        loss = data.weight * hierarchy.huber(data.y - fitted, data.huber_scale)
        cost = float(loss.sum() + penalty * solved[1] ** 2)
        parameters = 1 if name == "constant" else degree + 1
        evidence = float(bic(cost, parameters, data.x.size, prior_sd))
        found.append(Explanation(name, 0, evidence, parameters, cost, tuple(solved)))
    return [*found, _seek(data, prior_sd)]


def _polynomial(data: CurveReadings, degree: int, penalty: float) -> Floats:
    """Fit ln time by a robust polynomial in ln U, nowhere steeper than `hierarchy.SLOPE_MAX`.

    Its unknowns are its height and its slopes at both ends of the range: where those are within
    bounds, so is every slope between them.
    """
    from scipy.optimize import lsq_linear  # noqa: PLC0415 - few commands need it, and it is large

    z = data.x - data.middle
    span = 2 * float(np.abs(z).max())
    to_powers = np.eye(degree + 1)
    if degree == 2:
        to_powers[1:, 1:] = [[0.5, 0.5], [-0.5 / span, 0.5 / span]]
    columns = np.vander(z, degree + 1, increasing=True) @ to_powers
    held = np.zeros(degree + 1)
    held[1] = np.sqrt(penalty)
    steepest = np.array([np.inf, *[hierarchy.SLOPE_MAX] * degree])
    weight = data.weight
    solved: Floats
    for _ in range(8):
        root = np.sqrt(weight)
        rows = np.vstack([columns * root[:, None], held])
        wanted = np.append(data.y * root, 0.0)
        solved = lsq_linear(rows, wanted, (-steepest, steepest), method="bvls").x
        size = np.maximum(np.abs(data.y - columns @ solved), 1e-300)
        before, weight = weight, data.weight * np.minimum(1.0, data.huber_scale / size)
        if np.array_equal(before, weight):
            break
    return np.asarray(to_powers @ solved)


def _seek_growth(z: Floats, growth: Floats | float) -> Floats:
    return np.asarray(np.log1p(growth * np.exp(z / 2)))


def _seek(data: CurveReadings, prior_sd: float) -> Explanation:
    """Fit seek times that grow with the square root of the span, over a grid of growths."""
    growths = np.geomspace(1e-3, 1e2, 51)
    left = data.y - _seek_growth(data.x - data.middle, growths[:, None])
    bases = np.average(left, axis=1, weights=data.weight)
    losses = hierarchy.huber(left - bases[:, None], data.huber_scale)
    costs = (data.weight * losses).sum(axis=1)
    best = int(np.argmin(costs))
    cost = float(costs[best])
    evidence = float(bic(cost, 2, data.x.size, prior_sd))
    return Explanation(SEEK, 0, evidence, 2, cost, (float(bases[best]), float(growths[best])))


def _hierarchies(
    data: CurveReadings, prior_sd: float, scale: float, earlier: Sequence[Explanation]
) -> list[Explanation]:
    """Best hierarchies of one to three boundaries; few readings allow fewer boundaries."""
    if data.centre_high <= data.centre_low:
        return []
    singles = _single_places(data)
    found: list[Explanation] = []
    previous: Fits | None = None
    for levels in range(1, hierarchy.LEVELS_MAX + 1):
        if 1 + 2 * levels > data.x.size - 2:
            break
        if earlier:
            fits = _as_fits([rival for rival in earlier if rival.boundaries == levels], levels)
        elif previous is None or levels <= 2:
            fits = _of_each(hierarchy.start_fits(data, *_combined(singles, levels)), 4)
        else:
            fits = _of_each(hierarchy.start_fits(data, *_added(previous, singles)), 2)
        if len(fits.cost) == 0:
            break
        fits = _sorted_levels(hierarchy.refine(data, fits.codes, fits.theta))
        if levels > 1 and not earlier:
            fits = _polished(_best(fits, _KEPT), data)
        previous = _of_each(fits, 2)
        kept = _best(_of_each(fits.take(np.flatnonzero(_worthy(fits, data, scale))), 1), _KEPT)
        found += [_explanation(kept, index, data, prior_sd) for index in range(len(kept.cost))]
    return found


def _single_places(data: CurveReadings) -> tuple[Floats, Codes]:
    """Return places and shapes to try for one boundary; a step shows between readings only."""
    count = max(8, int(np.ceil((data.centre_high - data.centre_low) / 0.2)) + 1)
    grid = np.linspace(data.centre_low, data.centre_high, count)
    distinct = np.unique(data.x)
    between = (distinct[1:] + distinct[:-1]) / 2
    between = between[(between > data.centre_low) & (between < data.centre_high)]
    shapes = (hierarchy.UNIFORM, hierarchy.SMEARED)
    centres = np.concatenate([grid] * len(shapes) + [between])
    codes = np.repeat([*shapes, STEP], [count] * len(shapes) + [between.size])
    return centres, codes


def _combined(singles: tuple[Floats, Codes], levels: int) -> tuple[Floats, Codes]:
    """Return all single boundaries, or all pairs far enough apart."""
    centres, codes = singles
    if levels == 1:
        return centres[:, None], codes[:, None]
    low, high = np.nonzero(centres[None, :] - centres[:, None] >= np.log(PLATEAU_FACTOR_MIN))
    return np.stack([centres[low], centres[high]], 1), np.stack([codes[low], codes[high]], 1)


def _added(fits: Fits, singles: tuple[Floats, Codes]) -> tuple[Floats, Codes]:
    """Return each fit with one more boundary at every place."""
    places, shapes = singles
    centres = np.concatenate(
        [np.repeat(fits.centres, places.size, axis=0), np.tile(places, len(fits.cost))[:, None]],
        axis=1,
    )
    codes = np.concatenate(
        [np.repeat(fits.codes, places.size, axis=0), np.tile(shapes, len(fits.cost))[:, None]],
        axis=1,
    )
    return centres, codes


def _polished(fits: Fits, data: CurveReadings) -> Fits:
    """Refine again with each boundary moved and reshaped: steepest descent stops at a kink."""
    codes, theta = [fits.codes], [fits.theta]
    for level in range(fits.levels):
        for code in (hierarchy.UNIFORM, hierarchy.SMEARED):
            for shift in (-0.35, 0.0, 0.35):
                other, moved = fits.codes.copy(), fits.theta.copy()
                other[:, level] = code
                moved[:, 3 + fits.levels + level] += shift
                codes.append(other)
                theta.append(moved)
    tried = hierarchy.refine(data, np.concatenate(codes), np.concatenate(theta), 10)
    return _sorted_levels(tried)


def _best(fits: Fits, count: int) -> Fits:
    return fits.take(np.argsort(fits.cost, kind="stable")[:count])


def _sorted_levels(fits: Fits) -> Fits:
    """Order each fit's boundaries by size."""
    levels = fits.levels
    order = np.argsort(fits.centres, axis=1, kind="stable")
    theta = fits.theta.copy()
    for place in hierarchy.places(levels):
        theta[:, place] = np.take_along_axis(theta[:, place], order, axis=1)
    return Fits(np.take_along_axis(fits.codes, order, axis=1), theta, fits.cost)


def _worthy(fits: Fits, data: CurveReadings, scale: float) -> NDArray[np.bool_]:
    """Tell which fits have every boundary worth reporting: contrast that shows, real plateaus."""
    levels = fits.levels
    centres = fits.centres
    ends = np.concatenate(
        [
            np.full((len(centres), 1), data.x.min()),
            centres,
            np.full((len(centres), 1), data.x.max()),
        ],
        axis=1,
    )
    spans = np.diff(ends)
    inside = (data.x >= ends[:, :-1, None] - 1e-9) & (data.x <= ends[:, 1:, None] + 1e-9)
    supported = (inside.sum(axis=2) >= PLATEAU_READINGS_MIN).all(axis=1)
    plateaus = supported & (spans >= np.log(PLATEAU_FACTOR_MIN * 0.95)).all(axis=1)
    least = max(CONTRAST_SIGMAS * scale, np.log(CONTRAST_MIN))
    at_delta, _, at_width = hierarchy.places(levels)
    delta = np.exp(fits.theta[:, at_delta] - fits.theta[:, :1])
    end = data.x.max(keepdims=True)
    # Only what the measured range shows counts: the rise of a level by the largest unique_bytes.
    miss = hierarchy.miss_ratio(end, centres, fits.theta[:, at_width], fits.codes)
    below = 1 + np.cumsum(delta, axis=1) - delta
    seen = np.log1p(delta * miss[:, :, 0] / below)
    return np.asarray(plateaus & (seen >= least).all(axis=1))


def _of_each(fits: Fits, count: int) -> Fits:
    """Keep the best `count` fits of each combination of shapes, best first."""
    order = np.argsort(fits.cost, kind="stable")
    shapes = fits.codes[order] @ len(SHAPE_OF_CODE) ** np.arange(fits.levels)
    first = [order[shapes == shape][:count] for shape in dict.fromkeys(shapes.tolist())]
    chosen = np.concatenate(first) if first else order
    return fits.take(chosen[np.argsort(fits.cost[chosen], kind="stable")])


def _explanation(fits: Fits, index: int, data: CurveReadings, prior_sd: float) -> Explanation:
    codes = tuple(int(code) for code in fits.codes[index])
    name = "+".join(SHAPE_OF_CODE[code] for code in codes)
    parameters = parameters_of(codes)
    cost = float(fits.cost[index])
    evidence = float(bic(cost, parameters, data.x.size, prior_sd))
    return Explanation(
        name, len(codes), evidence, parameters, cost, tuple(fits.theta[index]), codes
    )


def parameters_of(codes: Sequence[int]) -> int:
    """Count a, d_k and C_k, and the width of a smeared boundary.

    The workload's addresses are drawn uniformly, so the uniform shape is what to expect:
    a smeared boundary counts one parameter more than it has.
    """
    return 1 + 2 * len(codes) + 2 * sum(code == hierarchy.SMEARED for code in codes)


def _as_fits(rivals: Sequence[Explanation], levels: int) -> Fits:
    return Fits(
        np.array([rival.codes for rival in rivals], dtype=np.int64).reshape(-1, levels),
        np.array([rival.coefficients for rival in rivals]).reshape(-1, 3 + 3 * levels),
        np.array([rival.cost for rival in rivals]),
    )
