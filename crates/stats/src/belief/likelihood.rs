//! How probable a trial is.
//!
//! Speed differs from trial to trial by an amount δ that all parts of a trial share: between
//! trials, and as the mean of the wandering over the window. Given δ, the parts are taken as
//! independent, their logarithms as Student's t about the model's. The integral over δ is a sum:
//! the model is evaluated at seven places and interpolated to thirty-one.
//!
//! A trial that was given up says that the response was above the bound. One that was overloaded
//! says what the server completes: its completions, step by step, are the capacity.

use std::f64::consts::SQRT_2;

use super::completions;
use super::reading::{Aim, Part, Reading};
use super::server::Server;
use super::speeds::{FINE, fine_weights, interpolate};
use super::student::{density, widened};
use super::trials::{Expected, Span, Steady, Window};

/// Standard deviation of the logarithm of a response that the model leaves unexplained.
const MISFIT: f64 = 0.08;
/// Part of the retrograde gap in capacity that a server near its threshold still keeps.
const RETROGRADE_UNLOADED: f64 = 0.6;
/// Probability that a trial was given up for a reason the model knows nothing of.
const STRANGE: f64 = 0.01;
/// A response beyond this is cut short by the generator's own patience.
const DEEP_S: f64 = 0.5;
/// Most of the responses that a reading says are over a limit (`belief.py`).
const SHARE_MAX: f64 = 0.95;
/// Standard deviation of its logarithm from that.
const DEEP_MISFIT: f64 = 0.3;

/// Logarithm of a trial's probability density, for each server.
#[must_use]
pub fn log_likelihood(reading: &Reading, servers: &[Server], aim: &Aim) -> Vec<f64> {
    let busy = reading.busy.as_ref().filter(|_| reading.overloaded);
    if let Some(busy) = busy {
        let in_mode = |server: &Server| completions::log_likelihood(busy, server);
        return servers.iter().map(|server| in_either_mode(server, in_mode)).collect();
    }
    let responses = Responses::new(reading, aim);
    let in_mode = |server: &Server| {
        let unstalled = server.unstalled();
        responses.log_likelihood(if reading.calm { &unstalled } else { server })
    };
    servers.iter().map(|server| in_either_mode(server, in_mode)).collect()
}

fn in_either_mode(server: &Server, in_mode: impl Fn(&Server) -> f64) -> f64 {
    let found = in_mode(server);
    let Some(slowed) = server.slowed() else { return found };
    let usual = (-server.slow_share).ln_1p() + found;
    let slow = server.slow_share.ln() + in_mode(&slowed);
    let (low, high) = if usual < slow { (usual, slow) } else { (slow, usual) };
    high + (low - high).exp().ln_1p()
}

/// What the responses of a trial say, as far as the server does not matter.
struct Responses<'a> {
    reading: &'a Reading,
    aim: &'a Aim,
    window: Window,
    parts: Vec<Span>,
    given_up: Option<(Span, f64)>,
    weights: [f64; FINE],
}

impl<'a> Responses<'a> {
    fn new(reading: &'a Reading, aim: &'a Aim) -> Self {
        let window = Window::new(reading.warm_up_s, reading.seconds);
        let end_s = reading.warm_up_s + reading.seconds;
        let whole = |above_s: f64| (window.span(reading.warm_up_s, end_s), above_s.ln());
        Self {
            reading,
            aim,
            parts: reading.parts.iter().map(|part| window.span(part.from_s, part.to_s)).collect(),
            given_up: reading.abort_above_s.map(whole),
            window,
            weights: fine_weights(),
        }
    }

    fn log_likelihood(&self, server: &Server) -> f64 {
        // Stalls are part of a mean; over a limit they bring a share of their own.
        let queue = if self.aim.over_frac.is_some() { server.unstalled() } else { *server };
        let steady = Steady::new(&queue, &self.window);
        let trials = steady.at(self.reading.rate_per_s * server.collapsed(RETROGRADE_UNLOADED));
        let per_s = trials.variances_per_s();
        let mut seen = Seen { variance: [1.0; FINE], widened: [1.0; FINE] };
        for (part, span) in self.reading.parts.iter().zip(&self.parts) {
            let expected = trials.part(span, self.aim, &per_s);
            let expected = with_stalls(expected, server, part, self.aim, self.reading.rate_per_s);
            seen.add(part, &expected, server.variability);
        }
        let mut densities = seen.densities(&self.weights);
        if let Some((span, above_log)) = &self.given_up {
            let expected = trials.part(span, &Aim::mean(self.aim.limit_s), &per_s);
            weigh_above(&mut densities, *above_log, &expected);
        }
        densities.iter().sum::<f64>().ln()
    }
}

