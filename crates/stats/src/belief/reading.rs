//! One trial, as the likelihood sees it (`studies/workbench/belief/reading.py` reads it).

/// One threshold as the model sees it.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// `R_sat`, or `L_sat`.
    pub limit_s: f64,
    /// 1 - `P_sat`; none: the threshold is on the mean.
    pub over_frac: Option<f64>,
    /// Percentile over mean of an exponential response.
    pub gain: f64,
}

impl Aim {
    /// The mean, at this threshold.
    pub(crate) const fn mean(limit_s: f64) -> Self {
        Self { limit_s, over_frac: None, gain: 1.0 }
    }
}

/// The response over one part of a window.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Since the load began.
    pub from_s: f64,
    /// Since the load began.
    pub to_s: f64,
    /// Logarithm of the response.
    pub log_s: f64,
    /// Of `log_s`, from the number of requests alone.
    pub count_variance: f64,
}

/// Completions while the server was surely never idle.
#[derive(Clone, Debug)]
pub struct Busy {
    /// Since the load began.
    pub from_s: f64,
    /// Length of a step.
    pub step_s: f64,
    /// Logarithm of the completions per second of each step.
    pub log_rates: Vec<f64>,
}

/// One trial.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Really offered.
    pub rate_per_s: f64,
    /// Before the window.
    pub warm_up_s: f64,
    /// Length of the window.
    pub seconds: f64,
    /// Responses over parts of the window.
    pub parts: Vec<Part>,
    /// It was given up at this mean response.
    pub abort_above_s: Option<f64>,
    /// Far below the threshold, and its stalls are taken out of its parts.
    pub calm: bool,
    /// Completions of an overload.
    pub busy: Option<Busy>,
    /// Busy for most of the window: completions then say all.
    pub overloaded: bool,
}
