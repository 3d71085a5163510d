//! The peak rate of a server of the model: where its expected response is at the threshold.

use super::open_queue::{POINTS, backlog_left, positive_parts, wandering};
use super::reading::Aim;
use super::server::Server;
use super::speeds::{COARSE, coarse_weights};
use super::trials::{Span, Steady, Window};

/// Part of the retrograde gap in capacity that the peak keeps: collapses must be rare there.
const RETROGRADE_KEPT: f64 = 0.15;
/// Of the interval from e^-8 to e of the capacity.
const HALVINGS: usize = 19;

/// Logarithm of the rate at which trials of the run length are expected at the threshold, for each
/// server.
#[must_use]
pub fn log_peak(servers: &[Server], aim: &Aim, run_length_s: f64, warm_up_s: f64) -> Vec<f64> {
    let window = Window::new(warm_up_s, run_length_s);
    let span = window.span(warm_up_s, warm_up_s + run_length_s);
    let weights = coarse_weights();
    let peak_of = |server: &Server| {
        let slowed = server.slowed();
        let slowed = slowed.as_ref();
        let Some(over_frac) = aim.over_frac else {
            let slow = slowed.map(|slowed| Mean::new(slowed, &window, &span, aim.limit_s));
            return halved(server, &Mean::new(server, &window, &span, aim.limit_s), slow.as_ref());
        };
        let of = |server, queue| {
            let steady = Steady::new(queue, &window);
            Share { server, steady, span: &span, aim, over_frac, weights: &weights }
        };
        let queue = server.unstalled();
        let slow_queue = slowed.map(Server::unstalled);
        let slow = slowed.zip(slow_queue.as_ref()).map(|(slowed, queue)| of(slowed, queue));
        halved(server, &of(server, &queue), slow.as_ref())
    };
    servers.iter().map(peak_of).collect()
}

/// How far the trials of a server are above a threshold.
trait Excess {
    /// In the mean, at a rate; below 0 under the threshold.
    fn at(&self, rate_per_s: f64) -> f64;
}

/// The rate without an excess, of a server that may have a slow mode.
fn halved(server: &Server, usual: &impl Excess, slow: Option<&impl Excess>) -> f64 {
    let capacity_log = server.capacity.ln();
    let collapsed = server.collapsed(RETROGRADE_KEPT);
    let (mut low, mut high) = (capacity_log - 8.0, capacity_log + 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let rate_per_s = middle.exp() * collapsed;
        let mut excess = usual.at(rate_per_s);
        if let Some(slow) = slow {
            excess += server.slow_share * (slow.at(rate_per_s) - excess);
        }
        if excess > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Expected mean response less the threshold, δ included: Spitzer's identity with all of v(u).
struct Mean<'a> {
    server: &'a Server,
    window: &'a Window,
    span: &'a Span,
    limit_s: f64,
    /// Variance of the input over the past because speed wanders.
    slow: [f64; POINTS],
}

impl<'a> Mean<'a> {
    fn new(server: &'a Server, window: &'a Window, span: &'a Span, limit_s: f64) -> Self {
        let slow = (*window.u_s()).map(|u_s| wandering(u_s, server.wander, server.memory_s));
        Self { server, window, span, limit_s, slow }
    }
}

impl Excess for Mean<'_> {
    fn at(&self, rate_per_s: f64) -> f64 {
        let (server, span) = (self.server, self.span);
        let rho = rate_per_s / server.capacity;
        let fast = server.variance_at(rho);
        let between = (server.between * rho).powi(2);
        let (mut means, mut variances) = ([0.0; POINTS], [0.0; POINTS]);
        for (at, u_s) in self.window.u_s().iter().enumerate() {
            means[at] = ((rho - 1.0) * u_s) as f32;
            variances[at] = (fast * u_s + self.slow[at] + between * u_s * u_s) as f32;
        }
        let excess = positive_parts(&means, &variances);
        let wait_s = rho.min(1.0).powf(server.idle_power) * span.mean(&excess);
        let left_s = backlog_left(server.cold_s() * rho, rho, span.from_s, span.to_s);
        server.base_s + wait_s + left_s - self.limit_s
    }
}

/// Of a percentile: the share of responses over the limit less 1 - P.
struct Share<'a> {
    server: &'a Server,
    /// Of the queue, without stalls.
    steady: Steady<'a>,
    span: &'a Span,
    aim: &'a Aim,
    over_frac: f64,
    weights: &'a [f64; COARSE],
}

