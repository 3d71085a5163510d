//! Which format a trace has, by what is in it: a file's name says nothing.

use serde::Serialize;

use crate::fields::{commas, seconds_ns, whole, words};
use crate::readers::{capture, strace::line as strace};
use crate::record::Refused;

/// The formats that are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `fio --write_iolog` up to 3.30: no times.
    FioIolog2,
    /// The same since 3.31, with times in us.
    FioIolog3,
    /// What blktrace writes: records of 48 bytes.
    Blktrace,
    /// What blkparse prints of it.
    Blkparse,
    /// MSR Cambridge's CSV (SNIA 388): Windows' file times.
    MsrCambridge,
    /// Alibaba's CSV of 2020: times in us.
    Alibaba,
    /// Tencent's CSV of its block storage: times in seconds, sectors.
    Tencent,
    /// What darshan-dxt-parser prints.
    DarshanDxt,
    /// What strace writes.
    Strace,
    /// What Leadline saw itself, as it happened or as it kept it.
    Capture,
}

impl Format {
    /// Whether what is traced lies below the page cache.
    pub fn below_the_cache(self) -> bool {
        matches!(
            self,
            Self::Blktrace | Self::Blkparse | Self::MsrCambridge | Self::Alibaba | Self::Tencent
        )
    }

    /// Whether it says when something happened.
    pub fn has_times(self) -> bool {
        self != Self::FioIolog2
    }

    /// Whether it says who made a request.
    pub fn has_processes(self) -> bool {
        matches!(
            self,
            Self::Blktrace | Self::Blkparse | Self::DarshanDxt | Self::Strace | Self::Capture
        )
    }
}

/// Lines of the beginning that are looked at.
const LINES_LOOKED_AT: usize = 2000;
const KNOWN: &str = "what is known: fio's iolog (version 2 and 3), blktrace and blkparse, the CSVs \
                     of MSR Cambridge, Alibaba and Tencent, darshan-dxt-parser, strace, leadline \
                     characterize --keep-trace";
/// `BLK_IO_TRACE_MAGIC` of linux/blktrace_api.h, without the version in its lowest byte.
const BLKTRACE_MAGIC: [u8; 3] = [0x74, 0x61, 0x65];

/// Returns the format of what begins so.
///
/// # Errors
///
/// It is none that is known; the message says what it may be and what to do.
pub fn format_of(head: &[u8]) -> Result<Format, Refused> {
    if let Some(tool) = packed_by(head) {
        return Err(Refused(format!(
            "it is compressed: unpack it on the way, `{tool} FILE | leadline characterize --trace -`"
        )));
    }
    if head.starts_with(b"fio version 2 iolog") {
        return Ok(Format::FioIolog2);
    }
    if head.starts_with(b"fio version 3 iolog") {
        return Ok(Format::FioIolog3);
    }
    if head.starts_with(capture::FIRST_LINE) {
        return Ok(Format::Capture);
    }
    if head.get(1..4) == Some(&BLKTRACE_MAGIC) {
        return Ok(Format::Blktrace);
    }
    if head.get(..3) == Some(&[0x65, 0x61, 0x74]) {
        return Err(Refused(
            "it was recorded by blktrace on a machine with the other order of bytes: print it with \
             blkparse and give what that prints"
                .into(),
        ));
    }
    let lines = head.split(|&sign| sign == b'\n').map(<[u8]>::trim_ascii);
    for line in lines.filter(|line| !line.is_empty()).take(LINES_LOOKED_AT) {
        if let Some(format) = of_line(line) {
            return Ok(format);
        }
        if let Some(why) = totals_only(line) {
            return Err(Refused(why.into()));
        }
    }
    Err(Refused(format!("it has no format that is known; {KNOWN}")))
}

fn packed_by(head: &[u8]) -> Option<&'static str> {
    const MAGICS: [(&[u8], &str); 5] = [
        (&[0x1f, 0x8b], "zcat"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstdcat"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "xzcat"),
        (b"BZh", "bzcat"),
        (b"PK\x03\x04", "unzip -p"),
    ];
    MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, tool)| *tool)
}

