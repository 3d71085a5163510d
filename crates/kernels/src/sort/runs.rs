//! Sorted runs on disk, between the passes.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::split::Outline;
use crate::data_set::{Readable, Writable};
use crate::memory::PAGE_BYTES;
use crate::scratch::Scratch;
use crate::stripes::Extent;

/// Room for runs, and what is known of those in it; clones share the room.
#[derive(Clone)]
pub struct Runs {
    directories: Vec<String>,
    io: Io,
    scratch: Vec<Scratch>,
    /// Where the next run begins.
    used: u64,
    /// The runs in the order in which their records came.
    pub made: Vec<Run>,
}

/// A sorted run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where it begins in the room.
    pub offset: u64,
    /// Its records.
    pub outline: Outline,
}

impl Run {
    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.outline.records * super::entries::RECORD_BYTES
    }
}

impl Runs {
    /// No runs yet, in these directories.
    #[must_use]
    pub fn new(directories: &[String], io: &Io) -> Self {
        let (scratch, made) = (Vec::new(), Vec::new());
        Self { directories: directories.to_vec(), io: *io, scratch, used: 0, made }
    }

    fn room(&self) -> u64 {
        self.scratch.iter().map(Scratch::bytes).sum()
    }

    /// Makes room for so many bytes beyond what is used; lanes opened before do not know of it.
    ///
    /// # Errors
    /// `Target` when there is none.
    pub fn make_room(&mut self, bytes: u64) -> Result<(), EngineError> {
        let missing = (self.used + bytes).saturating_sub(self.room());
        if missing > 0 {
            let missing = missing.next_multiple_of(PAGE_BYTES as u64);
            self.scratch.push(Scratch::create(&self.directories, missing, &self.io)?);
        }
        Ok(())
    }

    /// Where a run of so many bytes is to be written; from then on the place is used.
    #[must_use]
    pub fn begin(&mut self, bytes: u64) -> u64 {
        let offset = self.used;
        self.used += bytes.next_multiple_of(PAGE_BYTES as u64);
        offset
    }

    /// What the cuts are made from.
    #[must_use]
    pub fn outlines(&self) -> Vec<Outline> {
        self.made.iter().map(|run| run.outline.clone()).collect()
    }

    fn all_extents(&self) -> Vec<Extent> {
        let mut start = 0;
        let mut all = Vec::new();
        for scratch in &self.scratch {
            all.extend(
                Readable::extents(scratch)
                    .into_iter()
                    .map(|extent| Extent { start: start + extent.start, ..extent }),
            );
            start += scratch.bytes();
        }
        all
    }
}

impl Readable for Runs {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        self.all_extents()
    }
}

impl Writable for Runs {
    #[allow(private_interfaces)]
    fn extents(&self) -> Vec<Extent> {
        self.all_extents()
    }
}
