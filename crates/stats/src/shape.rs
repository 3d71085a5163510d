//! How the misses of one level rise where `unique_bytes` outgrow it.

/// How hits fall beyond the place C of a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// h = min(1, C/U): random addresses over an LRU-like cache.
    Uniform,
    /// All or nothing: cyclic scans under LRU.
    Step,
    /// Logistic in ln U: real policies between the two.
    Smeared,
}

/// 1 - h at one x, and its derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss {
    /// 1 - h.
    pub ratio: f64,
    /// By ln C.
    pub by_centre: f64,
    /// By ln width.
    pub by_width: f64,
}

impl Shape {
    /// The shape that Python has this code for.
    #[must_use]
    pub fn of_code(code: i64) -> Option<Self> {
        [Self::Uniform, Self::Step, Self::Smeared].get(usize::try_from(code).ok()?).copied()
    }

    /// Misses at `distance` = ln U - ln C; `per_width` is 1 / width, the logistic scale in ln U.
    #[must_use]
    pub fn miss(self, distance: f64, per_width: f64) -> Miss {
        match self {
            Self::Uniform if distance > 0.0 => {
                let held = (-distance).exp();
                Miss { ratio: 1.0 - held, by_centre: -held, by_width: 0.0 }
            }
            Self::Step if distance > 0.0 => Miss { ratio: 1.0, by_centre: 0.0, by_width: 0.0 },
            Self::Uniform | Self::Step => Miss { ratio: 0.0, by_centre: 0.0, by_width: 0.0 },
            Self::Smeared => {
                let scaled = distance * per_width;
                let ratio = 1.0 / (1.0 + (-scaled).exp());
                let steepness = ratio * (1.0 - ratio);
                let (by_centre, by_width) = (-steepness * per_width, -steepness * scaled);
                Miss { ratio, by_centre, by_width }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_of_every_shape_at_half_once_and_twice_a_cache() {
        let ratios = |shape: Shape| [0.5f64, 1.0, 2.0].map(|u| shape.miss(u.ln(), 2.0).ratio);
        assert_eq!(ratios(Shape::Uniform), [0.0, 0.0, 0.5]);
        assert_eq!(ratios(Shape::Step), [0.0, 0.0, 1.0]);
        // A width of a half: 1 / (1 + V^-2).
        for (found, wanted) in ratios(Shape::Smeared).into_iter().zip([0.2, 0.5, 0.8]) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
    }

    #[test]
    fn misses_far_from_a_boundary_are_none_or_all() {
        for shape in [Shape::Uniform, Shape::Step, Shape::Smeared] {
            assert_eq!(
                shape.miss(-800.0, 50.0),
                Miss { ratio: 0.0, by_centre: -0.0, by_width: 0.0 }
            );
            assert_eq!(
                shape.miss(800.0, 50.0),
                Miss { ratio: 1.0, by_centre: -0.0, by_width: -0.0 }
            );
        }
    }

    #[test]
    fn a_cache_that_holds_all_to_the_last_byte_would_miss_no_more_if_it_were_smaller() {
        let none = Miss { ratio: 0.0, by_centre: 0.0, by_width: 0.0 };
        assert_eq!([Shape::Uniform, Shape::Step].map(|shape| shape.miss(0.0, 2.0)), [none; 2]);
    }

    #[test]
    fn only_three_codes_are_shapes() {
        let found = [-1, 0, 1, 2, 3].map(Shape::of_code);
        let [uniform, step, smeared] = [Shape::Uniform, Shape::Step, Shape::Smeared].map(Some);
        assert_eq!(found, [None, uniform, step, smeared, None]);
    }
}
