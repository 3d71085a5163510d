//! Random places of which some are asked for more often than others.
//!
//! **Zipf.** The data are `K` blocks, each as long as the mean request in whole granules; what is
//! left over belongs to the last. A request draws a rank `r` from 1 to `K` with probability
//! `r^-theta / H`, by rejection from the envelope `min(1, x^-theta)`, which is exact and takes the
//! same time whatever `K` is (`rand_distr::Zipf`). Rank `r` lies in block `(r - 1) s mod K`, where
//! `s` is the first number from `0.618 K` on that shares no divisor with `K`: every block has one
//! rank, the same for every worker, seed and run, so that what was hot stays hot. By the theorem of
//! the three gaps the `m` hottest blocks are apart by at least a third of `K / m` blocks, up to
//! `m² = K`: never neighbours, so that a read-ahead does not bring in the next hot one.
//!
//! **Zones** lie one after the other, the first at byte 0, as fio's do; each begins at the granule
//! nearest to its share.
//!
//! A request shorter than its block, or zone, lies at any whole place of its own length inside it,
//! as uniform requests do in all data (`access/stream.rs`). A longer one begins with it and takes
//! those that follow, moved back where it would reach past the end.

use leadline_wire::job::spread as asked;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::access::shares::Shares;
use crate::access::stream::place;

/// The golden section: multiples of it, in a ring, are never neighbours and nearly even.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Where random requests go.
#[derive(Clone, Debug)]
pub(crate) enum Spread {
    Uniform,
    Zipf(Blocks),
    Zoned(Zones),
}

/// Blocks in the order of their ranks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    ranks: Zipf<f64>,
    /// Granules of each.
    block: u64,
    number: u64,
    stride: u64,
}

/// Zones one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Zones {
    which: Shares,
    /// Where each begins, and where the last ends.
    edges: Vec<u64>,
}

impl Spread {
    /// Over so many granules, in blocks of the mean request.
    pub fn new(asked: &asked::Spread, granules: u64, size_mean: f64) -> Self {
        match asked {
            asked::Spread::Uniform {} => Self::Uniform,
            asked::Spread::Zipf { theta } => {
                let block = (size_mean.round().max(1.0) as u64).min(granules.max(1));
                let number = (granules / block).max(1);
                match Zipf::new(number as f64, *theta) {
                    Ok(ranks) => {
                        let stride = scattering_stride(number);
                        Self::Zipf(Blocks { ranks, block, number, stride })
                    }
                    // No exponent of the wire's range comes here.
                    Err(_) => Self::Uniform,
                }
            }
            asked::Spread::Zoned { zones } => {
                let mut held = 0.0;
                let mut edges = vec![0];
                for zone in &zones[..zones.len().saturating_sub(1)] {
                    held += zone.size_frac;
                    edges.push(((held * granules as f64).round() as u64).min(granules));
                }
                edges.push(granules);
                Self::Zoned(Zones {
                    which: Shares::new(zones.iter().map(|z| z.access_frac)),
                    edges,
                })
            }
        }
    }

    /// First granule of a random request of `length` among `granules`.
    #[inline]
    pub fn place(&self, random: &mut Xoshiro256PlusPlus, granules: u64, length: u64) -> u64 {
        let (first, end) = match self {
            Self::Uniform => return place(random, granules, length),
            Self::Zipf(blocks) => blocks.draw(random, granules),
            Self::Zoned(zones) => zones.draw(random),
        };
        if length >= end - first {
            return first.min(granules - length);
        }
        first + place(random, end - first, length)
    }
}

impl Blocks {
    /// Where the block of a rank begins and ends.
    #[inline]
    fn draw(&self, random: &mut Xoshiro256PlusPlus, granules: u64) -> (u64, u64) {
        let rank = (self.ranks.sample(random) as u64).clamp(1, self.number) - 1;
        let at = (u128::from(rank) * u128::from(self.stride) % u128::from(self.number)) as u64;
        let first = at * self.block;
        (first, if at + 1 == self.number { granules } else { first + self.block })
    }
}

impl Zones {
    #[inline]
    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> (u64, u64) {
        let zone = self.which.draw(random);
        (self.edges[zone], self.edges[zone + 1])
    }
}

/// The step by which a ring of so many is gone through in an order that has no neighbours.
pub(crate) fn scattering_stride(number: u64) -> u64 {
    let mut stride = ((number as f64 * GOLDEN) as u64).max(1);
    while common_divisor(stride, number) != 1 {
        stride += 1;
    }
    stride
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests;
