//! Entries: a record's whole key and where the record lies, in one number.
//!
//! AD98 §4.2 sorts pairs of a partial key and a pointer. Sixteen bytes hold all ten of the key and
//! 48 bits of position, so comparing two numbers decides without a look at the records, and no two
//! entries of a batch are equal: the order is that of the keys, equal keys as they came, whoever
//! made the entries and in whatever order.

#![forbid(unsafe_code)]

/// Bytes of a record (the sort benchmark's).
pub const RECORD_BYTES: usize = 100;
/// Bytes of its key, at its beginning.
pub const KEY_BYTES: usize = 10;
/// Bits of an entry below the key.
const POSITION_BITS: u32 = 48;
const POSITION_MASK: u128 = (1 << POSITION_BITS) - 1;

/// The key in the upper 80 bits, the number of the record in the lower 48.
pub type Entry = u128;

/// The entry of a record.
///
/// # Panics
/// When `record` is shorter than 16 bytes.
#[inline]
#[must_use]
pub fn entry_of(record: &[u8], position: u64) -> Entry {
    let mut front = [0u8; 16];
    front.copy_from_slice(&record[..16]);
    (u128::from_be_bytes(front) & !POSITION_MASK) | u128::from(position)
}

/// Where the entry's record lies.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn position_of(entry: Entry) -> usize {
    (entry & POSITION_MASK) as usize
}

/// The same key at another position.
#[inline]
#[must_use]
pub fn at_position(entry: Entry, position: u64) -> Entry {
    (entry & !POSITION_MASK) | u128::from(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_order_as_keys_then_positions() {
        let mut low = [7u8; RECORD_BYTES];
        let mut high = low;
        high[KEY_BYTES - 1] = 8;
        low[KEY_BYTES] = 255; // behind the key: without effect
        assert!(entry_of(&low, 9) < entry_of(&high, 1));
        assert!(entry_of(&low, 1) < entry_of(&low, 2));
        assert_eq!(position_of(entry_of(&high, 123_456_789_012)), 123_456_789_012);
        assert_eq!(at_position(entry_of(&low, 1), 2), entry_of(&low, 2));
    }
}
