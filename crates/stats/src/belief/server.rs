//! What a server is to the model; Python draws them (`studies/workbench/belief/server.py`).

/// One server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Requests per second that it completes in an overload, in the mean over trials.
    pub capacity: f64,
    /// Response time without load.
    pub base_s: f64,
    /// sigma² at full load: variance of the net input per second, in s²/s.
    pub variance_per_s: f64,
    /// How often it stands still.
    pub stall_rate_per_s: f64,
    /// For how long, in the mean; exponential.
    pub stall_s: f64,
    /// (1 + cv²)/2 of the service.
    pub variability: f64,
    /// The wait is rho to this power shorter than one fast worker's.
    pub idle_power: f64,
    /// Standard deviation of the speed that wanders.
    pub wander: f64,
    /// How long it remembers its speed.
    pub memory_s: f64,
    /// Standard deviation of the speed between trials.
    pub between: f64,
    /// Capacity without a backlog over that in an overload, less 1.
    pub retrograde: f64,
    /// How much slower it begins, as a fraction.
    pub cold: f64,
    /// How long it takes to warm up.
    pub warming_s: f64,
    /// Unloaded percentile over unloaded mean, both in units of the exponential's.
    pub tail: f64,
    /// Part of its trials that are in the slow mode.
    pub slow_share: f64,
    /// Logarithm of how much slower the slow mode is; 0: there is none.
    pub slow_log: f64,
}

impl Server {
    /// The server in its slow mode, where it has one: all service takes longer.
    pub(crate) fn slowed(&self) -> Option<Self> {
        let slower = self.slow_log.exp();
        (self.slow_log > 0.0).then_some(Self {
            capacity: self.capacity / slower,
            base_s: self.base_s * slower,
            variance_per_s: self.variance_per_s * slower,
            ..*self
        })
    }

    /// Variance of the net input per second at a load; of stalls, at any.
    pub(crate) fn variance_at(&self, rho: f64) -> f64 {
        self.variance_per_s * rho.min(1.0) + 2.0 * self.stall_rate_per_s * self.stall_s.powi(2)
    }

    /// The same server without stalls.
    pub(crate) fn unstalled(&self) -> Self {
        Self { stall_rate_per_s: 0.0, ..*self }
    }

    /// Share of the responses at a load that stalls alone bring over a limit: a stall of S leaves
    /// waits that fall evenly to none S / (1 - rho) after its start.
    pub(crate) fn stalled_over(&self, rho: f64, limit_s: f64) -> f64 {
        if self.stall_rate_per_s == 0.0 {
            return 0.0;
        }
        let late_s = self.stall_s * (-limit_s / self.stall_s).exp() / (1.0 - rho).max(1e-3);
        (self.stall_rate_per_s * late_s).min(1.0)
    }

    /// Its rate where a part of the retrograde gap in capacity is kept, over that rate.
    pub(crate) fn collapsed(&self, kept: f64) -> f64 {
        (1.0 + self.retrograde).powf(-kept)
    }

    /// Seconds of work that the cold start leaves behind, at full load.
    pub(crate) fn cold_s(&self) -> f64 {
        self.cold * self.warming_s
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{USUAL, near};

    #[test]
    fn a_slow_mode_takes_longer_for_everything() {
        assert_eq!(USUAL.slowed(), None);
        let two = super::Server { slow_log: 2f64.ln(), ..USUAL };
        let slowed = two.slowed().unwrap_or(USUAL);
        near(slowed.capacity, 250.0, 1e-12);
        near(slowed.base_s, 0.016, 1e-12);
        near(slowed.variance_per_s, 0.0108, 1e-12);
        assert_eq!((slowed.wander, slowed.slow_share), (two.wander, two.slow_share));
    }

    #[test]
    fn a_retrograde_server_keeps_a_part_of_its_gap() {
        let server = super::Server { retrograde: 3.0, ..USUAL };
        near(server.collapsed(0.5), 0.5, 1e-12);
        near(USUAL.cold_s(), 0.25, 1e-12);
    }
}
