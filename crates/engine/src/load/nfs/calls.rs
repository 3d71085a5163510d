//! Calls of NFS version 3 as bytes, and what an answer's head says.
//!
//! Everything is appended to the connection's outbox in place; the head that all calls share is made
//! once. Only so much of an answer is looked at as a load needs.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use nfs3_types::nfs3::{NFS_PROGRAM, PROGRAM, VERSION, nfs_fh3};
use nfs3_types::rpc::{RPC_VERSION_2, call_body, msg_body, opaque_auth, rpc_msg};
use nfs3_types::xdr_codec::Pack;

use crate::backend::nfs::rpc::{LAST_FRAGMENT, credential};

/// Bytes of an answer that are kept: its head with the longest verifier that is allowed (RFC 5531
/// §8.2), and of a LOOKUP's or CREATE's the handle and the attributes.
pub const KEPT_BYTES: usize = 768;

const PROCEDURE_AT: usize = 20;
const VERIFIER_BYTES_MAX: usize = 400;
const ATTRIBUTE_BYTES: usize = 84;

/// A file handle, encoded.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Handle(Box<[u8]>);

impl Handle {
    /// Of a handle that something else found.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn of(handle: &nfs_fh3) -> Result<Self, EngineError> {
        let mut bytes = Vec::new();
        handle.pack(&mut bytes).map_err(unencodable)?;
        Ok(Self(bytes.into_boxed_slice()))
    }
}

fn unencodable(error: nfs3_types::xdr_codec::Error) -> EngineError {
    EngineError::fault(format!("a call cannot be encoded: {error}"))
}

/// What all calls begin with.
#[derive(Clone, Debug)]
pub struct Head(Box<[u8]>);

impl Head {
    /// With this process's credential.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn new() -> Result<Self, EngineError> {
        let body = call_body {
            rpcvers: RPC_VERSION_2,
            prog: PROGRAM,
            vers: VERSION,
            proc: 0,
            cred: credential(),
            verf: opaque_auth::default(),
        };
        let mut bytes = Vec::new();
        rpc_msg { xid: 0, body: msg_body::CALL(body) }.pack(&mut bytes).map_err(unencodable)?;
        Ok(Self(bytes.into_boxed_slice()))
    }

    /// Appends a record's mark and head; the arguments follow.
    pub fn begin<'a>(&self, out: &'a mut Vec<u8>, xid: u32, procedure: NFS_PROGRAM) -> Record<'a> {
        let from = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.0);
        out[from + 4..from + 8].copy_from_slice(&xid.to_be_bytes());
        out[from + 4 + PROCEDURE_AT..from + 8 + PROCEDURE_AT]
            .copy_from_slice(&(procedure as u32).to_be_bytes());
        Record { out, from }
    }
}

/// A call's record in the making; its mark is set when it is dropped.
#[derive(Debug)]
pub struct Record<'a> {
    out: &'a mut Vec<u8>,
    from: usize,
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        let length = (self.out.len() - self.from - 4) as u32;
        self.out[self.from..self.from + 4].copy_from_slice(&(LAST_FRAGMENT | length).to_be_bytes());
    }
}

impl Record<'_> {
    /// A file's or directory's handle.
    #[must_use]
    pub fn handle(self, handle: &Handle) -> Self {
        self.out.extend_from_slice(&handle.0);
        self
    }

    /// A word.
    #[must_use]
    pub fn word(self, word: u32) -> Self {
        self.out.extend_from_slice(&word.to_be_bytes());
        self
    }

    /// Two words.
    #[must_use]
    pub fn long(self, long: u64) -> Self {
        self.out.extend_from_slice(&long.to_be_bytes());
        self
    }

    /// Bytes with their number before them.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.extend_from_slice(bytes);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.out.extend_from_slice(&[0; 4][..padding]);
        self
    }

    /// The attributes to be set (`sattr3`): a mode, a length, nothing else.
    #[must_use]
    pub fn attributes(self, mode: Option<u32>, length_bytes: Option<u64>) -> Self {
        let with_mode = match mode {
            Some(mode) => self.word(1).word(mode),
            None => self.word(0),
        };
        let owned = with_mode.word(0).word(0); // neither user nor group
        let with_length = match length_bytes {
            Some(bytes) => owned.word(1).long(bytes),
            None => owned.word(0),
        };
        with_length.word(0).word(0) // times stay as the server has them
    }
}

