//! One arena of memory for all workers' buffers.
//!
//! Large direct transfers depend on physically contiguous memory (measured: 3.0 against 1.1 GiB/s),
//! so the arena is aligned to 2 MiB and asks for huge pages. A slice is a power of two up to 2 MiB,
//! or a multiple of 2 MiB, so none straddles a huge page needlessly. The arena is filled with
//! random bytes once; what is written of a slice is made new before each write.

use std::io::Error;
use std::ptr::NonNull;
use std::sync::Arc;

use leadline_wire::job::backend::Content;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::clock::now_ns;
use crate::error::EngineError;

/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Most bytes one worker's buffer has; longer requests are moved in pieces of this size.
pub const SLICE_BYTES_MAX: usize = 8 << 20;

/// Most bytes all buffers together have, so that they do not eat the cache being measured.
pub const ARENA_BYTES_MAX: usize = 64 << 20;

const SLICE_BYTES_MIN: usize = 4096;

const PAGE_BYTES: usize = 4096;

/// Bytes of one worker's buffer: enough for `request_bytes`, at least a page, and within both
/// limits above.
#[must_use]
pub fn slice_bytes(request_bytes: u64, workers: usize) -> usize {
    let share = (ARENA_BYTES_MAX / workers.max(1)).max(64 << 10);
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

/// One worker's part of the arena; it alone touches it.
#[derive(Debug)]
pub struct BufferSlice {
    _arena: Arc<Arena>,
    start: NonNull<u8>,
    length: usize,
    /// Differs for each write of each slice.
    stamp: u64,
    filling: Option<Filling>,
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

    /// Makes the first `length` bytes, which are about to be written, new: each page of 4 KiB gets
    /// eight bytes that none had before, so that storage that removes duplicates finds none. Where a
    /// content is asked for all that is random of it changes, or, of a copy, nothing: it then is what
    /// was written or read last.
    #[inline]
    pub fn renew(&mut self, length: usize) {
        if let Some(filling) = self.filling {
            return self.refill(filling, length);
        }
        let mut stamp = self.stamp;
        for page in self.as_mut_slice()[..length].chunks_mut(PAGE_BYTES) {
            stamp = stamp.wrapping_add(STAMP_STEP);
            let bytes = page.len().min(8);
            page[..bytes].copy_from_slice(&stamp.to_le_bytes()[..bytes]);
        }
        self.stamp = stamp;
    }

    /// Gives the memory of the first pages back to the kernel: each is empty now, and the next to touch
    /// it has a page fault, as a program that reads into memory it has just allocated.
    pub fn give_back(&mut self, pages: usize) {
        let length = pages.saturating_mul(PAGE_BYTES).min(self.length);
        // SAFETY: whole pages of memory that is ours alone; they read as zeros afterwards.
        unsafe {
            libc::madvise(self.as_mut_ptr().cast(), self.length, libc::MADV_NOHUGEPAGE);
            libc::madvise(self.as_mut_ptr().cast(), length, libc::MADV_DONTNEED);
        }
    }

    fn refill(&mut self, filling: Filling, length: usize) {
        self.stamp = self.stamp.wrapping_add(STAMP_STEP);
        if filling.copies(self.stamp) {
            return;
        }
        let word = mixed(self.stamp);
        for chunk in self.as_mut_slice()[..length].chunks_mut(CHUNK_BYTES) {
            let random = filling.random_bytes.min(chunk.len());
            // SAFETY: any eight bytes are a u64; a slice begins at a page, so that words do too.
            let (_, words, rest) = unsafe { chunk[..random].align_to_mut::<u64>() };
            words.iter_mut().for_each(|it| *it ^= word);
            rest.iter_mut().zip(word.to_ne_bytes()).for_each(|(byte, other)| *byte ^= other);
        }
    }
}

/// How to make data that compress to a stated ratio and of which a stated share are copies.
///
/// Each [`CHUNK_BYTES`] begin with random bytes and end with zeros. What is laid out is a copy, or
/// none, in units of [`UNIT_BYTES`]; a copy has one of [`ORIGINALS`] contents.
#[derive(Clone, Copy, Debug)]
struct Filling {
    random_bytes: usize,
    copies_below: f64,
}

/// Bytes of which each begins with its random part: no block that storage compresses is smaller.
const CHUNK_BYTES: usize = 512;

/// What lz4, zlib and zstd need, in the mean, to say where the zeros of a chunk begin and end.
const CHUNK_COST_BYTES: f64 = 5.0;

/// Bytes that are laid out as a copy or as none: blocks that storage compares are no longer.
const UNIT_BYTES: u64 = 128 << 10;

/// Contents that copies have.
const ORIGINALS: u64 = 16;

impl From<Content> for Filling {
    fn from(content: Content) -> Self {
        let random = match content.compress {
            ratio if ratio > 1.0 => CHUNK_BYTES as f64 / ratio - CHUNK_COST_BYTES,
            _ => CHUNK_BYTES as f64,
        };
        Self { random_bytes: random.round() as usize, copies_below: content.dedup }
    }
}

impl Filling {
    fn copies(self, draw: u64) -> bool {
        // The upper 53 bits of another mix than the words', as a share.
        ((mixed(!draw) >> 11) as f64 / (1u64 << 53) as f64) < self.copies_below
    }

    /// Fills memory with what lies at `at` of a data set; another seed makes other data.
    fn fill(self, bytes: &mut [u8], at: u64, seed: u64) {
        let mut from = 0;
        while from < bytes.len() {
            let unit = (at + from as u64) / UNIT_BYTES;
            let to = (((unit + 1) * UNIT_BYTES - at) as usize).min(bytes.len());
            let draw = mixed(seed ^ mixed(unit));
            let own = if self.copies(draw) { draw % ORIGINALS } else { draw };
            let unit = &mut bytes[from..to];
            fill(unit, &mut Xoshiro256PlusPlus::seed_from_u64(own));
            unit.chunks_mut(CHUNK_BYTES)
                .for_each(|chunk| chunk.iter_mut().skip(self.random_bytes).for_each(|it| *it = 0));
            from = to;
        }
    }
}

/// A number whose every bit depends on each of another's (SplitMix64's last step).
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Odd, so that a stamp comes back after 2^64 pages only.
const STAMP_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

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
            Some(BufferSlice { _arena: Arc::clone(&arena), start, length, stamp: 0, filling: None })
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
    for slice in &mut slices {
        fill(slice.as_mut_slice(), &mut random);
        slice.stamp = random.next_u64() ^ now_ns();
    }
    Ok(slices)
}

