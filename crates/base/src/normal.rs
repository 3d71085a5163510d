//! The standard normal and Student's t distributions, as far as measuring needs them.

#![forbid(unsafe_code)]

use std::f64::consts::PI;

/// Density of the standard normal distribution at `z`.
#[must_use]
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// Probability that a standard normal value is above `z`, to about 1e-12 relative.
///
/// Below |z| = 3 by the power series `Φ(z) = 1/2 + φ(z) (z + z³/3 + z⁵/15 + …)`, beyond by
/// Laplace's continued fraction of the Mills ratio `1/(z + 1/(z + 2/(z + 3/(z + …))))`.
#[must_use]
pub fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    if z < 3.0 {
        let mut term = z;
        let mut sum = z;
        let mut odd = 1.0;
        while term > sum * 1e-17 {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density(z) * sum;
    }
    let mut tail = z;
    for depth in (1..=80).rev() {
        tail = z + f64::from(depth) / tail;
    }
    density(z) / tail
}

/// The z below which a standard normal value lies with probability `p`, by Newton's method from
/// `near`: the nearer that is, the fewer its steps.
#[must_use]
pub fn quantile_near(p: f64, near: f64) -> f64 {
    let mut z = near;
    for _ in 0..100 {
        // Far out the density is next to nothing, and a whole step would lead anywhere.
        let step = ((1.0 - upper_tail(z) - p) / density(z)).clamp(-0.5, 0.5);
        z -= step;
        if step.abs() < 1e-10 {
            break;
        }
    }
    z
}

/// The t for which a Student variable of `freedom` degrees lies within ±t with probability
/// `level` (0.95 for the usual interval).
///
/// Bisection on the exact finite sums for whole degrees of freedom (Abramowitz and Stegun,
/// 26.7.3 and 26.7.4); above 200 degrees the sum at 200 is within 0.6% and errs to the safe side.
#[must_use]
pub fn student_t(freedom: u32, level: f64) -> f64 {
    let freedom = freedom.clamp(1, 200);
    let (mut low, mut high) = (0.0, PI / 2.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if within(middle, freedom) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.tan() * f64::from(freedom).sqrt()
}

/// Probability within ±t, with `angle = atan(t / sqrt(freedom))`.
fn within(angle: f64, freedom: u32) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut index = if odd { 3 } else { 2 };
    while index < freedom {
        term *= cosine * cosine * f64::from(index - 1) / f64::from(index);
        sum += term;
        index += 2;
    }
    if odd { 2.0 / PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_tail_has_its_known_values() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457),
            (1.959_963_984_540_054, 0.025),
            (2.999_999, 1.349_902e-3),
            (5.0, 2.866_515_718_791_939e-7),
            (-1.0, 0.841_344_746_068_543),
        ] {
            assert!((upper_tail(z) / tail - 1.0).abs() < 1e-5, "{z}: {}", upper_tail(z));
        }
    }

    #[test]
    fn a_quantile_is_where_the_tail_says_from_near_and_from_far() {
        for z in [-5.2, -3.0, -0.7, 0.0, 0.4, 2.2, 4.9] {
            for near in [z - 0.1, 0.0, -5.0, 5.0] {
                let found = quantile_near(1.0 - upper_tail(z), near);
                assert!((found - z).abs() < 1e-8, "{z} from {near}: {found}");
            }
        }
    }

    #[test]
    fn student_t_has_the_values_of_the_tables() {
        for (freedom, t) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (19, 2.093),
            (30, 2.042),
            (60, 2.000),
            (120, 1.980),
        ] {
            assert!(
                (student_t(freedom, 0.95) - t).abs() < 6e-4,
                "{freedom}: {}",
                student_t(freedom, 0.95)
            );
        }
        assert!((student_t(9, 0.99) - 3.250).abs() < 6e-4);
    }
}
