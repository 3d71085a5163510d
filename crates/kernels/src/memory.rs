//! The hard memory limit: one arena for a job, mapped once; every large buffer is a lease of it.
//!
//! The arena is aligned to 2 MiB and asks for huge pages, because the bandwidth of large direct
//! transfers depends on physically contiguous memory. Its pages come into being when they are first
//! touched, so memory that a kernel does not need costs nothing.

use std::fmt;
use std::io::Error;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leadline_base::buffer::HUGE_PAGE_BYTES;
use leadline_base::error::EngineError;

use leadline_wire::job::stream::StreamJob;

/// What a kernel has beside its arena: stacks, rings, lists of transfers, small vectors.
pub const OVERHEAD_BYTES: u64 = 8 << 20;

/// Alignment of every lease: what direct transfers ask for.
pub const PAGE_BYTES: usize = 4096;

/// A range of the arena that nobody leases.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Gap {
    start: usize,
    end: usize,
}

/// The mapping behind all regions.
struct Arena {
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    /// First byte handed out, aligned to a huge page.
    start: NonNull<u8>,
    /// In their order; none touches the next.
    gaps: Mutex<Vec<Gap>>,
}

// SAFETY: plain memory; regions of it do not overlap and each has one owner.
unsafe impl Send for Arena {}
// SAFETY: as above; the arena itself hands out no references, and its list has a lock.
unsafe impl Sync for Arena {}

impl Arena {
    fn gaps(&self) -> MutexGuard<'_, Vec<Gap>> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a range out of the gaps; none when no gap has room for it.
    fn lease(&self, bytes: usize) -> Option<usize> {
        let mut gaps = self.gaps();
        let large = bytes >= HUGE_PAGE_BYTES;
        // Large leases lie at the bottom on huge pages and small ones at the top, so that small
        // ones do not cut the room for large ones into pieces.
        let low = |align: usize| {
            gaps.iter().enumerate().find_map(|(index, gap)| {
                let start = gap.start.next_multiple_of(align);
                (start.checked_add(bytes)? <= gap.end).then_some((index, start))
            })
        };
        let high = || {
            gaps.iter().enumerate().rev().find_map(|(index, gap)| {
                let start = gap.end.checked_sub(bytes)? / PAGE_BYTES * PAGE_BYTES;
                (start >= gap.start).then_some((index, start))
            })
        };
        let found = if large { low(HUGE_PAGE_BYTES).or_else(|| low(PAGE_BYTES)) } else { high() };
        let (index, start) = found?;
        let gap = gaps.remove(index);
        let rest = [Gap { start: gap.start, end: start }, Gap { start: start + bytes, ..gap }];
        let rest = rest.into_iter().filter(|rest| rest.start < rest.end);
        gaps.splice(index..index, rest);
        Some(start)
    }

