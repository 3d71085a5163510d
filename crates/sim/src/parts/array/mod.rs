//! Several members as one device: striped, mirrored, or with parity.
//!
//! A write to part of a row of a parity array first reads what it needs to know the new parity:
//! the old data and the old parity, or the rest of the row, whichever is less. A row that is
//! written as a whole needs nothing.

mod layout;

#[cfg(test)]
mod tests;

use crate::document::{Array as Document, ArrayKind};
use crate::io::{Hub, IoId, Part, PartId, Span};
use layout::{Layout, Piece};

/// The note on a row of a parity array; on a member's request it is the member's number. No other
/// part sets this bit.
const ROW: u64 = 1 << 63;
const READS: u64 = 1;

/// Members behind one address space.
#[derive(Debug)]
pub(crate) struct Array {
    id: PartId,
    members: Vec<PartId>,
    kind: ArrayKind,
    layout: Layout,
    /// Requests of each member that have not ended.
    outstanding: Vec<u32>,
    turn: usize,
}

impl Array {
    /// An array before these members.
    pub fn new(document: &Document, id: PartId, members: Vec<PartId>) -> Self {
        Self {
            id,
            outstanding: vec![0; members.len()],
            members,
            kind: document.kind,
            layout: Layout::new(document),
            turn: 0,
        }
    }

    fn ask(&mut self, hub: &mut Hub, parent: IoId, piece: Piece, write: bool) {
        let child = hub.child(self.id, parent, Span { write, ..piece.span });
        hub.io_mut(child).tag = piece.member as u64;
        self.outstanding[piece.member] += 1;
        hub.submit(self.members[piece.member], child);
    }

    fn mirror(&mut self, hub: &mut Hub, io: IoId) {
        let span = hub.io(io).span;
        if span.write {
            for member in 0..self.members.len() {
                self.ask(hub, io, Piece { member, span }, true);
            }
            return;
        }
        self.turn = (self.turn + 1) % self.members.len();
        let number = self.members.len();
        let turns = (0..number).map(|step| (self.turn + step) % number);
        let idlest = turns.min_by_key(|&member| self.outstanding[member]).unwrap_or(0);
        self.ask(hub, io, Piece { member: idlest, span }, false);
    }

    fn write_rows(&mut self, hub: &mut Hub, io: IoId) {
        let span = hub.io(io).span;
        for part in self.layout.rows(span) {
            let row = hub.child(self.id, io, part);
            hub.effort += 1;
            let reads = self.layout.reads_before(part);
            if reads.is_empty() {
                self.write_row(hub, row, part);
                continue;
            }
            hub.io_mut(row).tag = ROW | READS;
            for piece in reads {
                self.ask(hub, row, piece, false);
            }
        }
    }

    fn write_row(&mut self, hub: &mut Hub, row: IoId, part: Span) {
        hub.io_mut(row).tag = ROW;
        let parity = self.layout.parity_of(part);
        for piece in self.layout.pieces(part).into_iter().chain(parity) {
            self.ask(hub, row, piece, true);
        }
    }
}

impl Part for Array {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        let span = hub.io(io).span;
        match self.kind {
            ArrayKind::Mirror => self.mirror(hub, io),
            ArrayKind::Parity | ArrayKind::DoubleParity if span.write => self.write_rows(hub, io),
            _ => {
                for piece in self.layout.pieces(span) {
                    self.ask(hub, io, piece, span.write);
                }
            }
        }
    }

    fn child_ended(&mut self, hub: &mut Hub, parent: IoId, child: IoId) {
        let ended = hub.io(child).tag;
        if ended & ROW == 0 {
            self.outstanding[ended as usize] -= 1;
        }
        if !hub.one_less(parent) {
            return;
        }
        if hub.io(parent).tag == ROW | READS {
            self.write_row(hub, parent, hub.io(parent).span);
        } else {
            hub.finish(parent);
        }
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        let pieces = if self.kind == ArrayKind::Mirror {
            (0..self.members.len()).map(|member| Piece { member, span }).collect()
        } else {
            self.layout.pieces(span)
        };
        down.extend(pieces.into_iter().map(|piece| (self.members[piece.member], piece.span)));
    }
}
