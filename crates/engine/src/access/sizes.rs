//! Request sizes: the normal distribution of CV 1 of CP94 §5, cut at the smallest transfer; and
//! others whose CV is 1 after the cut too.
//!
//! Sizes are whole numbers of *granules* (512 bytes buffered, the logical block when direct).
//! With `x` normal of mean `s` and standard deviation `s` (CV 1), redrawn while it would round to
//! nothing (`x < 1/2`), the size is `min(round(x), most)` granules, `most` being what fits
//! into `unique_bytes`. Its mean grows from 1 to `most` with `s`, so for every `size_mean` between
//! one granule and `unique_bytes` there is exactly one `s` that makes the mean *after* the cut,
//! the rounding and the cap equal to `size_mean`; it is found by bisection.
//!
//! **The CV is below 1, by derivation.** Cutting a normal of CV 1 at 0 leaves the part above one
//! standard deviation below its mean. With `λ = φ(1)/Φ(1) = 0.28760` its mean is `s (1 + λ)` and
//! its variance `s² (1 − λ − λ²)`, so its CV is `sqrt(1 − λ − λ²)/(1 + λ) = 0.6163` whenever
//! `size_mean` is many granules and far below `unique_bytes`. Near one granule, and near
//! `unique_bytes`, it is smaller, and 0 at either end; [`Sizes::cut_cv`] gives the exact value in
//! every case.
//!
//! **When `unique_bytes` is small.** A draw longer than `unique_bytes` becomes `unique_bytes` long
//! and the solution makes up for it, so the mean still comes out right until `size_mean` reaches
//! `unique_bytes`; from there on every request is `unique_bytes` long and the mean is
//! `unique_bytes`.
//!
//! **Sizes with a CV of 1.** Exponential sizes are rounded up to whole granules: `n − 1` is
//! geometric, the scale's mean comes out exactly, and the CV is `sqrt(1 − 1/mean)`, 1 but for the
//! granule. Log-normal ones have `σ² = ln 2` and are redrawn, rounded and capped as normal ones
//! are; the cut takes next to nothing of them. Both are solved for the mean in the same way, and
//! both become narrower near one granule and near `unique_bytes`, as the normal ones do.
//!
//! **A histogram** has the sizes that it says and no others.

use leadline_base::error::EngineError;
use leadline_wire::job::streams::SizeShare;
use leadline_wire::job::workload::SizeDist;
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::access::shares::{Histogram, check_granules};

mod shape;

use shape::{LOG_SD, Shape};

/// Below this scale more than half of the draws would be thrown away, so a table is used.
const TABLE_SCALE: f64 = 0.5;

/// A size distribution, ready to draw from.
#[derive(Clone, Debug)]
pub struct Sizes {
    law: Law,
    most: u64,
    mean: f64,
    cut_cv: f64,
}

#[derive(Clone, Debug)]
enum Law {
    Always(u64),
    Normal {
        scale: f64,
    },
    Exponential {
        scale: f64,
    },
    Lognormal {
        median: f64,
    },
    /// Cumulative probabilities of 1, 2, … granules, the last 1.
    Table {
        below: Vec<f64>,
    },
    Histogram(Histogram),
}

impl Sizes {
    /// Sizes in granules with the mean `mean` granules, none above `most` granules. A histogram has
    /// sizes of its own, see [`Sizes::histogram`]; without them all are alike.
    #[must_use]
    pub fn new(dist: &SizeDist, mean: f64, most: u64) -> Self {
        let most_real = most as f64;
        let shape = match dist {
            SizeDist::Normal => Some(Shape::Normal),
            SizeDist::Exponential => Some(Shape::Exponential),
            SizeDist::Lognormal => Some(Shape::Lognormal),
            SizeDist::Fixed | SizeDist::Histogram(_) => None,
        };
        match shape {
            Some(shape) if mean > 1.0 && mean < most_real => Self::of_shape(shape, mean, most),
            _ => {
                let length = (mean.round().max(1.0) as u64).min(most);
                Self { law: Law::Always(length), most, mean: length as f64, cut_cv: 0.0 }
            }
        }
    }