    fn give_back(&self, start: usize, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut gaps = self.gaps();
        let mut gap = Gap { start, end: start + bytes };
        let mut at = gaps.partition_point(|other| other.start < start);
        if let Some(next) = gaps.get(at).copied().filter(|next| next.start == gap.end) {
            gap.end = next.end;
            gaps.remove(at);
        }
        if let Some(previous) = at.checked_sub(1).and_then(|before| gaps.get(before).copied())
            && previous.end == gap.start
        {
            gap.start = previous.start;
            at -= 1;
            gaps.remove(at);
        }
        gaps.insert(at, gap);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped; regions hold the arena, so none is left.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// A job's memory; clones lease from the same arena.
#[derive(Clone)]
pub struct Memory {
    arena: Arc<Arena>,
}

impl Memory {
    /// Maps an arena of `bytes`.
    ///
    /// # Errors
    /// `Target` when the address space is not to be had.
    pub fn new(bytes: u64) -> Result<Self, EngineError> {
        let refused = |why: &dyn fmt::Display| {
            EngineError::target(format!(
                "{bytes} bytes of memory cannot be had: {why}; ask for less"
            ))
        };
        let bytes = usize::try_from(bytes).map_err(|error| refused(&error))?;
        let whole = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES);
        let mapped_bytes = whole
            .and_then(|bytes| bytes.checked_add(HUGE_PAGE_BYTES))
            .ok_or_else(|| refused(&"there are not so many addresses"))?;
        // SAFETY: a fresh anonymous mapping of a positive length.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let mapped = NonNull::new(address.cast::<u8>())
            .filter(|_| address != libc::MAP_FAILED)
            .ok_or_else(|| refused(&Error::last_os_error()))?;
        let skip = mapped.as_ptr().align_offset(HUGE_PAGE_BYTES).min(HUGE_PAGE_BYTES);
        // SAFETY: skip is at most a huge page, which the mapping has to spare.
        let start = unsafe { mapped.add(skip) };
        // SAFETY: within the mapping; advice only.
        unsafe {
            let length = mapped_bytes - HUGE_PAGE_BYTES;
            libc::madvise(start.as_ptr().cast(), length, libc::MADV_HUGEPAGE);
        }
        let gaps = Mutex::new(vec![Gap { start: 0, end: bytes }]);
        Ok(Self { arena: Arc::new(Arena { mapped, mapped_bytes, start, gaps }) })
    }

    /// The memory of a job: its limit less [`OVERHEAD_BYTES`].
    ///
    /// # Errors
    /// `Target` when the address space is not to be had.
    pub fn of(job: &StreamJob) -> Result<Self, EngineError> {
        Self::new(job.memory_bytes.saturating_sub(OVERHEAD_BYTES))
    }

    /// Bytes that are not leased.
    #[must_use]
    pub fn left(&self) -> usize {
        self.arena.gaps().iter().map(|gap| gap.end - gap.start).sum()
    }

    /// Bytes of the largest lease there can be, on huge pages.
    #[must_use]
    pub fn largest(&self) -> usize {
        let room = |gap: &Gap| gap.end.saturating_sub(gap.start.next_multiple_of(HUGE_PAGE_BYTES));
        self.arena.gaps().iter().map(room).max().unwrap_or(0)
    }

    /// Leases `bytes`, aligned to 4 KiB, and to 2 MiB when they are as many; dropped, they can be
    /// leased again. Their content is whatever it was.
    ///
    /// # Errors
    /// `BadJob` when the limit does not allow it.
    pub fn take(&self, bytes: usize) -> Result<Region, EngineError> {
        match self.arena.lease(bytes) {
            Some(start) => Ok(Region { arena: Arc::clone(&self.arena), start, length: bytes }),
            None => Err(EngineError::bad_job(format!(
                "a buffer of {bytes} bytes does not fit the memory limit, which has {} bytes left; \
                give more memory",
                self.left()
            ))),
        }
    }

    /// Leases `count` buffers of `bytes` each, next to each other where they fit that way.
    ///
    /// # Errors
    /// `BadJob` when the limit does not allow it.
    pub fn take_many(&self, count: usize, bytes: usize) -> Result<Vec<Region>, EngineError> {
        match count.checked_mul(bytes).and_then(|whole| self.take(whole).ok()) {
            Some(whole) if bytes > 0 => Ok(whole.split(bytes)),
            _ => (0..count).map(|_| self.take(bytes)).collect(),
        }
    }
}

/// Types that are nothing but bytes.
///
/// # Safety
/// Every pattern of bits is a value, there is no padding, and nothing is borrowed or shared.
pub unsafe trait Plain: Copy + Send + 'static {}

// SAFETY: a number without padding.
unsafe impl Plain for u8 {}
// SAFETY: a number without padding.
unsafe impl Plain for u16 {}
// SAFETY: a number without padding.
unsafe impl Plain for u32 {}
// SAFETY: a number without padding.
unsafe impl Plain for u64 {}
// SAFETY: a number without padding.
unsafe impl Plain for u128 {}

/// Contiguous memory that belongs to its holder until it is dropped.
pub struct Region {
    arena: Arc<Arena>,
    start: usize,
    length: usize,
}

impl Region {
    /// First byte.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.address().as_ptr()
    }

    fn address(&self) -> NonNull<u8> {
        // SAFETY: a lease lies within the arena.
        unsafe { self.arena.start.add(self.start) }
    }

    /// Consecutive pieces of `bytes` each; the last has the rest.
    #[must_use]
    pub fn split(mut self, bytes: usize) -> Vec<Self> {
        let (start, end) = (self.start, self.start + self.length);
        self.length = 0;
        (start..end)
            .step_by(bytes.max(1))
            .map(|start| Self {
                arena: Arc::clone(&self.arena),
                start,
                length: bytes.max(1).min(end - start),
            })
            .collect()
    }

