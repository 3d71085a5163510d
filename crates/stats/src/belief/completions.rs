//! What the completions of an overload say of the capacity.

use super::reading::Busy;
use super::server::Server;
use super::student::log_density;

/// What is known of the logarithm of a trial's capacity: a constant of the trial plus a wandering.
struct Filter {
    trial_mean: f64,
    wander_mean: f64,
    between: f64,
    shared: f64,
    wander: f64,
}

impl Filter {
    /// The wandering goes on by a step, of which it keeps so much.
    fn go_on(&mut self, keeps: f64, kick: f64) {
        self.wander_mean *= keeps;
        self.shared *= keeps;
        self.wander = keeps * keeps * self.wander + kick;
    }

    /// Takes in how far off a step was seen; the log density of that.
    fn see(&mut self, seen: f64, noise: f64) -> f64 {
        let residual = seen - self.trial_mean - self.wander_mean;
        let of_trial = self.between + self.shared;
        let of_wander = self.shared + self.wander;
        let variance = of_trial + of_wander + noise;
        self.trial_mean += of_trial * residual / variance;
        self.wander_mean += of_wander * residual / variance;
        self.between -= of_trial * of_trial / variance;
        self.shared -= of_trial * of_wander / variance;
        self.wander -= of_wander * of_wander / variance;
        log_density(residual, variance)
    }
}

/// Log likelihood of the completions of one trial: the capacity is filtered (Kalman) as a constant
/// δ plus the wandering, seen through completions under the noise of the service itself.
pub(super) fn log_likelihood(busy: &Busy, server: &Server) -> f64 {
    let own = (1.0 - 0.5 / server.variability).max(0.15);
    let noise = server.variance_per_s * own / busy.step_s + 5e-6;
    let keeps = (-busy.step_s / server.memory_s).exp();
    let wander = server.wander.powi(2);
    let kick = wander * (1.0 - keeps * keeps);
    let between = server.between.powi(2) + 1e-6;
    let mut filter = Filter { trial_mean: 0.0, wander_mean: 0.0, between, shared: 0.0, wander };
    let capacity_log = server.capacity.ln();
    let mut cold = server.cold * (-(busy.from_s + 0.5 * busy.step_s) / server.warming_s).exp();
    let cold_left = (-busy.step_s / server.warming_s).exp();
    let mut total = 0.0;
    for (step, log_rate) in busy.log_rates.iter().enumerate() {
        if step > 0 {
            filter.go_on(keeps, kick);
            cold *= cold_left;
        }
        total += filter.see(log_rate - capacity_log + cold.ln_1p(), noise);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::super::examples::{USUAL, near};
    use super::super::student::log_density;
    use super::*;

    fn busy(log_rates: &[f64]) -> Busy {
        Busy { from_s: 7.0, step_s: 2.5, log_rates: log_rates.to_vec() }
    }

    #[test]
    fn one_step_scatters_by_the_trial_the_wandering_and_the_service() {
        let seen = 455f64.ln();
        let noise = 0.0054 * (1.0 - 0.5 / 1.35) / 2.5 + 5e-6;
        let variance = 0.012f64.powi(2) + 1e-6 + 0.035f64.powi(2) + noise;
        let expected = 500f64.ln() - (0.1 * (-8.25f64 / 2.5).exp()).ln_1p();
        let found = log_likelihood(&busy(&[seen]), &USUAL);
        near(found, log_density(seen - expected, variance), 1e-12);
        let steady = Server { variability: 0.5, ..USUAL };
        let variance = variance - noise + 0.0054 * 0.15 / 2.5 + 5e-6;
        let found = log_likelihood(&busy(&[seen]), &steady);
        near(found, log_density(seen - expected, variance), 1e-12);
    }

    #[test]
    fn steps_of_a_constant_are_known_the_better_the_more_were_seen() {
        // Of a constant of variance 4 seen with noise 1: 0.8 of it after the first, 8/9 then.
        let mut filter =
            Filter { trial_mean: 0.0, wander_mean: 0.0, between: 4.0, shared: 0.0, wander: 0.0 };
        near(filter.see(5.0, 1.0), log_density(5.0, 5.0), 1e-12);
        near(filter.trial_mean, 4.0, 1e-12);
        near(filter.between, 0.8, 1e-12);
        near(filter.see(5.0, 1.0), log_density(1.0, 1.8), 1e-12);
        near(filter.trial_mean, 4.0 + 0.8 / 1.8, 1e-12);
        near(filter.between, 4.0 / 9.0, 1e-12);
    }

    #[test]
    fn a_constant_and_a_wandering_share_what_was_seen() {
        let mut filter =
            Filter { trial_mean: 0.0, wander_mean: 0.0, between: 1.0, shared: 0.0, wander: 2.0 };
        filter.see(4.0, 1.0);
        near(filter.trial_mean, 1.0, 1e-12);
        near(filter.wander_mean, 2.0, 1e-12);
        let [between, shared, wander] = [filter.between, filter.shared, filter.wander];
        for (found, wanted) in [(between, 0.75), (shared, -0.5), (wander, 1.0)] {
            near(found, wanted, 1e-12);
        }
        filter.go_on(0.5, 1.5);
        near(filter.wander_mean, 1.0, 1e-12);
        near(filter.shared, -0.25, 1e-12);
        near(filter.wander, 1.75, 1e-12);
        // Its variance then is 0.75 - 2 · 0.25 + 1.75, and noise.
        near(filter.see(3.0, 1.0), log_density(1.0, 3.0), 1e-12);
        near(filter.trial_mean, 1.0 + 0.5 / 3.0, 1e-12);
        near(filter.wander_mean, 1.0 + 1.5 / 3.0, 1e-12);
    }

    #[test]
    fn completions_are_as_probable_as_they_were() {
        let rates = [455.0, 470.0, 462.0, 490.0, 481.0f64].map(f64::ln);
        near(log_likelihood(&busy(&rates), &USUAL), 13.1931, 1e-4);
    }
}
