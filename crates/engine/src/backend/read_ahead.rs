//! Reading ahead in pieces of one file as the kernel does in files.
//!
//! The kernel reads ahead from a file's first byte and stops at its last. Pieces of a longer file
//! have neither: it would begin after a piece's second request, and go on into the next piece. So
//! it is told to leave them alone, and asked for the windows that it would have taken itself
//! (Linux's `page_cache_sync_ra` and `page_cache_async_ra`, mm/readahead.c): the first by the first
//! request's length, each longer than the last, the next one asked for where the last was reached.

use std::fs::{File, read_to_string};
use std::os::fd::AsRawFd;
use std::os::linux::fs::MetadataExt;

use leadline_base::error::EngineError;

use leadline_base::request::Request;

const PAGE_BYTES: u64 = 4096;
/// Linux's `VM_READAHEAD_PAGES`.
const USUAL_BYTES: u64 = 128 << 10;
/// Pieces that are remembered, the latest; more are never gone through at once.
const REMEMBERED: usize = 64;

/// The windows of the pieces that one worker reads.
#[derive(Debug)]
pub struct ReadAhead {
    file: File,
    most_pages: u64,
    pieces: Vec<Window>,
    oldest: usize,
}

/// What was asked for last of a piece, in pages of the data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Window {
    start: u64,
    pages: u64,
    /// The next is asked for when a request comes to so many pages before its end.
    early: u64,
    /// End of the piece; 0 of none.
    end: u64,
}

impl ReadAhead {
    /// Of `file`, an open file of its own, in windows as long as its device's.
    ///
    /// # Errors
    /// `Io` when the kernel does not take the advice.
    pub fn new(file: File) -> Result<Self, EngineError> {
        // SAFETY: a valid descriptor; 0 bytes from 0 are all of the file.
        let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        if code != 0 {
            let error = std::io::Error::from_raw_os_error(code);
            return Err(EngineError::io(format!("advice on reading ahead: {error}")));
        }
        let most_pages = most_bytes(&file) / PAGE_BYTES;
        Ok(Self { file, most_pages, pieces: Vec::new(), oldest: 0 })
    }

    /// The file through which pieces are read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Asks for what the kernel would read ahead before it serves this request of a piece.
    pub fn before(&mut self, request: &Request) {
        let first = request.offset_bytes / PAGE_BYTES;
        let last = (request.offset_bytes + request.length_bytes).div_ceil(PAGE_BYTES);
        let end = request.piece_end_bytes.div_ceil(PAGE_BYTES);
        if self.most_pages == 0 {
            return;
        }
        let known = self.pieces.iter().position(|window| window.end == end);
        let (at, mut window) = match known {
            Some(at) if request.sequential => (at, self.pieces[at]),
            _ => {
                let window = Window::first(first, last - first, self.most_pages, end);
                self.ask(window);
                (known.unwrap_or_else(|| self.place()), window)
            }
        };
        while let Some(next) = window.next(last, self.most_pages) {
            self.ask(next);
            window = next;
        }
        self.pieces[at] = window;
    }

    /// Where a piece that was not known is remembered: in place of the oldest.
    fn place(&mut self) -> usize {
        if self.pieces.len() < REMEMBERED {
            self.pieces.push(Window::default());
            return self.pieces.len() - 1;
        }
        self.oldest = (self.oldest + 1) % REMEMBERED;
        self.oldest
    }

    fn ask(&self, window: Window) {
        let (from, bytes) = window.bytes();
        // SAFETY: a valid descriptor; advice only, without it the request itself reads.
        unsafe {
            libc::posix_fadvise(self.file.as_raw_fd(), from, bytes, libc::POSIX_FADV_WILLNEED)
        };
    }
}

impl Window {
    /// At a file's beginning: linux's `get_init_ra_size`.
    fn first(start: u64, asked: u64, most: u64, end: u64) -> Self {
        let power = asked.next_power_of_two();
        let pages = match power {
            _ if power <= most / 32 => 4 * power,
            _ if power <= most / 4 => 2 * power,
            _ => most,
        };
        let early = if pages > asked { pages - asked } else { pages / 2 };
        Self { start, pages, early, end }
    }

    /// The next one, where requests up to the page `last` need it; none beyond the piece.
    fn next(self, last: u64, most: u64) -> Option<Self> {
        let start = self.start + self.pages;
        if start - self.early >= last || start >= self.end {
            return None;
        }
        let pages = match self.pages {
            pages if pages < most / 16 => 4 * pages,
            pages if pages <= most / 2 => 2 * pages,
            _ => most,
        };
        Some(Self { start, pages, early: pages, end: self.end })
    }

    /// First byte and length, within the piece.
    fn bytes(self) -> (i64, i64) {
        let pages = self.pages.min(self.end.saturating_sub(self.start));
        ((self.start * PAGE_BYTES) as i64, (pages * PAGE_BYTES) as i64)
    }
}

/// How far ahead the kernel reads of the file's device.
fn most_bytes(file: &File) -> u64 {
    let told = file.metadata().ok().and_then(|facts| {
        let device = facts.st_dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let text = read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).ok()?;
        text.trim().parse::<u64>().ok()
    });
    told.map_or(USUAL_BYTES, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_grows_with_the_request_and_ends_at_the_most() {
        let pages = |asked| Window::first(0, asked, 32, 1000).pages;
        assert_eq!([1, 2, 8, 9, 40].map(pages), [4, 4, 16, 32, 32]);
        let early = |asked| Window::first(0, asked, 32, 1000).early;
        assert_eq!([1, 8, 40].map(early), [3, 8, 16]);
    }

    #[test]
    fn windows_follow_each_other_longer_and_longer_up_to_the_end_of_the_piece() {
        let first = Window::first(100, 1, 32, 160);
        assert_eq!(first.next(101, 32), None, "not yet where the next is asked for");
        let windows: Vec<_> =
            std::iter::successors(Some(first), |window| window.next(160, 32)).collect();
        let starts: Vec<_> = windows.iter().map(|window| (window.start, window.pages)).collect();
        assert_eq!(starts, [(100, 4), (104, 8), (112, 16), (128, 32)]);
        let asked: Vec<_> = windows.iter().map(|window| window.bytes().1 / 4096).collect();
        assert_eq!(asked, [4, 8, 16, 32]);
        let last = Window::first(90, 1, 32, 92);
        assert_eq!((last.bytes().1 / 4096, last.next(92, 32)), (2, None), "it ends with the piece");
    }
}
