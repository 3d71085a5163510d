//! Hashes of whole numbers: fast, and the same in every run, so that a sample is.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::LazyLock;

/// Spreads a number over all 64 bits (`SplitMix64`; Steele, Lea and Flood 2014).
#[inline]
pub fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Of this process alone: nobody makes a trace whose numbers all meet in one place of a map.
static KEY: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// Hashes what is made of whole numbers.
pub struct Mixed(u64);

impl Default for Mixed {
    fn default() -> Self {
        Self(*KEY)
    }
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ number);
    }
}

/// A map by numbers.
pub type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;
