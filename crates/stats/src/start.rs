//! Where fits begin: heights solved for at given boundaries.

use crate::least_squares::Normal;
use crate::model::LEVELS_REFUSED;
use crate::readings::{Fits, Readings};
use crate::refine::refine;
use crate::shape::Shape;

/// Logistic scale in ln U with which a smeared boundary begins.
const SMEAR_START: f64 = 0.2;
/// Of the trace, added to the diagonal: levels that no reading tells apart share their height.
const RIDGE_FRAC: f64 = 1e-12;

/// Solves for a and each `d_k` at given ln `C_k`, on relative errors; drops negative `d_k`.
///
/// A fit that wants a negative `d_k` is the fit of fewer levels, which competes by itself.
/// Returns which are left, and these.
///
/// # Errors
/// A number of levels that no hierarchy has.
pub fn start_fits(
    data: &Readings,
    levels: usize,
    centres: &[f64],
    shapes: &[Shape],
) -> Result<(Vec<usize>, Fits), &'static str> {
    let (kept, mut fits) = match levels {
        1 => solved::<1, 2>(data, centres, shapes),
        2 => solved::<2, 3>(data, centres, shapes),
        3 => solved::<3, 4>(data, centres, shapes),
        _ => return Err(LEVELS_REFUSED),
    };
    refine(data, levels, &mut fits, 0)?;
    Ok((kept, fits))
}

/// The same of L levels, which have H heights, without costs.
fn solved<const L: usize, const H: usize>(
    data: &Readings,
    centres: &[f64],
    shapes: &[Shape],
) -> (Vec<usize>, Fits) {
    let speeds: Vec<f64> = data.y.iter().map(|y| (-y).exp()).collect();
    let (mut kept, mut fits) = (Vec::new(), Fits::default());
    let tried = centres.as_chunks::<L>().0.iter().zip(shapes.as_chunks::<L>().0);
    for (index, (centres, shapes)) in tried.enumerate() {
        let mut normal = Normal::<H>::EMPTY;
        for ((x, speed), weight) in data.x.iter().zip(&speeds).zip(&data.weight) {
            let mut heights = [*speed; H];
            for ((height, centre), shape) in heights[1..].iter_mut().zip(centres).zip(shapes) {
                *height *= shape.miss(x - centre, 1.0 / SMEAR_START).ratio;
            }
            normal.add(&heights, *weight, 1.0);
        }
        let trace: f64 = normal.diagonal().map(|sum| *sum).sum();
        normal.diagonal().for_each(|sum| *sum += RIDGE_FRAC * trace);
        let Some(heights) = normal.solve().filter(|found| found.iter().all(|d| *d > 0.0)) else {
            continue;
        };
        kept.push(index);
        fits.shapes.extend(shapes);
        fits.theta.extend([heights[0].ln(), 0.0, 0.0]);
        fits.theta.extend(heights[1..].iter().map(|height| height.ln()));
        fits.theta.extend(centres);
        fits.theta.extend([SMEAR_START.ln(); L]);
    }
    (kept, fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ln_time;

    const TRUTH: [f64; 6] = [-4.0, 0.0, 0.0, -2.0, 17.0, -1.609_437_912_434_100_3];

    fn curve(of: impl Fn(&[f64]) -> Vec<f64>) -> Readings {
        let x: Vec<f64> = (0..12).map(|at| 13.8 + 0.6 * f64::from(at)).collect();
        Readings {
            y: of(&x),
            weight: (0..12).map(|at| 0.5 + f64::from(at) / 11.0).collect(),
            slope_penalty: [1.0, 4.0],
            huber_scale: f64::INFINITY,
            centre_low: 14.3,
            centre_high: 19.9,
            middle: 17.1,
            x,
        }
    }

    fn started(data: &Readings, centres: &[f64], shapes: &[Shape]) -> (Vec<usize>, Fits) {
        start_fits(data, 1, centres, shapes).unwrap_or_default()
    }

    #[test]
    fn starts_solve_an_exact_curve_of_every_shape() {
        for shape in [Shape::Uniform, Shape::Step, Shape::Smeared] {
            let data = curve(|x| ln_time(x, 17.1, 1, &[shape], &TRUTH).unwrap_or_default().0);
            let (kept, found) = started(&data, &[15.0, 17.0], &[shape, shape]);
            assert_eq!((kept, &found.shapes), (vec![0, 1], &vec![shape, shape]));
            for (found, wanted) in found.theta[6..].iter().zip(TRUTH) {
                assert!((found - wanted).abs() < 1e-6, "{shape:?}: {found} {wanted}");
            }
            assert!(found.cost[1] < 1e-10 && found.cost[0] > 0.1, "{:?}", found.cost);
        }
    }

    #[test]
    fn levels_that_no_reading_tells_apart_share_their_height() {
        let data = curve(|x| ln_time(x, 17.1, 1, &[Shape::Step], &TRUTH).unwrap_or_default().0);
        for (levels, centres) in [(2, &[16.9, 17.0][..]), (3, &[16.9, 17.0, 17.1])] {
            let shapes = vec![Shape::Step; levels];
            let (kept, found) = start_fits(&data, levels, centres, &shapes).unwrap_or_default();
            assert_eq!(kept, [0]);
            let share = -2.0 - (levels as f64).ln();
            for height in &found.theta[3..3 + levels] {
                assert!((height - share).abs() < 1e-2, "{height} {share}");
            }
        }
    }

    #[test]
    fn what_would_be_faster_beyond_a_boundary_is_dropped() {
        let data = curve(|x| x.iter().map(|x| 13.0 - x).collect());
        let nothing = (vec![], Fits::default());
        assert_eq!(started(&data, &[17.0], &[Shape::Uniform]), nothing);
    }

    #[test]
    fn a_level_that_no_reading_sees_is_dropped() {
        let data = curve(|x| x.iter().map(|x| x - 20.0).collect());
        let (kept, found) = started(&data, &[30.0, 17.0], &[Shape::Step; 2]);
        assert_eq!((kept, found.cost.len(), found.theta[4]), (vec![1], 1, 17.0));
    }
}
