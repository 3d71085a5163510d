//! Reading on for a sequential reader, as Linux's on-demand read-ahead does.

use crate::document::ReadAhead;
use crate::io::NOBODY;

/// What a memory knows of one reader.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// The page that a sequential reader asks for next.
    next: u64,
    /// The first page that was not read for it.
    ahead_to: u64,
    /// Pages of the last window; none after a random request.
    size: u64,
}

/// All readers' windows.
#[derive(Debug)]
pub(super) struct Ahead {
    initial: u64,
    max: u64,
    windows: Vec<Window>,
}

impl Ahead {
    pub fn new(document: &ReadAhead, page_bytes: u64) -> Self {
        let pages = |bytes: u64| (bytes / page_bytes).max(1);
        Self {
            initial: pages(document.initial_bytes),
            max: pages(document.max_bytes),
            windows: Vec::new(),
        }
    }

    /// A reader asks for the pages from `first` to before `end`: which to read besides, from where
    /// and how many.
    ///
    /// The next window begins as soon as the reader is in the last one, so it is there in time. A
    /// request elsewhere closes the window.
    pub fn step(&mut self, reader: u32, first: u64, end: u64) -> Option<(u64, u64)> {
        if reader == NOBODY {
            return None;
        }
        let reader = reader as usize;
        if reader >= self.windows.len() {
            self.windows.resize(reader + 1, Window { next: u64::MAX, ..Window::default() });
        }
        let window = &mut self.windows[reader];
        // A reader whose last request ended within a page asks for that page again.
        let runs_on = first == window.next || first + 1 == window.next;
        window.next = end;
        if !runs_on {
            window.size = 0;
            return None;
        }
        if window.size == 0 {
            window.size = self.initial.max(2 * (end - first)).min(self.max);
            window.ahead_to = end;
        } else if end + window.size > window.ahead_to {
            window.size = (2 * window.size).min(self.max);
        } else {
            return None;
        }
        let from = window.ahead_to.max(end);
        window.ahead_to = from + window.size;
        Some((from, window.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_up_to_its_maximum_and_a_jump_closes_it() {
        let bytes = ReadAhead { initial_bytes: 4 * 4096, max_bytes: 16 * 4096 };
        let mut ahead = Ahead::new(&bytes, 4096);
        let mut read = |page: u64| ahead.step(0, page, page + 1);
        assert_eq!(read(10), None, "one request is no sequence");
        assert_eq!(read(11), Some((12, 4)));
        assert_eq!(read(12), Some((16, 8)), "within the last window");
        assert_eq!(read(13), None);
        assert_eq!((read(14), read(15)), (None, None));
        assert_eq!(read(16), Some((24, 16)));
        assert_eq!(read(90), None, "a jump");
        assert_eq!(read(91), Some((92, 4)), "small again");
    }

    #[test]
    fn readers_do_not_know_of_each_other() {
        let bytes = ReadAhead { initial_bytes: 8192, max_bytes: 65_536 };
        let mut ahead = Ahead::new(&bytes, 4096);
        assert_eq!(ahead.step(0, 0, 1), None);
        assert_eq!(ahead.step(1, 1, 2), None);
        assert!(ahead.step(0, 1, 2).is_some());
    }
}
