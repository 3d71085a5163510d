//! What the two writings of a block trace have in common.
//!
//! A request is what was queued (Q); how long a device was at work is from its issue (D) to its
//! completion (C). Where nothing was queued while it was recorded, what was issued is taken.

use crate::hash::ByNumber;
use crate::readers::csv::SECTOR_BYTES;
use crate::record::{Deed, Record, Refused, Sink, UNKNOWN, call_named};

/// Outstanding requests; older ones without an end are forgotten.
const OUTSTANDING_MAX: usize = 1 << 16;

/// What a line or a record says.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub at_ns: u64,
    pub device: u32,
    pub process: u32,
    pub sector: u64,
    pub bytes: u64,
    pub action: Action,
    pub what: What,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    Queued,
    Issued,
    Completed,
}

/// What a request is about; one without data is a flush.
#[derive(Clone, Copy, Debug, Default)]
pub struct What {
    pub write: bool,
    pub flush: bool,
    pub discard: bool,
}

/// Makes records of events.
pub struct Block {
    requests: Action,
    issued: ByNumber<(u32, u64), u64>,
}

impl Block {
    /// Takes what is queued for the requests, where anything is.
    pub fn new(queued: bool) -> Self {
        let requests = if queued { Action::Queued } else { Action::Issued };
        Self { requests, issued: ByNumber::default() }
    }

    /// Hands on what an event says.
    pub fn take(&mut self, event: Event, sink: &mut impl Sink) -> Result<(), Refused> {
        let Event { at_ns, device, process, sector, bytes, action, what } = event;
        if action == self.requests {
            let (deed, call) = match what {
                What { discard: true, .. } => (Deed::Metadata, call_named("discard")),
                What { flush: true, .. } => (Deed::Sync, call_named("flush")),
                What { write: true, .. } => (Deed::Write, 0),
                What { .. } => (Deed::Read, 0),
            };
            let Some(offset) = sector.checked_mul(SECTOR_BYTES) else { return Ok(()) };
            let mut record =
                Record { at_ns, process, file: device, call, offset, bytes, ..Record::of(deed) };
            if what.flush && bytes > 0 {
                // What is written, and waited for.
                sink.take(Record { deed: Deed::Write, call: 0, ..record })?;
                (record.offset, record.bytes) = (0, 0);
            }
            sink.take(record)?;
        }
        match action {
            Action::Issued => {
                if self.issued.len() >= OUTSTANDING_MAX {
                    self.issued.clear();
                }
                self.issued.insert((device, sector), at_ns);
            }
            Action::Completed => {
                if let Some(from_ns) = self.issued.remove(&(device, sector)) {
                    let took_ns = at_ns.checked_sub(from_ns).unwrap_or(UNKNOWN);
                    let deed = Record::of(Deed::Device);
                    sink.take(Record { at_ns: from_ns, took_ns, file: device, ..deed })?;
                }
            }
            Action::Queued => {}
        }
        Ok(())
    }
}
