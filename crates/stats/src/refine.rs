//! Many fits, each improved by Levenberg-Marquardt with Huber weights, within what a hierarchy
//! can be (LITERATURE §2.3).

use std::mem;

use crate::SLOPE_MAX;
use crate::least_squares::Normal;
use crate::model::{Hierarchy, LEVELS_REFUSED, parameters};
use crate::readings::{Fits, Readings};
use crate::shape::Shape;

/// Logistic scale in ln U; 10% to 90% of the fall takes a factor of 1.1 to 9 in U.
const WIDTH_RANGE: (f64, f64) = (0.02, 0.5);
/// Bounds of ln(d_k / a); the lower one is a level that nobody could see.
const LN_DELTA_RANGE: (f64, f64) = (-6.0, 12.0);
/// How far ln a may lie beyond what was read.
const LN_TIME_ROOM: f64 = 3.0;

/// No parameter takes a longer step.
const STEP_MAX: f64 = 1.0;
const DAMPING_START: f64 = 1e-2;
const DAMPING_MAX: f64 = 1e6;
/// Of the damping, when a step was better.
const DAMPING_FALL: f64 = 0.2;
/// Of the damping, when it was not.
const DAMPING_RISE: f64 = 6.0;
/// Added to the diagonal: what moves nothing stays where it is.
const RIDGE: f64 = 1e-9;
/// A fit whose step moves no parameter further has ended: in four simulated surveys no parameter
/// ended 2e-7 from where all iterations take it, and a seventh of the time was saved; at 1e-5 no
/// more was saved, and a boundary moved by 0.8%.
const SETTLED_STEP: f64 = 1e-7;
/// ... if it did not lower the cost by more of it than this.
const SETTLED_FALL_FRAC: f64 = 1e-10;

/// Where the parameters of fits of these readings may lie.
pub(crate) struct Bounds {
    ln_a: (f64, f64),
    centre: (f64, f64),
    ln_width: (f64, f64),
}

impl Bounds {
    pub(crate) fn of(data: &Readings) -> Self {
        let low = data.y.iter().copied().fold(f64::INFINITY, f64::min);
        let high = data.y.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self {
            ln_a: (low - LN_TIME_ROOM, high + LN_TIME_ROOM),
            centre: (data.centre_low, data.centre_high),
            ln_width: (WIDTH_RANGE.0.ln(), WIDTH_RANGE.1.ln()),
        }
    }

    /// Clips parameters to what a hierarchy can be.
    pub(crate) fn hold(&self, theta: &mut [f64]) {
        let levels = theta.len() / 3 - 1;
        clip(&mut theta[..1], self.ln_a);
        clip(&mut theta[1..3], (-SLOPE_MAX, SLOPE_MAX));
        let ln_delta = (theta[0] + LN_DELTA_RANGE.0, theta[0] + LN_DELTA_RANGE.1);
        clip(&mut theta[3..3 + levels], ln_delta);
        clip(&mut theta[3 + levels..3 + 2 * levels], self.centre);
        clip(&mut theta[3 + 2 * levels..], self.ln_width);
    }
}

fn clip(values: &mut [f64], (low, high): (f64, f64)) {
    values.iter_mut().for_each(|value| *value = value.max(low).min(high));
}

/// Improves fits from where they begin, `fits.theta`; their costs are set, whatever they were.
///
/// Starts matter: the uniform family has a kink at each reading, so callers pass several. A fit
/// ends early when another iteration could not change anything that matters.
///
/// # Errors
/// A number of levels that no hierarchy has.
pub fn refine(
    data: &Readings,
    levels: usize,
    fits: &mut Fits,
    iterations: usize,
) -> Result<(), &'static str> {
    match levels {
        1 => refine_all::<1, { parameters(1) }>(data, fits, iterations),
        2 => refine_all::<2, { parameters(2) }>(data, fits, iterations),
        3 => refine_all::<3, { parameters(3) }>(data, fits, iterations),
        _ => return Err(LEVELS_REFUSED),
    }
    Ok(())
}

fn refine_all<const L: usize, const P: usize>(data: &Readings, fits: &mut Fits, iterations: usize) {
    let bounds = Bounds::of(data);
    let (mut now, mut next) = (Curve::new(data), Curve::new(data));
    fits.cost.clear();
    let each = fits.shapes.as_chunks().0.iter().zip(fits.theta.as_chunks_mut().0);
    for (fit, (shapes, theta)) in each.enumerate() {
        let target = Target::<L> { data, y: data.y_of(fit), bounds: &bounds, shapes };
        fits.cost.push(target.climb::<P>(theta, iterations, &mut now, &mut next));
    }
}

