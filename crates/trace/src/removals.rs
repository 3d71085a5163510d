//! When a replay removes a file.

use crate::hash::ByNumber;
use crate::record::{Deed, Record};

/// Files that are removed, each after its last use: a program goes on with one that it has open.
pub(crate) struct Removals {
    /// Where each file is used last.
    last: ByNumber<u32, usize>,
    /// Files that have been removed and are still used.
    due: ByNumber<u32, ()>,
}

impl Removals {
    pub(crate) fn of(records: &[Record]) -> Self {
        let uses = records.iter().enumerate().filter(|(_, each)| each.deed != Deed::Removed);
        let last = uses.map(|(index, each)| (each.file, index)).collect();
        Self { last, due: ByNumber::default() }
    }

    /// What is done at this place: the record, a removal, both or nothing.
    pub(crate) fn at(
        &mut self,
        index: usize,
        record: &Record,
    ) -> impl Iterator<Item = Record> + use<> {
        let last = self.last.get(&record.file).copied();
        let (own, removed) = if record.deed != Deed::Removed {
            let gone = last == Some(index) && self.due.remove(&record.file).is_some();
            (Some(*record), gone)
        } else {
            if last.is_some_and(|last| last > index) {
                self.due.insert(record.file, ());
            }
            // One that was never used is none of the replay's files.
            let gone = last.is_some_and(|last| last < index);
            if gone {
                self.last.remove(&record.file);
            }
            (None, gone)
        };
        let removal = Record {
            at_ns: record.ended_ns(),
            process: record.process,
            file: record.file,
            ..Record::of(Deed::Removed)
        };
        own.into_iter().chain(removed.then_some(removal))
    }
}
