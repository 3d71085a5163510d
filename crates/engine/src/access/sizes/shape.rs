//! Shapes of sizes, each with a scale that decides the mean.

use std::f64::consts::LN_2;

use leadline_base::normal::{density, upper_tail};

/// Standard deviation of the logarithm of log-normal sizes: `CV² = exp(σ²) − 1 = 1`.
pub(super) const LOG_SD: f64 = 0.832_554_611_157_697_8;

/// Above these scales the sums over granules are replaced by integrals; the error is below 1e-4.
const SMOOTH_SCALE: f64 = 64.0;
const SMOOTH_SCALE_LOGNORMAL: f64 = 16.0;

/// Granules beyond which, where tables are used, less than 1e-30 of the normal distribution lies,
/// and less than 1e-9 of the log-normal one.
const TABLE_LEN: usize = 8;
const TABLE_LEN_LOGNORMAL: usize = 64;

/// Share of requests that a sum may leave out.
const LEFT_OUT: f64 = 1e-14;

/// A distribution up to its scale, in granules.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// Mean and standard deviation are the scale, before the cut.
    Normal,
    /// The mean is the scale, before the rounding.
    Exponential,
    /// Mean and standard deviation are the scale, before the cut.
    Lognormal,
}

impl Shape {
    /// The scale whose sizes, capped at `most` granules, have the mean asked for; the mean grows
    /// with the scale.
    pub fn solve(self, mean: f64, most: f64) -> f64 {
        let (mut low, mut high) = (1e-3_f64.ln(), (most * 1e9).ln());
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break; // no number lies between them
            }
            if self.moments(middle.exp(), most).0 < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.exp()
    }

    /// First and second moment, in granules and granules squared.
    pub fn moments(self, scale: f64, most: f64) -> (f64, f64) {
        match self {
            Self::Normal if scale > SMOOTH_SCALE => normal_moments(scale, most),
            Self::Lognormal if scale > SMOOTH_SCALE_LOGNORMAL => lognormal_moments(scale, most),
            Self::Exponential if scale > SMOOTH_SCALE => exponential_moments(scale, most),
            _ => self.summed_moments(scale, most),
        }
    }

    /// Cumulative probabilities of 1, 2, … granules.
    pub fn table(self, scale: f64) -> Vec<f64> {
        let length = if self == Self::Normal { TABLE_LEN } else { TABLE_LEN_LOGNORMAL };
        let mut below: Vec<f64> =
            (2..=length + 1).map(|k| 1.0 - self.reaches(scale, k as f64)).collect();
        below[length - 1] = 1.0;
        below
    }

    /// Median of log-normal sizes before the cut.
    pub fn median(scale: f64) -> f64 {
        scale * (-0.5 * LN_2).exp()
    }

    /// `E[n] = Σ P(n ≥ k)` and `E[n²] = Σ (2k − 1) P(n ≥ k)` over k from 1 to `most`.
    fn summed_moments(self, scale: f64, most: f64) -> (f64, f64) {
        let (mut first, mut second) = (0.0, 0.0);
        let mut k = 1.0;
        while k <= most {
            let reaches = self.reaches(scale, k);
            first += reaches;
            second += (2.0 * k - 1.0) * reaches;
            if reaches < LEFT_OUT {
                break;
            }
            k += 1.0;
        }
        (first, second)
    }

    /// Probability of `k` granules or more, without a cap.
    fn reaches(self, scale: f64, k: f64) -> f64 {
        if k <= 1.0 {
            return 1.0;
        }
        let kept = match self {
            Self::Exponential => return (-(k - 1.0) / scale).exp(),
            Self::Normal | Self::Lognormal => self.above(scale, 0.5),
        };
        if kept <= 0.0 { 0.0 } else { self.above(scale, k - 0.5) / kept }
    }

    /// Probability of a size above `x` before the cut.
    fn above(self, scale: f64, x: f64) -> f64 {
        match self {
            Self::Normal => upper_tail((x - scale) / scale),
            Self::Exponential => (-x / scale).exp(),
            Self::Lognormal => upper_tail(log_deviations(scale, x)),
        }
    }
}

/// How many standard deviations of the logarithm `x` lies above the median.
fn log_deviations(scale: f64, x: f64) -> f64 {
    (x / Shape::median(scale)).ln() / LOG_SD
}

/// Moments of a continuous size: integrals of `x` and `x²` over the normal from 1/2 to `most`, plus
/// the cap's share.
fn normal_moments(scale: f64, most: f64) -> (f64, f64) {
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

/// The same of the log-normal: `E[xᵖ; x > a] = scaleᵖ exp(p (p − 1) σ²/2) Q(d(a) − p σ)`.
fn lognormal_moments(scale: f64, most: f64) -> (f64, f64) {
    let (low, high) = (log_deviations(scale, 0.5), log_deviations(scale, most));
    let (kept, above) = (upper_tail(low), upper_tail(high));
    let part = |power: f64| {
        let inside = upper_tail(low - power * LOG_SD) - upper_tail(high - power * LOG_SD);
        scale.powf(power) * (0.5 * power * (power - 1.0) * LN_2).exp() * inside
    };
    ((part(1.0) + most * above) / kept, (part(2.0) + most * most * above) / kept)
}

/// The mean exactly, from the geometric series; the square as of `x` and half a granule.
fn exponential_moments(scale: f64, most: f64) -> (f64, f64) {
    let ends = most / scale;
    let first = (-ends).exp_m1() / (-scale.recip()).exp_m1();
    let (mean, left) = (-scale * (-ends).exp_m1(), (-ends).exp());
    let square = 2.0 * scale * scale * (1.0 - left * (1.0 + ends));
    (first, square + mean)
}
