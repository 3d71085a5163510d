//! Whether the bytes of a file really lie on the device, asked of the file system before a read is
//! believed.
//!
//! A hole or an extent that was only reserved is answered without the device (measured: 1.2 M
//! against 19 k reads per second), and bytes that the file system keeps compressed or beside its
//! own records are not the bytes that were asked for. `FIEMAP` tells all of these apart
//! (Documentation/filesystems/fiemap); where a file system has no such map, `SEEK_HOLE` still finds
//! the holes.

use std::fs::File;
use std::io::Error;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use leadline_base::error::EngineError;

/// Extents asked for in one call.
const PAGE_EXTENTS: usize = 256;

/// Most extents looked at; a file in more pieces is not looked at to its end. 64 GiB in pieces of
/// 64 KiB are within.
const EXTENTS_MAX: usize = 1 << 20;

/// Most data-and-hole pairs followed where only holes can be found.
const HOLES_MAX: usize = 1 << 16;

const FIEMAP_FLAG_SYNC: u32 = 0x1;
const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;
const FIEMAP_EXTENT_DELALLOC: u32 = 0x4;
const FIEMAP_EXTENT_ENCODED: u32 = 0x8;
const FIEMAP_EXTENT_DATA_ENCRYPTED: u32 = 0x80;
const FIEMAP_EXTENT_DATA_INLINE: u32 = 0x200;
const FIEMAP_EXTENT_DATA_TAIL: u32 = 0x400;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;

/// `struct fiemap` without its extents.
#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Page {
    header: Header,
    extents: [Extent; PAGE_EXTENTS],
}

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = libc::_IOWR::<Header>(b'f' as u32, 11);
const _: () = assert!(size_of::<Header>() == 32 && size_of::<Extent>() == 56);

/// Why bytes of the file are not bytes on the device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Flaw {
    Hole,
    Unwritten,
    Unallocated,
    Compressed,
    Inline,
}

impl Flaw {
    fn of(flags: u32) -> Option<Self> {
        let any = |wanted: u32| flags & wanted != 0;
        if any(FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL) {
            Some(Self::Inline)
        } else if any(FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN) {
            Some(Self::Unallocated)
        } else if any(FIEMAP_EXTENT_UNWRITTEN) {
            Some(Self::Unwritten)
        } else if any(FIEMAP_EXTENT_ENCODED) && !any(FIEMAP_EXTENT_DATA_ENCRYPTED) {
            Some(Self::Compressed)
        } else {
            None
        }
    }

    /// Its name, what it is, and what to do.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        const AGAIN: &str = "delete the file and run again, so that it is laid out anew";
        match self {
            Self::Hole => (
                "sparse file",
                "are a hole, which the file system answers without the device",
                AGAIN,
            ),
            Self::Unwritten => (
                "unwritten extent",
                "are reserved but were never written, so the file system answers without the \
                device",
                AGAIN,
            ),
            Self::Unallocated => (
                "unallocated extent",
                "have no place on the device yet, although the file was flushed",
                AGAIN,
            ),
            Self::Compressed => (
                "compressed extent",
                "are stored compressed, so the device moves other bytes than those asked for",
                "turn compression off for the directory, or say how well your data compress: \
                --compress 2",
            ),
            Self::Inline => (
                "inline extent",
                "lie among the file system's own records, which stay in memory",
                "ask for a larger unique_bytes",
            ),
        }
    }
}

/// What a look over the file found: the first flaw, and how much of the range has the same.
#[derive(Debug, Default)]
struct Findings {
    first: Option<(Flaw, u64)>,
    bytes: u64,
    /// Data that are meant to compress may be stored so.
    may_compress: bool,
    compressed_bytes: u64,
}

/// What a look over a file found that is no reason to refuse it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Written {
    /// What could not be checked here, in words.
    pub unchecked: Vec<String>,
    /// Bytes that are stored compressed, where they may be.
    pub compressed_bytes: u64,
}

