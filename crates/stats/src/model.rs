//! ln time of a hierarchy and how it moves with the parameters.

use crate::shape::Shape;

/// Most boundaries of a hierarchy.
pub const LEVELS_MAX: usize = 3;

/// Why another number of levels is refused.
pub(crate) const LEVELS_REFUSED: &str = "a hierarchy has one to three boundaries";

/// Parameters of a fit of so many levels.
#[must_use]
pub const fn parameters(levels: usize) -> usize {
    3 + 3 * levels
}

/// What one level adds, its parameters no longer as logarithms.
#[derive(Clone, Copy)]
struct Level {
    shape: Shape,
    delta: f64,
    centre: f64,
    per_width: f64,
}

/// A hierarchy of L levels, of P parameters.
pub(crate) struct Hierarchy<const L: usize, const P: usize> {
    ln_a: f64,
    b: f64,
    s: f64,
    levels: [Level; L],
}

impl<const L: usize, const P: usize> Hierarchy<L, P> {
    pub(crate) fn new(shapes: &[Shape; L], theta: &[f64; P]) -> Self {
        let levels = std::array::from_fn(|level| Level {
            shape: shapes[level],
            delta: theta[3 + level].exp(),
            centre: theta[3 + L + level],
            per_width: (-theta[3 + 2 * L + level]).exp(),
        });
        Self { ln_a: theta[0], b: theta[1], s: theta[2], levels }
    }

    /// ln time at x, `z` from the middle; `slopes` become its derivatives by each parameter.
    pub(crate) fn ln_time(&self, x: f64, z: f64, slopes: &mut [f64; P]) -> f64 {
        let base = (self.ln_a + self.b * z).exp();
        let growth = (self.s * z).exp();
        let mut missing = 0.0;
        for (index, level) in self.levels.iter().enumerate() {
            let miss = level.shape.miss(x - level.centre, level.per_width);
            let delta = level.delta * growth;
            missing += delta * miss.ratio;
            slopes[3 + index] = delta * miss.ratio;
            slopes[3 + L + index] = delta * miss.by_centre;
            slopes[3 + 2 * L + index] = delta * miss.by_width;
        }
        (slopes[0], slopes[1], slopes[2]) = (base, base * z, missing * z);
        let total = base + missing;
        let share = 1.0 / total;
        slopes.iter_mut().for_each(|slope| *slope *= share);
        total.ln()
    }
}

/// ln time of each fit at each x, and its derivatives: (fits, readings), and (fits, parameters,
/// readings).
///
/// # Errors
/// A number of levels that no hierarchy has.
pub fn ln_time(
    x: &[f64],
    middle: f64,
    levels: usize,
    shapes: &[Shape],
    theta: &[f64],
) -> Result<(Vec<f64>, Vec<f64>), &'static str> {
    match levels {
        1 => Ok(all::<1, { parameters(1) }>(x, middle, shapes, theta)),
        2 => Ok(all::<2, { parameters(2) }>(x, middle, shapes, theta)),
        3 => Ok(all::<3, { parameters(3) }>(x, middle, shapes, theta)),
        _ => Err(LEVELS_REFUSED),
    }
}

fn all<const L: usize, const P: usize>(
    x: &[f64],
    middle: f64,
    shapes: &[Shape],
    theta: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let count = x.len();
    let mut fitted = Vec::with_capacity(theta.len() / P * count);
    let mut jacobian = vec![0.0; theta.len() * count];
    let fits = shapes.as_chunks().0.iter().zip(theta.as_chunks().0);
    for ((shapes, theta), jacobian) in fits.zip(jacobian.chunks_exact_mut(P * count)) {
        let hierarchy = Hierarchy::<L, P>::new(shapes, theta);
        let mut slopes = [0.0; P];
        for (reading, x) in x.iter().enumerate() {
            fitted.push(hierarchy.ln_time(*x, x - middle, &mut slopes));
            let column = jacobian.iter_mut().skip(reading).step_by(count);
            column.zip(slopes).for_each(|(to, slope)| *to = slope);
        }
    }
    (fitted, jacobian)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Shape::{Smeared, Step, Uniform};

    const X: [f64; 5] = [13.8, 15.1, 17.0, 18.6, 20.7];
    const MIDDLE: f64 = 17.25;
    const THETA: [f64; 9] = [-4.0, 0.04, 0.09, -2.0, -0.5, 14.7, 18.2, -1.2, -1.6];

    fn found(shapes: &[Shape], theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        ln_time(&X, MIDDLE, 2, shapes, theta).unwrap_or_default()
    }

    #[test]
    fn the_time_is_the_documented_sum() {
        let (fitted, _) = found(&[Uniform, Step], &THETA);
        for (x, found) in X.iter().zip(fitted) {
            let z = x - MIDDLE;
            let first = if *x > 14.7 { 1.0 - (14.7 - x).exp() } else { 0.0 };
            let second = if *x > 18.2 { 1.0 } else { 0.0 };
            let deltas = (-2.0f64).exp() * first + (-0.5f64).exp() * second;
            let wanted = (-4.0 + 0.04 * z).exp() + (0.09 * z).exp() * deltas;
            assert!((found - wanted.ln()).abs() < 1e-12, "{x}: {found}");
        }
    }

    #[test]
    fn the_jacobian_is_the_slope_of_ln_time_for_every_shape() {
        for shapes in [[Uniform, Smeared], [Smeared, Uniform], [Step, Smeared], [Uniform, Step]] {
            let (_, jacobian) = found(&shapes, &THETA);
            for at in 0..9 {
                let beside = |by: f64| {
                    let mut theta = THETA;
                    theta[at] += by;
                    found(&shapes, &theta).0
                };
                let (above, below) = (beside(1e-6), beside(-1e-6));
                for reading in 0..X.len() {
                    let wanted = (above[reading] - below[reading]) / 2e-6;
                    let found = jacobian[at * X.len() + reading];
                    assert!((found - wanted).abs() < 1e-7, "{shapes:?} {at} {reading}: {found}");
                }
            }
        }
    }

    #[test]
    fn each_fit_has_its_own_shapes_and_parameters() {
        let mut theta = THETA.to_vec();
        theta.extend(THETA.map(|value| 0.9 * value));
        let shapes = [Uniform, Step, Smeared, Uniform];
        let (both, slopes) = found(&shapes, &theta);
        let (second, of_second) = found(&shapes[2..], &theta[9..]);
        assert_eq!((&both[5..], &slopes[45..]), (&second[..], &of_second[..]));
    }

    #[test]
    fn a_hierarchy_has_one_to_three_boundaries() {
        for levels in 0..=4 {
            let theta = vec![0.0; parameters(levels)];
            let found = ln_time(&X, MIDDLE, levels, &vec![Step; levels], &theta);
            assert_eq!(found.is_ok(), (1..=LEVELS_MAX).contains(&levels), "{levels}");
            let lengths = found.map_or((5, 5 * theta.len()), |(y, slopes)| (y.len(), slopes.len()));
            assert_eq!(lengths, (5, 5 * theta.len()));
        }
    }
}
