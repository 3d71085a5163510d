//! Trials of a server for several speeds δ of the trial: what to expect of their parts.
//!
//! What does not depend on the server is in [`Window`] and [`Span`], what does not depend on the
//! rate in [`Steady`]: each is worked out once.

use super::open_queue::{POINTS, Past, backlog_left, fluctuation, positive_parts, wandering};
use super::reading::Aim;
use super::server::Server;
use super::speeds::{COARSE, slopes};

/// Most variance of a part because its speed is not that of the whole window.
const SPEED_VARIANCE_MAX: f64 = 2.0;

/// A warm-up and a window after it.
pub(crate) struct Window {
    past: Past,
    seconds: f64,
    /// Of the window's own variance that the past has its part in.
    shares: [f64; POINTS],
}

impl Window {
    pub(crate) fn new(warm_up_s: f64, seconds: f64) -> Self {
        let past = Past::up_to(warm_up_s + seconds);
        let shares = past.u_s.map(|u_s| (u_s / seconds).min(1.0).powi(2));
        Self { past, seconds, shares }
    }

    /// Lengths of the past.
    pub(crate) const fn u_s(&self) -> &[f64; POINTS] {
        &self.past.u_s
    }

    /// A part of the window.
    pub(crate) fn span(&self, from_s: f64, to_s: f64) -> Span {
        Span { from_s, to_s, weights: self.past.weights_over(from_s, to_s) }
    }
}

/// A part of a window.
pub(crate) struct Span {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    weights: [f64; POINTS],
}

impl Span {
    /// Mean over the span of what an excess over the past adds up to.
    pub(crate) fn mean(&self, excess: &[f32]) -> f64 {
        self.weights.iter().zip(excess).map(|(weight, excess)| weight * f64::from(*excess)).sum()
    }

    fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// Trials of one server, as far as their rate does not matter.
pub(crate) struct Steady<'a> {
    server: &'a Server,
    window: &'a Window,
    /// Standard deviation of δ.
    spread: f64,
    /// Variance of the speed of a whole window.
    whole: f64,
    /// Variance of the input over the past that the speed of the whole window does not explain.
    slow: [f64; POINTS],
}

impl<'a> Steady<'a> {
    pub(crate) fn new(server: &'a Server, window: &'a Window) -> Self {
        let over = |u_s| wandering(u_s, server.wander, server.memory_s);
        let total = over(window.seconds);
        let whole = total / window.seconds.powi(2);
        let slow = |at: usize| (over(window.past.u_s[at]) - window.shares[at] * total).max(0.0);
        Self {
            server,
            window,
            spread: (server.between.powi(2) + whole).sqrt().min(1.0),
            whole,
            slow: std::array::from_fn(slow),
        }
    }

    /// Trials at one rate.
    pub(crate) fn at(&self, rate_per_s: f64) -> Trials<'_> {
        let (server, window) = (self.server, self.window);
        let first = rate_per_s / server.capacity;
        let rho = powers(first, self.spread.exp());
        let power = server.idle_power;
        let busy = powers(first.powf(power), (power * self.spread).exp());
        let fast = rho.map(|rho| server.variance_at(rho));
        let (mut means, mut variances) = ([0.0; COARSE * POINTS], [0.0; COARSE * POINTS]);
        for at in 0..COARSE {
            for point in 0..POINTS {
                let u_s = window.past.u_s[point];
                means[at * POINTS + point] = ((rho[at] - 1.0) * u_s) as f32;
                variances[at * POINTS + point] = (fast[at] * u_s + self.slow[point]) as f32;
            }
        }
        Trials {
            steady: self,
            rho,
            busy: busy.map(|busy| busy.min(1.0)),
            excess: positive_parts(&means, &variances),
        }
    }

    /// Variance of the input per second, over as long as a queue of this load remembers.
    fn variance_per_s(&self, rho: f64) -> f64 {
        let (server, seconds) = (self.server, self.window.seconds);
        let fast = server.variance_at(rho);
        let relax_s = (fast / (rho - 1.0).powi(2).max(1e-12)).max(1e-4).min(seconds / 3.0);
        let own = wandering(relax_s, server.wander, server.memory_s);
        fast + (own - relax_s.powi(2) * self.whole).max(0.0) / relax_s
    }

    /// Variance of a part's logarithm because its speed is not that of the whole window.
    fn of_speed(&self, log_s: &[f64; COARSE], span: &Span) -> [f64; COARSE] {
        let server = self.server;
        let own = wandering(span.seconds(), server.wander, server.memory_s);
        let more = (own / span.seconds().powi(2) - self.whole).max(0.0) / self.spread.powi(2);
        slopes(log_s).map(|slope| (slope * slope * more).min(SPEED_VARIANCE_MAX))
    }

    /// Unloaded response, in units of the gain, as far as it is still cold.
    fn base_s(&self, aim: &Aim, span: &Span) -> f64 {
        let server = self.server;
        let tail = if aim.over_frac.is_none() { 1.0 } else { server.tail };
        let late = (-span.from_s / server.warming_s).exp() - (-span.to_s / server.warming_s).exp();
        server.base_s * tail * (1.0 + server.cold_s() * late / span.seconds())
    }
}

