//! Student's t of five degrees of freedom, without its constant.

/// Variance and residual in one: what the density falls with.
#[must_use]
pub fn widened(residual: f64, variance: f64) -> f64 {
    variance + residual * residual / 5.0
}

/// Density of a scale whose square is `variance`; of several residuals where both numbers are
/// products over them.
///
/// Its tails fall with the sixth power: the product of three is far from the smallest double, so
/// that no logarithms are needed before the last.
#[must_use]
pub fn density(variance: f64, widened: f64) -> f64 {
    variance * variance * variance.sqrt() / (widened * widened * widened)
}

/// Logarithm of the density of one residual.
#[must_use]
pub fn log_density(residual: f64, variance: f64) -> f64 {
    density(variance, widened(residual, variance)).ln()
}

#[cfg(test)]
mod tests {
    use super::super::examples::near;
    use super::*;

    #[test]
    fn a_density_falls_as_students_does_and_is_lower_where_it_is_wider() {
        near(log_density(0.0, 0.25), 2f64.ln(), 1e-12);
        // (1 + t²/5)^-3 at t = √5, of a scale of 2.
        near(log_density(20f64.sqrt(), 4.0), (0.5f64 / 8.0).ln(), 1e-12);
        near(log_density(-20f64.sqrt(), 4.0), (0.5f64 / 8.0).ln(), 1e-12);
        near(log_density(1.0, 1e-8), -3.0 * 2e7f64.ln_1p() + 4.0 * 10f64.ln(), 1e-9);
    }

    #[test]
    fn products_have_the_density_of_all() {
        let [one, other] = [(0.3, 0.2), (1.5, 0.7)];
        let both = widened(one.0, one.1) * widened(other.0, other.1);
        let apart = log_density(one.0, one.1) + log_density(other.0, other.1);
        near(density(one.1 * other.1, both).ln(), apart, 1e-12);
    }
}
