//! A curve of readings, and fits of it.

use crate::shape::Shape;

/// One curve, ready for fitting.
#[derive(Clone, Debug)]
pub struct Readings {
    /// ln U.
    pub x: Vec<f64>,
    /// ln(time per byte): one for each x or, for a bootstrap, so many for each fit in turn.
    pub y: Vec<f64>,
    /// Relative weight of each reading's squared residual; mean 1.
    pub weight: Vec<f64>,
    /// Added to a fit's cost as penalty * slope^2 for b and for s: their priors.
    pub slope_penalty: [f64; 2],
    /// Residuals beyond this cost linearly; infinite for plain least squares.
    pub huber_scale: f64,
    /// Least ln C of a boundary.
    pub centre_low: f64,
    /// Largest ln C of a boundary.
    pub centre_high: f64,
    /// The x at which the slope factor is one.
    pub middle: f64,
}

/// Fits of one number of levels, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fits {
    /// Shape of each level of each fit.
    pub shapes: Vec<Shape>,
    /// Parameters of each fit; the crate says in which order.
    pub theta: Vec<f64>,
    /// Penalised robust sum of squares of each fit.
    pub cost: Vec<f64>,
}

impl Readings {
    /// Refuses arrays that do not belong together.
    ///
    /// # Errors
    /// What does not, in words.
    pub fn check(&self, fits: usize) -> Result<(), &'static str> {
        if self.x.is_empty() || self.weight.len() != self.x.len() {
            return Err("a curve needs readings, and a weight for each");
        }
        if self.y.len() != self.x.len() && self.y.len() != self.x.len() * fits {
            return Err("a time is needed for each reading, or for each of every fit");
        }
        Ok(())
    }

    /// ln(time per byte) as this fit sees it.
    pub(crate) fn y_of(&self, fit: usize) -> &[f64] {
        let count = self.x.len();
        if self.y.len() == count { &self.y } else { &self.y[fit * count..][..count] }
    }

    /// What a fit costs: its weighed residuals and its slopes.
    pub(crate) fn cost(&self, y: &[f64], fitted: &[f64], theta: &[f64]) -> f64 {
        let mut loss = 0.0;
        for ((y, fitted), weight) in y.iter().zip(fitted).zip(&self.weight) {
            loss += weight * huber(y - fitted, self.huber_scale);
        }
        let [of_b, of_s] = self.slope_penalty;
        loss + of_b * theta[1] * theta[1] + of_s * theta[2] * theta[2]
    }
}

/// Square of a residual up to `scale`, linear beyond.
#[must_use]
pub fn huber(residual: f64, scale: f64) -> f64 {
    let size = residual.abs();
    if size <= scale { size * size } else { scale * (2.0 * size - scale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_costs_its_square_and_beyond_the_scale_its_tangent() {
        let residuals = [-3.0, -1.0, 0.5, 2.0];
        assert_eq!(residuals.map(|r| huber(r, f64::INFINITY)), [9.0, 1.0, 0.25, 4.0]);
        assert_eq!(residuals.map(|r| huber(r, 1.0)), [5.0, 1.0, 0.25, 3.0]);
    }

    fn two() -> Readings {
        Readings {
            x: vec![14.0, 16.0],
            y: vec![0.5, -2.0],
            weight: vec![3.0, 1.0],
            slope_penalty: [1.0, 4.0],
            huber_scale: 1.0,
            centre_low: 14.0,
            centre_high: 16.0,
            middle: 15.0,
        }
    }

    #[test]
    fn a_fit_costs_its_weighed_residuals_and_its_slopes() {
        let found = two().cost(&[0.5, -2.0], &[0.0, 0.0], &[0.0, 0.1, 0.2]);
        assert!((found - (3.0 * 0.25 + 3.0 + 0.01 + 4.0 * 0.04)).abs() < 1e-12, "{found}");
    }

    #[test]
    fn arrays_that_do_not_belong_together_are_refused() {
        assert!(two().check(7).is_ok());
        assert!(Readings { y: vec![0.0; 6], ..two() }.check(3).is_ok());
        assert!(Readings { y: vec![0.0; 6], ..two() }.check(2).is_err());
        assert!(Readings { weight: vec![1.0], ..two() }.check(1).is_err());
        assert!(Readings { x: vec![], y: vec![], weight: vec![], ..two() }.check(1).is_err());
    }

    #[test]
    fn a_bootstrap_has_times_of_its_own_for_each_fit() {
        let many = Readings { y: vec![1.0, 2.0, 3.0, 4.0], ..two() };
        assert_eq!(many.y_of(1), [3.0, 4.0]);
        assert_eq!(two().y_of(1), [0.5, -2.0]);
    }
}
