//! One arena of memory for all issuers' buffers.
//!
//! Large direct transfers depend on physically contiguous memory (measured: 3.0 against 1.1 GiB/s),
//! so the arena is aligned to 2 MiB and asks for huge pages. A slice is a power of two up to 2 MiB,
//! or a multiple of 2 MiB, so none straddles a huge page needlessly. The arena is filled with
//! random bytes once, so that what is written does not compress.

use std::io::Error;
use std::ptr::NonNull;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::error::EngineError;

/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Most bytes one issuer's buffer has; longer requests are moved in pieces of this size.
pub const SLICE_BYTES_MAX: usize = 8 << 20;

/// Most bytes all buffers together have, so that they do not eat the cache being measured.
pub const ARENA_BYTES_MAX: usize = 64 << 20;

const SLICE_BYTES_MIN: usize = 4096;

/// Bytes of one issuer's buffer: enough for `request_bytes`, at least a page, and within both
/// limits above.
#[must_use]
pub fn slice_bytes(request_bytes: u64, issuers: usize) -> usize {
    let share = (ARENA_BYTES_MAX / issuers.max(1)).max(64 << 10);
    let share = if share >= HUGE_PAGE_BYTES {
        share / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
    } else {
        previous_power_of_two(share)
    };
    let wanted = usize::try_from(request_bytes)
        .unwrap_or(usize::MAX)
        .clamp(SLICE_BYTES_MIN, SLICE_BYTES_MAX);
    let rounded = if wanted > HUGE_PAGE_BYTES {
        wanted.next_multiple_of(HUGE_PAGE_BYTES)
    } else {
        wanted.next_power_of_two()
    };
    rounded.min(share)
}

fn previous_power_of_two(number: usize) -> usize {
    1 << number.ilog2()
}

/// The mapping behind all slices.
#[derive(Debug)]
struct Arena {
    mapped: NonNull<u8>,
    mapped_bytes: usize,
}

// SAFETY: the arena is plain memory; slices of it do not overlap and each has one owner.
unsafe impl Send for Arena {}
// SAFETY: as above; the arena itself hands out no references.
unsafe impl Sync for Arena {}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped, and no slice outlives the arena (they hold
        // it).
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// One issuer's part of the arena; it alone touches it.
#[derive(Debug)]
pub struct BufferSlice {
    _arena: Arc<Arena>,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a slice is exclusively owned memory.
unsafe impl Send for BufferSlice {}

impl BufferSlice {
    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never true; a slice has at least a page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// First byte.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: mapped, initialised when the arena was filled, and exclusively ours.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

/// Maps `count` buffers of `length` bytes (see [`slice_bytes`]) and fills them with random bytes.
///
/// # Errors
/// `Io` when the memory is not to be had.
pub fn allocate(count: usize, length: usize, seed: u64) -> Result<Vec<BufferSlice>, EngineError> {
    let used = count * length;
    let huge = used >= HUGE_PAGE_BYTES;
    let mapped_bytes = if huge {
        used.next_multiple_of(HUGE_PAGE_BYTES) + HUGE_PAGE_BYTES
    } else {
        used.next_multiple_of(4096)
    };
    // SAFETY: a fresh anonymous mapping of a positive length.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            mapped_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    let mapped = match NonNull::new(address.cast::<u8>()) {
        Some(mapped) if address != libc::MAP_FAILED => mapped,
        _ => {
            let error = Error::last_os_error();
            return Err(EngineError::io(format!(
                "{mapped_bytes} bytes for buffers cannot be had: {error}; ask for fewer processes"
            )));
        }
    };
    let arena = Arc::new(Arena { mapped, mapped_bytes });
    let skip = if huge { mapped.as_ptr().align_offset(HUGE_PAGE_BYTES) } else { 0 };
    let slices: Vec<BufferSlice> = (0..count)
        .filter_map(|index| {
            // SAFETY: skip < 2 MiB and skip + used <= mapped_bytes by the sizes above.
            let start = NonNull::new(unsafe { mapped.as_ptr().add(skip + index * length) })?;
            Some(BufferSlice { _arena: Arc::clone(&arena), start, length })
        })
        .collect();
    if huge {
        // SAFETY: within the mapping; advice only.
        unsafe {
            libc::madvise(
                mapped.as_ptr().add(skip).cast(),
                used.next_multiple_of(HUGE_PAGE_BYTES),
                libc::MADV_HUGEPAGE,
            )
        };
    }
    let mut slices = slices;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    slices.iter_mut().for_each(|slice| fill(slice.as_mut_slice(), &mut random));
    Ok(slices)
}

/// Fills memory with random bytes, 8 at a time.
pub fn fill(bytes: &mut [u8], random: &mut Xoshiro256PlusPlus) {
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_le_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn buffers_fit_the_request_and_the_limits() {
        assert_eq!(slice_bytes(512, 1), 4096);
        assert_eq!(slice_bytes(20_000, 4), 32_768);
        assert_eq!(slice_bytes(3 << 20, 1), 4 << 20);
        assert_eq!(slice_bytes(1 << 40, 1), SLICE_BYTES_MAX);
        assert_eq!(slice_bytes(1 << 40, 1024), 64 << 10);
        for issuers in [1, 2, 3, 7, 16, 64, 1000] {
            assert!(slice_bytes(1 << 40, issuers) * issuers <= ARENA_BYTES_MAX, "{issuers}");
        }
    }

    #[test]
    fn buffers_are_apart_aligned_and_random() {
        let mut slices = allocate(3, 1 << 20, 1).unwrap();
        assert_eq!(slices[0].as_mut_ptr() as usize % HUGE_PAGE_BYTES, 0);
        let parts: Vec<Vec<u8>> =
            slices.iter_mut().map(|slice| slice.as_mut_slice().to_vec()).collect();
        assert!(parts[0] != parts[1] && parts[1] != parts[2]);
        let mut counts = [0u32; 256];
        parts[0].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (3600..4600).contains(count)), "{counts:?}");
    }
}