impl Findings {
    fn add(&mut self, flaw: Flaw, from: u64, to: u64) {
        if from >= to {
            return;
        }
        if flaw == Flaw::Compressed && self.may_compress {
            self.compressed_bytes += to - from;
            return;
        }
        let (first, _) = *self.first.get_or_insert((flaw, from));
        if first == flaw {
            self.bytes += to - from;
        }
    }

    fn judge(&self, length_bytes: u64, unchecked: Vec<String>) -> Result<Written, EngineError> {
        let Some((flaw, at)) = self.first else {
            return Ok(Written { unchecked, compressed_bytes: self.compressed_bytes });
        };
        let (name, what, advice) = flaw.words();
        Err(EngineError::target(format!(
            "{name}: {} of the first {length_bytes} bytes of the data file {what}, the first at \
            byte {at}; {advice}",
            self.bytes
        )))
    }
}

/// Looks over the first `length_bytes` of `file`, which must have been flushed, and whose data may
/// be stored compressed where they are meant to compress.
///
/// # Errors
/// `Target` when part of the range is a hole (`sparse file`), was only reserved (`unwritten
/// extent`), has no place yet (`unallocated extent`), is stored compressed (`compressed extent`) or
/// among the file system's records (`inline extent`), with the first byte and the number of bytes.
/// `Io` when the file system fails to answer.
pub fn check_written(
    file: &File,
    length_bytes: u64,
    may_compress: bool,
) -> Result<Written, EngineError> {
    match map(file, length_bytes, may_compress) {
        Ok((findings, end)) => {
            let beyond = end.map(|end| {
                format!(
                    "extents beyond byte {end} of the data file: it is in more than \
                    {EXTENTS_MAX} pieces"
                )
            });
            findings.judge(length_bytes, beyond.into_iter().collect())
        }
        Err(error) if unsupported(&error) => holes(file, length_bytes, &error),
        Err(error) => Err(EngineError::io(format!(
            "asking the file system where the data file lies failed: {error}; look at the kernel \
            log for the device"
        ))),
    }
}

