"""Where one level of a storage hierarchy ends: borders in `unique_bytes` (LITERATURE §2).

Several explanations of a curve compete - smooth ones without a border, and one to three borders
of three shapes - and the Bayesian information criterion picks, with a margin that a border must
win by. Intervals come from a residual bootstrap. See docs/concepts/borders.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leadline.record import Interval
from leadline.stats import hierarchy
from leadline.stats.hierarchy import SHAPE_OF_CODE, STEP, Codes, Fits, Floats, Readings

LEVELS_MAX = 3
CONTRAST_MIN = 1.25
"""Least ratio of times per byte across a border that is worth a region of its own."""
CONTRAST_SIGMAS = 4.0
"""Least ln contrast in standard deviations of one reading (LITERATURE §2.3)."""
PLATEAU_FACTOR_MIN = 2.0
"""A plateau spans at least this factor in unique_bytes (LITERATURE §2.3)."""
EVIDENCE_MARGIN = 6.0
"""BIC by which each further border must win; tuned by bench/borders.py."""
RESAMPLES = 240

_NOISE_PRIOR_FRAC = 0.03
_NOISE_PRIOR_DF = 3.0
"""Weak prior on the noise, so that few readings on a fitted curve do not look exact."""
SLOPE_PRIOR_SD = (0.05, 0.10)
"""Priors of the weak slopes of hits and misses: 12 % and 26 % per decade of unique_bytes."""
_HUBER_SIGMAS = 2.5
_KEPT = 10
"""Fits refined per number of borders."""
_SHAPES_BY_BIC = 6.0
"""Rival shapes within this BIC of the best take part in the bootstrap, by their weight."""


@dataclass(frozen=True)
class FittedBorder:
    """One border: the effective size of a cache."""

    bytes: Interval
    shape: str
    time_ratio: float
    """Time per byte far beyond the border over time per byte before it."""
    evidence_bic: float
    """BIC gained by this border over the best explanation without it."""


@dataclass(frozen=True)
class Explanation:
    """One rival explanation of the curve; the smaller its BIC the better."""

    name: str
    borders: int
    bic: float
    parameters: int
    cost: float
    coefficients: tuple[float, ...]
    """ln a, b, s, ln d_k, ln C_k, ln width_k; for a smooth curve the powers of (ln U - middle) in ln time."""
    codes: tuple[int, ...] = ()

    def ln_time(self, x: Floats, middle: float) -> Floats:
        """Return ln(seconds per MB) at x = ln U."""
        if self.borders == 0:
            return np.asarray(np.polynomial.polynomial.polyval(x - middle, self.coefficients))
        theta = np.array([self.coefficients])
        return hierarchy.ln_time(x, middle, np.array([self.codes]), theta)[0][0]


@dataclass(frozen=True)
class BorderFit:
    """The best explanation of a curve over `unique_bytes`, and its rivals."""

    borders: tuple[FittedBorder, ...]
    noise_frac: float
    """Standard deviation of one reading about the fit, as a fraction."""
    model: str
    alternatives: tuple[tuple[str, int, float], ...]
    """(name, borders, BIC) of each explanation that competed, best first."""
    explanation: Explanation
    middle: float

    def predict(self, unique_bytes: Floats | Sequence[float]) -> Floats:
        """Return the fitted time per byte in s/MB; 1 / it is MB/s."""
        x = np.log(np.asarray(unique_bytes, dtype=np.float64))
        return np.exp(self.explanation.ln_time(x, self.middle))


def fit_borders(
    unique_bytes: Sequence[float] | Floats,
    throughput_mb_s: Sequence[float] | Floats,
    reading_sd_frac: Sequence[float] | Floats | None = None,
    *,
    seed: int,
    margin_bic: float = EVIDENCE_MARGIN,
) -> BorderFit:
    """Find the borders of a curve of throughput over `unique_bytes`, with 95 % intervals.

    Repeated x are separate readings. `reading_sd_frac` weighs readings against each other and
    says what noise to expect before any residual is seen.

    Raises:
        ValueError: fewer than two readings, or a value that is not positive.

    """
    data, prior_sd = readings_of(unique_bytes, throughput_mb_s, reading_sd_frac)
    rivals, data = explain(data, prior_sd)
    best = choose(rivals, margin_bic)
    noise = noise_of(best, data, prior_sd)
    borders: tuple[FittedBorder, ...] = ()
    if best.borders:
        evidence = _evidence(best, rivals, data, prior_sd)
        samples = _bootstrap(best, rivals, data, noise, np.random.default_rng(seed))
        borders = tuple(
            _border(best, level, samples[:, level], float(evidence[level]), data)
            for level in range(best.borders)
        )
    table = tuple((rival.name, rival.borders, rival.bic) for rival in rivals)
    return BorderFit(borders, noise, best.name, table, best, data.middle)


def readings_of(
    unique_bytes: Sequence[float] | Floats,
    throughput_mb_s: Sequence[float] | Floats,
    reading_sd_frac: Sequence[float] | Floats | None,
) -> tuple[Readings, float]:
    """Return the curve on log axes and the noise to expect of a reading."""
    x = np.log(np.asarray(unique_bytes, dtype=np.float64))
    y = -np.log(np.asarray(throughput_mb_s, dtype=np.float64))
    if x.ndim != 1 or x.shape != y.shape or x.size < 2:
        raise ValueError("a curve needs two or more readings, one throughput per unique_bytes")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("unique_bytes and throughput must be positive and finite")
    weight = np.ones_like(x)
    prior_sd = _NOISE_PRIOR_FRAC
    if reading_sd_frac is not None:
        sd = np.asarray(reading_sd_frac, dtype=np.float64)
        prior_sd = max(prior_sd, float(np.median(sd)))
        # Run-to-run noise adds to each reading's own, so the weights differ less than the sds do.
        weight = 1 / (sd**2 + prior_sd**2)
        weight /= weight.mean()
    room = np.log(PLATEAU_FACTOR_MIN) * 0.75
    low, high = float(x.min()) + room, float(x.max()) - room
    return Readings(x, y, weight, (1.0, 1.0), np.inf, min(low, high), max(low, high)), prior_sd


def explain(data: Readings, prior_sd: float) -> tuple[list[Explanation], Readings]:
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
    """Pick the explanation; each border has to pay `margin_bic` on top of its parameters."""
    return min(rivals, key=lambda rival: rival.bic + margin_bic * rival.borders)


def noise_of(rival: Explanation, data: Readings, prior_sd: float) -> float:
    """Standard deviation of a reading about this fit, held up by the weak prior."""
    free = max(data.x.size - rival.parameters, 0) + _NOISE_PRIOR_DF
    return float(np.sqrt((rival.cost + _NOISE_PRIOR_DF * prior_sd**2) / free))


def _bic(cost: Floats | float, parameters: int, count: int, prior_sd: float) -> Floats:
    """BIC of ln time, the noise level being unknown but for its weak prior.

    Fitted parameters leave fewer residuals to judge the noise by, so each counts N / (N - p - 2)
    fold, as in the small-sample form of Akaike's criterion: a curve has some 16 readings.
    """
    total = count + _NOISE_PRIOR_DF
    variance = (np.asarray(cost) + _NOISE_PRIOR_DF * prior_sd**2) / total
    penalty = parameters * np.log(count) * total / max(total - parameters - 2, 1)
    return np.asarray(total * np.log(variance) + penalty)


def _smooth(data: Readings, prior_sd: float) -> list[Explanation]:
    """Curves without a border; the constant shares the weak slope that every rival has."""
    found = []
    z = data.x - data.middle
    for name, degree in (("constant", 1), ("power", 1), ("quadratic", 2)):
        if degree + 1 > data.x.size:
            continue
        penalty = np.zeros(degree + 1)
        if name == "constant":
            penalty[1] = data.slope_penalty[0]
        columns = np.vander(z, degree + 1, increasing=True)
        weight = data.weight.copy()
        for _ in range(8):
            normal = columns.T @ (columns * weight[:, None]) + np.diag(penalty + 1e-12)
            solved = np.linalg.solve(normal, columns.T @ (weight * data.y))
            size = np.maximum(np.abs(data.y - columns @ solved), 1e-300)
            weight = data.weight * np.minimum(1.0, data.huber_scale / size)
        loss = data.weight * hierarchy.huber(data.y - columns @ solved, data.huber_scale)
        cost = float(loss.sum() + (penalty * solved**2).sum())
        parameters = 1 if name == "constant" else degree + 1
        bic = float(_bic(cost, parameters, data.x.size, prior_sd))
        found.append(Explanation(name, 0, bic, parameters, cost, tuple(solved)))
    return found


def _hierarchies(
    data: Readings, prior_sd: float, scale: float, earlier: Sequence[Explanation]
) -> list[Explanation]:
    """Best hierarchies of one to three borders; few readings allow fewer borders."""
    if data.centre_high <= data.centre_low:
        return []
    singles = _single_places(data)
    found: list[Explanation] = []
    previous: Fits | None = None
    for levels in range(1, LEVELS_MAX + 1):
        if 1 + 2 * levels > data.x.size - 2:
            break
        if earlier:
            fits = _as_fits([rival for rival in earlier if rival.borders == levels], levels)
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


def _single_places(data: Readings) -> tuple[Floats, Codes]:
    """Return places and shapes to try for one border; a step can only be told between readings."""
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
    """Return all single borders, or all pairs far enough apart."""
    centres, codes = singles
    if levels == 1:
        return centres[:, None], codes[:, None]
    low, high = np.nonzero(centres[None, :] - centres[:, None] >= np.log(PLATEAU_FACTOR_MIN))
    return np.stack([centres[low], centres[high]], 1), np.stack([codes[low], codes[high]], 1)


def _added(fits: Fits, singles: tuple[Floats, Codes]) -> tuple[Floats, Codes]:
    """Return each fit with one more border at every place."""
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


def _polished(fits: Fits, data: Readings) -> Fits:
    """Refine again with each border moved and reshaped: steepest descent stops at a kink."""
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
    """Order each fit's borders by size."""
    levels = fits.levels
    order = np.argsort(fits.centres, axis=1, kind="stable")
    theta = fits.theta.copy()
    for place in hierarchy.places(levels):
        theta[:, place] = np.take_along_axis(theta[:, place], order, axis=1)
    return Fits(np.take_along_axis(fits.codes, order, axis=1), theta, fits.cost)


