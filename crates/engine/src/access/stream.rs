//! The addresses one process asks for: METHODS §1, after CP94 §5.
//!
//! Space is counted in granules of `granule_bytes`; the last part of `unique_bytes` that is no
//! whole granule is left alone. Every process has its own generator, seeded from the job's seed and
//! its own number, so its addresses do not depend on timing, on the other processes or on the
//! machine.
//!
//! **A random place, uniform over the bytes.** A request of `n` of the `N` granules picks one of
//! the `q = N/n` whole places of its own length with equal probability; the `r = N − q n` granules
//! left over are a gap before, between or after the places, whose position is drawn anew each time.
//! Every granule is then touched with the same probability when `n` divides `N`, and otherwise with
//! probabilities that differ by no more than the factor `q/(q + 1)`: no edge of the file is
//! favoured, which drawing the start from `[0, N − n]` would do, and no request is cut or split,
//! which would change the sizes. Under equal probabilities the next place is independent of the
//! stack, so an LRU cache holding a share `c` of the bytes hits with probability `c` and the mean
//! stack depth is half of `unique_bytes` (CP93 §5). A fixed size gives places aligned to it, as
//! other tools have them.
//!
//! **A sequential request** starts where this process's previous one ended; one that does not fit
//! before the end of `unique_bytes` starts at 0, whole (it wraps). The first one starts at a place
//! drawn at random, so that processes do not walk in step.
//!
//! **Skewed places** (`workload.access`) are drawn by `access/spread.rs` instead.

use leadline_base::error::EngineError;
use leadline_wire::job::workload::{SizeDist, Workload};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::access::sizes::Sizes;
use crate::access::spread::Spread;
use leadline_base::request::{Kind, Request};

/// Where a worker's requests come from. Which kind of source a run has is decided before its loop,
/// which is compiled for each.
pub trait Draw: Clone + std::fmt::Debug + Send {
    /// Whether its requests are of several streams, which are counted apart.
    const MIXED: bool = false;

    /// The next request.
    fn draw(&mut self) -> Request;

    /// Tells how often each of several streams began its data anew.
    fn count_rounds(&self, _rounds: &mut dyn FnMut(usize, u64)) {}
}

impl Draw for AccessStream {
    #[inline]
    fn draw(&mut self) -> Request {
        Self::draw(self)
    }
}

/// The endless stream of requests of one process.
#[derive(Clone, Debug)]
pub struct AccessStream {
    random: Xoshiro256PlusPlus,
    sizes: Sizes,
    granule_bytes: u64,
    granules: u64,
    reads: Chance,
    sequentials: Chance,
    spread: Spread,
    next: u64,
}

impl AccessStream {
    /// The stream of process `process` (from 0) under `seed`, in multiples of `granule_bytes`.
    ///
    /// # Errors
    /// `BadJob` when a request, or `unique_bytes`, would be below one granule.
    pub fn new(
        workload: &Workload,
        granule_bytes: u64,
        seed: u64,
        process: u32,
    ) -> Result<Self, EngineError> {
        let sizes = sizes_of(workload, granule_bytes)?;
        Ok(Self::with_sizes(workload, &sizes, granule_bytes, seed, process))
    }

    /// The same when the sizes are known: to find them takes longer than thousands of requests.
    pub(crate) fn with_sizes(
        workload: &Workload,
        sizes: &Sizes,
        granule_bytes: u64,
        seed: u64,
        process: u32,
    ) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(sub_seed(seed, process));
        let granules = workload.unique_bytes / granule_bytes;
        let first = sizes.draw(&mut random);
        let spread = Spread::new(&workload.access, granules, sizes.mean());
        let next = spread.place(&mut random, granules, first);
        Self {
            random,
            sizes: sizes.clone(),
            granule_bytes,
            granules,
            reads: Chance::new(workload.read_frac),
            sequentials: Chance::new(workload.seq_frac),
            spread,
            next,
        }
    }

    /// The next request; `offset_bytes + length_bytes <= unique_bytes` always holds.
    #[inline]
    pub fn draw(&mut self) -> Request {
        let sequential = self.sequentials.happens(&mut self.random);
        let kind = if self.reads.happens(&mut self.random) { Kind::Read } else { Kind::Write };
        let length = self.sizes.draw(&mut self.random);
        let start = if !sequential {
            self.spread.place(&mut self.random, self.granules, length)
        } else if self.next + length <= self.granules {
            self.next
        } else {
            0
        };
        self.next = start + length;
        Request {
            offset_bytes: start * self.granule_bytes,
            length_bytes: length * self.granule_bytes,
            kind,
            sequential,
            stream: 0,
            piece_end_bytes: 0,
        }
    }

    /// The distribution the lengths are drawn from, in granules.
    #[must_use]
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }
}

/// The size distribution of a workload, checked against the granule.
///
/// # Errors
/// `BadJob` when a request, or `unique_bytes`, would be below one granule.
pub fn sizes_of(workload: &Workload, granule_bytes: u64) -> Result<Sizes, EngineError> {
    for (field, value) in
        [("unique_bytes", workload.unique_bytes), ("size_mean", workload.size_mean)]
    {
        if value < granule_bytes {
            return Err(EngineError::bad_job(format!(
                "workload.{field} is {value}; it must be at least {granule_bytes}, the smallest \
                transfer of this target"
            )));
        }
    }
    if workload.size_dist == SizeDist::Fixed && !workload.size_mean.is_multiple_of(granule_bytes) {
        return Err(EngineError::bad_job(format!(
            "workload.size_mean is {}; a fixed size must be a multiple of {granule_bytes}, the \
            smallest transfer of this target",
            workload.size_mean
        )));
    }
    let mean = workload.size_mean as f64 / granule_bytes as f64;
    let most = workload.unique_bytes / granule_bytes;
    if let SizeDist::Histogram(sizes) = &workload.size_dist {
        return Sizes::histogram(sizes, granule_bytes, most);
    }
    Ok(Sizes::new(&workload.size_dist, mean, most))
}

/// A uniform number in [0, 1) from the upper 53 bits.
#[inline]
pub(crate) fn unit_interval(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The seed of one generator: SplitMix64's finaliser over the job's seed and the process's number.
pub(crate) fn sub_seed(seed: u64, process: u32) -> u64 {
    let mut mixed = seed ^ u64::from(process).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A uniform whole number below `limit`; the bias of the plain product is below `limit / 2^64`.
#[inline]
pub(crate) fn below(random: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(limit)) >> 64) as u64
}

/// First granule of a random request of `length` among `granules`; see the module's text.
#[inline]
pub(crate) fn place(random: &mut Xoshiro256PlusPlus, granules: u64, length: u64) -> u64 {
    let places = granules / length;
    let gap = granules - places * length;
    let index = below(random, places);
    if gap == 0 {
        return index * length;
    }
    let before = below(random, places + 1) <= index;
    index * length + if before { gap } else { 0 }
}

/// A coin with a given probability, exact at 0 and 1.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chance {
    Never,
    Always,
    Below(u64),
}

impl Chance {
    pub(crate) fn new(probability: f64) -> Self {
        if probability <= 0.0 {
            Self::Never
        } else if probability >= 1.0 {
            Self::Always
        } else {
            Self::Below((probability * 18_446_744_073_709_551_616.0) as u64)
        }
    }

    #[inline]
    pub(crate) fn happens(self, random: &mut Xoshiro256PlusPlus) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Below(limit) => random.next_u64() < limit,
        }
    }
}

#[cfg(test)]
mod tests;
