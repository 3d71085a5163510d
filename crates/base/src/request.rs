//! One request, as an address stream draws it.

#![forbid(unsafe_code)]

/// A read or a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Bytes flow to the worker.
    Read,
    /// Bytes flow to the target.
    Write,
}

/// One request of one worker, as the access pattern draws it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// First byte touched, below `unique_bytes`.
    pub offset_bytes: u64,
    /// Length; `offset_bytes + length_bytes <= unique_bytes` always holds.
    pub length_bytes: u64,
    /// Read or write.
    pub kind: Kind,
    /// True when it starts where this worker's previous request ended.
    pub sequential: bool,
    /// Which of several streams it is of, from 0.
    pub stream: u16,
    /// Where the piece ends that it lies in, as a file does; 0 where data are not in pieces.
    pub piece_end_bytes: u64,
}

impl Request {
    /// No request: what a place for one holds before its first.
    pub const NONE: Self = Self {
        offset_bytes: 0,
        length_bytes: 0,
        kind: Kind::Read,
        sequential: false,
        stream: 0,
        piece_end_bytes: 0,
    };
}
