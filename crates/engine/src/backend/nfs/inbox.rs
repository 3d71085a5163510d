//! What comes from a server, taken apart: fragments to records (RFC 5531 §11), records to answers,
//! the data of reads to the buffers of their slots. Nothing is allocated.

#![forbid(unsafe_code)]

use crate::backend::nfs::queue::Slot;
use crate::backend::nfs::reply::{Answer, HEAD_BYTES_MAX, Understood, XID_BYTES, understand};
use crate::backend::nfs::rpc::LAST_FRAGMENT;

/// Bytes taken from the socket at once, many small answers together.
const INBOX_BYTES: usize = 64 << 10;

/// Data of at least so many bytes goes past the inbox.
const STRAIGHT_BYTES_MIN: usize = 16 << 10;

/// What part of an answer comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Head,
    Data { slot: usize, at: usize, left: usize, answer: Answer },
    Rest { slot: usize, answer: Answer },
}

/// What has come and is not understood yet: records in fragments (RFC 5531 §11).
pub(super) struct Inbox {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
    mark: [u8; 4],
    mark_bytes: usize,
    /// Bytes of the present fragment that are still to come.
    left: usize,
    last: bool,
    head: [u8; HEAD_BYTES_MAX],
    head_bytes: usize,
    needs: usize,
    stage: Stage,
    /// Bytes of the present record so far, marks included.
    record_bytes: u64,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; INBOX_BYTES].into_boxed_slice(),
            from: 0,
            to: 0,
            mark: [0; 4],
            mark_bytes: 0,
            left: 0,
            last: false,
            head: [0; HEAD_BYTES_MAX],
            head_bytes: 0,
            needs: XID_BYTES,
            stage: Stage::Head,
            record_bytes: 0,
        }
    }

    /// Where the next bytes from the socket go: long data to its slot, all else to the inbox, which
    /// is empty whenever this is asked.
    pub(super) fn room(&mut self, slots: &mut [Slot]) -> (*mut u8, usize) {
        if let Stage::Data { slot, at, left, .. } = self.stage {
            let straight = left.min(self.left);
            if straight >= STRAIGHT_BYTES_MIN {
                let buffer = &mut slots[slot].buffer.as_mut_slice()[at..at + straight];
                return (buffer.as_mut_ptr(), straight);
            }
        }
        (self.bytes.as_mut_ptr(), self.bytes.len())
    }

    /// So many bytes came to where [`Self::room`] said.
    pub(super) fn came(&mut self, bytes: usize) {
        if let Stage::Data { slot, at, left, answer } = self.stage
            && left.min(self.left) >= STRAIGHT_BYTES_MIN
        {
            self.stage = Stage::Data { slot, at: at + bytes, left: left - bytes, answer };
            self.left -= bytes;
            self.record_bytes += bytes as u64;
            (self.from, self.to) = (0, 0);
        } else {
            (self.from, self.to) = (0, bytes);
        }
    }

    /// Takes up to `most` bytes that have come.
    #[inline]
    fn take(&mut self, most: usize) -> std::ops::Range<usize> {
        let from = self.from;
        self.from += most.min(self.to - from);
        self.record_bytes += (self.from - from) as u64;
        from..self.from
    }

    /// The next whole answer in what has come; none when the rest is still to come.
    pub(super) fn next(
        &mut self,
        slots: &mut [Slot],
        mask: u32,
    ) -> Result<Option<(usize, Answer, u64)>, &'static str> {
        loop {
            if self.left == 0 && self.last {
                return self.end_record().map(Some);
            }
            if self.from == self.to {
                return Ok(None);
            }
            if self.left == 0 {
                self.take_mark();
                continue;
            }
            match self.stage {
                Stage::Head => self.take_head(slots, mask)?,
                Stage::Data { slot, at, left, answer } => {
                    let range = self.take(left.min(self.left));
                    let bytes = range.len();
                    let buffer = slots[slot].buffer.as_mut_slice();
                    buffer[at..at + bytes].copy_from_slice(&self.bytes[range]);
                    self.left -= bytes;
                    self.stage = if bytes == left {
                        Stage::Rest { slot, answer }
                    } else {
                        Stage::Data { slot, at: at + bytes, left: left - bytes, answer }
                    };
                }
                Stage::Rest { .. } => self.left -= self.take(self.left).len(),
            }
        }
    }

    fn take_mark(&mut self) {
        let range = self.take(4 - self.mark_bytes);
        let to = self.mark_bytes + range.len();
        self.mark[self.mark_bytes..to].copy_from_slice(&self.bytes[range]);
        self.mark_bytes = to;
        if to == 4 {
            let mark = u32::from_be_bytes(self.mark);
            self.mark_bytes = 0;
            self.left = (mark & !LAST_FRAGMENT) as usize;
            self.last = mark & LAST_FRAGMENT != 0;
        }
    }

    fn take_head(&mut self, slots: &[Slot], mask: u32) -> Result<(), &'static str> {
        let range = self.take((self.needs - self.head_bytes).min(self.left));
        let to = self.head_bytes + range.len();
        self.left -= range.len();
        self.head[self.head_bytes..to].copy_from_slice(&self.bytes[range]);
        self.head_bytes = to;
        if to < self.needs {
            return Ok(());
        }
        let xid = u32::from_be_bytes([self.head[0], self.head[1], self.head[2], self.head[3]]);
        let slot = (xid & mask) as usize;
        let call = slots.get(slot).filter(|call| call.xid == xid && call.waits);
        let call = call.ok_or("it answers nothing that was asked")?;
        match understand(&self.head[..to], call.asked).map_err(|_| "its head makes no sense")? {
            Understood::Needs(bytes) => self.needs = bytes,
            Understood::Whole(answer) => self.stage = after_head(slot, answer, call.piece)?,
        }
        Ok(())
    }

    /// The record is over; the next one begins.
    fn end_record(&mut self) -> Result<(usize, Answer, u64), &'static str> {
        let (Stage::Rest { slot, answer } | Stage::Data { slot, left: 0, answer, .. }) = self.stage
        else {
            return Err("it ends too early");
        };
        (self.stage, self.head_bytes, self.needs) = (Stage::Head, 0, XID_BYTES);
        self.last = false;
        Ok((slot, answer, std::mem::take(&mut self.record_bytes)))
    }
}

/// What follows a head.
fn after_head(slot: usize, answer: Answer, piece: u32) -> Result<Stage, &'static str> {
    match answer {
        Answer::Read { bytes } | Answer::Write { bytes, .. } if bytes > piece => {
            Err("it holds more than was asked for")
        }
        Answer::Read { bytes } if bytes > 0 => {
            Ok(Stage::Data { slot, at: 0, left: bytes as usize, answer })
        }
        _ => Ok(Stage::Rest { slot, answer }),
    }
}
