//! Striping over several files (AD98 §4: a user-level layer with a unit of 64 KiB): where the bytes
//! of a part of a data set lie.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leadline_base::beneath::{Way, reopen};

use crate::memory::PAGE_BYTES;

/// Most bytes one transfer moves; more than a chunk, so that a chunk of one disk is one transfer.
const TRANSFER_BYTES_MAX: usize = 2 << 20;

/// Most pieces of memory in one transfer (`IOV_MAX`).
const PIECES_MAX: usize = 1024;

/// One file, open twice where it is to be moved past the cache: fragments of a block cannot be.
#[derive(Debug)]
pub(crate) struct StripeFile {
    /// As the user knows it; a file without a name has that of its directory.
    pub path: PathBuf,
    pub file: File,
    direct: Option<File>,
    direct_refused: AtomicBool,
}

impl StripeFile {
    /// Takes a file that is open for reading, or for reading and writing, and opens it once more
    /// for direct transfers when `direct`. A file system that has none is used through its cache.
    pub fn new(path: PathBuf, file: File, direct: bool, write: bool) -> Self {
        // A file without a name can be opened again by its number alone.
        let again = || reopen(&file, Way { write, direct: true, dsync: false }).ok();
        let direct_file = direct.then(again).flatten();
        let refused = direct && direct_file.is_none();
        if direct {
            // Fragments are read beside direct transfers: nothing is to be read ahead for them.
            // SAFETY: a valid descriptor; advice only.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        }
        Self { path, file, direct: direct_file, direct_refused: AtomicBool::new(refused) }
    }

    /// The file for direct transfers, while the file system allows them.
    pub fn direct(&self) -> Option<&File> {
        self.direct.as_ref().filter(|_| !self.refuses_direct())
    }

    /// Whether direct transfers were asked for and are not to be had.
    pub fn refuses_direct(&self) -> bool {
        self.direct_refused.load(Ordering::Relaxed)
    }

    /// Called when the file system refuses a direct transfer that it had promised.
    pub fn refuse_direct(&self) {
        self.direct_refused.store(true, Ordering::Relaxed);
    }
}

/// A part of a data set: files that take turns, `unit` bytes each.
#[derive(Debug)]
pub(crate) struct Stripes {
    pub files: Vec<StripeFile>,
    pub unit: u64,
}

/// Consecutive bytes of one file and the pieces of memory they belong to.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Number of the file among the stripes.
    pub file: usize,
    /// Where in the file.
    pub at: u64,
    pub pieces: Vec<libc::iovec>,
    pub bytes: usize,
}

impl Transfer {
    fn fits(&self, at: u64, bytes: usize) -> bool {
        self.at + self.bytes as u64 == at
            && self.bytes + bytes <= TRANSFER_BYTES_MAX
            && self.pieces.len() < PIECES_MAX
            && self.bytes.is_multiple_of(PAGE_BYTES)
            && bytes.is_multiple_of(PAGE_BYTES)
    }

    /// Whether file and memory lie as direct transfers ask for.
    pub fn is_aligned(&self) -> bool {
        self.at.is_multiple_of(PAGE_BYTES as u64)
            && self
                .pieces
                .iter()
                .all(|piece| (piece.iov_base as usize | piece.iov_len).is_multiple_of(PAGE_BYTES))
    }

    /// Takes what is done off the front.
    pub fn advance(&mut self, mut moved: usize) {
        self.at += moved as u64;
        self.bytes -= moved.min(self.bytes);
        while let Some(piece) = self.pieces.first_mut() {
            if moved < piece.iov_len {
                piece.iov_base = piece.iov_base.cast::<u8>().wrapping_add(moved).cast();
                piece.iov_len -= moved;
                return;
            }
            moved -= piece.iov_len;
            self.pieces.remove(0);
        }
    }
}

impl Stripes {
    /// Bytes of `file` when the part has `bytes`.
    pub fn bytes_of(&self, file: usize, bytes: u64) -> u64 {
        stripe_bytes(bytes, self.unit, self.files.len(), file)
    }

    /// Calls `each` with (file, offset in it, offset in the range, bytes) for every unit of a
    /// range, in order.
    pub fn units(
        &self,
        offset: u64,
        length: usize,
        mut each: impl FnMut(usize, u64, usize, usize),
    ) {
        let disks = self.files.len() as u64;
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let (unit, within) =
                if disks == 1 { (0, at) } else { (at / self.unit, at % self.unit) };
            let rest = if disks == 1 { u64::MAX } else { self.unit - within };
            let bytes = rest.min((length - done) as u64) as usize;
            let place = (unit / disks.max(1)) * self.unit + within;
            each((unit % disks.max(1)) as usize, place, done, bytes);
            done += bytes;
        }
    }

    /// The transfers that move `length` bytes from `offset` on, from or to memory at `memory`.
    /// The fragment of a block at the end is a transfer of its own: it cannot pass the cache.
    pub fn transfers(&self, offset: u64, length: usize, memory: *mut u8) -> Vec<Transfer> {
        let mut done: Vec<Transfer> = Vec::new();
        let mut last_of: Vec<Option<usize>> = vec![None; self.files.len()];
        self.units(offset, length, |file, at, place, bytes| {
            let mut from = 0;
            while from < bytes {
                let piece = (bytes - from).min(TRANSFER_BYTES_MAX);
                let blocks = piece / PAGE_BYTES * PAGE_BYTES;
                let piece = if blocks > 0 { blocks } else { piece };
                let vector = libc::iovec {
                    iov_base: memory.wrapping_add(place + from).cast(),
                    iov_len: piece,
                };
                let at = at + from as u64;
                let last = last_of[file].and_then(|index| done.get_mut(index));
                if let Some(last) = last.filter(|last| last.fits(at, piece)) {
                    last.pieces.push(vector);
                    last.bytes += piece;
                } else {
                    last_of[file] = Some(done.len());
                    done.push(Transfer { file, at, pieces: vec![vector], bytes: piece });
                }
                from += piece;
            }
        });
        done
    }
}

