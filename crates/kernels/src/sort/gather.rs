//! Records into the order of their entries.

use super::entries::{Entry, RECORD_BYTES, position_of};

/// Records fetched ahead of the one being copied: about a memory latency at a few ns a record.
const AHEAD: usize = 16;

/// Copies the records that `entries` name, in that order, to the beginning of `into`.
///
/// # Panics
/// When a record lies outside `records`, or `into` is too short.
pub fn gather(records: &[u8], entries: &[Entry], into: &mut [u8]) {
    let places = into[..entries.len() * RECORD_BYTES].chunks_exact_mut(RECORD_BYTES);
    for (number, place) in places.enumerate() {
        if let Some(later) = entries.get(number + AHEAD) {
            fetch(records, position_of(*later) * RECORD_BYTES);
        }
        let from = position_of(entries[number]) * RECORD_BYTES;
        place.copy_from_slice(&records[from..from + RECORD_BYTES]);
    }
}

/// Asks for the lines of a record.
#[inline]
pub fn fetch(bytes: &[u8], from: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(record) = bytes.get(from..from + RECORD_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = record.as_ptr().cast::<i8>();
        // SAFETY: prefetches change nothing that a program can see, and the addresses lie within
        // the slice.
        unsafe {
            _mm_prefetch(first, _MM_HINT_T0);
            _mm_prefetch(first.add(64), _MM_HINT_T0);
            _mm_prefetch(first.add(RECORD_BYTES - 1), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::keys_for_tests as keys;

    #[test]
    fn records_are_copied_whole_and_in_order() {
        let records = keys::records("uniform", 1000);
        let mut entries = keys::entries(&records);
        entries.sort_unstable();
        let mut out = vec![0; records.len() + 5];
        gather(&records, &entries, &mut out);
        assert!(out[..records.len()] == keys::sorted(&records));
        assert!(out[records.len()..] == [0; 5]);
    }
}
