//! Comma-separated block traces, a request a line, a heading allowed.

use std::io::Read;

use crate::fields::{commas, whole};
use crate::names::Names;
use crate::readers::Noted;
use crate::record::{Deed, Record, Refused, Sink};
use crate::source::Source;

/// Bytes of a sector, in every format that counts them.
pub const SECTOR_BYTES: u64 = 512;
/// Ns of a unit of Windows' file times.
const FILE_TIME_NS: u64 = 100;

/// A line's record without its file, and the file's name.
type Row<'a> = (Record, &'a [u8]);

/// Reads a file whose lines `row` understands.
pub fn read(
    source: &mut Source<'_, impl Read>,
    sink: &mut impl Sink,
    row: impl Fn(&[u8]) -> Option<Row<'_>>,
) -> Result<Noted, Refused> {
    let mut devices = Names::of("devices");
    let mut first = true;
    source.lines(|line| {
        let heading = std::mem::take(&mut first);
        let Some((record, device)) = row(line) else { return Ok(heading) };
        sink.take(Record { file: devices.number(device)?, ..record })?;
        Ok(true)
    })?;
    Ok(Noted { files: devices.len(), processes: 0, unseen: Vec::new() })
}

/// `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: times in Windows' file times
/// (100 ns), offset and size in bytes (README of the traces, SNIA IOTTA 388; Narayanan 2008).
pub fn msr_cambridge(line: &[u8]) -> Option<Row<'_>> {
    let [at, host, disk, deed, offset, bytes, took] = commas(line)?;
    let deed = match deed.first()?.to_ascii_lowercase() {
        b'r' => Deed::Read,
        b'w' => Deed::Write,
        _ => return None,
    };
    let record = Record {
        at_ns: whole(at)?.saturating_mul(FILE_TIME_NS),
        took_ns: whole(took)?.saturating_mul(FILE_TIME_NS),
        offset: whole(offset)?,
        bytes: whole(bytes)?,
        ..Record::of(deed)
    };
    // The host and its disk lie side by side in the line.
    let from = host.as_ptr() as usize - line.as_ptr() as usize;
    let to = disk.as_ptr() as usize - line.as_ptr() as usize + disk.len();
    Some((record, &line[from..to]))
}

/// `device_id,opcode,offset,length,timestamp`: bytes and us (README of github.com/alibaba/block-traces).
pub fn alibaba(line: &[u8]) -> Option<Row<'_>> {
    let [device, deed, offset, bytes, at] = commas(line)?;
    let deed = match deed {
        b"R" | b"r" => Deed::Read,
        b"W" | b"w" => Deed::Write,
        _ => return None,
    };
    let at_ns = whole(at)?.saturating_mul(1000);
    let (offset, bytes) = (whole(offset)?, whole(bytes)?);
    whole(device)?;
    Some((Record { at_ns, offset, bytes, ..Record::of(deed) }, device))
}

/// `Timestamp,Offset,Size,IOType,VolumeID`: seconds since 1970, sectors of 512 bytes, 0 is a read
/// (README of the traces, SNIA IOTTA 27917; Zhang et al., ATC 2020).
pub fn tencent(line: &[u8]) -> Option<Row<'_>> {
    let [at, sector, sectors, deed, volume] = commas(line)?;
    let deed = match deed {
        b"0" => Deed::Read,
        b"1" => Deed::Write,
        _ => return None,
    };
    let record = Record {
        at_ns: whole(at)?.checked_mul(1_000_000_000)?,
        offset: whole(sector)?.checked_mul(SECTOR_BYTES)?,
        bytes: whole(sectors)?.checked_mul(SECTOR_BYTES)?,
        ..Record::of(deed)
    };
    whole(volume)?;
    Some((record, volume))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn units_are_those_of_each_description() {
        let (row, disk) =
            msr_cambridge(b"128166372003061629,usr,0,Read,7014609920,24576,41286").unwrap();
        assert_eq!(disk, b"usr,0");
        assert_eq!((row.deed, row.offset, row.bytes), (Deed::Read, 7_014_609_920, 24_576));
        assert_eq!((row.at_ns, row.took_ns), (12_816_637_200_306_162_900, 4_128_600));
        let (row, device) = alibaba(b"419,W,8792731648,16384,1577808144360767").unwrap();
        assert_eq!(
            (row.deed, row.at_ns, device),
            (Deed::Write, 1_577_808_144_360_767_000, &b"419"[..])
        );
        assert_eq!((row.offset, row.bytes), (8_792_731_648, 16_384));
        let (row, volume) = tencent(b"1538323200,12910952,128,1,1063").unwrap();
        assert_eq!(
            (row.deed, row.at_ns, volume),
            (Deed::Write, 1_538_323_200_000_000_000, &b"1063"[..])
        );
        assert_eq!((row.offset, row.bytes), (12_910_952 * 512, 128 * 512));
    }

    #[test]
    fn what_is_no_request_is_no_row() {
        assert!(msr_cambridge(b"1,usr,0,Erase,0,512,1").is_none());
        assert!(alibaba(b"1,X,0,512,1").is_none());
        assert!(tencent(b"1538323200,1,1,2,1").is_none());
        assert!(tencent(b"1538323200,18446744073709551615,1,1,1").is_none());
    }
}
