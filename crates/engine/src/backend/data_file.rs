//! A file of the run directory, `data.bin` or one of a replay: really written, never a hole, and
//! incompressible where no content is asked for.
//!
//! Blocks that were only reserved are answered by the file system without the disk (measured: 1.2 M
//! against 19 k reads per second), so every byte is written once, with direct I/O where the file
//! system allows it so that laying out leaves the cache as it was, and in order, so that the length
//! of the file says at any moment how much of it is real.

use std::fs::File;
use std::io::{Error, ErrorKind as IoErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use leadline_base::beneath::{self, Directory, Way};
use leadline_base::buffer::{self, BufferSlice};
use leadline_base::clock::now_ns;
use leadline_base::error::EngineError;
use leadline_wire::job::backend::Content;

/// Name of the file in the run directory.
pub const DATA_FILE_NAME: &str = "data.bin";

const CHUNK_BYTES: u64 = 4 << 20;
const BLOCK_BYTES: u64 = 4096;

/// The data file, open and checked.
#[derive(Debug)]
pub struct DataFile {
    directory: Directory,
    name: String,
    file: File,
    content: Option<Content>,
}

impl DataFile {
    /// Opens the data file of a run directory, making it when it is not there.
    ///
    /// # Errors
    /// `Target` when the directory is missing or closed to us, or when something that we did not
    /// make has that name.
    pub fn open(directory: &str) -> Result<Self, EngineError> {
        let opened = Directory::own(Path::new(directory));
        let path = || Path::new(directory).join(DATA_FILE_NAME);
        Self::in_directory(&opened.map_err(|error| refused(&path(), &error))?, DATA_FILE_NAME)
    }

    /// The same with another name in an open directory.
    ///
    /// # Errors
    /// `Target` as above.
    pub fn in_directory(directory: &Directory, name: &str) -> Result<Self, EngineError> {
        let file = match directory.make(name) {
            Err(error) if error.kind() == IoErrorKind::AlreadyExists => {
                directory.open(name, Way::WRITE)
            }
            made => made,
        };
        let file = file.map_err(|error| refused(&directory.path().join(name), &error))?;
        Ok(Self { directory: directory.clone(), name: name.to_owned(), file, content: None })
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    /// What is laid out and written from now on is of this content.
    #[must_use]
    pub fn of_content(self, content: Option<Content>) -> Self {
        Self { content, ..self }
    }

    /// Another open file on the same data, for one worker; with `dsync` its writes wait for the device.
    ///
    /// # Errors
    /// `Target` when it cannot be opened that way.
    pub fn reopen(&self, direct: bool, dsync: bool) -> Result<File, EngineError> {
        self.again(Way { write: true, direct, dsync }).map_err(|error| {
            if direct && error.raw_os_error() == Some(libc::EINVAL) {
                return EngineError::target(format!(
                    "{} lies on a file system without direct I/O; measure it without --direct",
                    self.path().display()
                ));
            }
            refused(&self.path(), &error)
        })
    }

    fn again(&self, way: Way) -> Result<File, Error> {
        self.directory.open_again(&self.name, way, &self.file)
    }

    /// Buffers from which requests write it: [`buffer::for_requests`].
    ///
    /// # Errors
    /// `Io` when the memory is not to be had.
    pub fn buffers(
        &self,
        count: usize,
        request_bytes: u64,
        seed: u64,
    ) -> Result<Vec<BufferSlice>, EngineError> {
        buffer::for_requests(count, request_bytes, seed, self.content)
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes back what is dirty of it, and drops what the page cache holds.
    ///
    /// # Errors
    /// `Io` when it cannot be written back, or the kernel refuses the advice.
    pub fn drop_cached(&self) -> Result<(), EngineError> {
        let failed = |error: Error| {
            EngineError::io(format!("emptying the page cache of the data failed: {error}"))
        };
        self.file.sync_data().map_err(failed)?;
        // SAFETY: a valid descriptor; 0 bytes from 0 are all of the file.
        let code =
            unsafe { libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code == 0 { Ok(()) } else { Err(failed(Error::from_raw_os_error(code))) }
    }

    /// Present length in bytes.
    ///
    /// # Errors
    /// `Io` when the file system does not say.
    pub fn length_bytes(&self) -> Result<u64, EngineError> {
        self.file
            .metadata()
            .map(|facts| facts.len())
            .map_err(|error| EngineError::io(format!("{}: {error}", self.path().display())))
    }

    /// The smallest direct transfer in bytes: what `statx` says, or 4096 where it does not.
    #[must_use]
    pub fn direct_block_bytes(&self) -> u64 {
        // SAFETY: statx is plain data, for which all zero bytes are valid.
        let mut facts: libc::statx = unsafe { std::mem::zeroed() };
        // SAFETY: a valid descriptor, an empty C string and a writable statx.
        let code = unsafe {
            libc::statx(
                self.file.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_EMPTY_PATH,
                libc::STATX_DIOALIGN,
                &mut facts,
            )
        };
        let told = code == 0
            && facts.stx_mask & libc::STATX_DIOALIGN != 0
            && facts.stx_dio_offset_align > 0;
        if told { u64::from(facts.stx_dio_offset_align).max(512) } else { BLOCK_BYTES }
    }

    /// Writes blocks to the end until the file has at least `length_bytes`; `progress` gets the
    /// share done. Returns the bytes written, 0 when it was long enough.
    ///
    /// # Errors
    /// `Target` when space or time runs out; the file is then as long as before.
    pub fn extend(
        &self,
        length_bytes: u64,
        deadline_ns: u64,
        progress: &mut dyn FnMut(f64),
    ) -> Result<u64, EngineError> {
        let before = self.length_bytes()?;
        let from = before / BLOCK_BYTES * BLOCK_BYTES;
        let to = length_bytes.next_multiple_of(BLOCK_BYTES);
        if before >= length_bytes {
            return Ok(0);
        }
        let outcome = self.write_blocks(from, to, deadline_ns, progress);
        if outcome.is_err() {
            // The first error is what matters; a file left longer than before is still all written.
            let _ = self.file.set_len(before);
        }
        outcome.map(|()| to - from)
    }

    /// Makes it exactly so long: what is missing is written, what is too much is cut off. Returns the
    /// bytes written; those of a short file are still in the page cache.
    ///
    /// # Errors
    /// `Target` when space or time runs out.
    pub fn become_long(&self, length_bytes: u64, deadline_ns: u64) -> Result<u64, EngineError> {
        let before = self.length_bytes()?;
        let written = if before >= length_bytes {
            0
        } else if length_bytes > CHUNK_BYTES {
            self.extend(length_bytes, deadline_ns, &mut |_| {})?
        } else {
            let mut buffers = self.buffers(1, length_bytes, length_bytes)?;
            let Some(chunk) = buffers.first_mut() else {
                return Err(EngineError::fault("no buffer to lay out with"));
            };
            let bytes = &mut chunk.as_mut_slice()[..length_bytes as usize];
            buffer::fill_layout(bytes, 0, self.content);
            let written = self.file.write_all_at(bytes, 0);
            written.map_err(|error| self.unwritten(&error, 0, length_bytes))?;
            length_bytes
        };
        let cut = self.file.set_len(length_bytes);
        cut.map_err(|error| self.unwritten(&error, length_bytes, length_bytes))?;
        Ok(written)
    }

    fn write_blocks(
        &self,
        from: u64,
        to: u64,
        deadline_ns: u64,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), EngineError> {
        let mut buffers = self.buffers(1, CHUNK_BYTES, from)?;
        let Some(chunk) = buffers.first_mut() else {
            return Err(EngineError::fault("no buffer to lay out with"));
        };
        let direct = self.again(Way { direct: true, ..Way::WRITE }).ok();
        let mut writer = Writer { direct, buffered: &self.file, content: self.content };
        let mut at = from;
        while at < to {
            if now_ns() > deadline_ns {
                return Err(EngineError::target(format!(
                    "the time limit ended during layout: {} of {} MiB of the data file were \
                    written; allow more time or a smaller unique_bytes",
                    at >> 20,
                    to >> 20
                )));
            }
            let length = CHUNK_BYTES.min(to - at);
            writer
                .write(chunk, length as usize, at)
                .map_err(|error| self.unwritten(&error, at, to))?;
            at += length;
            progress((at - from) as f64 / (to - from) as f64);
        }
        self.file.sync_all().map_err(|error| self.unwritten(&error, at, to))
    }

    fn unwritten(&self, error: &Error, at: u64, to: u64) -> EngineError {
        let full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG));
        let advice = if full {
            "free some space or ask for a smaller unique_bytes (--max-bytes)"
        } else {
            "look at the kernel log for the device"
        };
        EngineError::target(format!(
            "laying out {} failed at {} of {} MiB: {error}; {advice}",
            self.path().display(),
            at >> 20,
            to >> 20
        ))
    }
}

/// Writes chunks directly while that works, through the cache and out of it again where not.
struct Writer<'a> {
    direct: Option<File>,
    buffered: &'a File,
    content: Option<Content>,
}

impl Writer<'_> {
    fn write(&mut self, chunk: &mut BufferSlice, length: usize, at: u64) -> Result<(), Error> {
        let bytes = chunk.as_mut_slice();
        buffer::fill_layout(&mut bytes[..length], at, self.content);
        if let Some(direct) = &self.direct {
            match direct.write_all_at(&bytes[..length], at) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => self.direct = None,
                outcome => return outcome,
            }
        }
        self.buffered.write_all_at(&bytes[..length], at)?;
        self.buffered.sync_data()?;
        // SAFETY: a valid descriptor; advice only, its outcome does not matter.
        unsafe {
            libc::posix_fadvise(
                self.buffered.as_raw_fd(),
                at as i64,
                length as i64,
                libc::POSIX_FADV_DONTNEED,
            )
        };
        Ok(())
    }
}

fn refused(path: &Path, error: &Error) -> EngineError {
    let advice = beneath::advice(error);
    EngineError::target(format!("{} cannot be opened: {error}; {advice}", path.display()))
}
/// Has the kernel begin to write back so many bytes from an offset, and waits for nothing; 0 bytes are
/// all to the end of the file.
///
/// # Errors
/// What the kernel says.
pub fn begin_writeback(file: &File, offset_bytes: u64, length_bytes: u64) -> Result<(), Error> {
    let [from, length] = [offset_bytes, length_bytes].map(|bytes| bytes.cast_signed());
    // SAFETY: a valid descriptor and plain numbers.
    let code = unsafe {
        libc::sync_file_range(file.as_raw_fd(), from, length, libc::SYNC_FILE_RANGE_WRITE)
    };
    if code == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}
