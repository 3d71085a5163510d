//! The connection of the hot loop against a server that answers as oddly as it may.

use std::sync::atomic::Ordering::SeqCst;

use crate::scripted::{self, Scripted};
use leadline_base::buffer;
use leadline_base::error::{EngineError, ErrorKind};
use leadline_base::request::{Kind, Request};
use leadline_engine::backend::nfs::calls::Stable;
use leadline_engine::backend::nfs::queue::{Durability, NfsQueue};
use leadline_engine::backend::{Completion, QueueBackend};

const DEPTH: usize = 8;
const KIB: u64 = 1024;

fn queue(server: &Scripted, durability: Durability) -> NfsQueue {
    let buffers = buffer::allocate(DEPTH, 256 << 10, 1).unwrap();
    NfsQueue::connect(&server.remote, buffers, durability).unwrap()
}

fn request(kind: Kind, offset_bytes: u64, length_bytes: u64) -> Request {
    Request { offset_bytes, length_bytes, kind, ..Request::NONE }
}

/// Makes a request on every slot and collects all answers, or the first error.
fn all(queue: &mut NfsQueue, requests: &[Request]) -> Result<Vec<Completion>, EngineError> {
    for (slot, request) in requests.iter().enumerate() {
        queue.prepare(slot, request)?;
    }
    let (mut found, mut done) = (Vec::new(), Vec::new());
    while found.len() < requests.len() {
        queue.turn(None, &mut done)?;
        found.append(&mut done);
    }
    Ok(found)
}

/// Whether a slot's buffer holds what the server has from `offset` on.
fn holds(queue: &mut NfsQueue, slot: usize, offset: u64, length: usize) -> bool {
    let bytes = &queue.buffer(slot).unwrap()[..length];
    (offset..).zip(bytes).all(|(at, byte)| *byte == (at >> 8) as u8)
}

fn mixed() -> Vec<Request> {
    let lengths = [512, 4 * KIB, 100 * KIB, 1000, 64 * KIB, 256 * KIB, 4099, 20 * KIB];
    let place = |(slot, length)| request(Kind::Read, slot as u64 * 1_000_000 + 77, length);
    lengths.into_iter().enumerate().map(place).collect()
}

#[test]
fn answers_in_any_order_and_any_fragments_reach_their_slots_whole() {
    for (fragment, together) in [(0, 1), (0, DEPTH), (5, DEPTH), (1000, 3), (65_536, 1)] {
        let server = scripted::start();
        server.script.fragment.store(fragment, SeqCst);
        server.script.together.store(together.min(DEPTH), SeqCst);
        if together == 3 {
            server.script.together.store(4, SeqCst); // a divisor, so that none is held for ever
        }
        let mut queue = queue(&server, Durability::UNSTABLE);
        for _ in 0..if fragment == 5 { 1 } else { 3 } {
            let requests = mixed();
            let mut done = all(&mut queue, &requests).unwrap();
            done.sort_by_key(|completion| completion.slot);
            for (slot, (request, done)) in requests.iter().zip(&done).enumerate() {
                assert_eq!((done.slot, done.bytes), (slot, request.length_bytes));
                assert!(done.wire.received > done.bytes && done.wire.sent > 60, "{done:?}");
                let (offset, length) = (request.offset_bytes, request.length_bytes as usize);
                assert!(holds(&mut queue, slot, offset, length), "{fragment} {together} {slot}");
            }
        }
    }
}

#[test]
fn a_server_that_moves_less_than_asked_is_asked_for_the_rest() {
    let server = scripted::start();
    server.script.most.store(3000, SeqCst);
    let mut queue = queue(&server, Durability::UNSTABLE);
    let requests = [request(Kind::Read, 0, 10_000), request(Kind::Write, 0, 10_000)];
    let mut done = all(&mut queue, &requests).unwrap();
    done.sort_by_key(|completion| completion.slot);
    assert_eq!((done[0].bytes, done[1].bytes), (10_000, 10_000));
    // Four calls each: of the writes' data what was not taken is sent again, and counted.
    assert!(done[1].wire.sent > 10_000 + 7_000 + 4_000 + 1_000, "{:?}", done[1].wire);
    server.script.most.store(0, SeqCst);
    let error = all(&mut queue, &requests[..1]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.contains("ended within"), "{error}");
}

#[test]
fn another_verifier_is_a_server_that_began_anew() {
    let server = scripted::start();
    let mut queue = queue(&server, Durability::UNSTABLE);
    let write = [request(Kind::Write, 0, 512)];
    for (verifier, restarted) in [(1, false), (1, false), (2, true), (2, true)] {
        server.script.verifier.store(verifier, SeqCst);
        all(&mut queue, &write).unwrap();
        assert_eq!(queue.connection().unwrap().restarted, restarted);
        assert_eq!(queue.connection().unwrap().stable_writes, 0, "answered as UNSTABLE");
        assert_eq!(queue.verifier(), Some(verifier.to_be_bytes()));
    }
}

#[test]
fn every_nth_write_waits_for_a_commit() {
    let server = scripted::start();
    let durability = Durability { stable: Stable::Unstable, commit_every: Some(3) };
    let mut queue = queue(&server, durability);
    for made in 1..=9 {
        all(&mut queue, &[request(Kind::Write, 0, 512)]).unwrap();
        assert_eq!(server.script.commits.load(SeqCst), made / 3);
        all(&mut queue, &[request(Kind::Read, 0, 512)]).unwrap();
    }
}

#[test]
fn refusals_are_told_apart() {
    for (status, kind, words) in [
        (5, ErrorKind::Io, "the server failed (NFS3ERR_IO)"),
        (28, ErrorKind::Io, "NFS3ERR_NOSPC"),
        (70, ErrorKind::Lost, "no longer knows it (NFS3ERR_STALE)"),
        (12_345, ErrorKind::Io, "refuses with status 12345"),
    ] {
        let server = scripted::start();
        server.script.status.store(status, SeqCst);
        let mut queue = queue(&server, Durability::UNSTABLE);
        let error = all(&mut queue, &[request(Kind::Write, 4096, 512)]).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
        assert!(error.message.contains("writing 512 bytes at byte 4096"), "{error}");
    }
}

#[test]
fn a_patient_turn_returns_with_nothing_and_not_too_soon() {
    let server = scripted::start();
    server.script.together.store(2, SeqCst);
    let mut queue = queue(&server, Durability::UNSTABLE);
    queue.prepare(0, &request(Kind::Read, 0, 512)).unwrap();
    let (began, mut done) = (std::time::Instant::now(), Vec::new());
    queue.turn(Some(50_000_000), &mut done).unwrap();
    let took_s = began.elapsed().as_secs_f64();
    assert!(done.is_empty() && took_s >= 0.05, "{took_s}");
    queue.prepare(1, &request(Kind::Read, 0, 512)).unwrap();
    while done.len() < 2 {
        queue.turn(Some(5_000_000_000), &mut done).unwrap();
    }
}
