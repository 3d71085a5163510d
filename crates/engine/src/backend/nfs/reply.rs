//! Answers to READ, WRITE and COMMIT, understood as far as they have come.
//!
//! An answer's head has no fixed length: attributes may be there or not. [`understand`] reads as far
//! as it can and says how many bytes it needs to go on, so that nothing that follows the head (the
//! data of a READ) is taken from the connection too early.

#![forbid(unsafe_code)]

use crate::backend::nfs::calls::Asked;

/// Longest head: whatever the server adds, with the longest verifier that is allowed.
pub const HEAD_BYTES_MAX: usize = 12 + 8 + VERIFIER_BYTES_MAX as usize + 8 + 4 + 24 + 4 + 84 + 16;

/// Longest body of a verifier (RFC 5531 §8.2).
const VERIFIER_BYTES_MAX: u32 = 400;

const ATTRIBUTE_BYTES: usize = 84;
const BRIEF_ATTRIBUTE_BYTES: usize = 24;

/// What a whole head says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// So many bytes of data follow.
    Read {
        /// Their number.
        bytes: u32,
    },
    /// So many bytes were taken.
    Write {
        /// Their number.
        bytes: u32,
        /// Whether the server says that they are on stable storage; it may do more than it was asked.
        stable: bool,
        /// Stands for this life of the server; another means that what was not committed may be
        /// lost.
        verifier: [u8; 8],
    },
    /// It is on stable storage.
    Commit {
        /// As of a write.
        verifier: [u8; 8],
    },
    /// The server refuses the operation with this status (RFC 1813 §2.6).
    Refused(u32),
    /// The server does not want to be asked, in words of RFC 5531.
    Denied(&'static str),
}

/// How far an answer is understood.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Understood {
    /// The head must have so many bytes in all before more can be said.
    Needs(usize),
    /// All of it.
    Whole(Answer),
}

/// The answer is not what RFC 5531 and RFC 1813 allow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Garbled;

/// Bytes that tell which call an answer belongs to.
pub const XID_BYTES: usize = 4;

struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why reading ended early.
enum End {
    Needs(usize),
    Garbled,
}

impl Words<'_> {
    fn word(&mut self) -> Result<u32, End> {
        let to = self.at + 4;
        let found = self.bytes.get(self.at..to).ok_or(End::Needs(to))?;
        self.at = to;
        Ok(u32::from_be_bytes([found[0], found[1], found[2], found[3]]))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), End> {
        let to = self.at + bytes;
        if self.bytes.len() < to {
            return Err(End::Needs(to));
        }
        self.at = to;
        Ok(())
    }

    /// Something that is there or not.
    fn optional(&mut self, bytes: usize) -> Result<(), End> {
        match self.word()? {
            0 => Ok(()),
            1 => self.skip(bytes),
            _ => Err(End::Garbled),
        }
    }

    fn change(&mut self) -> Result<(), End> {
        self.optional(BRIEF_ATTRIBUTE_BYTES)?;
        self.optional(ATTRIBUTE_BYTES)
    }

    fn verifier(&mut self) -> Result<[u8; 8], End> {
        let (high, low) = (self.word()?, self.word()?);
        Ok((u64::from(high) << 32 | u64::from(low)).to_be_bytes())
    }
}

/// Reads the head of an answer to what was `asked`.
///
/// # Errors
/// `Garbled` when it cannot be one.
pub fn understand(head: &[u8], asked: Asked) -> Result<Understood, Garbled> {
    match read(&mut Words { bytes: head, at: 0 }, asked) {
        Ok(answer) => Ok(Understood::Whole(answer)),
        Err(End::Needs(bytes)) if bytes <= HEAD_BYTES_MAX => Ok(Understood::Needs(bytes)),
        Err(_) => Err(Garbled),
    }
}

