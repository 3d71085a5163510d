//! Where the bytes of an array lie on its members.
//!
//! Chunks go round the members. With parity each row of chunks has its parity on other members than
//! the row before it (left-symmetric, as Linux's md has it).

use crate::document::{Array as Document, ArrayKind};
use crate::io::Span;

/// A part of a request that one member serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Piece {
    pub member: usize,
    pub span: Span,
}

/// Chunks over members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    chunk: u64,
    members: u64,
    parities: u64,
}

impl Layout {
    pub fn new(document: &Document) -> Self {
        let parities = match document.kind {
            ArrayKind::Stripe | ArrayKind::Mirror => 0,
            ArrayKind::Parity => 1,
            ArrayKind::DoubleParity => 2,
        };
        Self { chunk: document.chunk_bytes, members: u64::from(document.members), parities }
    }

    fn data(&self) -> u64 {
        self.members - self.parities
    }

    /// The member with a row's data chunk, by its number in the row; after the data come parities.
    fn member(&self, row: u64, chunk: u64) -> usize {
        let first = self.members - 1 - row % self.members;
        let step = if self.parities == 0 { chunk + 1 } else { self.parities + chunk };
        ((first + step) % self.members) as usize
    }

    /// Bytes from one place in a row on, as one member has them.
    fn piece(&self, row: u64, chunk: u64, within: u64, bytes: u64) -> Piece {
        let from = row * self.chunk + within;
        Piece { member: self.member(row, chunk), span: Span { from, bytes, write: false } }
    }

    /// A request by members: what follows on the same one is one request of it.
    pub fn pieces(&self, span: Span) -> Vec<Piece> {
        let mut found: Vec<Piece> = Vec::new();
        let mut at = span.from;
        while at < span.end() {
            let (number, within) = (at / self.chunk, at % self.chunk);
            let bytes = (self.chunk - within).min(span.end() - at);
            let piece = self.piece(number / self.data(), number % self.data(), within, bytes);
            let mut before = found.iter_mut().rev().take(self.members as usize);
            let follows =
                |old: &&mut Piece| old.member == piece.member && old.span.end() == piece.span.from;
            match before.find(follows) {
                Some(old) => old.span.bytes += bytes,
                None => found.push(piece),
            }
            at += bytes;
        }
        found
    }

    /// A request by rows.
    pub fn rows(&self, span: Span) -> Vec<Span> {
        let (width, mut at, mut found) = (self.chunk * self.data(), span.from, Vec::new());
        while at < span.end() {
            let bytes = (width - at % width).min(span.end() - at);
            found.push(Span { from: at, bytes, ..span });
            at += bytes;
        }
        found
    }

    /// Where in every chunk a part of a row reaches: first byte and the one after the last.
    fn reach(&self, part: Span) -> (u64, u64) {
        let (first, last) = (part.from / self.chunk, (part.end() - 1) / self.chunk);
        if first != last {
            return (0, self.chunk);
        }
        (part.from % self.chunk, (part.end() - 1) % self.chunk + 1)
    }

    /// The parities of a part of a row.
    pub fn parity_of(&self, part: Span) -> Vec<Piece> {
        let row = part.from / (self.chunk * self.data());
        let (from, to) = self.reach(part);
        let first = self.members - 1 - row % self.members;
        let piece = |parity| Piece {
            member: ((first + parity) % self.members) as usize,
            span: Span { from: row * self.chunk + from, bytes: to - from, write: false },
        };
        (0..self.parities).map(piece).collect()
    }

    /// What has to be read before a part of a row is written.
    pub fn reads_before(&self, part: Span) -> Vec<Piece> {
        let width = self.chunk * self.data();
        if part.bytes == width {
            return Vec::new();
        }
        let row = part.from / width;
        let (first, last) =
            (part.from % width / self.chunk, ((part.end() - 1) % width) / self.chunk);
        let touched = last - first + 1;
        let (from, to) = self.reach(part);
        let whole = |chunk: u64| {
            let begin = row * width + chunk * self.chunk;
            part.from <= begin && part.end() >= begin + self.chunk
        };
        let rest: Vec<u64> = (0..self.data()).filter(|&chunk| !whole(chunk)).collect();
        if (rest.len() as u64) < touched + self.parities {
            let read = |chunk| self.piece(row, chunk, from, to - from);
            return rest.into_iter().map(read).collect();
        }
        let mut reads = self.pieces(part);
        reads.extend(self.parity_of(part));
        reads
    }
}