/// `middle` times the powers of `step` from -3 to 3.
fn powers(middle: f64, step: f64) -> [f64; COARSE] {
    let (square, inverse) = (step * step, 1.0 / step);
    let factors =
        [inverse * inverse * inverse, inverse * inverse, inverse, 1.0, step, square, square * step];
    factors.map(|factor| middle * factor)
}

/// Trials of one server at one rate, for every δ.
pub(crate) struct Trials<'a> {
    steady: &'a Steady<'a>,
    rho: [f64; COARSE],
    /// How much shorter the wait is where workers stand idle.
    busy: [f64; COARSE],
    /// E\[X⁺\] over the past, of one δ after the other.
    excess: [f32; COARSE * POINTS],
}

/// What to expect of a part of a trial, for every δ.
pub(crate) struct Expected {
    /// Logarithm of the response.
    pub(crate) log_s: [f64; COARSE],
    /// Of the logarithm.
    pub(crate) variance: [f64; COARSE],
}

impl Trials<'_> {
    /// Variance of the input per second, which all parts share.
    pub(crate) fn variances_per_s(&self) -> [f64; COARSE] {
        self.rho.map(|rho| self.steady.variance_per_s(rho))
    }

    /// Expected response over a part, and the variance of its logarithm.
    pub(crate) fn part(&self, span: &Span, aim: &Aim, per_s: &[f64; COARSE]) -> Expected {
        let base_s = self.steady.base_s(aim, span);
        let waits_s = self.waits_s(span);
        let log_s = waits_s.map(|wait_s| (base_s + wait_s).ln());
        let mut variance = self.steady.of_speed(&log_s, span);
        for at in 0..COARSE {
            let share = waits_s[at] / (base_s + waits_s[at]);
            let scatter = fluctuation(self.rho[at], per_s[at], span.seconds());
            variance[at] += scatter.ln_1p() * share * share;
        }
        let gain_log = aim.gain.ln();
        Expected { log_s: log_s.map(|log_s| gain_log + log_s), variance }
    }

    /// Expected response over a part.
    pub(crate) fn responses_s(&self, span: &Span, aim: &Aim) -> [f64; COARSE] {
        let base_s = self.steady.base_s(aim, span);
        self.waits_s(span).map(|wait_s| aim.gain * (base_s + wait_s))
    }

    fn waits_s(&self, span: &Span) -> [f64; COARSE] {
        let begun_s = self.steady.server.cold_s();
        std::array::from_fn(|at| {
            let rho = self.rho[at];
            let queued_s = span.mean(&self.excess[at * POINTS..]);
            let left_s = backlog_left(begun_s * rho, rho, span.from_s, span.to_s);
            self.busy[at] * queued_s + left_s
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{USUAL, near};
    use super::*;

    #[test]
    fn powers_go_from_the_third_below_to_the_third_above() {
        assert_eq!(powers(8.0, 2.0), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    }

    #[test]
    fn speed_varies_between_trials_and_by_the_mean_of_its_wandering() {
        let window = Window::new(5.0, 60.0);
        let steady = Steady::new(&USUAL, &window);
        let whole = wandering(60.0, 0.035, 18.0) / 3600.0;
        near(steady.whole, whole, 1e-15);
        near(steady.spread, (0.012f64.powi(2) + whole).sqrt(), 1e-12);
        let wild = Server { between: 3.0, ..USUAL };
        near(Steady::new(&wild, &window).spread, 1.0, 1e-12);
        // What the whole window shares is no part of what the past varies by.
        let past = wandering(window.u_s()[10], 0.035, 18.0);
        let shared = (window.u_s()[10] / 60.0).powi(2) * whole * 3600.0;
        near(steady.slow[10], past - shared, 1e-12);
        let late = Window::new(60.0, 60.0);
        let past = wandering(late.u_s()[14], 0.035, 18.0);
        near(Steady::new(&USUAL, &late).slow[14], past - whole * 3600.0, 1e-12);
    }

    #[test]
    fn a_load_is_that_of_the_rate_at_every_speed() {
        let window = Window::new(5.0, 60.0);
        let steady = Steady::new(&USUAL, &window);
        let trials = steady.at(400.0);
        near(trials.rho[3], 0.8, 1e-12);
        near(trials.rho[6], 0.8 * (3.0 * steady.spread).exp(), 1e-12);
        near(trials.busy[3], 0.8f64.powf(USUAL.idle_power), 1e-12);
        near(trials.busy[0], trials.rho[0].powf(USUAL.idle_power), 1e-12);
        near(steady.at(800.0).busy[3], 1.0, 1e-12);
    }

    #[test]
    fn speed_that_wanders_is_no_more_variance_than_two_however_steep_the_response() {
        // Of a part, what its own speed varies beyond that of the window, times the steepness.
        let window = Window::new(5.0, 60.0);
        let steady = Steady::new(&USUAL, &window);
        let over = |seconds: f64| wandering(seconds, 0.035, 18.0) / seconds.powi(2);
        let more = over(10.0) - over(60.0);
        let span = window.span(5.0, 15.0);
        for (steepness, wanted) in [(3.0, 9.0 * more), (30.0, 900.0 * more), (300.0, 2.0)] {
            let log_s = std::array::from_fn(|at| steepness * steady.spread * at as f64);
            for found in steady.of_speed(&log_s, &span) {
                near(found, wanted, 1e-9);
            }
        }
    }

    #[test]
    fn variance_is_that_of_the_service_and_of_speed_while_a_queue_remembers() {
        let window = Window::new(5.0, 60.0);
        let steady = Steady::new(&USUAL, &window);
        // 0.8: a queue forgets in 0.0054 · 0.8 / 0.2² s.
        let relax_s = 0.0054 * 0.8 / 0.04;
        let own = wandering(relax_s, 0.035, 18.0) - relax_s * relax_s * steady.whole;
        near(steady.variance_per_s(0.8), 0.0054 * 0.8 + own / relax_s, 1e-12);
        // At and above the capacity it is a third of the window at most.
        let own = wandering(20.0, 0.035, 18.0) - 400.0 * steady.whole;
        near(steady.variance_per_s(1.0), 0.0054 + own / 20.0, 1e-12);
    }

    #[test]
    fn a_response_without_load_is_the_servers_own_cold_at_first_and_of_a_percentile_in_its_units() {
        let window = Window::new(5.0, 60.0);
        let steady = Steady::new(&USUAL, &window);
        let trials = steady.at(1.0);
        let whole = window.span(5.0, 65.0);
        let cold = 0.1 * 2.5 * ((-2f64).exp() - (-26f64).exp()) / 60.0;
        let found = trials.responses_s(&whole, &Aim::mean(0.04));
        near(found[3], 0.008 * (1.0 + cold), 1e-6);
        let aim = Aim { limit_s: 0.12, over_frac: Some(0.05), gain: 3.0 };
        near(trials.responses_s(&whole, &aim)[3], 3.0 * 0.75 * 0.008 * (1.0 + cold), 1e-6);
        let part = trials.part(&whole, &aim, &trials.variances_per_s());
        near(part.log_s[3].exp(), 3.0 * 0.75 * 0.008 * (1.0 + cold), 1e-6);
    }

    #[test]
    fn a_part_scatters_by_the_share_of_its_wait() {
        let window = Window::new(5.0, 60.0);
        let steady = Steady::new(&USUAL, &window);
        let trials = steady.at(450.0);
        let (span, aim) = (window.span(5.0, 65.0), Aim::mean(0.04));
        let per_s = trials.variances_per_s();
        let part = trials.part(&span, &aim, &per_s);
        let responses_s = trials.responses_s(&span, &aim);
        let share = 1.0 - steady.base_s(&aim, &span) / responses_s[3];
        // Over the whole window no speed of its own is left.
        let wanted = fluctuation(0.9, per_s[3], 60.0).ln_1p() * share * share;
        near(part.variance[3], wanted, 1e-12);
        near(part.log_s[3], responses_s[3].ln(), 1e-12);
    }

    #[test]
    fn a_cold_start_is_waited_for_until_it_is_worked_off() {
        let window = Window::new(5.0, 60.0);
        let (span, aim) = (window.span(5.0, 65.0), Aim::mean(0.04));
        let [warm, cold] = [0.0, 2.0].map(|cold| Server { cold, ..USUAL });
        let [before, after] = [&warm, &cold].map(|server| {
            let steady = Steady::new(server, &window);
            steady.at(450.0).responses_s(&span, &aim)[3] - steady.base_s(&aim, &span)
        });
        // 4.5 s of work at a load of 0.9, of which half a second was done before the window.
        near(after - before, 4.0 * 4.0 / (2.0 * 0.1 * 60.0), 1e-9);
    }
}
