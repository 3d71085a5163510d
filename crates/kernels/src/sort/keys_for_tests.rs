//! Keys that make a sort's life hard, for the tests of every part of it.

#![forbid(unsafe_code)]

use super::entries::{Entry, KEY_BYTES, RECORD_BYTES, entry_of};

/// Numbers that look drawn (splitmix64).
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// How the keys of a test lie.
pub const KINDS: [&str; 8] =
    ["uniform", "printable", "equal", "sorted", "reversed", "skewed", "last byte", "two keys"];

/// Records with keys of a kind; their number stands behind the key.
pub fn records(kind: &str, count: usize) -> Vec<u8> {
    let mut draw = Draw(42);
    let mut bytes = vec![0u8; count * RECORD_BYTES];
    for (number, record) in bytes.chunks_exact_mut(RECORD_BYTES).enumerate() {
        let drawn = draw.next();
        let mut key = [b' '; KEY_BYTES];
        match kind {
            "uniform" => key[..8].copy_from_slice(&drawn.to_be_bytes()),
            "printable" => {
                key.fill_with(|| b' ' + u8::try_from(draw.next() % 95).unwrap_or(0));
            }
            "sorted" => key[2..].copy_from_slice(&(number as u64).to_be_bytes()),
            "reversed" => key[2..].copy_from_slice(&((count - number) as u64).to_be_bytes()),
            // Half of all records have one key, a quarter the next, and so on.
            "skewed" => key[0] = u8::try_from(drawn.leading_zeros()).unwrap_or(0),
            "last byte" => key[KEY_BYTES - 1] = drawn.to_be_bytes()[0],
            "two keys" => key[4] = u8::try_from(drawn & 1).unwrap_or(0),
            _ => {}
        }
        record[..KEY_BYTES].copy_from_slice(&key);
        record[KEY_BYTES..KEY_BYTES + 8].copy_from_slice(&(number as u64).to_be_bytes());
        record[RECORD_BYTES - 8..].copy_from_slice(&drawn.to_be_bytes());
    }
    bytes
}

/// The entries of records.
pub fn entries(records: &[u8]) -> Vec<Entry> {
    let numbered = records.chunks_exact(RECORD_BYTES).zip(0..);
    numbered.map(|(record, number)| entry_of(record, number)).collect()
}

/// Entries of every kind.
pub fn all(count: usize) -> Vec<(&'static str, Vec<Entry>)> {
    KINDS.iter().map(|kind| (*kind, entries(&records(kind, count)))).collect()
}

/// The records in order, equal keys as they came.
pub fn sorted(records: &[u8]) -> Vec<u8> {
    let mut entries = entries(records);
    entries.sort_unstable();
    let pieces = entries.iter().map(|entry| {
        let from = super::entries::position_of(*entry) * RECORD_BYTES;
        &records[from..from + RECORD_BYTES]
    });
    pieces.collect::<Vec<_>>().concat()
}
