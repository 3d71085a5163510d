//! A trace that is made as it happens.

use crate::format::Format;
use crate::order::InOrder;
use crate::readers::Noted;
use crate::record::{Record, Refused, Sink};
use crate::replay::Seen;
use crate::trace::Trace;

/// Takes records of a program that runs.
pub struct Live {
    ordered: InOrder<Seen>,
    records: u64,
}

impl Default for Live {
    fn default() -> Self {
        Self { ordered: InOrder::before(Seen::of(Format::Capture)), records: 0 }
    }
}

impl Live {
    /// Takes the next one; they are nearly in order of time.
    ///
    /// # Errors
    ///
    /// They cannot be described.
    pub fn take(&mut self, record: Record) -> Result<(), Refused> {
        self.records += 1;
        self.ordered.take(record)
    }

    /// All there is; `unseen` is what was counted and not told.
    ///
    /// # Errors
    ///
    /// They were in no order.
    pub fn finish(
        mut self,
        files: u32,
        processes: u32,
        unseen: Vec<(&'static str, u64)>,
    ) -> Result<Trace, Refused> {
        self.ordered.finish()?;
        let noted = Noted { files, processes, unseen };
        Ok(Trace::of(Format::Capture, self.ordered, noted, (self.records, (0, 0))))
    }
}
