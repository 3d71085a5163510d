//! Whether a request goes on where another ended.
//!
//! A process may read several files, or several parts of one, each from its beginning to its end and
//! by turns: CP94's "where this process's previous one ended" would see nothing sequential there.
//! So the last ends are remembered, and longer those that were gone on from twice. By chance a
//! random request over U places is taken for sequential with a probability of up to 16 / U.

/// Ends remembered of each sort.
const ENDS: usize = 8;
/// No request ends there.
const NONE: u64 = u64::MAX;

/// Ends of requests of one process in one file, each sort the latest first.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Of sequences.
    followed: [u64; ENDS],
    /// Of single requests, and of pairs, which may be chance.
    new: [(u64, bool); ENDS],
}

impl Ends {
    pub fn new() -> Self {
        Self { followed: [NONE; ENDS], new: [(NONE, false); ENDS] }
    }

    /// Whether a request goes on from another; its own end is remembered.
    pub fn goes_on(&mut self, offset: u64, end: u64) -> bool {
        if let Some(place) = self.followed.iter().position(|&each| each == offset) {
            self.followed[..=place].rotate_right(1);
            self.followed[0] = end;
            return true;
        }
        let Some(place) = self.new.iter().position(|&(each, _)| each == offset) else {
            self.new.rotate_right(1);
            self.new[0] = (end, false);
            return false;
        };
        let (_, pair) = self.new[place];
        if pair {
            self.new[place..].rotate_left(1);
            self.new[ENDS - 1] = (NONE, false);
            self.followed.rotate_right(1);
            self.followed[0] = end;
        } else {
            self.new[..=place].rotate_right(1);
            self.new[0] = (end, true);
        }
        true
    }
}

/// Places remembered, the latest first.
const PLACES: usize = 64;

/// Which files requests of one sort went to last.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    latest: Vec<(u32, u32)>,
}

impl Turns {
    /// How many others were gone to since this one; none where it is new, or long ago.
    pub fn others_since(&mut self, place: (u32, u32)) -> Option<u64> {
        let found = self.latest.iter().position(|&each| each == place);
        match found {
            Some(depth) => self.latest[..=depth].rotate_right(1),
            None => {
                self.latest.truncate(PLACES - 1);
                self.latest.insert(0, place);
            }
        }
        found.map(|depth| depth as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_the_others_since() {
        let mut turns = Turns::default();
        assert_eq!(turns.others_since((1, 1)), None);
        assert_eq!(turns.others_since((1, 1)), Some(0));
        assert_eq!(turns.others_since((1, 2)), None);
        assert_eq!(turns.others_since((1, 3)), None);
        assert_eq!(turns.others_since((1, 1)), Some(2));
        assert_eq!(turns.others_since((1, 3)), Some(1));
        (10..80).for_each(|file| assert_eq!(turns.others_since((1, file)), None));
        assert_eq!(turns.others_since((1, 3)), None, "forgotten");
    }

    #[test]
    fn streams_by_turns_are_sequential_and_random_requests_between_them_do_not_hide_them() {
        let mut ends = Ends::new();
        let mut sequential = 0;
        for turn in 0..100_u64 {
            for stream in 0..4 {
                let offset = (stream << 30) + turn * 4096;
                sequential += u32::from(ends.goes_on(offset, offset + 4096));
            }
            let others = if turn < 3 { 3 } else { 20 }; // once they are known, for longer
            for other in 0..others {
                let offset = (9 << 30) + ((turn * 20 + other) * 7_919 % 4096) * 65536;
                assert!(!ends.goes_on(offset, offset + 4096));
            }
        }
        assert_eq!(sequential, 4 * 99, "all but the first of each");
    }
}