def _worthy(fits: Fits, data: Readings, scale: float) -> NDArray[np.bool_]:
    """Tell which fits have every border worth reporting: contrast that shows, real plateaus."""
    levels = fits.levels
    centres = fits.centres
    ends = np.concatenate(
        [np.full((len(centres), 1), data.x.min()), centres, np.full((len(centres), 1), data.x.max())],
        axis=1,
    )
    spans = np.diff(ends, axis=1)
    plateaus = (spans >= np.log(PLATEAU_FACTOR_MIN * 0.95)).all(axis=1)
    least = max(CONTRAST_SIGMAS * scale, np.log(CONTRAST_MIN))
    at_delta, _, at_width = hierarchy.places(levels)
    delta = np.exp(fits.theta[:, at_delta] - fits.theta[:, :1])
    end = data.x.max(keepdims=True)
    # Only what the measured range shows counts: the rise of a level by the largest unique_bytes.
    miss, _, _ = hierarchy.miss_ratio(end, centres, fits.theta[:, at_width], fits.codes)
    below = 1 + np.cumsum(delta, axis=1) - delta
    seen = np.log1p(delta * miss[:, :, 0] / below)
    return np.asarray(plateaus & (seen >= least).all(axis=1))


def _of_each(fits: Fits, count: int) -> Fits:
    """Keep the best `count` fits of each combination of shapes, best first."""
    kept: dict[tuple[int, ...], list[int]] = {}
    for index in np.argsort(fits.cost, kind="stable"):
        rank = kept.setdefault(tuple(fits.codes[index]), [])
        if len(rank) < count:
            rank.append(int(index))
    chosen = sorted((index for rank in kept.values() for index in rank), key=fits.cost.__getitem__)
    return fits.take(np.array(chosen, dtype=np.int64))


