//! Records of this rank's share of the input, on their way to their owners (AD98 §4.2).

use std::ops::Range;

use leadline_base::error::EngineError;

use super::ahead::{Now, ReadAhead};
use super::exchange::{Source, Step};
use super::kernel::Share;
use super::mailbox::Outbox;
use super::splitters::{self, Order, Splitters, order_of};
use crate::chunks::CHUNK_BYTES;
use crate::data_set::Input;
use crate::lane::ReadLane;
use crate::memory::PAGE_BYTES;
use crate::records::{RECORD_BYTES, Summary, whole_records};

/// One look at the input for so many bytes of it: 0.4% is read twice.
const LOOK_EVERY_BYTES: u64 = 1 << 20;
/// Looks of a rank that has an even share.
const LOOKS_MIN: u64 = 64;
const LOOKS_MAX: u64 = 256;
/// Of small inputs, no more than a fiftieth is looked at beforehand.
const LOOKS_SHARE: u64 = 50;

/// Looks at pages spread evenly over `range`, as densely on every rank; their records' orders as
/// bytes for other ranks.
///
/// # Errors
/// The input cannot be read.
pub fn sample(share: &Share, input: &Input, range: &Range<u64>) -> Result<Vec<u8>, EngineError> {
    let page = PAGE_BYTES as u64;
    let even = input.bytes() / share.ranks as u64;
    let wanted = (even / LOOK_EVERY_BYTES).clamp(LOOKS_MIN, LOOKS_MAX);
    let stretch = (even / wanted).max(LOOKS_SHARE * page);
    let bytes = range.end - range.start;
    let pages = bytes / page;
    let looks = bytes.div_ceil(stretch).min(pages);
    let mut lane = ReadLane::open(input, share.io())?;
    let memory = share.memory.take_many(looks as usize, PAGE_BYTES)?;
    for (look, region) in (0..looks).zip(memory) {
        // In the middle of its stretch, so that a sorted input is cut evenly, too.
        let at = range.start + (2 * look + 1) * pages / (2 * looks) * page;
        lane.submit(at, PAGE_BYTES, region);
    }
    let mut orders: Vec<Order> = Vec::new();
    for _ in 0..looks {
        let (at, bytes, region) = lane.take()?;
        let number = at.div_ceil(RECORD_BYTES as u64);
        let first = (number * RECORD_BYTES as u64 - at) as usize;
        let whole = region[first..bytes].as_chunks::<RECORD_BYTES>().0;
        orders.extend((number..).zip(whole).map(|(number, record)| order_of(record, number)));
    }
    Ok(splitters::bytes_of(&orders))
}

/// Records, dealt out.
pub struct Records {
    ahead: ReadAhead,
    splitters: Splitters,
    /// What was sent, in the input's order.
    pub seen: Summary,
}

impl Records {
    /// Reads `range` ahead into at most `memory_bytes`.
    ///
    /// # Errors
    /// No memory, or no `io_uring`.
    pub fn new(
        share: &Share,
        input: &Input,
        range: Range<u64>,
        memory_bytes: usize,
        splitters: Splitters,
    ) -> Result<Self, EngineError> {
        let pieces = Box::new(input.pieces(range, CHUNK_BYTES).into_iter());
        let memory = (&share.memory, memory_bytes);
        let with = (share.io(), share.deadline);
        let ahead = ReadAhead::new(input, pieces, CHUNK_BYTES, memory, with)?;
        Ok(Self { ahead, splitters, seen: Summary::default() })
    }

    /// Bytes that have been read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.ahead.bytes_read
    }

    /// Bytes that reading has copied in memory.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.ahead.copied_bytes()
    }
}

impl Source for Records {
    fn step(&mut self, outbox: &mut Outbox) -> Result<Step, EngineError> {
        let (at, bytes) = match self.ahead.now()? {
            Now::Bytes(at, bytes) => (at, bytes),
            Now::Waits => return Ok(Step::Waits),
            Now::Done => return Ok(Step::Done),
        };
        whole_records(bytes.len() as u64)?;
        let mut used = 0;
        for (number, record) in (at / RECORD_BYTES as u64..).zip(bytes.as_chunks().0) {
            let owner = self.splitters.owner(order_of(record, number));
            if outbox.put(owner, record, RECORD_BYTES) == 0 {
                break;
            }
            self.seen.add_record(record);
            used += RECORD_BYTES;
        }
        self.ahead.used(used);
        Ok(if used > 0 { Step::Worked } else { Step::Waits })
    }
}
