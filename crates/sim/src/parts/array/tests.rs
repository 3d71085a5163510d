//! Arrays against what is known of them on paper.

use super::layout::{Layout, Piece};
use crate::document::{Array, ArrayKind, DiskQueue, Document, ServiceShape};
use crate::io::Span;
use crate::sample::{anywhere, closed, disk, machine, request, station};

const KIB: u64 = 1024;

fn array(kind: ArrayKind, members: u32) -> Array {
    Array { kind, members, chunk_bytes: 64 * KIB }
}

fn layout(kind: ArrayKind, members: u32) -> Layout {
    Layout::new(&array(kind, members))
}

fn span(from: u64, bytes: u64) -> Span {
    Span { from, bytes, write: true }
}

/// Reads before, and writes, of a write.
fn cost(layout: &Layout, part: Span) -> (usize, usize) {
    let writes = layout.pieces(part).len() + layout.parity_of(part).len();
    (layout.reads_before(part).len(), writes)
}

#[test]
fn a_small_write_costs_four_requests_with_one_parity_and_six_with_two() {
    assert_eq!(cost(&layout(ArrayKind::Parity, 6), span(4096, 4096)), (2, 2));
    assert_eq!(cost(&layout(ArrayKind::DoubleParity, 8), span(4096, 4096)), (3, 3));
}

#[test]
fn a_whole_row_costs_no_read_and_most_of_a_row_only_its_rest() {
    let five = layout(ArrayKind::Parity, 5);
    assert_eq!(cost(&five, span(0, 256 * KIB)), (0, 5));
    assert_eq!(cost(&five, span(0, 192 * KIB)), (1, 4));
    assert_eq!(five.rows(span(100 * KIB, 400 * KIB)).len(), 2);
}

#[test]
fn every_byte_has_one_place_and_parity_is_never_on_a_data_member() {
    for kind in [ArrayKind::Stripe, ArrayKind::Parity, ArrayKind::DoubleParity] {
        let layout = layout(kind, 7);
        let mut seen = std::collections::HashSet::new();
        for chunk in 0..7 * 6 {
            let part = span(chunk * 64 * KIB, 64 * KIB);
            let pieces = layout.pieces(part);
            assert_eq!(pieces.len(), 1);
            assert!(seen.insert((pieces[0].member, pieces[0].span.from)), "{kind:?} {chunk}");
            let clash = |parity: &Piece| parity.member == pieces[0].member;
            assert!(!layout.parity_of(part).iter().any(clash), "{kind:?} {chunk}");
        }
    }
}

#[test]
fn what_follows_on_one_member_is_one_request() {
    let pieces = layout(ArrayKind::Stripe, 2).pieces(span(0, 512 * KIB));
    assert_eq!(pieces.len(), 2);
    assert!(pieces.iter().all(|piece| piece.span.bytes == 256 * KIB));
}

/// Requests a second of 64 outstanding, over members that each take a millisecond.
fn rate(kind: ArrayKind, members: u32, read_frac: f64) -> f64 {
    let document =
        Document { array: Some(array(kind, members)), ..station(ServiceShape::Constant) };
    let mut machine = machine(&document, 1 << 40);
    let ns = closed(&mut machine, 64, 20_000, anywhere(1 << 40, 4096, read_frac));
    20_000.0 * 1e9 / ns as f64
}

#[test]
fn members_add_up_as_they_should() {
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.1, "{found}, {expected}");
    };
    near(rate(ArrayKind::Mirror, 2, 1.0), 2000.0);
    near(rate(ArrayKind::Mirror, 2, 0.0), 1000.0);
    // Four, or six, requests of a millisecond for each write, over all members.
    near(rate(ArrayKind::Parity, 8, 0.0), 2000.0);
    near(rate(ArrayKind::DoubleParity, 12, 0.0), 2000.0);
    let striped = rate(ArrayKind::Stripe, 4, 1.0);
    assert!((3500.0..4000.1).contains(&striped), "{striped}");
}

#[test]
fn a_read_over_two_chunks_takes_two_arms() {
    let document = Document { array: Some(array(ArrayKind::Stripe, 2)), ..disk(DiskQueue::Fifo) };
    let mut machine = machine(&document, 1 << 41);
    machine.submit(0, 1, &request(0, 128 * KIB, false));
    while machine.next_end(u64::MAX).is_some() {}
    assert!(machine.effort() >= 3, "{}", machine.effort());
}