/// `count` buffers from which requests of up to `request_bytes` are written, longer ones in pieces,
/// with data of a content where one is asked for.
///
/// # Errors
/// `Io` when the memory is not to be had.
pub fn for_requests(
    count: usize,
    request_bytes: u64,
    seed: u64,
    content: Option<Content>,
) -> Result<Vec<BufferSlice>, EngineError> {
    let mut slices = allocate(count, slice_bytes(request_bytes, count), seed)?;
    for slice in &mut slices {
        slice.filling = content.map(Filling::from);
        let seed = slice.stamp;
        if let Some(filling) = slice.filling {
            filling.fill(slice.as_mut_slice(), 0, seed);
        }
    }
    Ok(slices)
}

/// Fills memory with what is to be laid out at `at`: new bytes each time, of a content if one is asked
/// for.
pub fn fill_layout(bytes: &mut [u8], at: u64, content: Option<Content>) {
    let seed = at ^ now_ns();
    match content {
        Some(content) => Filling::from(content).fill(bytes, at, seed),
        None => fill(bytes, &mut Xoshiro256PlusPlus::seed_from_u64(seed)),
    }
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
        for workers in [1, 2, 3, 7, 16, 64, 1000] {
            assert!(slice_bytes(1 << 40, workers) * workers <= ARENA_BYTES_MAX, "{workers}");
        }
    }

    fn faults() -> i64 {
        // SAFETY: a plain structure that the kernel fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        usage.ru_minflt
    }

    #[test]
    fn memory_that_was_given_back_comes_anew_and_empty() {
        let mut slices = allocate(2, 64 * PAGE_BYTES, 1).unwrap();
        let kept = slices[1].as_mut_slice().to_vec();
        let end = slices[0].as_mut_slice()[60 * PAGE_BYTES..].to_vec();
        slices[0].give_back(60);
        let before = faults();
        for page in slices[0].as_mut_slice()[..60 * PAGE_BYTES].chunks_mut(PAGE_BYTES) {
            assert!(page.iter().all(|byte| *byte == 0));
            page[0] = 1;
        }
        assert!(faults() - before >= 60, "{}", faults() - before);
        assert_eq!(&slices[0].as_mut_slice()[60 * PAGE_BYTES..], end);
        slices[0].give_back(usize::MAX);
        assert_eq!(slices[1].as_mut_slice(), kept, "nobody else's");
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

    fn filling(compress: f64, dedup: f64) -> Filling {
        Filling::from(Content { compress, dedup })
    }

    #[test]
    fn a_layout_has_the_share_of_copies_asked_for_wherever_it_begins() {
        let unit = UNIT_BYTES as usize;
        let mut bytes = vec![1; 256 * unit];
        let (first, second) = bytes.split_at_mut(100 * unit + 4096);
        filling(2.0, 0.5).fill(first, 0, 7);
        filling(2.0, 0.5).fill(second, first.len() as u64, 7);
        let distinct: std::collections::HashSet<&[u8]> = bytes.chunks(unit).collect();
        // Half of 256 are new (8 is their standard deviation), the others are 16 contents.
        assert!((128 + 16 - 32..128 + 16 + 32).contains(&distinct.len()), "{}", distinct.len());
        let zeros = bytes.iter().filter(|byte| **byte == 0).count() as f64 / bytes.len() as f64;
        assert!((zeros - 0.512).abs() < 0.01, "{zeros}");
    }

    #[test]
    fn writes_are_copies_of_the_last_one_as_often_as_asked_for() {
        let content = Some(Content { compress: 3.0, dedup: 0.25 });
        let mut slice = for_requests(1, 4096, 1, content).unwrap().remove(0);
        let (mut copies, mut last) = (0, slice.as_mut_slice().to_vec());
        for _ in 0..4000 {
            slice.renew(4096);
            let now = slice.as_mut_slice().to_vec();
            assert!(now.chunks(512).all(|chunk| chunk[166..].iter().all(|byte| *byte == 0)));
            copies += u32::from(now == last);
            last = now;
        }
        assert!((900..1100).contains(&copies), "{copies}");
    }

    #[test]
    fn the_end_of_a_write_that_is_no_chunk_is_renewed_too() {
        let content = Some(Content { compress: 1.0, dedup: 0.0 });
        let mut slice = for_requests(1, 4096, 1, content).unwrap().remove(0);
        let before = slice.as_mut_slice().to_vec();
        slice.renew(1000);
        let after = slice.as_mut_slice();
        assert!((0..125).all(|word| before[word * 8..][..8] != after[word * 8..][..8]));
        assert_eq!(before[1000..], after[1000..]);
    }
}
