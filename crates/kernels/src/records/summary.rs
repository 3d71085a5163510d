//! What can be said of records after one look at each, as valsort says it.
//!
//! A summary of a range joined to that of the range behind it is the summary of both, so threads
//! and ranks look at their own parts. Two data sets hold the same records, in any order, when
//! their counts and sums of checksums agree: a record that was changed, lost or doubled leaves the
//! sum right with probability 2^-32.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_wire::event::stream::CheckResult;
use serde::{Deserialize, Serialize};

use super::{KEY_BYTES, RECORD_BYTES, crc};

/// Records looked at twice, for their checksums and their keys, while the first cache has them.
const BATCH: usize = 128;

/// A key, ordered as its bytes are.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Key {
    high: u64,
    low: u16,
}

impl Key {
    /// The key of a record.
    #[inline]
    #[must_use]
    pub fn of(record: &[u8; RECORD_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, ..] = *record;
        Self { high: u64::from_be_bytes([a, b, c, d, e, f, g, h]), low: u16::from_be_bytes([i, j]) }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..8].copy_from_slice(&self.high.to_be_bytes());
        bytes[8..].copy_from_slice(&self.low.to_be_bytes());
        bytes
    }
}

impl From<[u8; KEY_BYTES]> for Key {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Self { high: u64::from_be_bytes([a, b, c, d, e, f, g, h]), low: u16::from_be_bytes([i, j]) }
    }
}

/// What was found in a range of records.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Records.
    pub records: u64,
    /// Sum of their CRC-32.
    pub checksum: u128,
    /// Neighbours whose keys are equal.
    pub duplicates: u64,
    /// Neighbours of which the second has the smaller key.
    pub unordered: u64,
    /// Number in the range, from 0, of the first record with a smaller key than the one before it.
    pub first_unordered: Option<u64>,
    /// Key of the first record.
    pub first: Option<Key>,
    /// Key of the last record.
    pub last: Option<Key>,
}

impl Summary {
    /// Of these records.
    ///
    /// # Errors
    /// `Io` when the bytes are no whole records.
    pub fn of(bytes: &[u8]) -> Result<Self, EngineError> {
        let mut summary = Self::default();
        summary.add(bytes)?;
        Ok(summary)
    }