/// What an answer says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Said<'a> {
    /// Done; the operation's own results follow, as far as they were kept.
    Done(&'a [u8]),
    /// The server refuses the operation with this status (RFC 1813 §2.6).
    Refused(u32),
    /// The server does not want to be asked, in words of RFC 5531.
    Denied(&'static str),
}

/// A reader of an answer's words.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) << 32 | u64::from(self.word()?))
    }

    fn skip(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (skipped, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(skipped)
    }

    /// Attributes that may be there (`post_op_attr`); of them the length.
    fn attributes(&mut self) -> Option<Option<u64>> {
        if self.word()? == 0 {
            return Some(None);
        }
        let mut inside = Words(self.skip(ATTRIBUTE_BYTES)?);
        inside.skip(20)?;
        Some(inside.long())
    }

    fn handle(&mut self) -> Option<Handle> {
        let length = Words(self.0).word()? as usize;
        let bytes = self.skip(4 + length.next_multiple_of(4))?;
        Some(Handle(bytes.into()))
    }
}

/// The number of an answer and what it says; none when it is no answer.
#[must_use]
pub fn understand(head: &[u8]) -> Option<(u32, Said<'_>)> {
    const REPLY: u32 = 1;
    let mut words = Words(head);
    let xid = words.word()?;
    if words.word()? != REPLY {
        return None;
    }
    match words.word()? {
        0 => {}
        1 => return Some((xid, Said::Denied("it refuses who is asking (MSG_DENIED)"))),
        _ => return None,
    }
    words.word()?;
    let verifier = words.word()? as usize;
    if verifier > VERIFIER_BYTES_MAX {
        return None;
    }
    words.skip(verifier.next_multiple_of(4))?;
    let said = match words.word()? {
        0 => match words.word()? {
            0 => Said::Done(words.0),
            status => Said::Refused(status),
        },
        1 => Said::Denied("it no longer offers NFS (PROG_UNAVAIL)"),
        2 => Said::Denied("it no longer offers version 3 (PROG_MISMATCH)"),
        3 => Said::Denied("it does not know the procedure (PROC_UNAVAIL)"),
        4 => Said::Denied("it could not read the call (GARBAGE_ARGS)"),
        5 => Said::Denied("it failed or has too many calls (SYSTEM_ERR)"),
        _ => return None,
    };
    Some((xid, said))
}

/// What a LOOKUP found: a handle, and the length where the server tells it.
#[must_use]
pub fn found(results: &[u8]) -> Option<(Handle, Option<u64>)> {
    let mut words = Words(results);
    let handle = words.handle()?;
    Some((handle, words.attributes()?))
}

/// Bytes that a READ found.
#[must_use]
pub fn read_bytes(results: &[u8]) -> Option<u32> {
    let mut words = Words(results);
    words.attributes()?;
    words.word()
}

/// Bytes that a WRITE took, and the server's verifier.
#[must_use]
pub fn wrote(results: &[u8]) -> Option<(u32, u64)> {
    let mut words = Words(results);
    change(&mut words)?;
    let bytes = words.word()?;
    words.word()?;
    Some((bytes, words.long()?))
}

/// The server's verifier as a COMMIT tells it.
#[must_use]
pub fn committed(results: &[u8]) -> Option<u64> {
    let mut words = Words(results);
    change(&mut words)?;
    words.long()
}

