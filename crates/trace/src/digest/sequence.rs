//! Whether a request goes on where another ended.
//!
//! A process may read several files, or several parts of one, each from its beginning to its end and
//! by turns: CP94's "where this process's previous one ended" would see nothing sequential there.
//! So the last ends are remembered, of those that were gone on from more than of others.

/// Ends remembered of each sort.
const ENDS: usize = 8;

/// Ends of requests of one process in one file, each sort the latest first.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    followed: [u64; ENDS],
    new: [u64; ENDS],
}

/// No request ends there.
const NONE: u64 = u64::MAX;

impl Ends {
    pub fn new() -> Self {
        Self { followed: [NONE; ENDS], new: [NONE; ENDS] }
    }

    /// Whether a request goes on from another; its own end is remembered.
    pub fn goes_on(&mut self, offset: u64, end: u64) -> bool {
        if let Some(place) = self.followed.iter().position(|&each| each == offset) {
            self.followed[..=place].rotate_right(1);
            self.followed[0] = end;
            return true;
        }
        if let Some(place) = self.new.iter().position(|&each| each == offset) {
            self.new[place..].rotate_left(1);
            self.new[ENDS - 1] = NONE;
            self.followed.rotate_right(1);
            self.followed[0] = end;
            return true;
        }
        self.new.rotate_right(1);
        self.new[0] = end;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_by_turns_are_sequential_and_random_requests_between_them_do_not_hide_them() {
        let mut ends = Ends::new();
        let mut sequential = 0;
        for turn in 0..100_u64 {
            for stream in 0..4 {
                let offset = (stream << 30) + turn * 4096;
                sequential += u32::from(ends.goes_on(offset, offset + 4096));
            }
            for other in 0..5 {
                let offset = (9 << 30) + ((turn * 5 + other) * 7_919 % 4096) * 65536;
                assert!(!ends.goes_on(offset, offset + 4096));
            }
        }
        assert_eq!(sequential, 4 * 99, "all but the first of each");
    }
}