fn of_line(line: &[u8]) -> Option<Format> {
    if line.starts_with(b"# DXT") || line.starts_with(b"X_POSIX") || line.starts_with(b"X_MPIIO") {
        return Some(Format::DarshanDxt);
    }
    if let Some([at, _, _, deed, offset, bytes, took]) = commas::<7>(line) {
        let numbers = [at, offset, bytes, took].iter().all(|field| whole(field).is_some());
        let named = deed.eq_ignore_ascii_case(b"read") || deed.eq_ignore_ascii_case(b"write");
        return (numbers && named).then_some(Format::MsrCambridge);
    }
    if let Some(fields) = commas::<5>(line) {
        return of_five(fields);
    }
    if is_blkparse(line) {
        return Some(Format::Blkparse);
    }
    strace::looks_like_one(line).then_some(Format::Strace)
}

fn of_five(fields: [&[u8]; 5]) -> Option<Format> {
    let numbers = fields.map(|field| whole(field).is_some());
    if let [true, false, true, true, true] = numbers
        && matches!(fields[1], b"R" | b"W" | b"r" | b"w")
    {
        return Some(Format::Alibaba);
    }
    let plausible = matches!(fields[3], b"0" | b"1");
    (numbers == [true; 5] && plausible).then_some(Format::Tencent)
}

/// `8,0 3 1 0.000000000 697 Q WS 223490 + 8 [kjournald]`.
fn is_blkparse(line: &[u8]) -> bool {
    let mut words = words(line);
    let device = words.next().and_then(|device| commas::<2>(device));
    let is_device = device.is_some_and(|parts| parts.iter().all(|part| whole(part).is_some()));
    let mut number = || words.next().and_then(whole).is_some();
    is_device && number() && number() && words.next().and_then(seconds_ns).is_some()
}

/// What has sums of what happened, and not what happened.
fn totals_only(line: &[u8]) -> Option<&'static str> {
    let first = words(line).next().unwrap_or_default();
    if line.starts_with(b"avg-cpu:") || matches!(first, b"Device" | b"Device:") {
        return Some(
            "it is iostat's output: sums, in which no request has an offset, so that nothing can \
             be said of locality; record with `strace -f -y -ttt -T -o FILE COMMAND`, or with blktrace",
        );
    }
    if line.starts_with(b"% time") {
        return Some(
            "it is the summary of strace -c: sums, in which no request has an offset; record with \
             `strace -f -y -ttt -T -o FILE COMMAND`",
        );
    }
    if line.starts_with(b"# darshan log version") {
        return None; // a preamble that darshan-dxt-parser prints too
    }
    if matches!(first, b"POSIX" | b"STDIO" | b"MPI-IO") {
        return Some(
            "it is darshan-parser's output: counters, in which no request has an offset; record \
             with DXT_ENABLE_IO_TRACE=1 and print with darshan-dxt-parser",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_format_is_known_by_its_lines() {
        for (head, format) in [
            ("fio version 2 iolog\n/a add\n", Format::FioIolog2),
            ("fio version 3 iolog\n0 /a add\n", Format::FioIolog3),
            ("128166372003061629,usr,0,Read,7014609920,24576,41286\n", Format::MsrCambridge),
            (
                "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
                 128166372003061629,usr,0,Write,7014609920,24576,41286\n",
                Format::MsrCambridge,
            ),
            ("0,R,126703644672,4096,1577808000000626\n", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
            (
                "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n",
                Format::Blkparse,
            ),
            ("# DXT, file_id: 1, file_name: /a\n", Format::DarshanDxt),
            ("12:00:00.123456 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000010>\n", Format::Strace),
            ("read(3, \"\"..., 4096) = 4096\n", Format::Strace),
            ("12345 1699999999.123456 close(3) = 0 <0.000010>\n", Format::Strace),
        ] {
            assert_eq!(format_of(head.as_bytes()), Ok(format), "{head}");
        }
        assert_eq!(format_of(&[0x07, 0x74, 0x61, 0x65, 0, 0]), Ok(Format::Blktrace));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_what_to_do() {
        for (head, said) in [
            (&b"hello\nworld, again\n"[..], "no format that is known"),
            (b"", "no format that is known"),
            (&[0x1f, 0x8b, 8, 0], "zcat"),
            (b"Device r/s rkB/s\nsda 1 2\n", "iostat"),
            (b"% time     seconds  usecs/call     calls    errors syscall\n", "strace -c"),
            (b"# darshan log version: 3.41\nPOSIX\t0\t1\tPOSIX_OPENS\t1\n", "darshan-dxt-parser"),
            (&[0x65, 0x61, 0x74, 7], "order of bytes"),
        ] {
            let refused = format_of(head).unwrap_err();
            assert!(refused.0.contains(said), "{refused}");
        }
    }
}