/// Attributes before and after (`wcc_data`).
fn change(words: &mut Words) -> Option<()> {
    const BRIEF_ATTRIBUTE_BYTES: usize = 24;
    if words.word()? != 0 {
        words.skip(BRIEF_ATTRIBUTE_BYTES)?;
    }
    words.attributes().map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use nfs3_types::nfs3::{
        COMMIT3res, COMMIT3resok, CREATE3args, LOOKUP3args, LOOKUP3res, LOOKUP3resok, Nfs3Option,
        Nfs3Result, READ3res, READ3resok, SETATTR3args, SYMLINK3args, WRITE3args, WRITE3res,
        WRITE3resok, createhow3, stable_how, writeverf3,
    };
    use nfs3_types::rpc::accept_stat_data;
    use nfs3_types::xdr_codec::Opaque;
    use proptest::prelude::*;

    use super::*;
    use crate::backend::nfs::examples::{
        LENGTH_BYTES, XID, attributes, changed, decoded, file, reply,
    };

    fn record(procedure: NFS_PROGRAM, more: impl Fn(Record<'_>) -> Record<'_>) -> Vec<u8> {
        let mut out = vec![9; 3]; // another call that was not taken yet
        drop(more(Head::new().unwrap().begin(&mut out, XID, procedure)));
        out.split_off(3)
    }

    #[test]
    fn calls_are_what_nfs3_types_reads() {
        let handle = Handle::of(&file()).unwrap();
        let bytes = record(NFS_PROGRAM::NFSPROC3_WRITE, |record| {
            record.handle(&handle).long(5 << 32).word(5).word(2).bytes(&[1, 2, 3, 4, 5])
        });
        let (xid, procedure, write) = decoded::<WRITE3args>(&bytes);
        assert_eq!((xid, procedure, write.offset, write.count), (XID, 7, 5 << 32, 5));
        assert_eq!((write.stable, &write.file), (stable_how::FILE_SYNC, &file()));
        assert_eq!(write.data.as_ref(), &[1, 2, 3, 4, 5]);

        let bytes = record(NFS_PROGRAM::NFSPROC3_LOOKUP, |record| {
            record.handle(&handle).bytes(b"f0000001")
        });
        let (_, procedure, lookup) = decoded::<LOOKUP3args>(&bytes);
        assert_eq!((procedure, lookup.what.name.as_ref()), (3, &b"f0000001"[..]));
        assert_eq!(lookup.what.dir, file());

        let bytes = record(NFS_PROGRAM::NFSPROC3_CREATE, |record| {
            record.handle(&handle).bytes(b"n").word(1).attributes(Some(0o600), None)
        });
        let (_, _, create) = decoded::<CREATE3args>(&bytes);
        let createhow3::GUARDED(attributes) = create.how else { unreachable!() };
        assert_eq!(attributes.mode, Nfs3Option::Some(0o600));
        assert_eq!(attributes.size, Nfs3Option::None);

        let bytes = record(NFS_PROGRAM::NFSPROC3_SETATTR, |record| {
            record.handle(&handle).attributes(None, Some(1 << 40)).word(0)
        });
        let (_, _, set) = decoded::<SETATTR3args>(&bytes);
        assert_eq!(set.new_attributes.size, Nfs3Option::Some(1 << 40));
        assert_eq!((set.new_attributes.mode, set.guard), (Nfs3Option::None, Nfs3Option::None));

        let bytes = record(NFS_PROGRAM::NFSPROC3_SYMLINK, |record| {
            record.handle(&handle).bytes(b"l").attributes(None, None).bytes(b"where")
        });
        let (_, _, link) = decoded::<SYMLINK3args>(&bytes);
        assert_eq!(link.symlink.symlink_data.0.as_ref(), b"where");
    }

    fn results(bytes: &[u8]) -> &[u8] {
        let (xid, Said::Done(results)) = understand(bytes).unwrap() else { unreachable!() };
        assert_eq!(xid, XID);
        results
    }

    proptest! {
        #[test]
        fn answers_are_understood(verifier in 0usize..=400, before: bool, after: bool) {
            let body: LOOKUP3res = Nfs3Result::Ok(LOOKUP3resok {
                object: file(), obj_attributes: attributes(after), dir_attributes: attributes(before),
            });
            let bytes = reply(verifier, accept_stat_data::SUCCESS, &body);
            prop_assert!(bytes.len() <= KEPT_BYTES);
            let length = after.then_some(LENGTH_BYTES);
            prop_assert_eq!(found(results(&bytes)), Some((Handle::of(&file()).unwrap(), length)));

            let data = Opaque::owned(vec![5; 3000]);
            let body: READ3res = Nfs3Result::Ok(READ3resok {
                file_attributes: attributes(after), count: 3000, eof: false, data,
            });
            let bytes = reply(verifier, accept_stat_data::SUCCESS, &body);
            prop_assert_eq!(read_bytes(results(&bytes[..KEPT_BYTES])), Some(3000));

            let verf = writeverf3(*b"\0\0\0\0\0\0\0A");
            let committed_as = stable_how::UNSTABLE;
            let body: WRITE3res = Nfs3Result::Ok(WRITE3resok {
                file_wcc: changed(before, after), count: 4096, committed: committed_as, verf,
            });
            let bytes = reply(verifier, accept_stat_data::SUCCESS, &body);
            prop_assert_eq!(wrote(results(&bytes)), Some((4096, 65)));
            let file_wcc = changed(before, after);
            let body: COMMIT3res = Nfs3Result::Ok(COMMIT3resok { file_wcc, verf });
            let bytes = reply(verifier, accept_stat_data::SUCCESS, &body);
            prop_assert_eq!(committed(results(&bytes)), Some(65));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..KEPT_BYTES)) {
            let parts = [bytes.as_slice(), understand(&bytes).map_or(&[][..], |pair| match pair.1 {
                Said::Done(results) => results,
                _ => &[],
            })];
            for part in parts {
                let _ = (found(part), read_bytes(part), wrote(part), committed(part));
            }
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let refused = reply(4, accept_stat_data::SUCCESS, &70u32);
        assert_eq!(understand(&refused), Some((XID, Said::Refused(70))));
        let failed = reply(0, accept_stat_data::SYSTEM_ERR, &0u32);
        assert!(
            matches!(understand(&failed), Some((XID, Said::Denied(why))) if why.contains("SYSTEM_ERR"))
        );
        let mut no_answer = refused;
        no_answer[7] = 0; // a call
        assert_eq!(understand(&no_answer), None);
    }
}
