//! The buffer of matches: chunks of memory, filled one after the other.

use leadline_base::error::EngineError;

use super::key_range::{BATCH, KeyRange, Record};
use crate::memory::Region;
use crate::records::RECORD_BYTES;

/// Matches in the order in which they were found.
///
/// Whole chunks are written; a chunk that is begun stays at the front for the next round, so that
/// every write but the last is a whole chunk at a whole chunk's place.
pub struct Matches {
    /// Each as long as the others, and whole records.
    chunks: Vec<Region>,
    chunk_bytes: usize,
    /// Bytes found and not written.
    filled: usize,
}

impl Matches {
    /// Nothing yet, in chunks of the same length.
    pub fn new(chunks: Vec<Region>) -> Self {
        let chunk_bytes = chunks.first().map_or(0, |chunk| chunk.len());
        Self { chunks, chunk_bytes, filled: 0 }
    }

    /// Whether everything that can match among `bytes` of input has room.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.chunks.len() * self.chunk_bytes - self.filled >= bytes
    }

    /// Appends the matches among `records`, for which there must be room.
    ///
    /// # Errors
    /// `Fault` when there is no room.
    pub fn select(&mut self, range: &KeyRange, records: &[Record]) -> Result<(), EngineError> {
        if !self.has_room_for(records.len() * RECORD_BYTES) {
            return Err(EngineError::fault("the buffer of a scan was filled past its end"));
        }
        let mut found = [0; BATCH];
        for batch in records.chunks(BATCH) {
            let count = range.find(batch, &mut found);
            self.append(batch, &found[..count]);
        }
        Ok(())
    }

    /// Copies the records of `batch` with the numbers `found`: into one chunk, or, where that has
    /// no room for all, into two.
    fn append(&mut self, batch: &[Record], mut found: &[u8]) {
        while !found.is_empty() && self.chunk_bytes > 0 {
            let (chunk, begin) = (self.filled / self.chunk_bytes, self.filled % self.chunk_bytes);
            let (free, _) = self.chunks[chunk][begin..].as_chunks_mut::<RECORD_BYTES>();
            let (now, later) = found.split_at(found.len().min(free.len()));
            for (free, number) in free.iter_mut().zip(now) {
                *free = batch[usize::from(*number)];
            }
            self.filled += now.len() * RECORD_BYTES;
            found = later;
        }
    }

    /// Bytes found and not taken.
    pub fn bytes(&self) -> usize {
        self.filled
    }

    /// Takes the chunks that are full, in their order.
    pub fn take_full(&mut self) -> Vec<Region> {
        let full = self.filled.checked_div(self.chunk_bytes).unwrap_or(0);
        self.filled -= full * self.chunk_bytes;
        self.chunks.drain(..full).collect()
    }

    /// Takes the chunk that is not full, and how many of its bytes are, when no more come.
    pub fn take_rest(&mut self) -> Option<(Region, usize)> {
        let bytes = std::mem::take(&mut self.filled);
        (0 < bytes && bytes < self.chunk_bytes).then(|| (self.chunks.remove(0), bytes))
    }

    /// Gives an empty chunk back.
    pub fn give_back(&mut self, chunk: Region) {
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::Memory;

    const CHUNK_RECORDS: usize = 300;

    fn matches(chunks: usize) -> Matches {
        let bytes = CHUNK_RECORDS * RECORD_BYTES;
        let memory = Memory::new(1 << 22).unwrap();
        Matches::new((0..chunks).map(|_| memory.take(bytes).unwrap()).collect())
    }

    /// A record whose key is its number and whose rest tells it from others with that key.
    fn record(key: u16, number: usize) -> Record {
        let mut record = [number as u8; RECORD_BYTES];
        record[..8].fill(0);
        record[8..10].copy_from_slice(&key.to_be_bytes());
        record[10..18].copy_from_slice(&number.to_be_bytes());
        record
    }

    fn drain(matches: &mut Matches, output: &mut Vec<u8>) {
        for chunk in matches.take_full() {
            output.extend_from_slice(&chunk);
            matches.give_back(chunk);
        }
    }

    #[test]
    fn more_than_there_is_room_for_is_refused() {
        let all = KeyRange::parse("00000000000000000000", None).unwrap();
        let mut matches = matches(1);
        let records = vec![record(1, 1); CHUNK_RECORDS + 1];
        assert!(matches.select(&all, &records).is_err());
        matches.select(&all, &records[1..]).unwrap();
        assert!(!matches.has_room_for(1) && matches.take_full().len() == 1);
        assert!(matches.take_rest().is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_comes_out_is_what_matches_in_its_order(
            keys in prop::collection::vec(0_u16..4, 0..3000), below in 0_u16..5,
        ) {
            let high = format!("{below:020x}");
            let range = KeyRange::parse("00000000000000000000", Some(&high)).unwrap();
            let records: Vec<Record> =
                keys.iter().enumerate().map(|(number, key)| record(*key, number)).collect();
            let mut matches = matches(3);
            let mut output = Vec::new();
            for portion in records.chunks(CHUNK_RECORDS) {
                if !matches.has_room_for(portion.len() * RECORD_BYTES) {
                    drain(&mut matches, &mut output);
                }
                matches.select(&range, portion).unwrap();
            }
            drain(&mut matches, &mut output);
            if let Some((chunk, bytes)) = matches.take_rest() {
                output.extend_from_slice(&chunk[..bytes]);
            }
            let wanted: Vec<u8> = records.iter().zip(&keys)
                .filter(|(_, key)| **key < below)
                .flat_map(|(record, _)| *record)
                .collect();
            prop_assert!(output == wanted);
            prop_assert_eq!(matches.bytes(), 0);
        }
    }
}
