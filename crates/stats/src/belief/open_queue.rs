//! The expected wait in an open queue whose speed wanders, at any time after an empty start.
//!
//! Requests arrive at a rate and are done at a capacity; both fluctuate. Measured in seconds of
//! work, the net input over the last u seconds is X(u) with mean (rho - 1) u, rho = rate/capacity,
//! and a variance v(u). The wait that an arrival at time t finds is the largest X(u) of 0 <= u <= t
//! (Lindley). For inputs whose increments are exchangeable, Spitzer's identity gives its
//! expectation exactly:
//!
//! ```text
//! E W(t) = ∫₀ᵗ E[X(u)⁺] / u du.
//! ```
//!
//! Brownian input (v = sigma² u, the diffusion limit of G/G/k) and a speed that differs from trial
//! to trial (v = τ² u²) are exchangeable, together as well. A speed that wanders as an
//! Ornstein-Uhlenbeck process of standard deviation s and memory m has
//! v(u) = 2 s² m² (u/m - 1 + e^(-u/m)), which is white noise for u >> m and a constant for u << m;
//! it is exchangeable in both limits and the identity is used between them. Against simulated M/G/k
//! servers with drift the peak of a server is reproduced within 6%
//! (`tests/studies/workbench/test_belief.py`).
//!
//! With E\[X⁺\] for a normal X this is one quadrature over u, and the mean over a window of a trial
//! only another weight under the same integral: the horizon of short trials, the growth of an
//! overload and the steady state are one formula.

/// Points of the quadrature over the past: one, Gauss and Legendre's, and one without weight, so
/// that all are whole vectors of the processor's.
pub(crate) const POINTS: usize = 2 + 2 * GAUSS.len();

/// The half of Gauss and Legendre's fourteen points that is above 0, and their weights.
const GAUSS: [(f64, f64); 7] = [
    (0.108_054_948_707_343_67, 0.215_263_853_463_157_93),
    (0.319_112_368_927_889_74, 0.205_198_463_721_295_71),
    (0.515_248_636_358_154_1, 0.185_538_397_477_937_88),
    (0.687_292_904_811_685_5, 0.157_203_167_158_193_63),
    (0.827_201_315_069_765, 0.121_518_570_687_903_31),
    (0.928_434_883_663_573_5, 0.080_158_087_159_759_99),
    (0.986_283_808_696_812_4, 0.035_119_460_331_751_75),
];

/// Of the horizon: where the quadrature over ln u begins.
const SHORTEST: f64 = 1e-6;

/// Density of a standard normal at 0.
const DENSITY_0: f32 = 0.398_942_3;

/// Lengths u of the past up to a horizon, and the weights of an integral du/u.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) u_s: [f64; POINTS],
    weights: [f64; POINTS],
}

impl Past {
    /// Below the shortest, E\[X⁺\] is proportional to √u, whose integral is twice its last value.
    pub(crate) fn up_to(horizon_s: f64) -> Self {
        let shortest_s = SHORTEST * horizon_s;
        let half = (horizon_s / shortest_s).ln() / 2.0;
        let middle = shortest_s.ln() + half;
        let mut past = Self { u_s: [shortest_s; POINTS], weights: [0.0; POINTS] };
        past.weights[0] = 2.0;
        for (at, (point, weight)) in GAUSS.into_iter().enumerate() {
            let (below, above) = (GAUSS.len() - at, GAUSS.len() + 1 + at);
            past.u_s[below] = (middle - half * point).exp();
            past.u_s[above] = (middle + half * point).exp();
            past.weights[below] = half * weight;
            past.weights[above] = half * weight;
        }
        past
    }

    /// Weights of the integral that is the mean over a window.
    pub(crate) fn weights_over(&self, from_s: f64, to_s: f64) -> [f64; POINTS] {
        std::array::from_fn(|at| self.weights[at] * window_weight(self.u_s[at], from_s, to_s))
    }
}

/// Share of a window's arrivals whose past is longer than u.
fn window_weight(u_s: f64, from_s: f64, to_s: f64) -> f64 {
    ((to_s - u_s.max(from_s)) / (to_s - from_s)).clamp(0.0, 1.0)
}

