//! The output of a scan, read back and compared with the input record by record.
//!
//! The criterion is said once more, as a comparison of bytes, so that a mistake of the fast one is
//! found too. What agrees record by record has the right count, the right order and the right
//! bytes.

use std::ops::Range;

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Io;

use super::key_range::Record;
use super::portion::records_of;
use crate::chunks::{CHUNK_BYTES, Chunks};
use crate::data_set::Input;
use crate::deadline::Deadline;
use crate::memory::Memory;
use crate::records::{KEY_BYTES, Summary};
use crate::thread_group::{self, Watch};

/// `low <= key < high` as bytes are compared.
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    low: [u8; KEY_BYTES],
    high: Option<[u8; KEY_BYTES]>,
}

impl Verifier {
    /// Of the digits of a job.
    ///
    /// # Errors
    /// `BadJob` when they are no digits.
    pub fn parse(low: &str, high: Option<&str>) -> Result<Self, EngineError> {
        Ok(Self { low: bytes_of(low)?, high: high.map(bytes_of).transpose()? })
    }

    /// Says that each of the output's parts holds the matches of the input's range of the same
    /// number, and what they are altogether.
    ///
    /// # Errors
    /// `Io`: where they do not; or when either cannot be read.
    pub fn verify(
        &self,
        (input, ranges): (&Input, &[Range<u64>]),
        (output, parts): (&Input, &[u64]),
        memory: &Memory,
        (io, deadline): (&Io, &Deadline),
    ) -> Result<Summary, EngineError> {
        // Two threads' worth of read-ahead each: the input's and the output's.
        let room = memory.left() / CHUNK_BYTES / (2 * ranges.len().max(1));
        let io = Io { depth: io.depth.min(room.saturating_sub(1).max(1) as u32), ..*io };
        let mut begin = 0;
        let mut pairs = Vec::new();
        for (range, bytes) in ranges.iter().zip(parts) {
            let part = begin..begin + bytes;
            begin = part.end;
            let of_input = Chunks::new(input, range.clone(), memory, &io)?;
            pairs.push((of_input, Chunks::new(output, part, memory, &io)?));
        }
        let answers = thread_group::work(pairs, deadline, |(mut input, mut output), watch| {
            self.compare(&mut input, &mut output, watch)
        })?;
        let mut whole = Summary::default();
        answers.of.iter().for_each(|part| whole.append(part));
        Ok(whole)
    }

    /// Says that the chunks of `output` are the matches among those of `input`, in their order, and
    /// what they are.
    fn compare(
        &self,
        input: &mut Chunks,
        output: &mut Chunks,
        watch: &Watch<'_>,
    ) -> Result<Summary, EngineError> {
        let mut summary = Summary::default();
        let mut written: &[Record] = &[];
        while let Some((at, bytes)) = input.next()? {
            watch.check()?;
            let matching = (0..).zip(records_of(at, bytes)?).filter(|(_, it)| self.holds(it));
            for (number, record) in matching {
                if written.is_empty() {
                    written = next_records(output)?;
                }
                let place = (summary.records, at + number * record.len() as u64);
                let Some((first, later)) = written.split_first() else {
                    return Err(wrong("ends before", place));
                };
                if first != record {
                    return Err(wrong("has another record at", place));
                }
                summary.add_record(first);
                written = later;
            }
        }
        if written.is_empty() && next_records(output)?.is_empty() {
            return Ok(summary);
        }
        Err(EngineError::io(format!(
            "the output was read back and is wrong: a thread's part of it goes on behind the {} \
             records that match; it got no name, the input is as it was; look at memory and disks",
            summary.records
        )))
    }

    fn holds(&self, record: &Record) -> bool {
        let key = &record[..KEY_BYTES];
        *key >= self.low[..] && self.high.is_none_or(|high| *key < high[..])
    }
}

fn bytes_of(digits: &str) -> Result<[u8; KEY_BYTES], EngineError> {
    let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let mut key = [0; KEY_BYTES];
    for (index, place) in key.iter_mut().enumerate() {
        *place = byte(2 * index)
            .ok_or_else(|| EngineError::bad_job(format!("{digits} is no key of 20 digits")))?;
    }
    Ok(key)
}

/// The next chunk that is not empty, or nothing at the end.
fn next_records(chunks: &mut Chunks) -> Result<&[Record], EngineError> {
    match chunks.next()? {
        Some((at, bytes)) => records_of(at, bytes),
        None => Ok(&[]),
    }
}

fn wrong(what: &str, (number, at): (u64, u64)) -> EngineError {
    EngineError::io(format!(
        "the output was read back and is wrong: a thread's part of it {what} its record {number} \
         (from 0), which the input has at byte {at}; it got no name, the input is as it was; look \
         at memory and disks"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::records::RECORD_BYTES;
    use leadline_wire::job::stream::ReadBy;

    /// Record `number`, whose key begins with it.
    fn record(number: u8) -> Record {
        let mut record = [number.wrapping_mul(7); RECORD_BYTES];
        record[0] = number;
        record
    }

    fn put(name: &str, records: &[Record]) -> Input {
        let name = format!("leadline-verify-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, records.as_flattened()).unwrap();
        let input = Input::open(path.to_str().unwrap(), &io()).unwrap();
        std::fs::remove_file(path).unwrap();
        input
    }

    fn io() -> Io {
        Io { read: ReadBy::Uring, read_direct: false, write_direct: false, depth: 2 }
    }

    /// Verifies an output of the records 0 to 199 with keys from 50 to 149, in two parts.
    fn verify(name: &str, output: &[Record]) -> Result<Summary, EngineError> {
        let input: Vec<Record> = (0..200).map(record).collect();
        let verifier =
            Verifier::parse("32000000000000000000", Some("96000000000000000000")).unwrap();
        let half = RECORD_BYTES as u64 * 100;
        verifier.verify(
            (&put(&format!("{name}-in"), &input), &[0..half, half..2 * half]),
            (&put(name, output), &[half / 2, output.len() as u64 * 100 - half / 2]),
            &Memory::new(32 << 20).unwrap(),
            (&io(), &Deadline::after(60.0)),
        )
    }

    #[test]
    fn the_right_output_is_summed_up() {
        let right: Vec<Record> = (50..150).map(record).collect();
        let summary = verify("right", &right).unwrap();
        assert_eq!(summary, Summary::of(right.as_flattened()).unwrap());
    }

    #[test]
    fn every_damage_is_found() {
        let right: Vec<Record> = (50..150).map(record).collect();
        let damaged = |damage: fn(&mut Vec<Record>)| {
            let mut output = right.clone();
            damage(&mut output);
            output
        };
        let cases: [(&str, Vec<Record>, &str); 7] = [
            ("flipped", damaged(|it| it[20][99] ^= 1), "another record at its record 20"),
            ("short", damaged(|it| it.truncate(99)), "ends before its record 49"),
            ("long", damaged(|it| it.push(record(149))), "behind the 50 records"),
            (
                "lost",
                damaged(|it| it.retain(|one| one[0] != 120)),
                "another record at its record 20",
            ),
            ("doubled", damaged(|it| it[31] = it[30]), "another record at its record 31"),
            ("swapped", damaged(|it| it.swap(3, 4)), "another record at its record 3"),
            ("foreign", damaged(|it| it[99] = record(150)), "another record at its record 49"),
        ];
        for (name, output, said) in cases {
            let message = verify(name, &output).unwrap_err().message;
            assert!(message.contains(said), "{name}: {message}");
        }
    }
}
