//! READ, WRITE and COMMIT calls, encoded in place.
//!
//! The three differ only in a few words, so every slot keeps the head of a call, made once from
//! `nfs3_types`' encoding, and only these words are changed: nothing is allocated or copied.

#![forbid(unsafe_code)]

use nfs3_types::nfs3::{NFS_PROGRAM, PROGRAM, VERSION, nfs_fh3};
use nfs3_types::rpc::{RPC_VERSION_2, call_body, msg_body, opaque_auth, rpc_msg};
use nfs3_types::xdr_codec::{Error, Pack};

use crate::backend::nfs::rpc::{LAST_FRAGMENT, credential};

/// Where the number of a call stands in its head.
const XID_AT: usize = 4;
/// Where its procedure stands.
const PROCEDURE_AT: usize = 24;

/// How much of a write must be on stable storage before it is answered (RFC 1813 §3.3.7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Stable {
    /// Nothing: the server may keep it in memory until a COMMIT.
    Unstable = 0,
    /// The data and everything that finds it again.
    FileSync = 2,
}

/// What is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked {
    /// Bytes of the file.
    Read,
    /// Bytes to the file.
    Write(Stable),
    /// What was written, to stable storage.
    Commit,
}

/// The head of one slot's calls about one file.
#[derive(Clone, Debug)]
pub struct CallHead {
    bytes: Box<[u8]>,
    /// Where the arguments after the file's handle begin.
    arguments_at: usize,
    length: usize,
}

impl CallHead {
    /// A head for calls about `file`.
    ///
    /// # Errors
    /// When the handle or the credential cannot be encoded.
    pub fn new(file: &nfs_fh3) -> Result<Self, Error> {
        let body = call_body {
            rpcvers: RPC_VERSION_2,
            prog: PROGRAM,
            vers: VERSION,
            proc: NFS_PROGRAM::NFSPROC3_READ as u32,
            cred: credential(),
            verf: opaque_auth::default(),
        };
        let mut bytes = vec![0; XID_AT];
        rpc_msg { xid: 0, body: msg_body::CALL(body) }.pack(&mut bytes)?;
        file.pack(&mut bytes)?;
        let arguments_at = bytes.len();
        bytes.resize(arguments_at + 20, 0); // offset, count, and of a write: stable, length
        Ok(Self { bytes: bytes.into_boxed_slice(), arguments_at, length: 0 })
    }

    /// Makes it the head of a call.
    #[inline]
    pub fn set(&mut self, xid: u32, asked: Asked, offset: u64, count: u32) {
        let (procedure, arguments, data) = match asked {
            Asked::Read => (NFS_PROGRAM::NFSPROC3_READ, 12, 0),
            Asked::Write(stable) => {
                self.put(12, stable as u32);
                self.put(16, count);
                (NFS_PROGRAM::NFSPROC3_WRITE, 20, count.next_multiple_of(4))
            }
            Asked::Commit => (NFS_PROGRAM::NFSPROC3_COMMIT, 12, 0),
        };
        self.length = self.arguments_at + arguments;
        let mark = LAST_FRAGMENT | (self.length as u32 - 4 + data);
        self.bytes[..4].copy_from_slice(&mark.to_be_bytes());
        self.bytes[XID_AT..XID_AT + 4].copy_from_slice(&xid.to_be_bytes());
        self.bytes[PROCEDURE_AT..PROCEDURE_AT + 4]
            .copy_from_slice(&(procedure as u32).to_be_bytes());
        self.put(0, (offset >> 32) as u32);
        self.put(4, offset as u32);
        self.put(8, count);
    }

    #[inline]
    fn put(&mut self, at: usize, word: u32) {
        let at = self.arguments_at + at;
        self.bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }

    /// The head as it is sent; a write's data and its padding to four bytes follow.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use nfs3_types::nfs3::{COMMIT3args, READ3args, WRITE3args, stable_how};

    use super::*;
    use crate::backend::nfs::examples::{decoded, file};

    #[test]
    fn the_calls_are_what_nfs3_types_reads() {
        let file = file();
        let mut head = CallHead::new(&file).unwrap();
        head.set(9, Asked::Write(Stable::FileSync), (5 << 32) + 4096, 5);
        let mut record = head.bytes().to_vec();
        record.extend([1, 2, 3, 4, 5, 0, 0, 0]);
        let (xid, procedure, write) = decoded::<WRITE3args>(&record);
        assert_eq!((xid, procedure, write.count), (9, 7, 5));
        assert_eq!((write.offset, write.stable), ((5 << 32) + 4096, stable_how::FILE_SYNC));
        assert_eq!((write.data.as_ref(), &write.file), (&[1u8, 2, 3, 4, 5][..], &file));
        head.set(10, Asked::Read, 512, 1 << 20);
        let (xid, procedure, read) = decoded::<READ3args>(head.bytes());
        assert_eq!((xid, procedure, read.offset, read.count), (10, 6, 512, 1 << 20));
        head.set(11, Asked::Commit, 0, 0);
        let (xid, procedure, commit) = decoded::<COMMIT3args>(head.bytes());
        assert_eq!((xid, procedure, commit.offset, commit.count), (11, 21, 0, 0));
    }
}