/// What is expected of a share over a limit, with the stalls of the server.
fn with_stalls(
    expected: Expected,
    server: &Server,
    part: &Part,
    aim: &Aim,
    rate_per_s: f64,
) -> Expected {
    let stalled = server.stalled_over(rate_per_s / server.capacity, aim.limit_s);
    let Some(over_frac) = aim.over_frac.filter(|_| stalled > 0.0) else { return expected };
    let exponent = aim.limit_s * over_frac.ln();
    let of_count = 2.0 / (server.stall_rate_per_s * (part.to_s - part.from_s));
    let Expected { mut log_s, mut variance } = expected;
    for at in 0..log_s.len() {
        let share = ((exponent / log_s[at].exp()).exp() + stalled).min(SHARE_MAX);
        log_s[at] = (exponent / share.ln()).ln();
        variance[at] += (stalled / share / share.ln()).powi(2) * of_count;
    }
    Expected { log_s, variance }
}

/// Student's t of the logarithms of parts, on the fine grid of δ: products over the parts.
struct Seen {
    variance: [f64; FINE],
    widened: [f64; FINE],
}

impl Seen {
    fn add(&mut self, part: &Part, expected: &Expected, variability: f64) {
        let counted = part.count_variance * (2.0 * variability - 1.0).max(0.1);
        let deep = if part.log_s > DEEP_S.ln() { DEEP_MISFIT * DEEP_MISFIT } else { 0.0 };
        let more = counted + MISFIT * MISFIT + deep;
        let (logs, own) = (interpolate(&expected.log_s), interpolate(&expected.variance));
        for at in 0..FINE {
            // The mean of what scatters is above its middle by half of the variance.
            let residual = part.log_s - logs[at] + 0.5 * own[at];
            self.variance[at] *= own[at] + more;
            self.widened[at] *= widened(residual, own[at] + more);
        }
    }

    fn densities(&self, weights: &[f64; FINE]) -> [f64; FINE] {
        std::array::from_fn(|at| weights[at] * density(self.variance[at], self.widened[at]))
    }
}