def _explanation(fits: Fits, index: int, data: Readings, prior_sd: float) -> Explanation:
    codes = tuple(int(code) for code in fits.codes[index])
    name = "+".join(SHAPE_OF_CODE[code] for code in codes)
    parameters = _parameters(codes)
    cost = float(fits.cost[index])
    bic = float(_bic(cost, parameters, data.x.size, prior_sd))
    return Explanation(name, len(codes), bic, parameters, cost, tuple(fits.theta[index]), codes)


def _parameters(codes: Sequence[int]) -> int:
    """Count a, d_k and C_k, and the width of a smeared border.

    The workload's addresses are drawn uniformly, so the uniform shape is what to expect:
    a smeared border counts one parameter more than it has.
    """
    return 1 + 2 * len(codes) + 2 * sum(code == hierarchy.SMEARED for code in codes)


def _as_fits(rivals: Sequence[Explanation], levels: int) -> Fits:
    return Fits(
        np.array([rival.codes for rival in rivals], dtype=np.int64).reshape(-1, levels),
        np.array([rival.coefficients for rival in rivals]).reshape(-1, 3 + 3 * levels),
        np.array([rival.cost for rival in rivals]),
    )


def _evidence(
    best: Explanation, rivals: Sequence[Explanation], data: Readings, prior_sd: float
) -> Floats:
    """BIC that each border gains over the best explanation of the same curve without it."""
    gains = np.empty(best.borders)
    fewer = [rival.bic for rival in rivals if rival.borders < best.borders]
    for level in range(best.borders):
        without = min(rival.bic for rival in rivals if rival.borders == 0)
        if best.borders > 1:
            dropped = [3 + level + block * best.borders for block in range(3)]
            theta = np.delete(best.coefficients, dropped)[None, :]
            codes = np.delete(best.codes, level)[None, :]
            cost = hierarchy.refine(data, codes, theta, 30).cost[0]
            parameters = _parameters(tuple(codes[0]))
            without = float(_bic(cost, parameters, data.x.size, prior_sd))
        gains[level] = without - best.bic
    floor = min(fewer) - best.bic
    return np.maximum(gains, floor) if best.borders > 1 else gains


