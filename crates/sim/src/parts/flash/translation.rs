//! Which block of cells holds which page, and what it costs to make room: greedy garbage collection
//! over a sample of the drive.
//!
//! A drive has more pages than a simulation can remember, and what overwriting costs depends on
//! shares only. So every `k`-th page is followed, in a drive `k` times smaller; what it copies
//! stands for `k` times as much.

use crate::random::Random;

/// The host's page that the drive maps.
pub(super) const MAPPED_BYTES: u64 = 4096;
/// Pages followed, at most.
const SAMPLE_MAX: u64 = 1 << 15;
/// Pages of a block: the sample's, so that it has many blocks.
const BLOCK_PAGES: u32 = 32;
/// Blocks kept empty, for the host's writes and the collector's own.
const RESERVE: usize = 3;
const NOWHERE: u32 = u32::MAX;

/// The sampled drive.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    /// One page in so many is followed.
    pub every: u64,
    /// Where each followed page lies; [`NOWHERE`] before it is written.
    place: Vec<u32>,
    /// Which followed page each place holds; [`NOWHERE`] for none or one that was overwritten.
    holds: Vec<u32>,
    /// Pages of each block that are current.
    current: Vec<u32>,
    empty: Vec<u32>,
    /// The block being filled by the host and its next page; and by the collector.
    open: [(u32, u32); 2],
    /// Copies for each page of the host's while it was aged.
    aged_copies: f64,
}

const HOST: usize = 0;
const COLLECTOR: usize = 1;

impl Translation {
    /// A drive of so many bytes with a spare part, empty or overwritten at random so often.
    pub fn new(capacity: u64, spare_frac: f64, aged_frac: f64, random: &mut Random) -> Self {
        let pages = (capacity / MAPPED_BYTES).max(1);
        let every = pages.div_ceil(SAMPLE_MAX);
        let followed = pages.div_ceil(every).max(1) as u32;
        let physical = (f64::from(followed) * (1.0 + spare_frac)).ceil() as u32;
        let blocks = physical.div_ceil(BLOCK_PAGES) + RESERVE as u32;
        let mut drive = Self {
            every,
            place: vec![NOWHERE; followed as usize],
            holds: vec![NOWHERE; (blocks * BLOCK_PAGES) as usize],
            current: vec![0; blocks as usize],
            empty: (0..blocks).rev().collect(),
            open: [(NOWHERE, BLOCK_PAGES); 2],
            aged_copies: 0.0,
        };
        if aged_frac > 0.0 {
            for page in 0..followed {
                drive.write(page);
            }
            let writes = (f64::from(followed) * aged_frac) as u64;
            let mut copied = 0;
            for number in 0..writes {
                let copies = drive.write(random.below(u64::from(followed)) as u32);
                copied += if number >= writes / 2 { copies } else { 0 };
            }
            drive.aged_copies = copied as f64 / (writes - writes / 2).max(1) as f64;
        }
        drive
    }

    /// Bytes of the drive for which a block of the sample stands.
    pub fn block_bytes(&self) -> f64 {
        (u64::from(BLOCK_PAGES) * self.every * MAPPED_BYTES) as f64
    }

    /// Bytes that are owed at any time by a drive that goes on as it was aged, if a block's are paid
    /// off over a block's writes.
    pub fn usually_owed(&self) -> f64 {
        self.aged_copies * self.block_bytes()
    }

    /// The host wrote `bytes` at `from`: bytes that had to be copied to make room.
    pub fn wrote(&mut self, from: u64, bytes: u64) -> u64 {
        let first = (from / MAPPED_BYTES).div_ceil(self.every);
        let end = (from + bytes).div_ceil(MAPPED_BYTES).div_ceil(self.every);
        let mut copied = 0;
        for page in first..end.min(self.place.len() as u64) {
            copied += self.write(page as u32);
        }
        copied * self.every * MAPPED_BYTES
    }

    /// Writes a followed page; pages that had to be copied for it.
    fn write(&mut self, page: u32) -> u64 {
        self.drop_old(page);
        let mut copied = 0;
        if self.open[HOST].1 == BLOCK_PAGES {
            while self.empty.len() < RESERVE {
                let Some(pages) = self.collect() else { break };
                copied += pages;
                if pages == u64::from(BLOCK_PAGES) {
                    break; // a drive of a few blocks, all of them full of current pages
                }
            }
        }
        self.put(page, HOST);
        copied
    }