/// A fit's curve: ln time at every reading, and its derivatives.
struct Curve<const P: usize> {
    fitted: Vec<f64>,
    slopes: Vec<[f64; P]>,
}

impl<const P: usize> Curve<P> {
    fn new(data: &Readings) -> Self {
        Self { fitted: vec![0.0; data.x.len()], slopes: vec![[0.0; P]; data.x.len()] }
    }
}

/// What one fit is to come close to, and within which limits.
struct Target<'a, const L: usize> {
    data: &'a Readings,
    y: &'a [f64],
    bounds: &'a Bounds,
    shapes: &'a [Shape; L],
}

impl<const L: usize> Target<'_, L> {
    /// Improves a fit and returns what it costs then.
    fn climb<const P: usize>(
        &self,
        theta: &mut [f64; P],
        iterations: usize,
        now: &mut Curve<P>,
        next: &mut Curve<P>,
    ) -> f64 {
        self.bounds.hold(theta);
        let mut cost = self.evaluate(theta, now);
        let mut damping = DAMPING_START;
        let mut normal = Normal::EMPTY;
        let mut is_better = true;
        for _ in 0..iterations {
            if is_better {
                normal = self.linearised(theta, now);
            }
            is_better = false;
            if let Some(trial) = self.step(theta, normal.clone(), damping) {
                let trial_cost = self.evaluate(&trial, next);
                is_better = trial_cost < cost;
                let is_last = has_settled(furthest(theta, &trial), cost, trial_cost);
                if is_better {
                    (*theta, cost) = (trial, trial_cost);
                    mem::swap(now, next);
                }
                if is_last {
                    break;
                }
            }
            let raised = (damping * DAMPING_RISE).min(DAMPING_MAX);
            damping = if is_better { damping * DAMPING_FALL } else { raised };
        }
        cost
    }

    /// Draws the curve of a fit and returns what it costs.
    fn evaluate<const P: usize>(&self, theta: &[f64; P], curve: &mut Curve<P>) -> f64 {
        let hierarchy = Hierarchy::new(self.shapes, theta);
        let drawn = curve.fitted.iter_mut().zip(&mut curve.slopes);
        for (x, (fitted, slopes)) in self.data.x.iter().zip(drawn) {
            *fitted = hierarchy.ln_time(*x, x - self.data.middle, slopes);
        }
        self.data.cost(self.y, &curve.fitted, theta)
    }

    /// Sums up the normal equations of a fit.
    fn linearised<const P: usize>(&self, theta: &[f64; P], curve: &Curve<P>) -> Normal<P> {
        let mut normal = Normal::EMPTY;
        let readings = self.y.iter().zip(&self.data.weight);
        for ((y, weight), (fitted, slopes)) in readings.zip(curve.fitted.iter().zip(&curve.slopes))
        {
            let residual = y - fitted;
            let trust = (self.data.huber_scale / residual.abs().max(1e-300)).min(1.0);
            normal.add(slopes, weight * trust, residual);
        }
        for (slope, penalty) in [1, 2].into_iter().zip(self.data.slope_penalty) {
            normal.matrix[slope][slope] += penalty;
            normal.right[slope] -= penalty * theta[slope];
        }
        normal
    }

    /// Where the damped step from `theta` leads; nowhere when there is none.
    fn step<const P: usize>(
        &self,
        theta: &[f64; P],
        mut normal: Normal<P>,
        damping: f64,
    ) -> Option<[f64; P]> {
        for sum in normal.diagonal() {
            *sum = *sum * (1.0 + damping) + RIDGE;
        }
        let mut trial = normal.solve()?;
        clip(&mut trial, (-STEP_MAX, STEP_MAX));
        trial.iter_mut().zip(theta).for_each(|(value, from)| *value += from);
        self.bounds.hold(&mut trial);
        Some(trial)
    }
}

/// Whether steps after one that moved so far, between these costs, could change what matters.
fn has_settled(furthest: f64, before: f64, after: f64) -> bool {
    furthest < SETTLED_STEP && before - after < SETTLED_FALL_FRAC * before
}

/// The largest change of a parameter.
fn furthest(from: &[f64], to: &[f64]) -> f64 {
    from.iter().zip(to).map(|(from, to)| (from - to).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
