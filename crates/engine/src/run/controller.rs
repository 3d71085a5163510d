//! The one decision maker of a run, real or simulated: slices of time go in, "go on", "measure" or
//! "stop" comes out.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::Slice;
use leadline_wire::job::measure::Limits;

use crate::run::steady::is_steady;
use crate::run::stop::StopRule;

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
    measuring: bool,
    steady: bool,
    rule: StopRule,
    accurate: bool,
    next_look: usize,
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
            measuring: false,
            steady: false,
            rule: StopRule::new(limits.accuracy),
            accurate: false,
            next_look: 0,
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
        (phase_s / 150.0).clamp(0.001, 0.05)
    }

    /// Takes the next slice, in order; its `start_s` is set here.
    pub fn push(&mut self, mut slice: Slice) -> Decision {
        if self.measuring {
            slice.start_s = self.window_s;
            self.window_s += slice.seconds;
            self.window.push(slice);
            return self.judge_window();
        }
        slice.start_s = self.warm_up_spent_s;
        self.warm_up_spent_s += slice.seconds;
        self.warm_up.push(slice);
        self.judge_warm_up()
    }

    fn judge_warm_up(&mut self) -> Decision {
        if self.warm_up.len() >= self.next_look {
            self.next_look = self.warm_up.len() + (self.warm_up.len() / 20).max(5);
            self.steady = is_steady(&self.warm_up);
        }
        let long_enough = self.warm_up_spent_s >= self.limits.warm_up_s_min;
        if (self.steady && long_enough) || self.warm_up_spent_s >= self.limits.warm_up_s_max {
            self.measuring = true;
            return Decision::Measure;
        }
        Decision::Continue
    }

    fn judge_window(&mut self) -> Decision {
        if self.window_s >= self.limits.measure_s_min {
            self.accurate = self.rule.reached(&self.window);
        }
        if self.accurate || self.window_s >= self.limits.measure_s_max {
            return Decision::Stop;
        }
        Decision::Continue
    }

    /// Changes the longest window, when time used elsewhere leaves less.
    pub fn cut_window(&mut self, measure_s_max: f64) {
        self.limits.measure_s_max = self.limits.measure_s_max.min(measure_s_max);
    }

    /// Opens the window without a warm-up judgement (its time is up elsewhere).
    pub fn force_measure(&mut self) {
        self.measuring = true;
    }

    /// Whether the warm-up ended by the steadiness test.
    #[must_use]
    pub fn steady(&self) -> bool {
        self.steady
    }

    /// Whether the asked accuracy was reached.
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