def _bootstrap(
    best: Explanation,
    rivals: Sequence[Explanation],
    data: Readings,
    noise: float,
    rng: np.random.Generator,
) -> Floats:
    """Return ln C_k of refits to resampled residuals, (resamples, borders).

    Shapes the data cannot tell apart share the resamples by weight, so that the interval knows
    that the shape is uncertain; each resample draws its own noise level, so that it knows how
    few readings the noise rests on.
    """
    close = [
        rival
        for rival in rivals
        if rival.borders == best.borders and rival.bic - best.bic < _SHAPES_BY_BIC
    ][:4]
    weights = np.exp([(best.bic - rival.bic) / 2 for rival in close])
    counts = np.ceil(RESAMPLES * weights / weights.sum()).astype(int)
    return np.concatenate(
        [
            _resampled(rival, data, noise, int(count), rng)
            for rival, count in zip(close, counts, strict=True)
        ]
    )


def _resampled(
    rival: Explanation, data: Readings, noise: float, count: int, rng: np.random.Generator
) -> Floats:
    fitted = rival.ln_time(data.x, data.middle)
    residual = (data.y - fitted) * np.sqrt(data.weight)
    residual = np.clip(residual, -data.huber_scale * 2, data.huber_scale * 2)
    residual -= residual.mean()
    spread = max(float(np.sqrt(np.mean(residual**2))), 1e-12)
    free = max(data.x.size - rival.parameters, 1) + _NOISE_PRIOR_DF
    drawn = residual[rng.integers(0, residual.size, (count, residual.size))] * noise / spread
    drawn *= np.sqrt(free / rng.chisquare(free, (count, 1)))
    resampled = replace(data, y=fitted + drawn / np.sqrt(data.weight))
    starts = _starts(rival, data)
    fits = [
        hierarchy.refine(
            resampled,
            np.repeat([rival.codes], count, axis=0),
            np.repeat(start[None, :], count, axis=0),
            10,
        )
        for start in starts
    ]
    winner = np.argmin([fit.cost for fit in fits], axis=0)
    centres = np.array([fit.centres for fit in fits])
    chosen = centres[winner, np.arange(count)]
    return _jitter_steps(rival, data, chosen, rng)


def _starts(rival: Explanation, data: Readings) -> list[Floats]:
    """Return the fit itself, and each border moved either way: a kink has local minima."""
    theta = np.array(rival.coefficients)
    starts = [theta]
    distinct = np.unique(data.x)
    for level, code in enumerate(rival.codes):
        place = 3 + rival.borders + level
        shifts = [-0.25, -0.1, 0.1, 0.25]
        if code == STEP:
            middles = (distinct[1:] + distinct[:-1]) / 2
            nearest = int(np.argmin(np.abs(middles - theta[place])))
            around = middles[max(nearest - 2, 0) : nearest + 3]
            shifts = [float(middle - theta[place]) for middle in around]
        for shift in shifts:
            moved = theta.copy()
            moved[place] += shift
            starts.append(moved)
    return starts


def _jitter_steps(
    rival: Explanation, data: Readings, centres: Floats, rng: np.random.Generator
) -> Floats:
    """Spread a step's place over the gap between readings, where nothing tells it."""
    centres = centres.copy()
    distinct = np.unique(data.x)
    for level, code in enumerate(rival.codes):
        if code == STEP:
            right = np.clip(np.searchsorted(distinct, centres[:, level]), 1, distinct.size - 1)
            share = rng.random(len(centres))
            centres[:, level] = distinct[right - 1] + share * (distinct[right] - distinct[right - 1])
    return centres


def _border(
    best: Explanation, level: int, samples: Floats, evidence: float, data: Readings
) -> FittedBorder:
    at_delta, at_centre, _ = hierarchy.places(best.borders)
    delta = np.exp(np.array(best.coefficients[at_delta]) - best.coefficients[0])
    centre = best.coefficients[at_centre][level]
    low, high = np.quantile(samples, [0.025, 0.975])
    interval = Interval(
        float(np.exp(centre)),
        float(np.exp(min(low, centre))),
        float(np.exp(max(high, centre))),
        int(data.x.size),
    )
    before = 1 + delta[:level].sum()
    return FittedBorder(
        interval, SHAPE_OF_CODE[best.codes[level]], float(1 + delta[level] / before), evidence
    )
