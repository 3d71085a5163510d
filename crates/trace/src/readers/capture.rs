//! What `leadline characterize --keep-trace` writes: a line for each record,
//! `W process file offset bytes at_ns took_ns faults`, of syncs and metadata with their name in place
//! of the faults.

use std::io::Read;

use crate::fields::{whole, words};
use crate::readers::Noted;
use crate::record::{CALLS, Deed, NO_FILE, Record, Refused, Sink};
use crate::source::Source;

/// How such a file begins.
pub const FIRST_LINE: &[u8] = b"leadline capture 1";
/// Numbers of files are below it (`FILES_MAX` of crates/capture).
const FILES_END: u32 = 1 << 22;
const DEEDS: [(Deed, &str); 8] = [
    (Deed::Read, "R"),
    (Deed::Write, "W"),
    (Deed::Sync, "S"),
    (Deed::Metadata, "M"),
    (Deed::Unplaced, "U"),
    (Deed::Length, "L"),
    (Deed::Removed, "D"),
    (Deed::Memory, "A"),
];

/// The line of a record.
pub fn line_of(record: &Record) -> String {
    let Record { deed, call, at_ns, took_ns, process, file, offset, bytes, faults } = *record;
    let sign = DEEDS.iter().find(|(each, _)| *each == deed).map_or("U", |(_, sign)| sign);
    let named = matches!(deed, Deed::Sync | Deed::Metadata);
    let name = CALLS.get(usize::from(call)).copied().unwrap_or_default();
    let last = if named { name.to_owned() } else { faults.to_string() };
    format!("{sign} {process} {file} {offset} {bytes} {at_ns} {took_ns} {last}\n")
}

/// Reads all lines.
pub fn read(source: &mut Source<'_, impl Read>, sink: &mut impl Sink) -> Result<Noted, Refused> {
    let (mut files, mut processes) = (0, 0);
    source.lines(|line| {
        if line == FIRST_LINE {
            return Ok(true);
        }
        let Some(record) = record_of(line) else { return Ok(false) };
        if record.file != NO_FILE {
            files = files.max(record.file.saturating_add(1));
        }
        processes = processes.max(record.process.saturating_add(1));
        sink.take(record).map(|()| true)
    })?;
    Ok(Noted { files, processes, unseen: Vec::new() })
}

fn record_of(line: &[u8]) -> Option<Record> {
    let mut words = words(line);
    let sign = words.next()?;
    let (deed, _) = DEEDS.iter().find(|(_, each)| each.as_bytes() == sign)?;
    let mut next = || words.next().and_then(whole);
    let process = next().and_then(|number| u32::try_from(number).ok())?;
    let file = next().and_then(|number| u32::try_from(number).ok())?;
    let (offset, bytes, at_ns, took_ns) = (next()?, next()?, next()?, next()?);
    let of_one = matches!(deed, Deed::Read | Deed::Write | Deed::Length | Deed::Removed);
    if of_one && file >= FILES_END {
        return None; // more than a capture has
    }
    // What is left is a name, in which there may be spaces.
    let named =
        |call: &&str| line.strip_suffix(call.as_bytes()).is_some_and(|all| all.ends_with(b" "));
    let told = CALLS.iter().position(named);
    let call = match deed {
        Deed::Sync | Deed::Metadata => told? as u8,
        _ => 0,
    };
    let faults = match deed {
        Deed::Read => next().map_or(0, |pages| pages as u32), // older traces do not say
        _ => 0,
    };
    Some(Record { deed: *deed, call, at_ns, took_ns, process, file, offset, bytes, faults })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::record::{UNKNOWN, call_named};

    #[test]
    fn every_record_is_read_as_it_was_written() {
        for name in CALLS {
            let deed = if name.contains("sync") { Deed::Sync } else { Deed::Metadata };
            let record = Record { call: call_named(name), process: 3, ..Record::of(deed) };
            let read = record_of(line_of(&record).trim_end().as_bytes()).unwrap();
            assert_eq!(
                (read.deed, read.call, read.took_ns),
                (deed, record.call, UNKNOWN),
                "{name}"
            );
        }
        let moved = Record {
            file: 7,
            offset: 4096,
            bytes: 512,
            at_ns: 5,
            took_ns: 9,
            faults: 3,
            ..Record::of(Deed::Read)
        };
        let read = record_of(line_of(&moved).trim_end().as_bytes()).unwrap();
        assert_eq!((read.file, read.offset, read.bytes, read.took_ns), (7, 4096, 512, 9));
        assert_eq!(read.faults, 3);
        let removed = Record { file: 7, ..Record::of(Deed::Removed) };
        let read = record_of(line_of(&removed).trim_end().as_bytes()).unwrap();
        assert_eq!((read.deed, read.file), (Deed::Removed, 7));
        let before_faults = record_of(b"R 0 7 4096 512 5 9 ").unwrap();
        assert_eq!((before_faults.took_ns, before_faults.faults), (9, 0));
        assert!(record_of(b"R 1 2 3").is_none());
        assert!(record_of(b"R 0 4194304 0 512 5 9 ").is_none());
        assert!(record_of(b"X 0 0 0 0 0 0 ").is_none());
    }
}