/// Probability that the response was above a bound, on the fine grid of δ.
fn weigh_above(densities: &mut [f64; FINE], above_log: f64, expected: &Expected) {
    let variances = interpolate(&expected.variance);
    let logs = interpolate(&expected.log_s);
    for ((found, variance), log_s) in densities.iter_mut().zip(variances).zip(logs) {
        let z = (log_s - above_log) / (variance + MISFIT * MISFIT).sqrt();
        *found *= STRANGE + (1.0 - STRANGE) * 0.5 * libm::erfc(-z / SQRT_2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{USUAL, near};
    use super::super::reading::Busy;
    use super::super::speeds::COARSE;
    use super::*;

    const MEAN: Aim = Aim::mean(0.04);

    /// A trial whose window was read in thirds, after 5 s of warm-up.
    fn reading(rate_per_s: f64, seconds: f64, means_s: &[f64]) -> Reading {
        let third = seconds / 3.0;
        let part = |(at, mean_s): (usize, &f64)| Part {
            from_s: 5.0 + third * at as f64,
            to_s: 5.0 + third * (at + 1) as f64,
            log_s: mean_s.ln(),
            count_variance: 1.0 / (rate_per_s * third),
        };
        Reading {
            rate_per_s,
            warm_up_s: 5.0,
            seconds,
            parts: means_s.iter().enumerate().map(part).collect(),
            abort_above_s: None,
            calm: false,
            busy: None,
            overloaded: false,
        }
    }

    fn of_usual(reading: &Reading) -> f64 {
        log_likelihood(reading, &[USUAL], &MEAN)[0]
    }

    #[test]
    fn trials_are_as_probable_as_they_were() {
        near(of_usual(&reading(50.0, 10.0, &[0.009, 0.008, 0.0085])), 5.6354, 1e-3);
        near(of_usual(&reading(380.0, 60.0, &[0.021, 0.035, 0.029])), -10.995, 1e-3);
        near(of_usual(&reading(440.0, 30.0, &[0.05, 0.9, 1.8])), -14.8371, 1e-3);
    }

    #[test]
    fn a_trial_that_was_given_up_was_above_its_bound_or_strange() {
        let given_up = |rate| Reading { abort_above_s: Some(0.8), ..reading(rate, 12.0, &[]) };
        near(of_usual(&given_up(420.0)), 0.01f64.ln(), 1e-3);
        near(of_usual(&given_up(5e3)), 0.0, 1e-9);
    }

    #[test]
    fn an_overload_is_its_completions_where_it_lasted() {
        let busy = || Busy { from_s: 7.0, step_s: 2.5, log_rates: vec![6.1, 6.2] };
        let parts = reading(600.0, 20.0, &[2.0, 4.0, 6.0]);
        let short = Reading { busy: Some(busy()), ..parts.clone() };
        let long = Reading { overloaded: true, ..short.clone() };
        let completions = completions::log_likelihood(&busy(), &USUAL);
        near(of_usual(&short), of_usual(&parts), 1e-12);
        near(of_usual(&long), completions, 1e-12);
        near(of_usual(&Reading { overloaded: true, ..parts.clone() }), of_usual(&parts), 1e-12);
    }

    #[test]
    fn a_trial_is_in_one_mode_or_the_other() {
        let two = Server { slow_share: 0.25, slow_log: 2f64.ln(), ..USUAL };
        let modes = |usual: f64, slow: f64| {
            in_either_mode(&two, |server| if server.capacity < 300.0 { slow } else { usual })
        };
        near(modes(2f64.ln(), 6f64.ln()), 3f64.ln(), 1e-12);
        near(modes(-5000.0, -4000.0), -4000.0 + 0.25f64.ln(), 1e-9);
        near(modes(-4000.0, -5000.0), -4000.0 + 0.75f64.ln(), 1e-9);
        near(in_either_mode(&USUAL, |server| server.capacity), 500.0, 1e-12);
    }

    /// Of the speed in the middle, what a part of this response and variance is like.
    fn middle(log_s: f64, count_variance: f64, variability: f64) -> f64 {
        let expected = Expected { log_s: [0.03f64.ln(); COARSE], variance: [0.4; COARSE] };
        let mut seen = Seen { variance: [1.0; FINE], widened: [1.0; FINE] };
        let part = Part { from_s: 5.0, to_s: 35.0, log_s, count_variance };
        seen.add(&part, &expected, variability);
        seen.densities(&[1.0; FINE])[FINE / 2].ln()
    }

    #[test]
    fn a_response_that_scatters_is_most_probable_below_its_mean() {
        // A log-normal of mean m and variance v of its logarithm has its middle at ln m - v / 2.
        let best = 0.03f64.ln() - 0.2;
        let sd = (0.4 + MISFIT * MISFIT).sqrt();
        near(middle(best, 0.0, 1.0), -sd.ln(), 1e-12);
        near(middle(best + sd, 0.0, 1.0), -sd.ln() - 3.0 * 0.2f64.ln_1p(), 1e-12);
        near(middle(best - sd, 0.0, 1.0), middle(best + sd, 0.0, 1.0), 1e-12);
    }

    #[test]
    fn counting_adds_variance_and_a_deep_queue_more() {
        let best = 0.03f64.ln() - 0.2;
        let log_sd = |more: f64| -0.5 * (0.4 + MISFIT * MISFIT + more).ln();
        near(middle(best, 0.5, 2.0), log_sd(1.5), 1e-12);
        near(middle(best, 0.5, 0.5), log_sd(0.05), 1e-12);
        let far = |log_s: f64, more: f64| {
            let variance = 0.4 + MISFIT * MISFIT + more;
            super::super::student::log_density(log_s - best, variance)
        };
        near(middle(0.499f64.ln(), 0.0, 1.0), far(0.499f64.ln(), 0.0), 1e-12);
        near(middle(0.501f64.ln(), 0.0, 1.0), far(0.501f64.ln(), 0.09), 1e-12);
    }

    #[test]
    fn above_a_bound_by_an_sd_is_five_times_in_six() {
        let variance = 0.36 - MISFIT * MISFIT;
        let expected = Expected { log_s: [1.6; COARSE], variance: [variance; COARSE] };
        let mut densities = [2.0; FINE];
        weigh_above(&mut densities, 1.0, &expected);
        near(densities[15], 2.0 * (0.01 + 0.99 * 0.841_344_746_068_542_9), 1e-12);
    }
}