fn read(words: &mut Words, asked: Asked) -> Result<Answer, End> {
    const REPLY: u32 = 1;
    words.skip(XID_BYTES)?;
    if words.word()? != REPLY {
        return Err(End::Garbled);
    }
    match words.word()? {
        0 => {}
        1 => return Ok(Answer::Denied("it refuses who is asking (MSG_DENIED)")),
        _ => return Err(End::Garbled),
    }
    words.word()?;
    let length = words.word()?;
    if length > VERIFIER_BYTES_MAX {
        return Err(End::Garbled);
    }
    words.skip(length.next_multiple_of(4) as usize)?;
    match words.word()? {
        0 => {}
        1 => return Ok(Answer::Denied("it no longer offers NFS (PROG_UNAVAIL)")),
        2 => return Ok(Answer::Denied("it no longer offers version 3 (PROG_MISMATCH)")),
        3 => return Ok(Answer::Denied("it does not know the procedure (PROC_UNAVAIL)")),
        4 => return Ok(Answer::Denied("it could not read the call (GARBAGE_ARGS)")),
        5 => return Ok(Answer::Denied("it failed or has too many calls (SYSTEM_ERR)")),
        _ => return Err(End::Garbled),
    }
    match words.word()? {
        0 => {}
        status => return Ok(Answer::Refused(status)),
    }
    match asked {
        Asked::Read => {
            words.optional(ATTRIBUTE_BYTES)?;
            let (count, _eof, bytes) = (words.word()?, words.word()?, words.word()?);
            if bytes == count { Ok(Answer::Read { bytes }) } else { Err(End::Garbled) }
        }
        Asked::Write(_) => {
            words.change()?;
            let (bytes, stable) = (words.word()?, words.word()? != 0);
            Ok(Answer::Write { bytes, stable, verifier: words.verifier()? })
        }
        Asked::Commit => {
            words.change()?;
            Ok(Answer::Commit { verifier: words.verifier()? })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use nfs3_types::nfs3::{
        COMMIT3res, COMMIT3resok, Nfs3Result, READ3res, READ3resfail, READ3resok, WRITE3res,
        WRITE3resok, nfsstat3, stable_how, writeverf3,
    };
    use nfs3_types::rpc::accept_stat_data::SUCCESS;
    use nfs3_types::xdr_codec::Opaque;
    use proptest::prelude::*;

    use super::*;
    use crate::backend::nfs::calls::Stable;
    use crate::backend::nfs::examples::{attributes, changed, reply};

    /// Understands a reply byte by byte as asked for; returns what it says and the head's length.
    fn step_by_step(bytes: &[u8], asked: Asked) -> (Answer, usize) {
        let mut have = 0;
        loop {
            match understand(&bytes[..have], asked).unwrap() {
                Understood::Needs(more) => {
                    assert!(more > have && more <= bytes.len(), "{more} of {}", bytes.len());
                    have = more;
                }
                Understood::Whole(answer) => return (answer, have),
            }
        }
    }

    proptest! {
        #[test]
        fn a_read_is_understood_up_to_its_data(
            verifier in 0usize..=400, told: bool, data in 0usize..100
        ) {
            let file_attributes = attributes(told);
            let count = data as u32;
            let data = Opaque::owned(vec![5; data]);
            let read: READ3res = Nfs3Result::Ok(READ3resok { file_attributes, count, eof: false, data });
            let bytes = reply(verifier, SUCCESS, &read);
            let (answer, head) = step_by_step(&bytes, Asked::Read);
            prop_assert_eq!(answer, Answer::Read { bytes: count });
            prop_assert_eq!(head + count.next_multiple_of(4) as usize, bytes.len());
        }

        #[test]
        fn writes_and_commits_are_understood_to_the_end(before: bool, after: bool) {
            let verf = writeverf3(*b"12345678");
            let committed = stable_how::UNSTABLE;
            let file_wcc = changed(before, after);
            let write: WRITE3res =
                Nfs3Result::Ok(WRITE3resok { file_wcc, count: 4096, committed, verf });
            let bytes = reply(0, SUCCESS, &write);
            let wrote = Answer::Write { bytes: 4096, stable: false, verifier: *b"12345678" };
            let asked = Asked::Write(Stable::Unstable);
            prop_assert_eq!(step_by_step(&bytes, asked), (wrote, bytes.len()));
            let file_wcc = changed(before, after);
            let commit: COMMIT3res = Nfs3Result::Ok(COMMIT3resok { file_wcc, verf });
            let bytes = reply(0, SUCCESS, &commit);
            let done = Answer::Commit { verifier: *b"12345678" };
            prop_assert_eq!(step_by_step(&bytes, Asked::Commit), (done, bytes.len()));
        }

        #[test]
        fn no_bytes_make_it_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..HEAD_BYTES_MAX)
        ) {
            for asked in [Asked::Read, Asked::Write(Stable::FileSync), Asked::Commit] {
                if let Ok(Understood::Needs(more)) = understand(&bytes, asked) {
                    prop_assert!(more > bytes.len() && more <= HEAD_BYTES_MAX);
                }
            }
        }
    }

    #[test]
    fn a_refusal_is_told_with_its_status() {
        let read: READ3res = Nfs3Result::Err((nfsstat3::NFS3ERR_STALE, READ3resfail::default()));
        let (answer, _) = step_by_step(&reply(0, SUCCESS, &read), Asked::Read);
        assert_eq!(answer, Answer::Refused(70));
    }
}
