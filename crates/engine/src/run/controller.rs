//! The one decision maker of a run, real or simulated: slices of time go in, "go on", "measure" or
//! "stop" comes out.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::Slice;
use leadline_wire::job::measure::Limits;

use crate::run::slices::joined;
use crate::run::steady::{is_steady, judge};
use crate::run::stop::StopRule;

/// Most slices of a phase that are kept. When there are as many, neighbours are joined two by two
/// and later ones are to be twice as long: memory does not grow with the length of a run.
pub const SLICES_KEPT_MAX: usize = 16_384;

/// Longest slice of a run that ends after so many requests: it goes on to the end of one.
const COUNTED_SLICE_S: f64 = 0.002;

/// What to do after a slice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Keep going.
    Continue,
    /// The warm-up is over: open the measured window.
    Measure,
    /// The window is over.
    Stop,
}

/// Follows one run from the first slice of its warm-up to the last of its window.
#[derive(Debug)]
pub struct Controller {
    limits: Limits,
    warm_up: Vec<Slice>,
    window: Vec<Slice>,
    warm_up_spent_s: f64,
    window_s: f64,
    window_operations: u64,
    measuring: bool,
    steady: Option<bool>,
    rule: StopRule,
    accurate: bool,
    next_look: usize,
    joins: u32,
}

impl Controller {
    /// `warm_up_spent_s` is the part of the warm-up's time already used before the first slice;
    /// `measure_s_max` of the limits must already be cut to what is left of the job's time.
    #[must_use]
    pub fn new(limits: Limits, warm_up_spent_s: f64) -> Self {
        Self {
            limits,
            warm_up: Vec::new(),
            window: Vec::new(),
            warm_up_spent_s,
            window_s: 0.0,
            window_operations: 0,
            measuring: false,
            steady: None,
            rule: StopRule::new(limits.accuracy),
            accurate: false,
            next_look: 0,
            joins: 0,
        }
    }

    /// Length of one slice in seconds: a 150th of the shorter phase, 1 to 50 ms.
    #[must_use]
    pub fn slice_s(limits: &Limits) -> f64 {
        let phase_s = if limits.warm_up_s_max > 0.0 {
            limits.warm_up_s_max.min(limits.measure_s_max)
        } else {
            limits.measure_s_max
        };
        let most_s = if limits.operations_max.is_some() { COUNTED_SLICE_S } else { 0.05 };
        (phase_s / 150.0).clamp(0.001, most_s)
    }

    /// Times as long as at its beginning that a phase's next slice should be.
    #[must_use]
    pub fn coarseness(&self) -> u64 {
        1 << self.joins.min(32)
    }

    /// Takes the next slice, in order; its `start_s` is set here.
    pub fn push(&mut self, mut slice: Slice) -> Decision {
        if self.measuring {
            slice.start_s = self.window_s;
            self.window_s += slice.seconds;
            self.window_operations += slice.operations;
            self.window.push(slice);
            if join_full(&mut self.window) {
                self.joins += 1;
                self.rule.slices_joined();
            }
            return self.judge_window();
        }
        slice.start_s = self.warm_up_spent_s;
        self.warm_up_spent_s += slice.seconds;
        self.warm_up.push(slice);
        if join_full(&mut self.warm_up) {
            self.joins += 1;
            self.next_look /= 2;
        }
        self.judge_warm_up()
    }

    fn begin_window(&mut self) {
        self.measuring = true;
        self.joins = 0;
    }

    fn judge_warm_up(&mut self) -> Decision {
        if self.warm_up.len() >= self.next_look {
            self.next_look = self.warm_up.len() + (self.warm_up.len() / 20).max(5);
            self.steady = is_steady(&self.warm_up).then_some(true);
        }
        if self.warm_up_spent_s >= self.limits.warm_up_s_max {
            self.steady = self.steady.or_else(|| judge(&self.warm_up));
        } else if self.steady.is_none() || self.warm_up_spent_s < self.limits.warm_up_s_min {
            return Decision::Continue;
        }
        self.begin_window();
        Decision::Measure
    }

    fn judge_window(&mut self) -> Decision {
        if self.window_s >= self.limits.measure_s_min {
            self.accurate = self.rule.reached(&self.window);
        }
        if self.accurate || self.counted_out() || self.window_s >= self.limits.measure_s_max {
            return Decision::Stop;
        }
        Decision::Continue
    }

    /// Whether there were as many requests as were asked for.
    #[must_use]
    pub fn counted_out(&self) -> bool {
        self.limits.operations_max.is_some_and(|most| self.window_operations >= most)
    }

    /// Requests of the window.
    #[must_use]
    pub fn window_operations(&self) -> u64 {
        self.window_operations
    }

    /// Changes the longest window, when time used elsewhere leaves less.
    pub fn cut_window(&mut self, measure_s_max: f64) {
        self.limits.measure_s_max = self.limits.measure_s_max.min(measure_s_max);
    }

    /// Opens the window without a warm-up judgement (its time is up elsewhere).
    pub fn force_measure(&mut self) {
        if !self.measuring {
            self.begin_window();
        }
    }

