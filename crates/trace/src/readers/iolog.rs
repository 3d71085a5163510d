//! fio's iolog (fio(1), "Trace file format v2" and "v3").
//!
//! Offsets and lengths in bytes. Times of version 3 in us since the beginning: fio's `iolog.c`
//! writes `utime_since_now`. Version 2 has none; its `wait` lines, of some converters, are left out.

use std::io::Read;

use crate::fields::{whole, words};
use crate::names::Names;
use crate::readers::Noted;
use crate::record::{Deed, Record, Refused, Sink, call_named};
use crate::source::Source;

/// Reads version 3, or version 2 when nothing is timed.
pub fn read(
    source: &mut Source<'_, impl Read>,
    sink: &mut impl Sink,
    timed: bool,
) -> Result<Noted, Refused> {
    let (mut files, mut waits, mut first) = (Names::of("files"), 0, true);
    source.lines(|line| {
        if std::mem::take(&mut first) {
            return Ok(true); // which version it is
        }
        let mut words = words(line);
        let at_ns = if timed {
            let Some(at_us) = words.next().and_then(whole) else { return Ok(false) };
            at_us.saturating_mul(1000)
        } else {
            0
        };
        let (Some(file), Some(action)) = (words.next(), words.next()) else { return Ok(false) };
        let Some((deed, call)) = meaning(action) else {
            waits += u64::from(action == b"wait");
            return Ok(matches!(action, b"add" | b"wait"));
        };
        let mut record = Record { at_ns, call, file: files.number(file)?, ..Record::of(deed) };
        if matches!(deed, Deed::Read | Deed::Write) {
            let (Some(offset), Some(bytes)) =
                (words.next().and_then(whole), words.next().and_then(whole))
            else {
                return Ok(false);
            };
            (record.offset, record.bytes) = (offset, bytes);
        }
        sink.take(record)?;
        Ok(true)
    })?;
    let unseen = if waits > 0 { vec![("wait", waits)] } else { Vec::new() };
    Ok(Noted { files: files.len(), processes: 1, unseen })
}

fn meaning(action: &[u8]) -> Option<(Deed, u8)> {
    Some(match action {
        b"read" => (Deed::Read, 0),
        b"write" => (Deed::Write, 0),
        b"sync" => (Deed::Sync, call_named("fsync")),
        b"datasync" => (Deed::Sync, call_named("fdatasync")),
        b"trim" => (Deed::Metadata, call_named("discard")),
        b"open" => (Deed::Metadata, call_named("open")),
        b"close" => (Deed::Metadata, call_named("close")),
        _ => return None,
    })
}