    /// Adds the records that follow.
    ///
    /// # Errors
    /// `Io` when the bytes are no whole records.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let (records, rest) = bytes.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(broken(bytes.len() as u64));
        }
        for batch in records.chunks(BATCH) {
            self.add_batch(batch);
        }
        Ok(())
    }

    /// Adds the record that follows.
    pub fn add_record(&mut self, record: &[u8; RECORD_BYTES]) {
        self.add_batch(std::slice::from_ref(record));
    }

    /// Counts without a branch on what is counted: in records of no order it goes either way.
    fn add_batch(&mut self, batch: &[[u8; RECORD_BYTES]]) {
        let Some(first) = batch.first().map(Key::of) else { return };
        self.checksum += crc::sum(batch);
        self.follow(first);
        let (mut last, mut equal, mut smaller) = (first, 0, 0);
        for key in batch.iter().map(Key::of) {
            equal += u64::from(key == last);
            smaller += u64::from(key < last);
            last = key;
        }
        self.duplicates += equal - 1; // the first record was held against itself
        if smaller > 0 && self.first_unordered.is_none() {
            let at = batch.windows(2).position(|two| Key::of(&two[1]) < Key::of(&two[0]));
            self.first_unordered = at.map(|at| self.records + at as u64 + 1);
        }
        self.unordered += smaller;
        self.first = self.first.or(Some(first));
        self.last = Some(last);
        self.records += batch.len() as u64;
    }

    /// Joins the summary of the range behind this one.
    pub fn append(&mut self, next: &Self) {
        let Some(first) = next.first else { return };
        self.follow(first);
        let moved = next.first_unordered.map(|number| self.records + number);
        self.first_unordered = self.first_unordered.or(moved);
        self.first = self.first.or(next.first);
        self.last = next.last;
        self.records += next.records;
        self.checksum += next.checksum;
        self.duplicates += next.duplicates;
        self.unordered += next.unordered;
    }

    /// Counts how the record that follows lies to the last one.
    #[inline]
    fn follow(&mut self, key: Key) {
        if let Some(last) = self.last {
            self.duplicates += u64::from(key == last);
            if key < last {
                self.unordered += 1;
                self.first_unordered = self.first_unordered.or(Some(self.records));
            }
        }
    }

    /// Whether no record has a smaller key than the one before it.
    #[must_use]
    pub fn in_order(&self) -> bool {
        self.unordered == 0
    }

    /// Says that `self`, of an output, holds the records of `input`.
    ///
    /// # Errors
    /// `Io`: how the two differ.
    pub fn same_records_as(&self, input: &Self) -> Result<(), EngineError> {
        let (ours, theirs) = (self.records, input.records);
        if ours != theirs {
            return Err(wrong(&format!("it holds {ours} records and should hold {theirs}")));
        }
        if self.checksum != input.checksum {
            return Err(wrong(&format!(
                "the checksum of its records is {:x} and should be {:x}",
                self.checksum, input.checksum
            )));
        }
        Ok(())
    }

    /// Says that `self`, of an output, is what was found in the records when they were made.
    ///
    /// # Errors
    /// `Io`: how the two differ.
    pub fn must_be(&self, made: &Self) -> Result<(), EngineError> {
        self.same_records_as(made)?;
        if self == made { Ok(()) } else { Err(wrong("its records lie in another order")) }
    }

    /// Says that `self`, of an output, is in order.
    ///
    /// # Errors
    /// `Io`: where it is not.
    pub fn must_be_in_order(&self) -> Result<(), EngineError> {
        match self.first_unordered {
            None => Ok(()),
            Some(number) => Err(wrong(&format!(
                "record {number} (from 0) has a smaller key than the one before it, and {} more \
                 have",
                self.unordered - 1
            ))),
        }
    }

    /// As an answer has it.
    #[must_use]
    pub fn to_result(&self) -> CheckResult {
        CheckResult {
            records: self.records,
            checksum: format!("{:x}", self.checksum),
            duplicate_keys: self.duplicates,
            unordered: self.unordered,
            first_unordered: self.first_unordered,
        }
    }
}

/// How many records `bytes` are.
///
/// # Errors
/// `Io` when the last one is not whole.
pub fn whole_records(bytes: u64) -> Result<u64, EngineError> {
    if bytes.is_multiple_of(RECORD_BYTES as u64) {
        Ok(bytes / RECORD_BYTES as u64)
    } else {
        Err(broken(bytes))
    }
}

fn broken(bytes: u64) -> EngineError {
    EngineError::io(format!(
        "{bytes} bytes are no whole records of {RECORD_BYTES} bytes: the last record is cut short \
         or this is another kind of data; make records with `leadline stream generate`"
    ))
}

