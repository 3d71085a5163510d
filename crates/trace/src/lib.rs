//! Traces of applications: read whatever their format, and what their requests are like.
//!
//! [`Trace::read`] goes once through a trace of any length. What it keeps is bounded: sums over
//! some hundred slices of the trace, and references to 4 KiB pages, all of them or a sample by
//! page when there are too many (SHARDS: Waldspurger et al., FAST 2015). From these come the
//! description of any part of it ([`Trace::part`]) and its miss ratios ([`Trace::misses`]).

#![forbid(unsafe_code)]

mod bins;
mod digest;
mod distance;
mod fields;
mod format;
mod hash;
mod live;
mod misses;
mod names;
mod order;
mod readers;
mod record;
mod removals;
mod replay;
mod source;
mod told;
mod trace;

pub use bins::Bins;
pub use digest::sample::{PAGE_BYTES, Reference};
pub use distance::distances;
pub use format::{Format, format_of};
pub use live::Live;
pub use misses::{Misses, Point, misses_at};
pub use readers::capture::{FIRST_LINE, line_of};
pub use record::{
    BEGIN_ONLY, Between, CALLS, Deed, NO_FILE, Record, Refused, Sink, UNKNOWN, call_named,
};
pub use replay::{Replayed, steps_of};
pub use told::{About, Part};
pub use trace::Trace;
