//! What darshan-dxt-parser prints: offsets and lengths in bytes, start and end in seconds since the
//! program began (Darshan's documentation, "Guide to darshan-dxt-parser output").
//!
//! It goes file by file and rank by rank, so all of it is kept and put in order of time. Calls of
//! MPI-IO (`X_MPIIO`) appear once more as those of POSIX that they became, and are left out.

use std::io::Read;

use crate::fields::{seconds_ns, whole, words};
use crate::names::Names;
use crate::readers::Noted;
use crate::record::{Deed, Record, Refused, Sink};
use crate::source::Source;

/// Requests that are put in order: half a GiB.
const RECORDS_MAX: usize = 1 << 23;

/// Reads all segments.
pub fn read(source: &mut Source<'_, impl Read>, sink: &mut impl Sink) -> Result<Noted, Refused> {
    let (mut files, mut ranks) = (Names::of("files"), Names::of("processes"));
    let (mut records, mut file, mut mpi_io) = (Vec::new(), 0, 0);
    source.lines(|line| {
        if let Some(told) = line.strip_prefix(b"# DXT, file_id:") {
            let id = words(told).next().unwrap_or_default();
            file = files.number(id)?;
            return Ok(true);
        }
        let line = line.trim_ascii();
        if line.starts_with(b"#") || !line.starts_with(b"X_") {
            return Ok(line.starts_with(b"#"));
        }
        let Some((record, rank)) = segment(line) else {
            mpi_io += u64::from(line.starts_with(b"X_MPIIO"));
            return Ok(line.starts_with(b"X_MPIIO"));
        };
        if records.len() >= RECORDS_MAX {
            return Err(Refused(format!(
                "it has more than {RECORDS_MAX} requests, which is more than can be put in order \
                 of time: trace fewer ranks or files (DXT_CONFIG_PATH)"
            )));
        }
        records.push(Record { file, process: ranks.number(rank)?, ..record });
        Ok(true)
    })?;
    if records.is_empty() {
        return Err(Refused(
            "it has no request of POSIX: record with DXT_ENABLE_IO_TRACE=1 and print with \
             darshan-dxt-parser"
                .into(),
        ));
    }
    records.sort_by_key(|record: &Record| record.at_ns);
    records.into_iter().try_for_each(|record| sink.take(record))?;
    let unseen = if mpi_io > 0 { vec![("MPI-IO", mpi_io)] } else { Vec::new() };
    Ok(Noted { files: files.len(), processes: ranks.len(), unseen })
}

/// `X_POSIX rank write|read segment offset length start end [OST]`.
fn segment(line: &[u8]) -> Option<(Record, &[u8])> {
    let mut words = words(line);
    if words.next()? != b"X_POSIX" {
        return None;
    }
    let rank = words.next()?;
    let deed = match words.next()? {
        b"read" => Deed::Read,
        b"write" => Deed::Write,
        _ => return None,
    };
    words.next()?;
    let (offset, bytes) = (whole(words.next()?)?, whole(words.next()?)?);
    let (at_ns, end_ns) = (seconds_ns(words.next()?)?, seconds_ns(words.next()?)?);
    let took_ns = end_ns.saturating_sub(at_ns);
    Some((Record { at_ns, took_ns, offset, bytes, ..Record::of(deed) }, rank))
}
