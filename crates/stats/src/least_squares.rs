//! Normal equations of least squares: summed up, and solved by Cholesky's decomposition.
//!
//! Of a matrix, which is symmetric, only the upper triangle counts.

/// Normal equations of so many unknowns.
#[derive(Clone, Debug)]
pub(crate) struct Normal<const P: usize> {
    pub(crate) matrix: [[f64; P]; P],
    pub(crate) right: [f64; P],
}

impl<const P: usize> Normal<P> {
    pub(crate) const EMPTY: Self = Self { matrix: [[0.0; P]; P], right: [0.0; P] };

    /// Adds a reading: its slope by each unknown, its weight, and the residual to take away.
    pub(crate) fn add(&mut self, slopes: &[f64; P], weight: f64, residual: f64) {
        let rows = self.matrix.iter_mut().zip(&mut self.right).zip(slopes);
        for (at, ((sums, right), slope)) in rows.enumerate() {
            let weighed = weight * slope;
            *right += weighed * residual;
            for (sum, slope) in sums[at..].iter_mut().zip(&slopes[at..]) {
                *sum += weighed * slope;
            }
        }
    }

    pub(crate) fn diagonal(&mut self) -> impl Iterator<Item = &mut f64> {
        self.matrix.iter_mut().enumerate().map(|(at, row)| &mut row[at])
    }

    /// The unknowns; none where the matrix is not positive definite.
    pub(crate) fn solve(mut self) -> Option<[f64; P]> {
        let (matrix, right) = (&mut self.matrix, &mut self.right);
        for pivot in 0..P {
            let own = matrix[pivot];
            if !(own[pivot] > 0.0 && own[pivot].is_finite()) {
                return None;
            }
            let inverse = 1.0 / own[pivot];
            for row in pivot + 1..P {
                let factor = own[row] * inverse;
                right[row] -= factor * right[pivot];
                for column in row..P {
                    matrix[row][column] -= factor * own[column];
                }
            }
        }
        for row in (0..P).rev() {
            let mut left = right[row];
            for column in row + 1..P {
                left -= matrix[row][column] * right[column];
            }
            right[row] = left / matrix[row][row];
        }
        Some(self.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_add_up_by_their_weights() {
        let mut sums = Normal::EMPTY;
        sums.add(&[1.0, 2.0], 3.0, 0.5);
        sums.add(&[1.0, -1.0], 1.0, 2.0);
        let [[first, mixed], [_, second]] = sums.matrix;
        assert_eq!((first, mixed, second, sums.right), (4.0, 5.0, 13.0, [3.5, 1.0]));
    }

    #[test]
    fn three_equations_are_solved_by_what_is_above_the_diagonal() {
        let no = f64::NAN;
        let matrix = [[4.0, 2.0, -2.0], [no, 5.0, 1.0], [no, no, 6.0]];
        let right = [4.0 - 4.0 - 6.0, 2.0 - 10.0 + 3.0, -2.0 - 2.0 + 18.0];
        let found = Normal { matrix, right }.solve().unwrap_or_default();
        for (found, wanted) in found.into_iter().zip([1.0, -2.0, 3.0]) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        let solved = |last| Normal { matrix: [[1.0, 1.0], [0.0, last]], right: [1.0; 2] }.solve();
        for last in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(solved(last), None, "{last}");
        }
        assert_eq!(solved(1.5), Some([1.0, 0.0]));
    }
}