fn unsupported(error: &Error) -> bool {
    // EINVAL comes from translators of system calls that do not know the request.
    let codes = [libc::EOPNOTSUPP, libc::ENOTTY, libc::ENOSYS, libc::EINVAL];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Walks the extents by `FIEMAP`; the position where it gave up, if it did.
fn map(
    file: &File,
    length_bytes: u64,
    may_compress: bool,
) -> Result<(Findings, Option<u64>), Error> {
    let mut findings = Findings { may_compress, ..Findings::default() };
    let mut at = 0;
    let mut seen = 0;
    while at < length_bytes {
        let page = page(file, at, length_bytes - at)?;
        let count = (page.header.mapped_extents as usize).min(PAGE_EXTENTS);
        let before = at;
        for extent in &page.extents[..count] {
            let start = extent.logical.clamp(at, length_bytes);
            let end = extent.logical.saturating_add(extent.length).clamp(at, length_bytes);
            findings.add(Flaw::Hole, at, start);
            if let Some(flaw) = Flaw::of(extent.flags) {
                findings.add(flaw, start, end);
            }
            at = end;
        }
        // An answer that leads nowhere means that nothing more is mapped.
        if at == before {
            findings.add(Flaw::Hole, at, length_bytes);
            break;
        }
        seen += count;
        if seen >= EXTENTS_MAX && at < length_bytes {
            return Ok((findings, Some(at)));
        }
    }
    Ok((findings, None))
}

fn page(file: &File, start: u64, length: u64) -> Result<Box<Page>, Error> {
    let none = Extent {
        logical: 0,
        physical: 0,
        length: 0,
        reserved64: [0; 2],
        flags: 0,
        reserved: [0; 3],
    };
    let header = Header {
        start,
        length,
        flags: FIEMAP_FLAG_SYNC,
        mapped_extents: 0,
        extent_count: PAGE_EXTENTS as u32,
        reserved: 0,
    };
    let mut page = Box::new(Page { header, extents: [none; PAGE_EXTENTS] });
    // SAFETY: a valid descriptor and a fiemap with room for as many extents as its header says.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *page) };
    if code < 0 { Err(Error::last_os_error()) } else { Ok(page) }
}

/// Looks for holes by `SEEK_HOLE`, where there is no map of the extents.
fn holes(file: &File, length_bytes: u64, error: &Error) -> Result<Written, EngineError> {
    let mut findings = Findings::default();
    let mut at = 0;
    for _ in 0..HOLES_MAX {
        let Some(hole) = seek(file, at, libc::SEEK_HOLE) else {
            let unchecked = format!(
                "holes and unwritten extents of the data file: this file system answers neither \
                FIEMAP ({error}) nor SEEK_HOLE"
            );
            return findings.judge(length_bytes, vec![unchecked]);
        };
        let hole = hole.min(length_bytes);
        // Past the last data, SEEK_DATA finds nothing: the hole reaches to the end.
        at = seek(file, hole, libc::SEEK_DATA).unwrap_or(length_bytes).min(length_bytes);
        findings.add(Flaw::Hole, hole, at);
        if at >= length_bytes {
            break;
        }
    }
    let unchecked = format!(
        "unwritten extents of the data file: this file system does not answer FIEMAP ({error}); \
        it has no holes"
    );
    findings.judge(length_bytes, vec![unchecked])
}

fn seek(file: &File, from: u64, whence: i32) -> Option<u64> {
    // SAFETY: a valid descriptor; its position is used by nobody.
    let found = unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, whence) };
    u64::try_from(found).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn data_that_are_to_compress_may_be_stored_so_and_holes_are_found_all_the_same() {
        let mut findings = Findings { may_compress: true, ..Findings::default() };
        findings.add(Flaw::Compressed, 0, 8192);
        let written = findings.judge(8192, Vec::new()).unwrap();
        assert_eq!(written, Written { unchecked: Vec::new(), compressed_bytes: 8192 });
        findings.add(Flaw::Hole, 8192, 12_288);
        assert!(findings.judge(12_288, Vec::new()).unwrap_err().message.contains("sparse file"));
    }

    #[test]
    fn only_data_at_a_place_of_its_own_is_believed() {
        assert_eq!(Flaw::of(0x1), None, "the last extent of the file");
        assert_eq!(Flaw::of(0x2000), None, "shared with another file");
        assert_eq!(Flaw::of(FIEMAP_EXTENT_UNWRITTEN), Some(Flaw::Unwritten));
        let delayed = FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN;
        assert_eq!(Flaw::of(delayed), Some(Flaw::Unallocated));
        assert_eq!(Flaw::of(FIEMAP_EXTENT_UNKNOWN), Some(Flaw::Unallocated));
        assert_eq!(Flaw::of(FIEMAP_EXTENT_ENCODED), Some(Flaw::Compressed));
        assert_eq!(Flaw::of(FIEMAP_EXTENT_DATA_INLINE | 0x100), Some(Flaw::Inline));
        let encrypted = FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED;
        assert_eq!(Flaw::of(encrypted), None, "as many bytes as were asked for");
    }

    #[test]
    fn the_first_flaw_names_the_finding_and_its_own_bytes_are_summed() {
        let mut findings = Findings::default();
        findings.add(Flaw::Hole, 10, 10);
        findings.add(Flaw::Unwritten, 4096, 8192);
        findings.add(Flaw::Hole, 8192, 16384);
        findings.add(Flaw::Unwritten, 16384, 20480);
        let message = findings.judge(1 << 20, Vec::new()).unwrap_err().message;
        assert!(message.starts_with("unwritten extent: 8192 of the first 1048576"), "{message}");
        assert!(message.contains("the first at byte 4096"), "{message}");
    }
}