    /// Whether the rate was steady at the end of the warm-up; none where that cannot be said.
    #[must_use]
    pub fn steady(&self) -> Option<bool> {
        self.steady
    }

    /// Whether the CI target was reached.
    #[must_use]
    pub fn accurate(&self) -> bool {
        self.accurate
    }

    /// Seconds of warm-up.
    #[must_use]
    pub fn warm_up_s(&self) -> f64 {
        self.warm_up_spent_s
    }

    /// Seconds measured so far.
    #[must_use]
    pub fn window_s(&self) -> f64 {
        self.window_s
    }

    /// Share of the phase's longest time that is over, 0 to 1.
    #[must_use]
    pub fn done_frac(&self) -> f64 {
        let (spent, most) = if self.measuring {
            (self.window_s, self.limits.measure_s_max)
        } else {
            (self.warm_up_spent_s, self.limits.warm_up_s_max)
        };
        if most > 0.0 { (spent / most).min(1.0) } else { 1.0 }
    }

    /// Slices of the warm-up.
    #[must_use]
    pub fn warm_up(&self) -> &[Slice] {
        &self.warm_up
    }

    /// Slices of the measured window.
    #[must_use]
    pub fn window(&self) -> &[Slice] {
        &self.window
    }
}

/// Joins neighbours when there are as many slices as are kept; whether it did.
fn join_full(slices: &mut Vec<Slice>) -> bool {
    if slices.len() < SLICES_KEPT_MAX {
        return false;
    }
    let half: Vec<Slice> = slices.chunks(2).filter_map(joined).collect();
    slices.clear(); // its room is used again
    slices.extend(half);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(warm_up_s_max: f64, measure_s_max: f64) -> Limits {
        Limits {
            warm_up_s_min: 0.0,
            warm_up_s_max,
            measure_s_min: measure_s_max,
            measure_s_max,
            total_s_max: 1e9,
            accuracy: 1e-9,
            operations_max: None,
        }
    }

    /// Pushes slices as long as wanted until the phase ends; how many there were.
    fn follow(controller: &mut Controller, wanted: Decision, rate: impl Fn(u64) -> u64) -> u64 {
        let mut pushed = 0;
        loop {
            let seconds = controller.coarseness() as f64;
            let bytes = rate(pushed) * controller.coarseness();
            pushed += 1;
            if controller.push(Slice { start_s: 0.0, seconds, operations: 1, bytes }) == wanted {
                return pushed;
            }
        }
    }

    #[test]
    fn neither_slices_nor_memory_grow_with_the_length_of_a_run() {
        let (warm_up_s, window_s) = (1e7, 1e8);
        let mut controller = Controller::new(limits(warm_up_s, window_s), 0.0);
        // A climb without an end is never steady.
        let warm = follow(&mut controller, Decision::Measure, |number| 1 + number * number);
        assert_eq!(controller.steady(), Some(false));
        assert!(warm < 10 * SLICES_KEPT_MAX as u64, "{warm}");
        assert!(controller.warm_up().len() < SLICES_KEPT_MAX);
        assert_eq!(controller.coarseness(), 1, "the window begins as finely as it would have");
        let measured = follow(&mut controller, Decision::Stop, |number| 100 + number % 7);
        assert!(measured < 20 * SLICES_KEPT_MAX as u64, "{measured}");
        let window = controller.window();
        assert!(window.len() < SLICES_KEPT_MAX);
        assert!((controller.window_s() / window_s - 1.0).abs() < 0.01);
        assert_eq!(window.iter().map(|slice| slice.operations).sum::<u64>(), measured);
        let gaps = window.windows(2).map(|two| two[0].start_s + two[0].seconds - two[1].start_s);
        assert!(gaps.fold(0.0, |most: f64, gap| most.max(gap.abs())) < 1e-3, "none is lost");
    }

    #[test]
    fn a_phase_that_fits_is_kept_slice_by_slice() {
        let slices = SLICES_KEPT_MAX - 1;
        let mut controller = Controller::new(limits(0.0, slices as f64), 0.0);
        controller.force_measure();
        assert_eq!(follow(&mut controller, Decision::Stop, |number| number % 3), slices as u64);
        assert_eq!((controller.window().len(), controller.coarseness()), (slices, 1));
    }

    #[test]
    fn a_counted_run_ends_with_the_slice_of_its_last_request() {
        let counted = Limits { operations_max: Some(25), ..limits(0.0, 60.0) };
        assert!(Controller::slice_s(&counted) <= COUNTED_SLICE_S);
        let mut controller = Controller::new(counted, 0.0);
        controller.force_measure();
        let slice = Slice { start_s: 0.0, seconds: 0.002, operations: 10, bytes: 40_960 };
        assert_eq!(controller.push(slice), Decision::Continue);
        assert_eq!(controller.push(slice), Decision::Continue);
        assert!(!controller.counted_out());
        assert_eq!(controller.push(slice), Decision::Stop);
        assert!(controller.counted_out());
        assert_eq!(controller.window_operations(), 30);
    }
}
