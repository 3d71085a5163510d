//! One of several, as often as its weight says; and sizes drawn so.

use leadline_base::error::EngineError;
use leadline_wire::job::streams::SizeShare;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// One of several with given weights.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    /// Upper ends of all but the last, over 2^64.
    ends: Vec<u64>,
}

impl Shares {
    /// Shares in proportion to `weights`.
    pub fn new(weights: impl Iterator<Item = f64> + Clone) -> Self {
        let total: f64 = weights.clone().sum();
        let mut sum = 0.0;
        let mut ends: Vec<u64> = weights
            .map(|weight| {
                sum += weight / total;
                (sum * 18_446_744_073_709_551_616.0) as u64
            })
            .collect();
        ends.pop();
        Self { ends }
    }

    /// Which of them.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> usize {
        if self.ends.is_empty() {
            return 0;
        }
        let point = random.next_u64();
        self.ends.iter().take_while(|end| **end <= point).count()
    }
}

/// Lengths with given weights.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    which: Shares,
    lengths: Vec<u64>,
    mean: f64,
}

impl Histogram {
    /// In granules of so many bytes, of which all are multiples.
    pub fn new(sizes: &[SizeShare], granule_bytes: u64) -> Self {
        let weights: f64 = sizes.iter().map(|size| size.weight).sum();
        let bytes: f64 = sizes.iter().map(|size| size.weight * size.bytes as f64).sum();
        Self {
            which: Shares::new(sizes.iter().map(|size| size.weight)),
            lengths: sizes.iter().map(|size| size.bytes / granule_bytes).collect(),
            mean: bytes / weights / granule_bytes as f64,
        }
    }

    /// One of them.
    #[inline]
    pub fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        self.lengths[self.which.draw(random)]
    }

    /// Their weighted mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The longest.
    pub fn longest(&self) -> u64 {
        self.lengths.iter().copied().max().unwrap_or(1)
    }
}

/// Refuses a size that is no multiple of the target's smallest transfer.
pub(crate) fn check_granules(
    named: &str,
    sizes: &[SizeShare],
    granule_bytes: u64,
) -> Result<(), EngineError> {
    let odd = sizes.iter().find(|size| !size.bytes.is_multiple_of(granule_bytes));
    let Some(size) = odd else { return Ok(()) };
    Err(EngineError::bad_job(format!(
        "{named} has a size of {}; it must be a multiple of {granule_bytes}, the smallest transfer \
         of this target",
        size.bytes
    )))
}