    fn drop_old(&mut self, page: u32) {
        let old = std::mem::replace(&mut self.place[page as usize], NOWHERE);
        if old != NOWHERE {
            self.holds[old as usize] = NOWHERE;
            self.current[(old / BLOCK_PAGES) as usize] -= 1;
        }
    }

    fn put(&mut self, page: u32, who: usize) {
        if self.open[who].1 == BLOCK_PAGES {
            let Some(block) = self.empty.pop() else { return };
            self.open[who] = (block, 0);
        }
        let (block, next) = self.open[who];
        let place = block * BLOCK_PAGES + next;
        self.open[who].1 += 1;
        self.holds[place as usize] = page;
        self.place[page as usize] = place;
        self.current[block as usize] += 1;
    }

    /// Empties the full block with the fewest current pages; how many were copied.
    fn collect(&mut self) -> Option<u64> {
        let open = [self.open[HOST].0, self.open[COLLECTOR].0];
        // Few are empty when it comes to this.
        let full = |block: &u32| !open.contains(block) && !self.empty.contains(block);
        let blocks = (0..self.current.len() as u32).filter(full);
        let victim = blocks.min_by_key(|&block| self.current[block as usize])?;
        let first = (victim * BLOCK_PAGES) as usize;
        let mut copied = 0;
        for place in first..first + BLOCK_PAGES as usize {
            let page = std::mem::replace(&mut self.holds[place], NOWHERE);
            if page != NOWHERE {
                self.current[victim as usize] -= 1;
                self.place[page as usize] = NOWHERE;
                self.put(page, COLLECTOR);
                copied += 1;
            }
        }
        self.empty.push(victim);
        Some(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies for each page written by the host in the long run, plus the page itself.
    fn amplification(spare_frac: f64) -> f64 {
        let mut random = Random::new(3);
        let capacity = SAMPLE_MAX * MAPPED_BYTES;
        let mut drive = Translation::new(capacity, spare_frac, 2.0, &mut random);
        let written = 4 * SAMPLE_MAX;
        let copied: u64 = (0..written).map(|_| drive.write(random.below(SAMPLE_MAX) as u32)).sum();
        1.0 + copied as f64 / written as f64
    }

    /// Desnoyers 2012: first in, first out under uniform writes copies a share `x` of each block with
    /// `x = exp(-(1 + spare)(1 - x))`, and greedy collection a little less.
    #[test]
    fn greedy_collection_copies_a_little_less_than_first_in_first_out() {
        for spare_frac in [0.1, 0.28] {
            let mut share: f64 = 0.5;
            for _ in 0..10_000 {
                share = (-(1.0 + spare_frac) * (1.0 - share)).exp();
            }
            let fifo = 1.0 / (1.0 - share);
            let found = amplification(spare_frac);
            assert!((0.7 * fifo..1.03 * fifo).contains(&found), "{spare_frac}: {found}, {fifo}");
        }
    }

    #[test]
    fn the_smallest_drives_end_too() {
        let mut random = Random::new(3);
        for pages in 1..200 {
            let mut drive = Translation::new(pages * MAPPED_BYTES, 0.02, 4.0, &mut random);
            let stray = 64 * random.below(pages) * MAPPED_BYTES;
            drive.wrote(stray, 10 * MAPPED_BYTES);
            let current: u32 = drive.current.iter().sum();
            assert!(u64::from(current) <= pages, "{pages}: {current}");
        }
    }

    #[test]
    fn what_is_overwritten_in_order_costs_nothing() {
        let mut random = Random::new(3);
        let mut drive = Translation::new(1 << 30, 0.1, 0.0, &mut random);
        let copied: u64 = (0..8).map(|_| drive.wrote(0, 1 << 30)).sum();
        assert_eq!(copied, 0);
    }

    #[test]
    fn a_page_that_is_followed_is_met_once_in_so_many() {
        let mut random = Random::new(3);
        let mut drive = Translation::new(1 << 40, 0.1, 0.0, &mut random);
        assert_eq!(drive.every, (1 << 28) / SAMPLE_MAX);
        for piece in 0..drive.every {
            drive.wrote(piece * MAPPED_BYTES, MAPPED_BYTES);
        }
        assert_eq!(drive.current.iter().sum::<u32>(), 1);
    }
}
