//! How fast memory is copied and read by all processors together.
//!
//! Each thread has its own part of the job's memory, far larger than its caches where the limit
//! allows it, and goes over it again and again for the length of a reading. Copies are those of
//! the kernels (`memcpy`), sums are what a scan does to keys.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use leadline_base::error::EngineError;

use crate::memory::{Memory, Region};

/// More per thread is not needed, whatever the caches here.
const PART_BYTES_MAX: usize = 512 << 20;

/// One reading of each.
#[derive(Clone, Copy, Debug)]
pub struct MemoryReading {
    /// Bytes per second copied, each of them counted once.
    pub copy_bytes_s: f64,
    /// Bytes per second read.
    pub read_bytes_s: f64,
}

/// Memory for every thread, already touched.
pub struct MemoryRates {
    parts: Vec<Region>,
}

impl MemoryRates {
    /// All the memory that is left, in parts for so many threads.
    ///
    /// # Errors
    /// `BadJob` when no memory is left.
    pub fn new(memory: &Memory, threads: usize) -> Result<Self, EngineError> {
        let page = crate::memory::PAGE_BYTES;
        let bytes = (memory.left() / threads).min(PART_BYTES_MAX) / (2 * page) * (2 * page);
        let mut parts = memory.take_many(threads, bytes.max(2 * page))?;
        thread::scope(|scope| {
            for part in &mut parts {
                scope.spawn(|| part.fill(1));
            }
        });
        Ok(Self { parts })
    }

    /// Copies and then reads, for so many seconds each.
    pub fn read(&mut self, reading_s: f64) -> MemoryReading {
        let copy_bytes_s = self.together(reading_s, |part| {
            let half = part.len() / 2;
            let (from, to) = part.split_at_mut(half);
            to.copy_from_slice(black_box(from));
            half
        });
        let read_bytes_s = self.together(reading_s, |part| {
            black_box(sum(part.as_slice_of()));
            part.len()
        });
        MemoryReading { copy_bytes_s, read_bytes_s }
    }

    /// Bytes per second when every thread repeats `pass` on its part, which says how many it moved.
    fn together(&mut self, reading_s: f64, pass: impl Fn(&mut Region) -> usize + Sync) -> f64 {
        let start = Barrier::new(self.parts.len());
        let repeat = |part: &mut Region| {
            start.wait();
            let begun = Instant::now();
            let mut moved = 0;
            loop {
                moved += pass(part);
                let passed = begun.elapsed().as_secs_f64();
                if passed >= reading_s {
                    return moved as f64 / passed;
                }
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> =
                self.parts.iter_mut().map(|part| scope.spawn(|| repeat(part))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
        })
    }
}

#[inline(never)]
fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum, number| sum.wrapping_add(*number))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_read_and_the_memory_given_back() {
        let memory = Memory::new(64 << 20).unwrap();
        let reading = MemoryRates::new(&memory, 2).unwrap().read(0.02);
        assert!(reading.copy_bytes_s > 0.0 && reading.read_bytes_s > 0.0, "{reading:?}");
        assert_eq!(memory.left(), 64 << 20, "given back");
    }
}
