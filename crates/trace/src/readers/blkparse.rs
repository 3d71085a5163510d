//! What blkparse prints by default (blkparse(1), "Default output"): `%D %2c %8s %5T.%9t %5p %2a %3d`
//! and then `%S + %n [%C]`. Times in seconds, places in sectors of 512 bytes.

use std::io::Read;

use crate::fields::{seconds_ns, whole, words};
use crate::names::Names;
use crate::readers::Noted;
use crate::readers::block::{Action, Block, Event, What};
use crate::readers::csv::SECTOR_BYTES;
use crate::record::{Refused, Sink};
use crate::source::Source;

/// Reads all lines; those of no request, as the summary at the end, are passed over.
pub fn read(source: &mut Source<'_, impl Read>, sink: &mut impl Sink) -> Result<Noted, Refused> {
    let (mut devices, mut processes) = (Names::of("devices"), Names::of("processes"));
    let mut block: Option<Block> = None;
    source.lines(|line| {
        let mut words = words(line);
        let Some(device) = words.next().filter(|device| device.contains(&b',')) else {
            return Ok(true);
        };
        let Some((at_ns, pid, action, what)) = beginning(&mut words) else { return Ok(true) };
        let (sector, bytes) = match place(&mut words) {
            Some(place) => place,
            None if what.flush => (0, 0),
            None => return Ok(true),
        };
        let (device, process) = (devices.number(device)?, processes.number(pid)?);
        let own = block.get_or_insert_with(|| Block::new(action == Action::Queued));
        own.take(Event { at_ns, device, process, sector, bytes, action, what }, sink)?;
        Ok(true)
    })?;
    Ok(Noted { files: devices.len(), processes: processes.len(), unseen: Vec::new() })
}

type Beginning<'a> = (u64, &'a [u8], Action, What);

fn beginning<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Option<Beginning<'a>> {
    let (_cpu, _number) = (whole(words.next()?)?, whole(words.next()?)?);
    let at_ns = seconds_ns(words.next()?)?;
    let pid = words.next()?;
    let action = match words.next()? {
        b"Q" => Action::Queued,
        b"D" => Action::Issued,
        b"C" => Action::Completed,
        _ => return None,
    };
    Some((at_ns, pid, action, what(words.next()?)?))
}

/// `rwbs` of the kernel's `blk_fill_rwbs`: an F before the letter of the deed is a flush, after it a
/// write that waits; N is nothing but a flush.
fn what(letters: &[u8]) -> Option<What> {
    let flush = letters.contains(&b'F');
    let deed = letters.iter().find(|letter| b"RWDN".contains(letter));
    let (write, discard) = (deed == Some(&b'W'), deed == Some(&b'D'));
    (deed.is_some() || flush).then_some(What { write, flush, discard })
}

/// `223490 + 8`: first sector and how many.
fn place<'a>(words: &mut impl Iterator<Item = &'a [u8]>) -> Option<(u64, u64)> {
    let sector = whole(words.next()?)?;
    if words.next()? != b"+" {
        return None;
    }
    Some((sector, whole(words.next()?)?.checked_mul(SECTOR_BYTES)?))
}
