//! A record of a server's taken apart: the head of an answer, and what was answered.
//!
//! `nfs3_types` makes room for as many bytes as a length says before it looks whether they are
//! there, and a server may say anything: four bytes of it could ask for 16 GiB, and where the
//! system has none to give, that ends the process. So lengths are compared with the record first.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io::Cursor;

use nfs3_types::mount::mountres3;
use nfs3_types::nfs3::{
    COMMIT3res, CREATE3res, FSINFO3res, FSSTAT3res, GETATTR3res, LOOKUP3res, MKDIR3res, READ3res,
    READDIR3res, REMOVE3res, RMDIR3res, SETATTR3res, WRITE3res,
};
use nfs3_types::rpc::{msg_body, reply_body, rpc_msg};
use nfs3_types::xdr_codec::{Unpack, Void};

const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const ATTRIBUTE_BYTES: usize = 84;

/// What has a length that is longer than the record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooLong;

/// Where lengths may stand in an answer. What is missing at its end is for the reading to find.
pub trait Lengths {
    /// Goes to every length and compares it with what is there.
    ///
    /// # Errors
    /// When there are fewer bytes.
    fn check(_words: &mut Words) -> Result<(), TooLong> {
        Ok(())
    }
}

/// A walk through an answer.
#[derive(Debug)]
pub struct Words<'a>(&'a [u8]);

impl Words<'_> {
    /// The next word; 0, which stands for nothing everywhere here, when there is none.
    fn word(&mut self) -> u32 {
        let Some((word, rest)) = self.0.split_first_chunk::<4>() else {
            self.0 = &[];
            return 0;
        };
        self.0 = rest;
        u32::from_be_bytes(*word)
    }

    fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    fn opaque(&mut self) -> Result<(), TooLong> {
        let length = self.word() as usize;
        if length > self.0.len() {
            return Err(TooLong);
        }
        self.skip(length.next_multiple_of(4));
        Ok(())
    }

    fn attributes(&mut self) {
        if self.word() != 0 {
            self.skip(ATTRIBUTE_BYTES);
        }
    }
}

impl Lengths for mountres3<'_> {
    fn check(words: &mut Words) -> Result<(), TooLong> {
        if words.word() != 0 {
            return Ok(());
        }
        words.opaque()?;
        let flavors = words.word() as usize;
        if flavors > words.0.len() / 4 { Err(TooLong) } else { Ok(()) }
    }
}

impl Lengths for LOOKUP3res {
    fn check(words: &mut Words) -> Result<(), TooLong> {
        if words.word() == 0 { words.opaque() } else { Ok(()) }
    }
}

fn made(words: &mut Words) -> Result<(), TooLong> {
    if words.word() == 0 && words.word() != 0 { words.opaque() } else { Ok(()) }
}

impl Lengths for MKDIR3res {
    fn check(words: &mut Words) -> Result<(), TooLong> {
        made(words)
    }
}

impl Lengths for CREATE3res {
    fn check(words: &mut Words) -> Result<(), TooLong> {
        made(words)
    }
}

impl Lengths for READDIR3res<'_> {
    fn check(words: &mut Words) -> Result<(), TooLong> {
        if words.word() != 0 {
            return Ok(());
        }
        words.attributes();
        words.skip(8);
        while words.word() != 0 {
            words.skip(8);
            words.opaque()?;
            words.skip(8);
        }
        Ok(())
    }
}

impl Lengths for READ3res<'_> {
    fn check(words: &mut Words) -> Result<(), TooLong> {
        if words.word() != 0 {
            return Ok(());
        }
        words.attributes();
        words.skip(8);
        words.opaque()
    }
}

impl Lengths for COMMIT3res {}
impl Lengths for FSINFO3res {}
impl Lengths for FSSTAT3res {}
impl Lengths for GETATTR3res {}
impl Lengths for REMOVE3res {}
impl Lengths for RMDIR3res {}
impl Lengths for SETATTR3res {}
impl Lengths for WRITE3res {}
impl Lengths for Void {}
impl Lengths for u32 {}

/// Reads the head of an answer, and returns what follows it.
///
/// # Errors
/// Why it is none.
pub fn head(record: &[u8]) -> Result<(u32, reply_body<'static>, &[u8]), String> {
    let mut words = Words(record);
    words.skip(4);
    if words.word() != REPLY {
        return Err("it is no answer".to_owned());
    }
    if words.word() == ACCEPTED {
        words.skip(4);
        words.opaque().map_err(too_long)?;
    }
    let mut cursor = Cursor::new(record);
    let (message, _) = rpc_msg::unpack(&mut cursor).map_err(said)?;
    let rest = record.get(cursor.position() as usize..).unwrap_or_default();
    match message.body {
        msg_body::REPLY(reply) => Ok((message.xid, reply, rest)),
        msg_body::CALL(_) => Err("it is a call".to_owned()),
    }
}

