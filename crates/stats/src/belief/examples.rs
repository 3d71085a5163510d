//! A server in the middle of what is believed, for tests.

use super::Server;

/// Four requests at once, 8 ms each.
pub(super) const USUAL: Server = Server {
    capacity: 500.0,
    base_s: 0.008,
    variance_per_s: 0.0054,
    stall_rate_per_s: 0.0,
    stall_s: 0.1,
    variability: 1.35,
    idle_power: 1.162_277_660_168_379_5,
    wander: 0.035,
    memory_s: 18.0,
    between: 0.012,
    retrograde: 0.02,
    cold: 0.1,
    warming_s: 2.5,
    tail: 0.75,
    slow_share: 0.5,
    slow_log: 0.0,
};

/// Holds two numbers to be the same but for so much.
pub(super) fn near(found: f64, wanted: f64, off: f64) {
    assert!((found - wanted).abs() <= off, "{found} instead of {wanted}");
}
