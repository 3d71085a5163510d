//! The criterion of a scan: `low <= key < high`, without a branch for each record.

use leadline_base::error::EngineError;

use crate::records::{KEY_BYTES, RECORD_BYTES};

/// A record's bytes.
pub type Record = [u8; RECORD_BYTES];

/// Records looked at together: their keys are compared first, and then the matches are copied, so
/// that no branch depends on a key. As many as stay in the first cache.
pub const BATCH: usize = 256;

/// Numbers of the matching records of a batch.
pub type Found = [u8; BATCH];

const _: () = assert!(BATCH == 1 << u8::BITS, "every record of a batch has a number");

/// Keys from `low` on, below another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyRange {
    low: u128,
    /// How many keys match.
    width: u128,
}

impl KeyRange {
    /// The range of a job: 20 hexadecimal digits each; no `high`: all keys from `low` on.
    ///
    /// # Errors
    /// `BadJob` when they are no keys, or `high` is below `low`.
    pub fn parse(low: &str, high: Option<&str>) -> Result<Self, EngineError> {
        let number = |text: &str| {
            let digits = text.bytes().all(|digit| digit.is_ascii_hexdigit());
            let key = u128::from_str_radix(text, 16).ok();
            key.filter(|_| digits && text.len() == 2 * KEY_BYTES).ok_or_else(|| {
                EngineError::bad_job(format!(
                    "{text} is no key: give 20 hexadecimal digits, two for each byte"
                ))
            })
        };
        let first = number(low)?;
        let end = high.map_or(Ok(1 << (8 * KEY_BYTES)), number)?;
        let width = end.checked_sub(first).ok_or_else(|| {
            EngineError::bad_job(format!(
                "no key is from {low} on and below {}: give the lower key first",
                high.unwrap_or_default()
            ))
        })?;
        Ok(Self { low: first, width })
    }

    /// Whether the record's key is in the range.
    #[inline]
    #[must_use]
    pub fn holds(&self, record: &Record) -> bool {
        let [a, b, c, d, e, f, g, h, i, j, ..] = *record;
        let high = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let low = u16::from_be_bytes([i, j]);
        let key = (u128::from(high) << 16) | u128::from(low);
        key.wrapping_sub(self.low) < self.width
    }

    /// Writes the numbers of the matching records of `batch`, at most [`BATCH`] records, to the
    /// front of `found` and says how many they are.
    #[inline]
    #[must_use]
    pub fn find(&self, batch: &[Record], found: &mut Found) -> usize {
        let mut count = 0;
        for (number, record) in (0..=u8::MAX).zip(batch) {
            // Written for every record and kept for those that match. The count is below BATCH
            // here; the compiler does not know, and a mask costs less than a check.
            found[count & (BATCH - 1)] = number;
            count += usize::from(self.holds(record));
        }
        count
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(key: [u8; KEY_BYTES]) -> String {
        key.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn record(key: [u8; KEY_BYTES]) -> Record {
        let mut record = [0xff; RECORD_BYTES];
        record[..KEY_BYTES].copy_from_slice(&key);
        record
    }

    /// The criterion as it is said: bytes compared as bytes.
    fn naively(key: [u8; KEY_BYTES], low: [u8; KEY_BYTES], high: Option<[u8; KEY_BYTES]>) -> bool {
        key >= low && high.is_none_or(|high| key < high)
    }

    #[test]
    fn both_ends_are_exact_to_the_last_byte() {
        let range = KeyRange::parse("00000000000000000010", Some("ffffffffffffffff0001")).unwrap();
        let key = |high: u64, low: u16| {
            let mut key = [0; KEY_BYTES];
            key[..8].copy_from_slice(&high.to_be_bytes());
            key[8..].copy_from_slice(&low.to_be_bytes());
            record(key)
        };
        assert!(!range.holds(&key(0, 0x0f)) && range.holds(&key(0, 0x10)));
        assert!(range.holds(&key(u64::MAX, 0)) && !range.holds(&key(u64::MAX, 1)));
    }

    #[test]
    fn without_an_end_the_highest_key_matches_too() {
        let all = KeyRange::parse(&hex([0; KEY_BYTES]), None).unwrap();
        assert!(all.holds(&record([0; KEY_BYTES])) && all.holds(&record([0xff; KEY_BYTES])));
    }

    #[test]
    fn equal_ends_match_nothing_and_reversed_ones_are_refused() {
        let (low, high) = (hex([1; KEY_BYTES]), hex([2; KEY_BYTES]));
        let none = KeyRange::parse(&low, Some(&low)).unwrap();
        assert!(!none.holds(&record([1; KEY_BYTES])));
        let said = KeyRange::parse(&high, Some(&low)).unwrap_err().message;
        assert!(said.contains("lower key first"), "{said}");
        for text in ["", "12", "+1111111111111111111", "0000000000000000000g"] {
            assert!(KeyRange::parse(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn a_whole_batch_of_matches_is_counted_whole() {
        let all = KeyRange::parse(&hex([0; KEY_BYTES]), None).unwrap();
        let batch = [record([7; KEY_BYTES]); BATCH];
        let mut found = [0; BATCH];
        assert_eq!(all.find(&batch, &mut found), BATCH);
        assert!((0..=u8::MAX).eq(found));
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_a_comparison_of_bytes_finds(
            keys in prop::collection::vec(prop::array::uniform10(0_u8..3), 0..=BATCH),
            low in prop::array::uniform10(0_u8..3),
            high in prop::option::of(prop::array::uniform10(0_u8..3)),
        ) {
            let (low, high) = match high {
                Some(high) if high < low => (high, Some(low)),
                _ => (low, high),
            };
            let range = KeyRange::parse(&hex(low), high.map(hex).as_deref()).unwrap();
            let batch: Vec<Record> = keys.iter().map(|key| record(*key)).collect();
            let mut found = [0; BATCH];
            let count = range.find(&batch, &mut found);
            let wanted: Vec<u8> = (0..=u8::MAX).zip(&keys)
                .filter(|(_, key)| naively(**key, low, high))
                .map(|(number, _)| number)
                .collect();
            prop_assert_eq!(&found[..count], &wanted[..]);
        }
    }
}