/// Variance of the input over u when the speed is an Ornstein-Uhlenbeck process.
pub(crate) fn wandering(u_s: f64, sd: f64, memory_s: f64) -> f64 {
    let x = u_s / memory_s;
    let shape = if x < 1e-3 { x * x / 2.0 } else { x - 1.0 + (-x).exp() };
    2.0 * (sd * memory_s).powi(2) * shape
}

/// E\[X⁺\] of normal X, to 4e-4 of their standard deviations.
///
/// The distribution function is a logistic one (Page 1977, error 1.4e-4), and all is done with
/// seven digits and without a branch or a call: this is where a search spends its time, and the
/// compiler does four at once.
pub(crate) fn positive_parts<const N: usize>(means: &[f32; N], variances: &[f32; N]) -> [f32; N] {
    let mut found = [0.0; N];
    for at in 0..N {
        let sd = variances[at].sqrt();
        let z = (means[at] / sd).clamp(-8.0, 1e6);
        let square = z * z;
        let below = 1.0 / (1.0 + exp_32((z * (-1.5976 - 0.070_566 * square)).max(-80.0)));
        let shape = DENSITY_0 * exp_32((-0.5 * square).max(-80.0)) + z * below;
        found[at] = sd * shape.max(0.0);
    }
    found
}