/// Bytes on disk number `disk` of `disks` when `bytes` are dealt out in units.
pub(crate) fn stripe_bytes(bytes: u64, unit: u64, disks: usize, disk: usize) -> u64 {
    if disks <= 1 {
        return bytes;
    }
    let (units, rest) = (bytes / unit, bytes % unit);
    let (disks, disk) = (disks as u64, disk as u64);
    let whole = units / disks + u64::from(disk < units % disks);
    whole * unit + if units % disks == disk { rest } else { 0 }
}

/// Part of a data set, and where in it the part begins.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub start: u64,
    pub bytes: u64,
    pub stripes: Arc<Stripes>,
}

impl Extent {
    /// The part of `offset..offset + length` that lies here: where in the extent, where in the
    /// range, and how many bytes.
    pub fn overlap(&self, offset: u64, length: usize) -> Option<(u64, usize, usize)> {
        let from = offset.max(self.start);
        let to = (offset + length as u64).min(self.start.saturating_add(self.bytes));
        let place = usize::try_from(from - offset).ok()?;
        (from < to).then(|| (from - self.start, place, (to - from) as usize))
    }
}

/// "at byte N of FILE", for errors.
pub(crate) fn place(path: &Path, at: u64) -> String {
    format!("at byte {at} of {}", path.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn stripes(disks: usize, unit: u64) -> Stripes {
        let file =
            || StripeFile::new("/dev/null".into(), File::open("/dev/null").unwrap(), false, false);
        Stripes { files: (0..disks).map(|_| file()).collect(), unit }
    }

    #[test]
    fn a_chunk_is_one_transfer_for_each_disk() {
        for disks in 1..=5 {
            let base = 4096 as *mut u8;
            for chunk in 0..4u64 {
                let transfers = stripes(disks, 65536).transfers(chunk * 1_638_400, 1_638_400, base);
                assert_eq!(transfers.len(), disks);
                assert!(transfers.iter().all(Transfer::is_aligned));
                assert_eq!(transfers.iter().map(|transfer| transfer.bytes).sum::<usize>(), 1638400);
            }
        }
    }

    #[test]
    fn a_fragment_of_a_block_goes_apart() {
        let transfers = stripes(1, 65536).transfers(8192, 10_000, 4096 as *mut u8);
        let found: Vec<_> =
            transfers.iter().map(|transfer| (transfer.at, transfer.bytes)).collect();
        assert_eq!(found, [(8192, 8192), (16384, 1808)]);
        assert_eq!(transfers.iter().map(Transfer::is_aligned).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn what_was_moved_is_taken_off_the_front() {
        let mut transfers = stripes(2, 4096).transfers(0, 3 * 4096, 4096 as *mut u8);
        let first = &mut transfers[0];
        first.advance(4096 + 512);
        assert_eq!((first.at, first.bytes, first.pieces.len()), (4608, 3584, 1));
        assert_eq!(first.pieces[0].iov_base as usize, 4096 + 2 * 4096 + 512);
        first.advance(3584);
        assert!(first.pieces.is_empty());
    }

    proptest! {
        #[test]
        fn every_byte_has_one_place_and_the_stripes_have_their_lengths(
            disks in 1usize..6,
            unit in (1u64..40).prop_map(|pages| pages * 4096),
            offset in 0u64..10_000_000,
            length in 0usize..5_000_000,
        ) {
            let set = stripes(disks, unit);
            let base = 1 << 30;
            let mut next = vec![None; disks];
            let mut total = 0;
            for transfer in set.transfers(offset, length, base as *mut u8) {
                // Each file's transfers are consecutive, and each piece is where its bytes belong.
                prop_assert!(next[transfer.file].is_none_or(|next| next == transfer.at));
                let mut at = transfer.at;
                for piece in &transfer.pieces {
                    let in_set = if disks == 1 {
                        at
                    } else {
                        (at / unit * disks as u64 + transfer.file as u64) * unit + at % unit
                    };
                    prop_assert_eq!(in_set - offset, (piece.iov_base as usize - base) as u64);
                    prop_assert!(disks == 1 || at % unit + piece.iov_len as u64 <= unit);
                    at += piece.iov_len as u64;
                    total += piece.iov_len;
                }
                prop_assert_eq!(at - transfer.at, transfer.bytes as u64);
                next[transfer.file] = Some(at);
            }
            prop_assert_eq!(total, length);
            let bytes = offset + length as u64;
            let sum: u64 = (0..disks).map(|disk| set.bytes_of(disk, bytes)).sum();
            prop_assert_eq!(sum, bytes);
            for (disk, next) in next.iter().enumerate() {
                prop_assert!(next.is_none_or(|next| next == set.bytes_of(disk, bytes)));
            }
        }
    }
}