    fn of_shape(shape: Shape, mean: f64, most: u64) -> Self {
        let scale = shape.solve(mean, most as f64);
        let (first, second) = shape.moments(scale, most as f64);
        let cut_cv = (second - first * first).max(0.0).sqrt() / first;
        let law = match shape {
            Shape::Exponential => Law::Exponential { scale },
            Shape::Normal | Shape::Lognormal if scale < TABLE_SCALE => {
                Law::Table { below: shape.table(scale) }
            }
            Shape::Normal => Law::Normal { scale },
            Shape::Lognormal => Law::Lognormal { median: Shape::median(scale) },
        };
        Self { law, most, mean: first, cut_cv }
    }

    /// These sizes and no others.
    ///
    /// # Errors
    /// `BadJob` when one is no multiple of the granule, or longer than all data in granules.
    pub fn histogram(
        sizes: &[SizeShare],
        granule_bytes: u64,
        most: u64,
    ) -> Result<Self, EngineError> {
        check_granules("workload.size_dist", sizes, granule_bytes)?;
        let drawn = Histogram::new(sizes, granule_bytes);
        if drawn.longest() > most {
            return Err(EngineError::bad_job(format!(
                "workload.size_dist has a size of {}; the data have room for {}, in whole blocks \
                 of {granule_bytes} bytes",
                drawn.longest() * granule_bytes,
                most * granule_bytes
            )));
        }
        let total: f64 = sizes.iter().map(|size| size.weight).sum();
        let moment = |power: i32| -> f64 {
            let granules =
                |size: &SizeShare| (size.bytes as f64 / granule_bytes as f64).powi(power);
            sizes.iter().map(|size| granules(size) * size.weight / total).sum()
        };
        let (mean, second) = (moment(1), moment(2));
        let cut_cv = (second - mean * mean).max(0.0).sqrt() / mean;
        Ok(Self { law: Law::Histogram(drawn), most, mean, cut_cv })
    }

    /// Draws a size in granules, 1 to `most`.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        match &self.law {
            Law::Always(length) => *length,
            Law::Normal { scale } => loop {
                let unit: f64 = StandardNormal.sample(random);
                let size = scale * (1.0 + unit);
                if size >= 0.5 {
                    return ((size + 0.5) as u64).min(self.most);
                }
            },
            Law::Exponential { scale } => {
                let unit: f64 = Exp1.sample(random);
                ((scale * unit) as u64).saturating_add(1).min(self.most)
            }
            Law::Lognormal { median } => loop {
                let unit: f64 = StandardNormal.sample(random);
                let size = median * (LOG_SD * unit).exp();
                if size >= 0.5 {
                    return ((size + 0.5) as u64).min(self.most);
                }
            },
            Law::Table { below } => {
                let point = super::stream::unit_interval(random);
                let index = below.iter().take_while(|limit| **limit <= point).count();
                (index as u64 + 1).min(self.most)
            }
            Law::Histogram(histogram) => histogram.draw(random),
        }
    }

    /// Coefficient of variation of the sizes by derivation; see the module's text.
    #[must_use]
    pub fn cut_cv(&self) -> f64 {
        self.cut_cv
    }

    /// Mean size in granules by derivation.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// A size in granules that one request in more than a hundred thousand exceeds.
    #[must_use]
    pub fn usual_most(&self) -> u64 {
        let usual = match &self.law {
            Law::Always(length) => *length,
            Law::Normal { scale } => (5.5 * scale).ceil() as u64,
            Law::Exponential { scale } => (11.6 * scale).ceil() as u64 + 1,
            Law::Lognormal { median } => (median * (4.4 * LOG_SD).exp()).ceil() as u64,
            Law::Table { below } => below.len() as u64,
            Law::Histogram(histogram) => histogram.longest(),
        };
        usual.min(self.most)
    }
}