/// e^x with seven digits, for x from -80 to 80: 2^n times a power series of what is left of x.
#[inline(always)]
fn exp_32(x: f32) -> f32 {
    /// Added to a small number it rounds it to a whole one, which its lowest bits then are.
    const ROUNDER: f32 = 12_582_912.0;
    /// ln 2, and what it is short of that.
    const LN_2: (f32, f32) = (355.0 / 512.0, -2.121_944_4e-4);
    let rounded = x * std::f32::consts::LOG2_E + ROUNDER;
    let whole = rounded - ROUNDER;
    let rest = x - whole * LN_2.0 - whole * LN_2.1;
    let mut sum = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * rest + factor;
    }
    f32::from_bits(sum.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// Mean over a window of what is left of a backlog at time 0, drained at 1 - rho.
pub(crate) fn backlog_left(backlog_s: f64, rho: f64, from_s: f64, to_s: f64) -> f64 {
    let drain = (1.0 - rho).max(1e-6);
    let at_from = (backlog_s - drain * from_s).max(0.0);
    let at_to = (backlog_s - drain * to_s).max(0.0);
    (at_from * at_from - at_to * at_to) / (2.0 * drain * (to_s - from_s))
}

/// Squared coefficient of variation of the mean wait over a window.
///
/// Of reflected Brownian motion in the steady state it is 2 sigma²/(μ² T), with μ = 1 - rho; at
/// rho = 1 and from an empty start it is about 1/3. Between, the sum of both in the denominator.
pub(crate) fn fluctuation(rho: f64, variance_per_s: f64, seconds: f64) -> f64 {
    2.0 * variance_per_s / ((1.0 - rho).powi(2) * seconds + 6.0 * variance_per_s)
}

#[cfg(test)]
mod tests {
    use super::super::examples::near;
    use super::*;

    fn excess(mean: f64, variance: f64) -> f64 {
        positive_parts(&[mean as f32], &[variance as f32])[0].into()
    }

    /// Mean over a window of E W, by Spitzer's identity.
    fn mean_wait(rho: f64, warm_up_s: f64, seconds: f64, variance: impl Fn(f64) -> f64) -> f64 {
        let past = Past::up_to(warm_up_s + seconds);
        let weights = past.weights_over(warm_up_s, warm_up_s + seconds);
        let waits = past.u_s.iter().zip(weights);
        waits.map(|(u_s, weight)| weight * excess((rho - 1.0) * u_s, variance(*u_s))).sum()
    }

    #[test]
    fn brownian_input_in_the_steady_state_is_pollaczek_and_khinchine() {
        // sigma² / (2 (1 - rho)), once the empty start is far away.
        near(mean_wait(0.8, 100.0, 100.0, |u_s| 0.01 * u_s), 0.01 / 0.4, 0.01 * 0.025);
    }

    #[test]
    fn an_overload_grows_by_what_it_is_too_much() {
        near(mean_wait(1.5, 0.0, 100.0, |u_s| 1e-6 * u_s), 0.5 * 50.0, 0.01 * 25.0);
    }

    #[test]
    fn speed_that_differs_from_trial_to_trial_is_exact() {
        // X(u) = delta u: the wait at t is delta⁺ t, of which the window has half the length.
        let wanted = 0.1 / (2.0 * std::f64::consts::PI).sqrt() * 30.0;
        near(mean_wait(1.0, 0.0, 60.0, |u_s| (0.1 * u_s).powi(2)), wanted, 0.01 * wanted);
    }

    #[test]
    fn the_past_is_integrated_over_its_logarithm() {
        let past = Past::up_to(50.0);
        let integral = |of: fn(f64) -> f64| -> f64 {
            past.u_s.iter().zip(past.weights).map(|(u_s, weight)| weight * of(*u_s)).sum()
        };
        // ∫ √u du/u is 2 √u, from nothing on; of u, all but the first 5e-5 s count twice.
        near(integral(f64::sqrt), 2.0 * 50f64.sqrt(), 1e-9);
        near(integral(|u_s| u_s), 50.0 + 5e-5, 1e-6);
        near(past.u_s[0], 5e-5, 1e-18);
        assert!(past.u_s[..15].is_sorted() && past.u_s[1] > past.u_s[0] && past.u_s[14] < 50.0);
    }

    #[test]
    fn wandering_is_white_far_off_and_a_constant_near() {
        near(wandering(1e5, 0.05, 10.0), 2.0 * 0.05f64.powi(2) * 10.0 * 1e5, 5.0);
        near(wandering(0.01, 0.05, 10.0), 0.0005f64.powi(2), 1e-2 * 2.5e-7);
        near(wandering(30.0, 0.05, 10.0), 0.5 * (2.0 + (-3f64).exp()), 1e-12);
        near(wandering(1e-3, 0.05, 10.0), 0.25e-8, 1e-18);
        // On both sides of where the series takes over.
        near(wandering(1.001e-2, 0.05, 10.0), wandering(0.999e-2, 0.05, 10.0), 1.1e-9);
    }

    #[test]
    fn the_positive_part_of_a_normal_is_known_to_four_ten_thousandths() {
        near(excess(0.0, 4.0), 2.0 * 0.398_942, 1e-6);
        near(excess(3.0, 1.0), 3.000_382, 4e-4);
        near(excess(-1.0, 1.0), 0.083_315, 2e-4);
        near(excess(-6.0, 9.0), 3.0 * 0.008_491, 6e-4);
        near(excess(5e3, 1e-4), 5e3, 1e-2);
        assert!((0.0..1e-12).contains(&excess(-1e3, 1e-4)), "too far below for a normal");
    }

    #[test]
    fn powers_of_e_have_seven_digits() {
        for hundredths in -8000..=8000 {
            let x = hundredths as f32 / 100.0;
            let wanted = f64::from(x).exp();
            near(f64::from(exp_32(x)) / wanted, 1.0, 1.5e-7);
        }
    }

    #[test]
    fn a_window_counts_for_what_of_it_is_longer_than_the_past() {
        let found = [1.0, 10.0, 20.0, 40.0].map(|u_s| window_weight(u_s, 5.0, 25.0));
        for (found, wanted) in found.into_iter().zip([1.0, 0.75, 0.25, 0.0]) {
            near(found, wanted, 1e-12);
        }
    }

    #[test]
    fn a_backlog_drains_at_what_is_free() {
        // 1 s of work at rho = 0.9 is gone after 10 s: (1 + 0.5)/2 over the first 5 s.
        near(backlog_left(1.0, 0.9, 0.0, 5.0), 0.75, 1e-12);
        near(backlog_left(1.0, 0.9, 10.0, 60.0), 0.0, 1e-12);
        near(backlog_left(1.0, 1.2, 0.0, 60.0), 1.0, 1e-3);
        near(backlog_left(2.0, 0.9, 5.0, 25.0), 2.25 / 4.0, 1e-12);
    }

    #[test]
    fn a_mean_wait_scatters_as_reflected_brownian_motion_and_no_more_than_a_third() {
        near(fluctuation(0.8, 0.01, 60.0), 0.02 / (2.4 + 0.06), 1e-12);
        near(fluctuation(1.0, 0.01, 60.0), 1.0 / 3.0, 1e-12);
    }
}
