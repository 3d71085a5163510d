//! The bytes of a trace: its beginning looked at, then line by line or record by record.

use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::time::{Duration, Instant};

use crate::record::Refused;

/// Of the beginning, by which a format is known.
const HEAD_BYTES: usize = 1 << 17;
const BUFFER_BYTES: usize = 1 << 20;
/// No line of a trace is longer; what has longer ones is something else.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Lines between two reports of how far it is, and between two looks at the time: a line may be
/// much work.
const LINES_BETWEEN: u64 = 1 << 19;
const LINES_LOOKED: u64 = 1 << 8;
const REPORT_AFTER: Duration = Duration::from_millis(200);
/// Lines that cannot be read and are put up with: the last may be cut off.
const UNREAD_MAX: u64 = 10;
/// And this share of all of them.
const UNREAD_SHARE: u64 = 1000;

/// Told how many bytes are read; what it returns as an error ends the reading.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> Result<(), Refused>;

/// A trace as it is read.
pub struct Source<'a, R: Read> {
    input: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    line: Vec<u8>,
    progress: Progress<'a>,
    reported: Instant,
    /// Lines or records so far.
    pub number: u64,
    bytes: u64,
    /// Those that made no sense, and the first of them.
    pub unread: (u64, u64),
}

impl<'a, R: Read> Source<'a, R> {
    /// Looks at the beginning; returns it too.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn open(mut input: R, progress: Progress<'a>) -> Result<(Self, Vec<u8>), Refused> {
        let mut head = Vec::new();
        (&mut input)
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .map_err(|error| unreadable(&error))?;
        let chained = Cursor::new(head.clone()).chain(input);
        let input = BufReader::with_capacity(BUFFER_BYTES, chained);
        let line = Vec::new();
        let reported = Instant::now();
        Ok((Self { input, line, progress, reported, number: 0, bytes: 0, unread: (0, 0) }, head))
    }

    /// Goes through all lines; `read` says whether one made sense.
    ///
    /// # Errors
    ///
    /// It cannot be read, too many lines make no sense, or what `read` returns.
    pub fn lines(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Result<bool, Refused>,
    ) -> Result<(), Refused> {
        loop {
            self.line.clear();
            let got = (&mut self.input)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut self.line)
                .map_err(|error| unreadable(&error))?;
            if got == 0 {
                return self.end();
            }
            self.step(got as u64)?;
            if got as u64 == LINE_BYTES_MAX {
                return Err(Refused(format!(
                    "its line {} is longer than a MiB, and so no line of a trace: give the trace's \
                     own file",
                    self.number
                )));
            }
            let line = self.line.trim_ascii_end();
            if !line.is_empty() && !read(line)? {
                self.unread.0 += 1;
                if self.unread.0 == 1 {
                    self.unread.1 = self.number;
                }
                // Early, so that nobody waits for the end of what is something else.
                if self.unread.0 == 4096 {
                    self.end()?;
                }
            }
        }
    }

    /// Fills `record`; false at the end, or where the rest is too short.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn exactly(&mut self, record: &mut [u8]) -> Result<bool, Refused> {
        match self.input.read_exact(record) {
            Ok(()) => self.step(record.len() as u64).map(|()| true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(unreadable(&error)),
        }
    }

    fn step(&mut self, bytes: u64) -> Result<(), Refused> {
        self.number += 1;
        self.bytes += bytes;
        let late = || self.reported.elapsed() > REPORT_AFTER;
        if self.number.is_multiple_of(LINES_BETWEEN)
            || (self.number.is_multiple_of(LINES_LOOKED) && late())
        {
            self.reported = Instant::now();
            return (self.progress)(self.bytes);
        }
        Ok(())
    }

    fn end(&self) -> Result<(), Refused> {
        let (unread, first) = self.unread;
        if unread > UNREAD_MAX && unread * UNREAD_SHARE > self.number {
            return Err(Refused(format!(
                "{unread} of its {} lines are not of its format, the first is line {first}: look \
                 there, and give one trace alone",
                self.number
            )));
        }
        Ok(())
    }
}

fn unreadable(error: &std::io::Error) -> Refused {
    Refused(format!("it cannot be read: {error}"))
}