fn wrong(how: &str) -> EngineError {
    EngineError::io(format!(
        "the output was read back and is wrong: {how}; nothing was named, the input is as it was; \
         check the input with `leadline stream check`, then memory and disks"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(key: u8, rest: u8) -> [u8; RECORD_BYTES] {
        let mut record = [rest; RECORD_BYTES];
        record[..KEY_BYTES].fill(0);
        record[KEY_BYTES - 1] = key;
        record
    }

    fn records(keys: &[u8]) -> Vec<u8> {
        keys.iter().flat_map(|key| record(*key, *key)).collect()
    }

    #[test]
    fn counts_what_valsort_counts() {
        let summary = Summary::of(&records(&[1, 1, 1, 3, 2, 2, 9, 0])).unwrap();
        assert_eq!(summary.records, 8);
        assert_eq!((summary.duplicates, summary.unordered), (3, 2));
        assert_eq!(summary.first_unordered, Some(4));
        assert!(!summary.in_order());
        let said = summary.must_be_in_order().unwrap_err().message;
        assert!(said.contains("record 4") && said.contains("1 more"), "{said}");
    }

    #[test]
    fn an_empty_range_is_in_order_and_joins_anything() {
        let some = Summary::of(&records(&[5, 6])).unwrap();
        let mut joined = Summary::default();
        joined.append(&some);
        joined.append(&Summary::default());
        assert_eq!(joined, some);
        assert!(Summary::default().in_order());
    }

    #[test]
    fn the_last_byte_of_the_key_decides_and_the_first_behind_it_does_not() {
        let mut two = [record(7, 0), record(7, 0)];
        two[0][KEY_BYTES] = 9;
        let same = Summary::of(two.as_flattened()).unwrap();
        assert_eq!((same.duplicates, same.unordered), (1, 0));
        two[0][KEY_BYTES - 1] = 8;
        assert_eq!(Summary::of(two.as_flattened()).unwrap().unordered, 1);
    }

    #[test]
    fn a_record_cut_short_is_refused() {
        let bytes = records(&[1, 2]);
        let said = Summary::of(&bytes[..199]).unwrap_err().message;
        assert!(said.contains("199 bytes"), "{said}");
        assert!(whole_records(199).is_err());
        assert_eq!(whole_records(200).unwrap(), 2);
    }

    #[test]
    fn a_damaged_output_is_told_from_its_input() {
        let input = Summary::of(&records(&[3, 1, 2])).unwrap();
        let damaged: [(&[u8], &str); 3] = [
            (&[1, 2], "holds 2 records"),       // one lost
            (&[1, 2, 2], "checksum"),           // one twice instead of another
            (&[1, 2, 3, 3], "holds 4 records"), // one twice
        ];
        for (keys, said) in damaged {
            let output = Summary::of(&records(keys)).unwrap();
            let error = output.same_records_as(&input).unwrap_err().message;
            assert!(error.contains(said), "{keys:?}: {error}");
        }
        let mut flipped = records(&[1, 2, 3]);
        flipped[99] ^= 1;
        assert!(Summary::of(&flipped).unwrap().same_records_as(&input).is_err());
        let sorted = Summary::of(&records(&[1, 2, 3])).unwrap();
        sorted.same_records_as(&input).unwrap();
        assert!(sorted.must_be(&input).unwrap_err().message.contains("another order"));
        input.must_be(&input).unwrap();
    }

    #[test]
    fn a_key_is_its_bytes() {
        let bytes = [9, 8, 7, 6, 5, 4, 3, 2, 1, 255];
        let mut record = [0; RECORD_BYTES];
        record[..KEY_BYTES].copy_from_slice(&bytes);
        assert_eq!(Key::of(&record), Key::from(bytes));
        assert_eq!(Key::of(&record).bytes(), bytes);
    }

    proptest! {
        #[test]
        fn parts_joined_are_the_whole(keys in prop::collection::vec(0_u8..6, 0..40),
                                      cuts in prop::collection::vec(0_usize..40, 0..4)) {
            let bytes = records(&keys);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(keys.len())).collect();
            cuts.push(0);
            cuts.push(keys.len());
            cuts.sort_unstable();
            let mut joined = Summary::default();
            for ends in cuts.windows(2) {
                let part = &bytes[ends[0] * RECORD_BYTES..ends[1] * RECORD_BYTES];
                joined.append(&Summary::of(part).unwrap());
            }
            let mut one_by_one = Summary::default();
            bytes.as_chunks().0.iter().for_each(|record| one_by_one.add_record(record));
            prop_assert_eq!(&one_by_one, &joined);
            prop_assert_eq!(joined, Summary::of(&bytes).unwrap());
        }

        #[test]
        fn keys_compare_as_their_bytes(a: [u8; KEY_BYTES], b: [u8; KEY_BYTES]) {
            prop_assert_eq!(Key::from(a).cmp(&Key::from(b)), a.cmp(&b));
        }
    }
}