impl Excess for Share<'_> {
    fn at(&self, rate_per_s: f64) -> f64 {
        let responses_s = self.steady.at(rate_per_s).responses_s(self.span, self.aim);
        let exponent = self.aim.limit_s * self.over_frac.ln();
        let stalled = self.server.stalled_over(rate_per_s / self.server.capacity, self.aim.limit_s);
        let over = responses_s.iter().map(|response_s| (exponent / response_s).exp());
        let queued = over.zip(self.weights).map(|(over, weight)| over * weight).sum::<f64>();
        queued + stalled - self.over_frac
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{USUAL, near};
    use super::*;

    const P95: Aim = Aim { limit_s: 0.12, over_frac: Some(0.05), gain: 2.995_732_273_553_991 };

    fn peak(server: Server, aim: &Aim) -> f64 {
        log_peak(&[server], aim, 180.0, 5.0)[0]
    }

    #[test]
    fn a_steady_queue_is_at_its_threshold_where_pollaczek_and_khinchine_have_it() {
        // M/M/1 of 8 ms: 40 ms at a load of 0.8, once the start is long ago.
        let queue = Server {
            capacity: 125.0,
            variance_per_s: 0.016,
            variability: 1.0,
            idle_power: 0.0,
            wander: 1e-6,
            between: 1e-6,
            retrograde: 0.0,
            cold: 0.0,
            ..USUAL
        };
        let found = log_peak(&[queue], &Aim::mean(0.04), 3600.0, 600.0)[0];
        near(found, 100f64.ln(), 0.005);
        let kept = Server { retrograde: 0.1, ..queue };
        let higher = log_peak(&[kept], &Aim::mean(0.04), 3600.0, 600.0)[0];
        near(higher - found, 0.15 * 1.1f64.ln(), 2e-5);
    }

    #[test]
    fn peaks_are_where_they_were() {
        near(peak(USUAL, &Aim::mean(0.04)), 6.12237, 1e-4);
        let of_limit =
            Server { capacity: 500.0 / 3.0, base_s: 0.024, variance_per_s: 0.0162, ..USUAL };
        near(peak(of_limit, &P95), 4.86858, 1e-4);
    }

    #[test]
    fn a_slow_mode_counts_by_its_share() {
        let one = peak(USUAL, &Aim::mean(0.04));
        let two = |slow_share| Server { slow_share, slow_log: 2f64.ln(), ..USUAL };
        let slowed = two(0.0).slowed().unwrap_or(USUAL);
        near(peak(two(0.0), &Aim::mean(0.04)), one, 1e-12);
        let always = peak(two(1.0), &Aim::mean(0.04));
        let alone = peak(Server { slow_log: 0.0, ..slowed }, &Aim::mean(0.04));
        near(always, alone, 3e-5);
        let half = peak(two(0.5), &Aim::mean(0.04));
        assert!(always < half && half < one, "{always} {half} {one}");
        let of_share = peak(two(0.5), &P95);
        assert!(of_share < peak(USUAL, &P95), "{of_share}");
    }

    #[test]
    fn short_trials_read_the_peak_high() {
        let wanders = Server { wander: 0.08, memory_s: 30.0, ..USUAL };
        let [short, long] =
            [20.0, 180.0].map(|seconds| log_peak(&[wanders], &Aim::mean(0.04), seconds, 5.0)[0]);
        assert!((1.01f64.ln()..1.1f64.ln()).contains(&(short - long)), "{short} {long}");
    }

    #[test]
    fn stalls_add_what_the_queue_behind_them_waits() {
        // 0.1 per second of 0.2 s, exponential: 4 ms / (1 - 0.5) once the start is long ago.
        let queue = Server { variance_per_s: 0.0054, wander: 1e-6, between: 1e-6, ..USUAL };
        let queue = Server { idle_power: 0.0, cold: 0.0, ..queue };
        let stalling = Server { stall_rate_per_s: 0.1, stall_s: 0.2, ..queue };
        let window = Window::new(600.0, 3600.0);
        let span = window.span(600.0, 4200.0);
        let [without, with] =
            [&queue, &stalling].map(|of| Mean::new(of, &window, &span, 0.04).at(250.0));
        near(with - without, 0.008, 2e-4);
    }

    #[test]
    fn stalls_are_a_share_of_their_own_over_a_limit() {
        // 0.1 per second of 0.2 s: at a load of a half 0.04 of the time waits, e^-0.6 of it longer.
        let stalling = Server { stall_rate_per_s: 0.1, stall_s: 0.2, ..USUAL };
        near(stalling.stalled_over(0.5, 0.12), 0.04 * (-0.6f64).exp(), 1e-12);
        near(USUAL.stalled_over(0.5, 0.12), 0.0, 0.0);
        let rare = Server { stall_rate_per_s: 0.01, ..stalling };
        let [without, seldom, often] = [USUAL, rare, stalling].map(|server| peak(server, &P95));
        assert!(often < seldom && seldom < without, "{often} {seldom} {without}");
        assert!(without - seldom < 0.05, "a stall of 0.2 s in 100 s is no 5% of the time");
    }

    #[test]
    fn a_cold_start_is_part_of_the_mean() {
        let window = Window::new(5.0, 60.0);
        let span = window.span(5.0, 65.0);
        let [warm, cold] = [0.0, 2.0].map(|cold| Server { cold, ..USUAL });
        let [before, after] =
            [&warm, &cold].map(|of| Mean::new(of, &window, &span, 0.04).at(450.0));
        // 4.5 s of work at a load of 0.9, of which half a second was done before the window.
        near(after - before, 4.0 * 4.0 / (2.0 * 0.1 * 60.0), 1e-9);
    }
}
