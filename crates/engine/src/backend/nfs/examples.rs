//! Calls and answers as `nfs3_types` has them, for the tests of both hand-made codecs.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::io::Cursor;

use nfs3_types::nfs3::{
    Nfs3Option, fattr3, ftype3, nfs_fh3, nfstime3, specdata3, wcc_attr, wcc_data,
};
use nfs3_types::rpc::{
    accept_stat_data, accepted_reply, auth_flavor, msg_body, opaque_auth, reply_body, rpc_msg,
};
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};

use crate::backend::nfs::rpc::LAST_FRAGMENT;

/// Number of the call that is answered.
pub const XID: u32 = 77;
/// What a file's attributes give as its length.
pub const LENGTH_BYTES: u64 = 5 << 33;
const TIME: nfstime3 = nfstime3 { seconds: 1, nseconds: 2 };

/// A handle.
pub fn file() -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(vec![7; 13]) }
}

/// What one record holds: the number of the call, its procedure and its arguments.
pub fn decoded<T: Unpack>(record: &[u8]) -> (u32, u32, T) {
    let mark = u32::from_be_bytes(record[..4].try_into().unwrap());
    assert_eq!(mark, LAST_FRAGMENT | (record.len() as u32 - 4));
    let mut cursor = Cursor::new(&record[4..]);
    let (message, _) = rpc_msg::unpack(&mut cursor).unwrap();
    let msg_body::CALL(call) = &message.body else { unreachable!() };
    let (xid, procedure) = (message.xid, call.proc);
    let (arguments, _) = T::unpack(&mut cursor).unwrap();
    assert_eq!(cursor.position(), record.len() as u64 - 4, "nothing follows");
    (xid, procedure, arguments)
}

/// An answer, with a verifier of so many bytes.
pub fn reply(verifier: usize, data: accept_stat_data, body: &impl Pack) -> Vec<u8> {
    let verf =
        opaque_auth { flavor: auth_flavor::AUTH_NULL, body: Opaque::owned(vec![3; verifier]) };
    let accepted = accepted_reply { verf, reply_data: data };
    let body_of = msg_body::REPLY(reply_body::MSG_ACCEPTED(accepted));
    let mut bytes = Vec::new();
    rpc_msg { xid: XID, body: body_of }.pack(&mut bytes).unwrap();
    body.pack(&mut bytes).unwrap();
    bytes
}

/// A file's attributes, where they are told.
pub fn attributes(told: bool) -> Nfs3Option<fattr3> {
    if !told {
        return Nfs3Option::None;
    }
    Nfs3Option::Some(fattr3 {
        type_: ftype3::NF3REG,
        mode: 0o600,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: LENGTH_BYTES,
        used: 9,
        rdev: specdata3::default(),
        fsid: 1,
        fileid: 2,
        atime: TIME,
        mtime: TIME,
        ctime: TIME,
    })
}

/// A file's attributes before and after a change, where they are told.
pub fn changed(before: bool, after: bool) -> wcc_data {
    let before = if before {
        Nfs3Option::Some(wcc_attr { size: 1, mtime: TIME, ctime: TIME })
    } else {
        Nfs3Option::None
    };
    wcc_data { before, after: attributes(after) }
}
