//! What is told of a trace and of its parts.

use serde::Serialize;

use crate::format::Format;

/// Uses this near to the last tell parts of a trace apart.
pub const NEAR: [u64; 3] = [1 << 8, 1 << 10, 1 << 12];

/// What is known of a whole trace.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// By what is in it.
    pub format: Format,
    /// Requests that missed a page cache already.
    pub below_the_cache: bool,
    /// `none`, `whole seconds` or `known`.
    pub times: &'static str,
    /// Whether it says who made a request.
    pub processes_known: bool,
    /// Processes that it names.
    pub processes: u32,
    /// Files or devices that it names.
    pub files: u32,
    /// Reads and writes.
    pub requests: u64,
    /// Of these and of calls, those whose time is known.
    pub timed: u64,
    /// References to pages.
    pub references: u64,
    /// References that are kept.
    pub kept: u64,
    /// Slices that it is told in.
    pub slices: usize,
    /// Lines or records.
    pub lines: u64,
    /// Lines that are not of its format, and the first of them.
    pub unread: (u64, u64),
    /// Requests that were put at a later time than their own, to keep the order.
    pub late: u64,
    /// What it shows and does not tell: a name and how often.
    pub unseen: Vec<(&'static str, u64)>,
    /// Memory that its processes held of their own, in the mean; 0 where it does not say.
    pub memory_bytes: u64,
}

/// What tells a slice from the next.
#[derive(Clone, Debug, Serialize)]
pub struct Features {
    /// Reads and writes.
    pub requests: u64,
    /// Mean bytes of a read; None without any.
    pub read_size: Option<f64>,
    /// The same of a write.
    pub write_size: Option<f64>,
    /// Read fraction.
    pub read_frac: f64,
    /// Sequential fraction.
    pub seq_frac: f64,
    /// Syncs for each request.
    pub syncs: f64,
    /// Share of the references that use a page again after so few others; None where the trace is
    /// not yet so long.
    pub near: [Option<f64>; NEAR.len()],
}

/// References that are alike: how long after a page's last use, of which class and size.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cell {
    /// Whether the page was used before in this part; else `least` is how long the part was then.
    pub again: bool,
    /// Least time in references of this bin.
    pub least: u64,
    /// First time beyond it.
    pub beyond: u64,
    /// Whether they write.
    pub write: bool,
    /// Whether they go on where another ended.
    pub sequential: bool,
    /// Least bytes of a request of this size.
    pub size: u64,
    /// References.
    pub references: u64,
    /// Requests, each in as many parts as it has pages.
    pub requests: f64,
    /// Their bytes, in the same parts.
    pub bytes: f64,
    /// Of those that use a page again: whose last use was a write.
    pub after_write: u64,
}

/// Calls of one name.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Calls {
    /// One of [`crate::record::CALLS`].
    pub name: &'static str,
    /// How many.
    pub calls: u64,
    /// How long all of them took.
    pub seconds: f64,
}

/// A part of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// When it begins, in seconds from the trace's own beginning.
    pub from_s: f64,
    /// When it ends.
    pub to_s: f64,
    /// Reads and writes.
    pub requests: u64,
    /// Of these, by class: reads at random, in sequence, writes at random, in sequence.
    pub by_class: [u64; 4],
    /// Bytes of the classes.
    pub bytes_by_class: [u64; 4],
    /// Share of its pages that were used before it.
    pub used_before: f64,
    /// Other files that were gone to since a sequential read's own, in the mean; and a write's.
    pub others_since: [f64; 2],
    /// Reads, and writes, of a file's first byte.
    pub begins: [u64; 2],
    /// Sizes of reads, and of writes: least bytes of a bin, and how many.
    pub sizes: [Vec<(u64, u64)>; 2],
    /// Reads, and writes, whose time is known, and that time in seconds.
    pub timed: [(u64, f64); 2],
    /// Syncs and metadata.
    pub calls: Vec<Calls>,
    /// Syncs.
    pub syncs: u64,
    /// Bytes written and not waited for when a sync came, in the mean.
    pub dirty_at_sync: f64,
    /// Bytes of which nobody can tell where they went.
    pub unplaced_bytes: u64,
    /// Seconds in which anything was outstanding.
    pub busy_s: f64,
    /// Seconds of all requests that a device had, added up.
    pub device_s: f64,
    /// Times between a process's requests.
    pub gaps: Gaps,
    /// What requests found outstanding.
    pub outstanding: Outstanding,
    /// Who made requests, at most 1024 of each slice.
    pub processes: usize,
    /// Share of the pages that the rest rests on.
    pub rate: f64,
    /// References to all pages.
    pub references: u64,
    /// Different pages.
    pub unique_pages: f64,
    /// The references of those pages.
    pub cells: Vec<Cell>,
    /// By octave of the time since the last use, from one reference: pages that were used again so.
    pub pages_by_octave: Vec<u64>,
}

/// Times between requests.
#[derive(Clone, Debug, Serialize)]
pub struct Gaps {
    /// How many.
    pub count: u64,
    /// In the mean.
    pub mean_s: f64,
    /// Standard deviation over the mean.
    pub variation: f64,
    /// Least ns of a bin, and how many.
    pub bins: Vec<(u64, u64)>,
    /// Requests that began before their process's last had ended.
    pub overlapping: u64,
}

/// What requests found outstanding.
#[derive(Clone, Debug, Serialize)]
pub struct Outstanding {
    /// Requests that looked.
    pub seen: u64,
    /// Others, in the mean.
    pub mean: f64,
    /// Their variance.
    pub variance: f64,
    /// At most.
    pub most: u64,
}