/// Reads what was answered.
///
/// # Errors
/// Why it is not that.
pub fn body<T: Unpack + Lengths>(bytes: &[u8]) -> Result<T, String> {
    T::check(&mut Words(bytes)).map_err(too_long)?;
    T::unpack(&mut Cursor::new(bytes)).map(|(answer, _)| answer).map_err(said)
}

fn too_long(_: TooLong) -> String {
    "a length in it is longer than all of it".to_owned()
}

fn said(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use nfs3_types::nfs3::{LOOKUP3resok, Nfs3Result, READ3resok};
    use nfs3_types::rpc::accept_stat_data;
    use nfs3_types::xdr_codec::Opaque;

    use super::*;
    use crate::backend::nfs::examples::{XID, attributes, file, reply};

    /// A record with its words, and the answer in it.
    fn answered<T: Unpack + Lengths>(bytes: &[u8]) -> Result<T, String> {
        head(bytes).and_then(|(_, _, rest)| body(rest))
    }

    /// Says at every word of an answer in turn that 4 GiB follow.
    fn lies<T: Unpack + Lengths>(bytes: &[u8]) {
        for at in (0..bytes.len()).step_by(4) {
            for lie in [u32::MAX, u32::MAX - 3, 1 << 31, bytes.len() as u32] {
                let mut lying = bytes.to_vec();
                lying[at..at + 4].copy_from_slice(&lie.to_be_bytes());
                let _ = answered::<T>(&lying);
            }
        }
    }

    #[test]
    fn a_length_that_is_longer_than_the_record_makes_no_room() {
        let object = file();
        let found: LOOKUP3res = Nfs3Result::Ok(LOOKUP3resok {
            object,
            obj_attributes: attributes(true),
            dir_attributes: attributes(true),
        });
        let bytes = reply(8, accept_stat_data::SUCCESS, &found);
        assert!(answered::<LOOKUP3res>(&bytes).is_ok());
        lies::<LOOKUP3res>(&bytes);
        let data = Opaque::owned(vec![5; 12]);
        let file_attributes = attributes(true);
        let read: READ3res =
            Nfs3Result::Ok(READ3resok { file_attributes, count: 12, eof: true, data });
        let bytes = reply(0, accept_stat_data::SUCCESS, &read);
        assert!(answered::<READ3res>(&bytes).is_ok());
        lies::<READ3res>(&bytes);
        let length = bytes.len() - 16;
        let mut lying = bytes;
        lying[length..length + 4].copy_from_slice(&u32::MAX.to_be_bytes());
        let said = answered::<READ3res>(&lying).unwrap_err();
        assert_eq!(said, "a length in it is longer than all of it");
    }

    #[test]
    fn a_mount_or_a_listing_says_no_more_than_there_is() {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_be_bytes()).collect()
        };
        assert!(body::<mountres3>(&words(&[0, 4, 9, 1, 1])).is_ok());
        for lying in [&[0, 4, 9, u32::MAX, 1][..], &[0, u32::MAX, 9], &[0, 4, 9, 2, 1]] {
            assert!(body::<mountres3>(&words(lying)).is_err(), "{lying:?}");
        }
        let listing = |length| words(&[0, 0, 7, 7, 1, 0, 5, length, 0x6161_6161, 0, 3, 0, 1]);
        assert!(body::<READDIR3res>(&listing(4)).is_ok());
        assert!(body::<READDIR3res>(&listing(u32::MAX)).unwrap_err().contains("longer"));
        assert!(body::<MKDIR3res>(&words(&[0, 1, 1 << 30, 0])).unwrap_err().contains("longer"));
    }

    #[test]
    fn a_call_is_no_answer() {
        let bytes = reply(0, accept_stat_data::SUCCESS, &0u32);
        let (xid, _, rest) = head(&bytes).unwrap();
        assert_eq!((xid, rest.len()), (XID, 4));
        let mut call = bytes;
        call[7] = 0;
        assert_eq!(head(&call).unwrap_err(), "it is no answer");
        call[7] = 1;
        call[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(head(&call).unwrap_err().contains("longer"));
    }
}
