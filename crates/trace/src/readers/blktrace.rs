//! What blktrace writes: `struct blk_io_trace` of linux/blktrace_api.h, 48 bytes, each followed by
//! `pdu_len` bytes of its own. Times in ns, places in sectors of 512 bytes, lengths in bytes.
//!
//! One file is what one processor saw, or what `blkparse -d FILE` merged of all.

use std::io::Read;

use crate::names::Names;
use crate::readers::Noted;
use crate::readers::block::{Action, Block, Event, What};
use crate::record::{Refused, Sink};
use crate::source::Source;

const RECORD_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
/// Categories, in the upper half of an action (`BLK_TC_*`).
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;
/// Actions, in the lower half (`__BLK_TA_*`); the ninth bit says that a cgroup's id follows.
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const ACTION_BITS: u32 = 0xff;

/// Reads all records.
pub fn read(source: &mut Source<'_, impl Read>, sink: &mut impl Sink) -> Result<Noted, Refused> {
    let (mut devices, mut processes) = (Names::of("devices"), Names::of("processes"));
    let (mut record, mut beside) = ([0; RECORD_BYTES], Vec::new());
    let mut block: Option<Block> = None;
    while source.exactly(&mut record)? {
        let word = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if word(0) & !0xff != MAGIC {
            return Err(Refused(format!(
                "its record {} does not begin as one of blktrace: the file is damaged; print what \
                 can be read of it with blkparse, and give that",
                source.number
            )));
        }
        let (action, category) = (word(28) & ACTION_BITS, word(28) >> 16);
        let pdu_bytes = u16::from_le_bytes([record[46], record[47]]);
        beside.resize(usize::from(pdu_bytes), 0);
        if pdu_bytes > 0 && !source.exactly(&mut beside)? {
            break;
        }
        let action = match action {
            _ if category & NOTIFY != 0 => continue,
            QUEUE => Action::Queued,
            ISSUE => Action::Issued,
            COMPLETE => Action::Completed,
            _ => continue,
        };
        let what = What {
            write: category & WRITE != 0,
            flush: category & (FLUSH | FUA) != 0,
            discard: category & DISCARD != 0,
        };
        let event = Event {
            at_ns: long(8),
            device: devices.number(&record[36..40])?,
            process: processes.number(&record[32..36])?,
            sector: long(16),
            bytes: u64::from(word(24)),
            action,
            what,
        };
        if event.bytes == 0 && !what.flush {
            continue;
        }
        block.get_or_insert_with(|| Block::new(action == Action::Queued)).take(event, sink)?;
    }
    Ok(Noted { files: devices.len(), processes: processes.len(), unseen: Vec::new() })
}
