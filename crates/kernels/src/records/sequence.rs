//! The random numbers of the sort benchmark: a linear congruential sequence of 128 bits.
//!
//! `x ← a x + c`, begun at 0; record `n` starts from the number `n + 1`. Its constants are part of
//! the benchmark (gensort; Hadoop's `Random16` describes the same). A step of any length is again a
//! multiplication and an addition, so every thread begins where its records do.

#![forbid(unsafe_code)]

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
const INCREMENT: u128 = 0x4A69_6D47_7261_7952_4950_2020_2020_2001;

/// A place in the sequence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sequence {
    state: u128,
}

impl Sequence {
    /// After `steps` numbers.
    #[must_use]
    pub fn after(steps: u128) -> Self {
        let (mut multiplier, mut increment) = (MULTIPLIER, INCREMENT);
        let (mut state, mut rest) = (0_u128, steps);
        while rest > 0 {
            if rest & 1 == 1 {
                state = state.wrapping_mul(multiplier).wrapping_add(increment);
            }
            increment = increment.wrapping_mul(multiplier).wrapping_add(increment);
            multiplier = multiplier.wrapping_mul(multiplier);
            rest >>= 1;
        }
        Self { state }
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u128 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        self.state
    }
}

/// How many numbers a seed leaves out: none for 0, which is the benchmark's own data; else a place
/// anywhere in the period, because places at a round distance share their low bits.
#[must_use]
pub fn start(seed: u64) -> u128 {
    if seed == 0 {
        return 0;
    }
    let mut mix = SplitMix64::seed_from_u64(seed);
    u128::from(mix.next_u64()) << 64 | u128::from(mix.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_as_the_benchmark_does() {
        let mut sequence = Sequence::after(0);
        assert_eq!(sequence.draw(), INCREMENT);
        assert_eq!(sequence.draw(), 0x95e0_e482_62b3_edfe_0447_9485_c755_b646);
        assert_eq!(sequence.draw(), 0x4597_9353_dbed_5329_365c_f795_f129_84df);
    }

    #[test]
    fn a_leap_arrives_where_steps_do() {
        for steps in [0, 1, 2, 3, 255, 1000] {
            let mut walked = Sequence::after(0);
            (0..steps).for_each(|_| {
                walked.draw();
            });
            assert_eq!(Sequence::after(steps), walked);
        }
    }

    #[test]
    fn two_leaps_by_a_power_of_two_are_one_of_twice_that() {
        let mut walked = Sequence::after((1 << 100) + 3);
        let leapt = Sequence::after((1 << 100) + 4);
        walked.draw();
        assert_eq!(walked, leapt);
    }

    #[test]
    fn seeds_begin_at_different_places_with_different_low_bits() {
        assert_eq!(start(0), 0);
        let starts: Vec<u128> = (1..100).map(start).collect();
        let mut low: Vec<u128> = starts.iter().map(|place| place & 0xffff_ffff).collect();
        low.sort_unstable();
        low.dedup();
        assert_eq!(low.len(), 99);
    }
}
