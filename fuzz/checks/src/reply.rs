//! Any bytes as an answer of an NFS server: both hand-made readers and those of `nfs3_types` take
//! what makes sense and refuse the rest, in little memory, and agree on what a READ found.
//! `nfs3_types` is fuzzed as it is used, behind what compares lengths.

use leadline_engine::backend::nfs::calls::{Asked, Stable};
use leadline_engine::backend::nfs::record::{self, Lengths};
use leadline_engine::backend::nfs::reply::{Answer, HEAD_BYTES_MAX, Understood, understand};
use leadline_engine::load::nfs::calls;
use nfs3_types::mount::mountres3;
use nfs3_types::nfs3::{
    COMMIT3res, CREATE3res, FSINFO3res, FSSTAT3res, GETATTR3res, LOOKUP3res, MKDIR3res, Nfs3Result,
    READ3res, READDIR3res, REMOVE3res, RMDIR3res, SETATTR3res, WRITE3res,
};
use nfs3_types::rpc::{accept_stat_data, reply_body};
use nfs3_types::xdr_codec::Unpack;

const ASKED: [Asked; 3] = [Asked::Read, Asked::Write(Stable::Unstable), Asked::Commit];

/// Tries these bytes.
pub fn reply(bytes: &[u8]) {
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    for asked in ASKED {
        of_the_hot_loop(head, asked);
    }
    of_the_load(&bytes[..bytes.len().min(calls::KEPT_BYTES)]);
    of_the_calls(bytes);
}

/// Byte by byte as it may come: it never asks for what it has, and never changes its mind.
fn of_the_hot_loop(head: &[u8], asked: Asked) {
    let mut before = None;
    for length in 0..=head.len() {
        let now = understand(&head[..length], asked);
        match (before, now) {
            (Some(Ok(Understood::Whole(answer))), now) => {
                assert_eq!(now, Ok(Understood::Whole(answer)));
            }
            (Some(Err(garbled)), now) => assert_eq!(now, Err(garbled)),
            (_, Ok(Understood::Needs(more))) => assert!(more > length && more <= HEAD_BYTES_MAX),
            _ => {}
        }
        before = Some(now);
    }
}

fn of_the_load(kept: &[u8]) {
    let results = match calls::understand(kept) {
        Some((_, calls::Said::Done(results))) => results,
        _ => kept,
    };
    let _ = (calls::found(results), calls::wrote(results), calls::committed(results));
    let _ = calls::read_bytes(results);
}

fn of_the_calls(bytes: &[u8]) {
    let Ok((_, reply, rest)) = record::head(bytes) else { return };
    unpack::<mountres3>(rest);
    unpack::<COMMIT3res>(rest);
    unpack::<CREATE3res>(rest);
    unpack::<FSINFO3res>(rest);
    unpack::<FSSTAT3res>(rest);
    unpack::<GETATTR3res>(rest);
    unpack::<LOOKUP3res>(rest);
    unpack::<MKDIR3res>(rest);
    unpack::<READDIR3res>(rest);
    unpack::<REMOVE3res>(rest);
    unpack::<RMDIR3res>(rest);
    unpack::<SETATTR3res>(rest);
    unpack::<WRITE3res>(rest);
    let read = unpack::<READ3res>(rest);
    let reply_body::MSG_ACCEPTED(accepted) = &reply else { return };
    if let (accept_stat_data::SUCCESS, Some(Nfs3Result::Ok(read))) = (&accepted.reply_data, read) {
        agrees(bytes, read.count, read.data.len());
    }
}

fn unpack<T: Unpack + Lengths>(bytes: &[u8]) -> Option<T> {
    record::body(bytes).ok()
}

/// Where `nfs3_types` reads a whole READ, so do both others, with as many bytes.
fn agrees(bytes: &[u8], count: u32, data: usize) {
    let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    if let Ok(Understood::Whole(Answer::Read { bytes })) = understand(head, Asked::Read) {
        assert!(bytes == count || bytes as usize == data, "{bytes} of {count}, {data} there");
    }
}