    /// Both sides of `at`.
    ///
    /// # Errors
    /// `Fault` when it has no `at` bytes.
    pub fn split_at(mut self, at: usize) -> Result<(Self, Self), EngineError> {
        if at > self.length {
            return Err(EngineError::fault("a region was split behind its end"));
        }
        let length = std::mem::replace(&mut self.length, at);
        let (start, arena) = (self.start + at, Arc::clone(&self.arena));
        Ok((self, Self { arena, start, length: length - at }))
    }

    /// Neighbours as one again.
    ///
    /// # Errors
    /// `Fault` when they are none, or not in the order in which they lie.
    pub fn join(pieces: Vec<Self>) -> Result<Self, EngineError> {
        let mut pieces = pieces.into_iter();
        let mut whole =
            pieces.next().ok_or_else(|| EngineError::fault("no pieces of memory to join"))?;
        for mut piece in pieces {
            let next = piece.start == whole.start + whole.length;
            if !next || !Arc::ptr_eq(&piece.arena, &whole.arena) {
                return Err(EngineError::fault("joined pieces of memory are no neighbours"));
            }
            whole.length += std::mem::take(&mut piece.length);
        }
        Ok(whole)
    }

    /// The memory as items: as many as fit from the first aligned address on.
    pub fn as_slice_of<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: any bytes are a T, and the memory is exclusively ours.
        unsafe { self.align_to_mut().1 }
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped, zeroed by the kernel or written since, and exclusively ours.
        unsafe { std::slice::from_raw_parts(self.address().as_ptr(), self.length) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped, zeroed by the kernel or written since, and exclusively ours.
        unsafe { std::slice::from_raw_parts_mut(self.address().as_ptr(), self.length) }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Region({}..{})", self.start, self.start + self.length)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.arena.give_back(self.start, self.length);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_limit_is_kept_and_what_is_dropped_can_be_leased_again() {
        let memory = Memory::new(10 << 20).unwrap();
        let large = memory.take(8 << 20).unwrap();
        let small = memory.take(1_638_400).unwrap();
        assert_eq!(memory.left(), (2 << 20) - 1_638_400);
        assert!(memory.take(1 << 20).unwrap_err().message.contains("458752 bytes left"));
        drop(large);
        let again = memory.take(8 << 20).unwrap();
        drop((small, again));
        assert_eq!(memory.left(), 10 << 20);
        assert_eq!(memory.take(10 << 20).unwrap().len(), 10 << 20);
    }

    #[test]
    fn leases_are_aligned_and_apart() {
        let memory = Memory::new(16 << 20).unwrap();
        let mut leases: Vec<Region> =
            [100, 3 << 20, 4096, 1_638_400, 2 << 20, 5].map(|n| memory.take(n).unwrap()).into();
        for (index, lease) in leases.iter_mut().enumerate() {
            let align = if lease.len() >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
            assert_eq!(lease.as_mut_ptr() as usize % align, 0, "{lease:?}");
            lease.fill(index as u8 + 1);
        }
        for (index, lease) in leases.iter().enumerate() {
            assert!(lease.iter().all(|byte| usize::from(*byte) == index + 1));
        }
    }

    #[test]
    fn pieces_join_again_only_as_neighbours() {
        let memory = Memory::new(4 << 20).unwrap();
        let pieces = memory.take(1_000_000).unwrap().split(300_000);
        assert_eq!(
            pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>(),
            [300_000, 300_000, 300_000, 100_000]
        );
        let whole = Region::join(pieces).unwrap();
        assert_eq!(whole.len(), 1_000_000);
        let (first, second) = whole.split_at(600_000).unwrap();
        assert!(Region::join(vec![second, first]).is_err());
        assert_eq!(memory.left(), 4 << 20, "whatever became of them");
    }

    #[test]
    fn memory_is_seen_as_numbers() {
        let memory = Memory::new(1 << 20).unwrap();
        let mut lease = memory.take(4099).unwrap();
        lease.fill(1);
        let numbers = lease.as_slice_of::<u64>();
        assert_eq!(numbers.len(), 512);
        assert!(numbers.iter().all(|number| *number == 0x0101_0101_0101_0101));
    }
}
