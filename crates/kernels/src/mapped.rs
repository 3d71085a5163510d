//! The input as a mapping with sequential advice, as AD98 §4 reads it.

use std::collections::VecDeque;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use leadline_base::error::EngineError;

use crate::memory::{PAGE_BYTES, Region};
use crate::stripes::{Extent, StripeFile, place};

/// A file, mapped whole.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: memory of a file that is only read.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: &StripeFile, bytes: u64) -> Result<Self, EngineError> {
        let refused = |error: &dyn std::fmt::Display| {
            EngineError::target(format!(
                "{} cannot be mapped into memory: {error}; read it by uring",
                file.path.display()
            ))
        };
        let length = usize::try_from(bytes).map_err(|error| refused(&error))?;
        if length == 0 {
            return Ok(Self { start: NonNull::dangling(), length });
        }
        // SAFETY: a fresh mapping of an open file, of a positive length.
        let address = unsafe {
            let file = file.file.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file, 0)
        };
        let start = NonNull::new(address.cast::<u8>())
            .filter(|_| address != libc::MAP_FAILED)
            .ok_or_else(|| refused(&Error::last_os_error()))?;
        // SAFETY: exactly the range that was mapped; advice only.
        unsafe { libc::madvise(address, length, libc::MADV_SEQUENTIAL) };
        Ok(Self { start, length })
    }

    /// Calls `madvise` for the pages of a range.
    fn advise(&self, at: u64, bytes: usize, advice: i32) -> Result<(), Error> {
        let from = at as usize / PAGE_BYTES * PAGE_BYTES;
        let to = (at as usize + bytes).min(self.length);
        if from >= to {
            return Ok(());
        }
        // SAFETY: within the mapping, from a page's first byte on.
        let code =
            unsafe { libc::madvise(self.start.as_ptr().add(from).cast(), to - from, advice) };
        if code == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    }

    fn bytes(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(bytes).filter(|end| *end <= self.length)?;
        // SAFETY: within the mapping, which is only read.
        unsafe { Some(std::slice::from_raw_parts(self.start.as_ptr().add(at), end - at)) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: exactly the range that was mapped; slices of it borrow the mapping.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

/// A data set, mapped file by file.
#[derive(Debug)]
pub(crate) struct Maps {
    extents: Vec<Extent>,
    /// For every extent its files.
    files: Vec<Vec<Mapping>>,
}

impl Maps {
    pub fn new(extents: Vec<Extent>) -> Result<Self, EngineError> {
        let map = |extent: &Extent| {
            let files = extent.stripes.files.iter().enumerate();
            files
                .map(|(number, file)| {
                    Mapping::new(file, extent.stripes.bytes_of(number, extent.bytes))
                })
                .collect()
        };
        let files = extents.iter().map(map).collect::<Result<_, _>>()?;
        Ok(Self { extents, files })
    }

    /// Asks the kernel to read a range ahead.
    pub fn will_need(&self, offset: u64, length: usize) {
        for (mapping, _, at, bytes) in self.stretches(offset, length) {
            // Advice; what cannot be read shows when it is.
            let _ = mapping.advise(at, bytes, libc::MADV_WILLNEED);
        }
    }

    /// The bytes of a range where they lie, when they lie in one piece.
    pub fn slice(&self, offset: u64, length: usize) -> Result<Option<&[u8]>, EngineError> {
        self.fetch(offset, length)?;
        let mut found = None;
        self.each(offset, length, |mapping, at, _, bytes| {
            if bytes == length {
                found = mapping.bytes(at, bytes);
            }
        });
        Ok(found)
    }

    pub fn copy(&self, offset: u64, length: usize, into: &mut [u8]) -> Result<(), EngineError> {
        self.fetch(offset, length)?;
        let mut copied = 0;
        self.each(offset, length, |mapping, at, place, bytes| {
            let from = mapping.bytes(at, bytes);
            if let Some((from, to)) = from.zip(into.get_mut(place..place + bytes)) {
                to.copy_from_slice(from);
                copied += bytes;
            }
        });
        if copied == length {
            return Ok(());
        }
        Err(EngineError::fault("a copy of more bytes than are mapped, or than there is room for"))
    }

    /// Makes the pages of a range present before they are touched: a page that cannot be read would
    /// be a SIGBUS.
    fn fetch(&self, offset: u64, length: usize) -> Result<(), EngineError> {
        for (mapping, file, at, bytes) in self.stretches(offset, length) {
            match mapping.advise(at, bytes, libc::MADV_POPULATE_READ) {
                Ok(()) => {}
                // Kernels before 5.14 do not know the advice.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(unreadable(file, at, bytes, &error)),
            }
        }
        Ok(())
    }

    /// The consecutive bytes of each file that a range lies in: mapping, file, where, how many.
    fn stretches(&self, offset: u64, length: usize) -> Vec<(&Mapping, &StripeFile, u64, usize)> {
        let mut found = Vec::new();
        for (extent, files) in self.extents.iter().zip(&self.files) {
            let Some((start, _, bytes)) = extent.overlap(offset, length) else { continue };
            let mut ends: Vec<Option<(u64, u64)>> = vec![None; files.len()];
            extent.stripes.units(start, bytes, |file, at, _, bytes| {
                let begin = ends[file].map_or(at, |(begin, _)| begin);
                ends[file] = Some((begin, at + bytes as u64));
            });
            let stretches = ends.iter().enumerate().filter_map(|(file, ends)| {
                let (begin, end) = (*ends)?;
                Some((&files[file], &extent.stripes.files[file], begin, (end - begin) as usize))
            });
            found.extend(stretches);
        }
        found
    }

    /// Calls `each` with (mapping, offset in it, offset in the range, bytes) in order.
    fn each<'a>(
        &'a self,
        offset: u64,
        length: usize,
        mut each: impl FnMut(&'a Mapping, u64, usize, usize),
    ) {
        for (extent, files) in self.extents.iter().zip(&self.files) {
            let Some((start, first, bytes)) = extent.overlap(offset, length) else { continue };
            extent.stripes.units(start, bytes, |file, at, place, bytes| {
                each(&files[file], at, first + place, bytes);
            });
        }
    }
}

fn unreadable(file: &StripeFile, at: u64, bytes: usize, error: &Error) -> EngineError {
    // What touching the pages would have met with a SIGBUS.
    let code = error.raw_os_error().filter(|code| *code != libc::EFAULT).unwrap_or(libc::EIO);
    let error = Error::from_raw_os_error(code);
    EngineError::io(format!(
        "reading {bytes} bytes failed {}: {error}; look at the kernel log for the disk below it, \
        and whether the file was shortened",
        place(&file.path, at)
    ))
}

/// Reads from a mapping: the caller's thread copies, as in AD98 §4.
pub(crate) struct MappedReads {
    maps: Arc<Maps>,
    orders: VecDeque<(u64, usize, Region)>,
    copied: u64,
}

impl MappedReads {
    pub fn new(maps: Arc<Maps>) -> Self {
        Self { maps, orders: VecDeque::new(), copied: 0 }
    }

    pub fn submit(&mut self, offset: u64, length: usize, into: Region) {
        self.maps.will_need(offset, length);
        self.orders.push_back((offset, length, into));
    }

    pub fn take(&mut self) -> Result<(u64, usize, Region), EngineError> {
        let (offset, length, mut into) = self
            .orders
            .pop_front()
            .ok_or_else(|| EngineError::fault("a lane was asked for more than was submitted"))?;
        self.maps.copy(offset, length, &mut into)?;
        self.copied += length as u64;
        Ok((offset, length, into))
    }

    pub fn pending(&self) -> usize {
        self.orders.len()
    }

    pub fn copied_bytes(&self) -> u64 {
        self.copied
    }
}
