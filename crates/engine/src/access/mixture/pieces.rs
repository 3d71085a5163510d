//! Data gone through piece by piece, each from its beginning to its end, as files are.

use leadline_wire::job::streams::Pieces;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::access::shares::Histogram;
use crate::access::stream::{Chance, place};

const PAGE_BYTES: u64 = 4096;
/// Requests of a piece that are drawn when it is begun; a longer piece goes on as another.
const REQUESTS_MOST: f64 = 4096.0;

/// Pieces one behind the other, in the order in which they are begun.
#[derive(Clone, Debug)]
pub(super) struct PieceWalk {
    first: u64,
    end: u64,
    /// Where the next piece begins: with a page, as files do.
    cursor: u64,
    page: u64,
    /// Requests of a piece: the least, and whether there is one more.
    least: u64,
    one_more: Chance,
    /// Those that are gone through by turns.
    by_turns: Vec<Piece>,
}

/// One that is gone through.
#[derive(Clone, Debug, Default)]
struct Piece {
    next: u64,
    end: u64,
    /// Lengths of the requests to come, the last first.
    left: Vec<u64>,
}

/// The next request of a piece, in granules.
pub(super) struct Step {
    pub start: u64,
    pub length: u64,
    /// Whether it goes on where the piece's last ended.
    pub goes_on: bool,
    pub piece_end: u64,
}

impl PieceWalk {
    /// In the data from `first` to `end`, in granules. Nobody is in a piece yet; each begins one
    /// with its first request.
    pub(super) fn new(
        (first, end): (u64, u64),
        asked: Pieces,
        granule_bytes: u64,
        (mean, longest): (f64, u64),
    ) -> Self {
        let piece = asked.bytes as f64 / granule_bytes as f64;
        let requests = (piece / mean).clamp(1.0, REQUESTS_MOST);
        let room = ((end - first) / (longest.max(1) * requests.ceil() as u64)).max(1);
        Self {
            first,
            end,
            cursor: first,
            page: (PAGE_BYTES / granule_bytes).max(1),
            least: requests as u64,
            one_more: Chance::new(requests.fract()),
            by_turns: vec![Piece::default(); u64::from(asked.at_once).clamp(1, room) as usize],
        }
    }

    #[inline]
    pub(super) fn next(
        &mut self,
        random: &mut Xoshiro256PlusPlus,
        sizes: &Histogram,
        rounds: &mut u64,
    ) -> Step {
        let which = place(random, self.by_turns.len() as u64, 1) as usize;
        let goes_on = !self.by_turns[which].left.is_empty();
        if !goes_on {
            self.begin(which, random, sizes, rounds);
        }
        let piece = &mut self.by_turns[which];
        let (start, length) = (piece.next, piece.left.pop().unwrap_or(1));
        piece.next += length;
        Step { start, length, goes_on, piece_end: piece.end }
    }

    /// Puts a piece behind the last; at the end of the data they begin anew.
    fn begin(
        &mut self,
        which: usize,
        random: &mut Xoshiro256PlusPlus,
        sizes: &Histogram,
        rounds: &mut u64,
    ) {
        let number = self.least + u64::from(self.one_more.happens(random));
        let piece = &mut self.by_turns[which];
        let mut length = 0;
        for _ in 0..number {
            let next = sizes.draw(random);
            let begins_anew = self.cursor + length + next > self.end;
            if begins_anew && length > 0 {
                break; // what still has room is the last piece
            }
            if begins_anew {
                self.cursor = self.first;
                *rounds += 1;
            }
            piece.left.push(next);
            length += next;
        }
        piece.left.reverse();
        piece.next = self.cursor;
        piece.end = self.cursor + length;
        self.cursor = piece.end.next_multiple_of(self.page);
    }
}
