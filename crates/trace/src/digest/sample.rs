//! References to pages: all of them, or those of a sample of the pages when there are too many.
//!
//! A page is in the sample when its hash lies below a bound, which is halved whenever the sample is
//! full (fixed-size SHARDS, Waldspurger et al., FAST 2015, section 3.2): of a page in the sample
//! every reference is there.

use crate::hash::mix;

/// Bytes of what a cache keeps or throws out.
pub const PAGE_BYTES: u64 = 4096;
/// References that are kept: 200 MB.
const KEPT_MAX: usize = 1 << 23;
const ALL: u64 = 1 << 32;

/// One page touched by one request.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// The file's number and the page's in it.
    pub page: u64,
    /// References before it, in the whole trace.
    pub clock: u64,
    /// Of the whole request.
    pub bytes: u32,
    /// Pages of the whole request.
    pub pages: u16,
    /// [`class_of`] its request.
    pub class: u8,
    /// The request goes on where another ended in the same page, which is no new use of it.
    pub continued: bool,
}

/// Reads and writes, each at random and in sequence: four classes.
pub const CLASSES: usize = 4;

/// The class of a request.
pub fn class_of(write: bool, sequential: bool) -> u8 {
    u8::from(write) * 2 + u8::from(sequential)
}

/// Whether a class is of writes.
pub fn is_write(class: u8) -> bool {
    class >= 2
}

/// The place of a page's hash between none and [`ALL`].
pub fn place_of(page: u64) -> u64 {
    mix(page) >> 32
}

/// The references kept.
#[derive(Debug)]
pub struct Sample {
    /// In order.
    pub references: Vec<Reference>,
    bound: u64,
    most: usize,
}

impl Sample {
    /// None yet.
    pub fn new() -> Self {
        Self::of_at_most(KEPT_MAX)
    }

    pub(crate) fn of_at_most(most: usize) -> Self {
        Self { references: Vec::new(), bound: ALL, most }
    }

    /// Share of the pages that are in it.
    pub fn rate(&self) -> f64 {
        self.bound as f64 / ALL as f64
    }

    /// Takes a reference, if its page belongs to the sample.
    #[inline]
    pub fn offer(&mut self, reference: Reference) {
        if place_of(reference.page) >= self.bound {
            return;
        }
        self.references.push(reference);
        while self.references.len() > self.most {
            self.bound /= 2;
            let bound = self.bound;
            self.references.retain(|kept| place_of(kept.page) < bound);
        }
    }
}
