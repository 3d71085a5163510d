//! Blocks and the places they are at, as one number that can be summed in any order.
//!
//! Input and output are each read in their own order; the sums agree when every block is where it
//! belongs. Two blocks that changed places, a block that was changed, lost or written twice leave
//! the sum right with probability 2^-64.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

use super::slots::Block;

const LANES: usize = 4;
const LANE_BYTES: usize = 8;

/// Odd, with ones and zeros well mixed: multiplying by one is a bijection of 64 bits.
const FACTORS: [u64; LANES] =
    [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// The sum over blocks and their places.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Adds `block`, which is at `position`.
    pub fn add(&mut self, block: &Block, position: u64) {
        let placed = content(block) ^ mixed(position.wrapping_add(1).wrapping_mul(FACTORS[0]));
        self.0 = self.0.wrapping_add(mixed(placed));
    }

    /// Adds what another thread saw.
    pub fn join(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

/// A block's bytes as a number. Each lane takes every fourth word; a step is a bijection of the
/// lane for any word, so that one changed word always changes its lane.
fn content(block: &Block) -> u64 {
    let mut lanes = FACTORS;
    let (rows, _) = block.as_chunks::<{ LANES * LANE_BYTES }>();
    for row in rows {
        let (words, _) = row.as_chunks::<LANE_BYTES>();
        for ((lane, word), factor) in lanes.iter_mut().zip(words).zip(FACTORS) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(factor).rotate_left(29);
        }
    }
    lanes.iter().fold(0, |sum, lane| mixed(sum ^ lane).wrapping_mul(FACTORS[1]))
}

/// Spreads every bit over all: shifts and odd factors, each a bijection.
fn mixed(mut number: u64) -> u64 {
    for factor in [FACTORS[2], FACTORS[3]] {
        number = (number ^ (number >> 31)).wrapping_mul(factor);
    }
    number ^ (number >> 32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::transpose::BLOCK_BYTES;

    fn blocks(seed: u64, count: usize) -> Vec<[u8; BLOCK_BYTES]> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut block = [0; BLOCK_BYTES];
        (0..count)
            .map(|_| {
                random.fill(&mut block[..]);
                block
            })
            .collect()
    }

    fn of<'a>(placed: impl Iterator<Item = (u64, &'a [u8; BLOCK_BYTES])>) -> Fingerprint {
        let mut sum = Fingerprint::default();
        placed.for_each(|(position, block)| sum.add(block, position));
        sum
    }

    fn in_order(blocks: &[[u8; BLOCK_BYTES]]) -> Fingerprint {
        of((0..).zip(blocks))
    }

    #[test]
    fn the_order_of_looking_does_not_matter_and_parts_join() {
        let blocks = blocks(1, 9);
        let whole = in_order(&blocks);
        let placed: Vec<_> = (0..).zip(&blocks).collect();
        assert_eq!(of(placed.iter().rev().copied()), whole);
        let mut joined = of(placed[..4].iter().copied());
        joined.join(of(placed[4..].iter().copied()));
        assert_eq!(joined, whole);
    }

    #[test]
    fn blocks_of_the_same_bytes_may_change_places_and_zeros_at_another_place_count() {
        let zeros = [0; BLOCK_BYTES];
        assert_ne!(of([(0, &zeros)].into_iter()), of([(1, &zeros)].into_iter()));
        assert_ne!(in_order(&[zeros]), Fingerprint::default());
        assert_ne!(in_order(&[zeros, zeros]), in_order(&[zeros]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_two_blocks_that_changed_places_show(seed: u64, a in 0_usize..12, b in 0_usize..12) {
            let mut blocks = blocks(seed, 12);
            let before = in_order(&blocks);
            blocks.swap(a, b);
            prop_assert_eq!(in_order(&blocks) == before, a == b);
        }

        #[test]
        fn any_changed_bit_shows(seed: u64, byte in 0..BLOCK_BYTES, bit in 0_u32..8) {
            let mut blocks = blocks(seed, 2);
            let before = in_order(&blocks);
            blocks[1][byte] ^= 1 << bit;
            prop_assert_ne!(in_order(&blocks), before);
        }

        #[test]
        fn a_block_twice_instead_of_another_shows(seed: u64, a in 0_usize..6, b in 6_usize..12) {
            let mut blocks = blocks(seed, 12);
            let before = in_order(&blocks);
            blocks[a] = blocks[b];
            prop_assert_ne!(in_order(&blocks), before);
        }
    }
}
