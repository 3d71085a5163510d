//! The speed δ of a trial: where the model is evaluated, and the finer grid that is summed over.

/// Places of the model, from -3 to 3 standard deviations.
pub(crate) const COARSE: usize = 7;
/// Places of the sum over δ, over the same range.
pub(crate) const FINE: usize = 31;
/// Steps of the fine grid in one of the coarse.
const STEPS: usize = (FINE - 1) / (COARSE - 1);

/// Normal weights of the places of the model.
pub(crate) fn coarse_weights() -> [f64; COARSE] {
    normal(1.0)
}

/// Normal weights of the places of the sum.
pub(crate) fn fine_weights() -> [f64; FINE] {
    normal(1.0 / STEPS as f64)
}

fn normal<const N: usize>(step: f64) -> [f64; N] {
    let densities: [f64; N] = std::array::from_fn(|at| {
        let z = (at as f64 - (N / 2) as f64) * step;
        (-0.5 * z * z).exp()
    });
    let sum: f64 = densities.iter().sum();
    densities.map(|density| density / sum)
}

/// The places of the model, joined by straight lines.
pub(crate) fn interpolate(coarse: &[f64; COARSE]) -> [f64; FINE] {
    let mut fine = [coarse[COARSE - 1]; FINE];
    for (steps, ends) in fine.chunks_exact_mut(STEPS).zip(coarse.windows(2)) {
        for (at, value) in steps.iter_mut().enumerate() {
            let share = at as f64 / STEPS as f64;
            *value = ends[0] * (1.0 - share) + ends[1] * share;
        }
    }
    fine
}

/// Slopes from place to place: of both neighbours, at the ends of one.
pub(crate) fn slopes(values: &[f64; COARSE]) -> [f64; COARSE] {
    std::array::from_fn(|at| {
        let (below, above) = (at.saturating_sub(1), (at + 1).min(COARSE - 1));
        (values[above] - values[below]) / (above - below) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::super::examples::near;
    use super::*;

    #[test]
    fn weights_are_normal_and_add_up_to_one() {
        let (coarse, fine) = (coarse_weights(), fine_weights());
        near(coarse.iter().sum(), 1.0, 1e-12);
        near(fine.iter().sum(), 1.0, 1e-12);
        near(coarse[3] / coarse[4], 0.5f64.exp(), 1e-12);
        near(coarse[3] / coarse[0], 4.5f64.exp(), 1e-12);
        near(fine[15] / fine[20], 0.5f64.exp(), 1e-12);
        near(fine[15] / fine[30], 4.5f64.exp(), 1e-12);
        near(fine[15] / fine[14], 0.02f64.exp(), 1e-12);
    }

    #[test]
    fn straight_lines_join_the_places() {
        let fine = interpolate(&[0.0, 10.0, 20.0, 0.0, 0.0, 0.0, 5.0]);
        let at = [0, 1, 5, 6, 10, 12, 25, 27, 30].map(|at| fine[at]);
        for (found, wanted) in at.into_iter().zip([0.0, 2.0, 10.0, 12.0, 20.0, 12.0, 0.0, 2.0, 5.0])
        {
            near(found, wanted, 1e-12);
        }
    }

    #[test]
    fn slopes_are_those_of_both_neighbours() {
        let found = slopes(&[0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0]);
        assert_eq!(found, [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 11.0]);
    }
}
