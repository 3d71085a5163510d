//! Request sizes: the normal distribution of CV 1 of CP94 §5, cut at the smallest transfer.
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

use leadline_base::normal::{density, upper_tail};
use leadline_wire::job::workload::SizeDist;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Above this scale the sums over granules are replaced by integrals; the error is below 1e-4.
const SMOOTH_SCALE: f64 = 64.0;

/// Below this scale more than half of the draws would be thrown away, so a table is used.
const TABLE_SCALE: f64 = 0.5;

/// Granules beyond which, at `TABLE_SCALE`, less than 1e-30 of the distribution lies.
const TABLE_LEN: usize = 8;

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
    Normal { scale: f64 },
    Table { below: [f64; TABLE_LEN] },
}

impl Sizes {
    /// Sizes in granules with the mean `mean` granules, none above `most` granules.
    #[must_use]
    pub fn new(dist: SizeDist, mean: f64, most: u64) -> Self {
        let most_real = most as f64;
        if dist == SizeDist::Fixed || mean >= most_real || mean <= 1.0 {
            let length = (mean.round().max(1.0) as u64).min(most);
            return Self { law: Law::Always(length), most, mean: length as f64, cut_cv: 0.0 };
        }
        let scale = solve(mean, most_real);
        let (first, second) = moments(scale, most_real);
        let cut_cv = (second - first * first).max(0.0).sqrt() / first;
        let law = if scale < TABLE_SCALE {
            Law::Table { below: table(scale) }
        } else {
            Law::Normal { scale }
        };
        Self { law, most, mean: first, cut_cv }
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
            Law::Table { below } => {
                let point = super::stream::unit_interval(random);
                let index = below.iter().take_while(|limit| **limit <= point).count();
                (index as u64 + 1).min(self.most)
            }
        }
    }

    /// Coefficient of variation of the sizes by derivation; below 1, see the module's text.
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
        match &self.law {
            Law::Always(length) => *length,
            Law::Normal { scale } => ((5.5 * scale).ceil() as u64).min(self.most),
            Law::Table { .. } => (TABLE_LEN as u64).min(self.most),
        }
    }
}

/// The scale `s` whose distribution has the mean asked for; the mean grows with `s`.
fn solve(mean: f64, most: f64) -> f64 {
    let (mut low, mut high) = (1e-3_f64.ln(), (most * 1e9).ln());
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break; // no number lies between them
        }
        if moments(middle.exp(), most).0 < mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.exp()
}

/// First and second moment, in granules and granules squared.
fn moments(scale: f64, most: f64) -> (f64, f64) {
    if scale > SMOOTH_SCALE { smooth_moments(scale, most) } else { summed_moments(scale, most) }
}

/// `E[n] = Σ P(n ≥ k)` and `E[n²] = Σ (2k − 1) P(n ≥ k)` over k from 1 to `most`.
fn summed_moments(scale: f64, most: f64) -> (f64, f64) {
    let kept = upper_tail((0.5 - scale) / scale);
    if kept <= 0.0 {
        return (1.0, 1.0);
    }
    let (mut first, mut second) = (0.0, 0.0);
    let mut k = 1.0;
    while k <= most {
        let reaches = upper_tail((k - 0.5 - scale) / scale) / kept;
        first += reaches;
        second += (2.0 * k - 1.0) * reaches;
        if reaches < 1e-14 {
            break;
        }
        k += 1.0;
    }
    (first, second)
}

/// The same for a continuous size: integrals of `x` and `x²` over the normal from 1/2 to `most`,
/// plus the cap's share.
fn smooth_moments(scale: f64, most: f64) -> (f64, f64) {
    let low = (0.5 - scale) / scale;
    let high = (most - scale) / scale;
    let above = upper_tail(high);
    let kept = upper_tail(low);
    let inside = kept - above;
    let unit = density(low) - density(high);
    let square = inside + low * density(low) - high * density(high);
    let first = scale * (inside + unit);
    let second = scale * scale * (inside + 2.0 * unit + square);
    ((first + most * above) / kept, (second + most * most * above) / kept)
}

/// Cumulative probabilities of 1, 2, … granules.
fn table(scale: f64) -> [f64; TABLE_LEN] {
    let kept = upper_tail((0.5 - scale) / scale);
    let mut below = [1.0; TABLE_LEN];
    if kept > 0.0 {
        for (index, limit) in below.iter_mut().enumerate() {
            *limit = 1.0 - upper_tail((index as f64 + 1.5 - scale) / scale) / kept;
        }
    }
    below[TABLE_LEN - 1] = 1.0;
    below
}
