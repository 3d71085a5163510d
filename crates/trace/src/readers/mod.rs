//! A reader for each format. Every unit is the one that the format's own description states; a file
//! that breaks it cannot be told from one that keeps it, and nothing is guessed.

mod blkparse;
mod blktrace;
mod block;
pub mod capture;
mod csv;
mod dxt;
mod iolog;
pub mod strace;
#[cfg(test)]
mod tests;

use std::io::Read;

use crate::format::Format;
use crate::record::{Refused, Sink};
use crate::source::Source;

/// What is noted when no line says a time.
pub const NO_TIMES: &str = "no times";

/// What a reader found beside the records.
#[derive(Debug, Default)]
pub struct Noted {
    /// Files or devices.
    pub files: u32,
    /// Who made requests.
    pub processes: u32,
    /// What the trace shows and no record tells, by what it is: how often.
    pub unseen: Vec<(&'static str, u64)>,
}

/// Reads a whole trace.
///
/// # Errors
///
/// It cannot be read, makes no sense, or its sink does not take it.
pub fn read(
    format: Format,
    source: &mut Source<'_, impl Read>,
    sink: &mut impl Sink,
) -> Result<Noted, Refused> {
    match format {
        Format::FioIolog2 => iolog::read(source, sink, false),
        Format::FioIolog3 => iolog::read(source, sink, true),
        Format::Blktrace => blktrace::read(source, sink),
        Format::Blkparse => blkparse::read(source, sink),
        Format::MsrCambridge => csv::read(source, sink, csv::msr_cambridge),
        Format::Alibaba => csv::read(source, sink, csv::alibaba),
        Format::Tencent => csv::read(source, sink, csv::tencent),
        Format::DarshanDxt => dxt::read(source, sink),
        Format::Strace => strace::read(source, sink),
        Format::Capture => capture::read(source, sink),
    }
}
