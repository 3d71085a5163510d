//! Makes the sort benchmark's records, any range of them in any order.
//!
//! **Binary.** Ten parts of ten bytes. Part `k` of record `n` is the high 80 bits of the number
//! `n + 1 + k` of the sequence, and all but the key are masked with a constant of their own, so
//! that a payload is never the next record's key: every byte is random and none compresses.
//!
//! **Printable.** Ten characters from space to `~` as key (eight from the high 64 bits in base 95,
//! two from the low ones), two spaces, the record's number in 32 hexadecimal digits, two spaces,
//! 13 digits of the low 52 bits four times each, CR LF.
//!
//! **Skewed keys.** The rank of a record's key is drawn from a Zipf distribution over 2^32 keys
//! by the record's own number of the sequence; the key of a rank is a fixed random one, so
//! frequent keys lie anywhere. This is Leadline's own: gensort has only one fixed skew.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;
use leadline_wire::job::stream::Format;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::sequence::{Sequence, start};
use super::{KEY_BYTES, RECORD_BYTES, whole_records};

const PARTS: usize = RECORD_BYTES / KEY_BYTES;

/// What each part of a binary record is masked with.
const MASKS: [(u64, u16); PARTS] = [
    (0, 0),
    (0xf0e8_e4e2_e1d8_d4d2, 0xd1cc),
    (0xcac9_c6c5_c3b8_b4b2, 0xb1ac),
    (0xaaa9_a6a5_a39c_9a99, 0x9695),
    (0x938e_8d8b_8778_7472, 0x716c),
    (0x6a69_6665_635c_5a59, 0x5655),
    (0x534e_4d4b_473c_3a39, 0x3635),
    (0x332e_2d2b_271e_1d1b, 0x170f),
    (0xc8c4_c2c1_9894_9291, 0x8ce0),
    (0x170f_332e_2d2b_271e, 0x1d1b),
];

/// Printable characters, space to `~`.
const PRINTABLE: u64 = 95;

/// Two characters at a time.
const PAIRS: u64 = PRINTABLE * PRINTABLE;

static PAIR: [[u8; 2]; PAIRS as usize] = {
    let mut pairs = [[0; 2]; PAIRS as usize];
    let mut number = 0;
    while number < pairs.len() {
        let first = (number as u64 % PRINTABLE) as u8;
        let second = (number as u64 / PRINTABLE) as u8;
        pairs[number] = [b' ' + first, b' ' + second];
        number += 1;
    }
    pairs
};

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Different keys when they are skewed.
const KEYS: f64 = (1_u64 << 32) as f64;

/// Records made before they are stored: their numbers of the sequence stay in registers and cache.
const BATCH: usize = 64;

/// Everything that decides the records, and how to make them.
#[derive(Clone, Debug)]
pub struct Generator {
    format: Format,
    start: u128,
    ranks: Option<Zipf<f64>>,
    seed: u64,
}

impl Generator {
    /// Records of this form. Seed 0 without skew: those of gensort 1.5.
    ///
    /// # Errors
    /// `BadJob` when no distribution has this skew.
    pub fn new(format: Format, seed: u64, skew: f64) -> Result<Self, EngineError> {
        let ranks = if skew == 0.0 {
            None
        } else {
            Some(Zipf::new(KEYS, skew).map_err(|error| {
                EngineError::bad_job(format!("skew {skew}: {error}; write a number from 0 to 10"))
            })?)
        };
        Ok(Self { format, start: start(seed), ranks, seed })
    }

    /// Fills `into` with the records from number `first` on.
    ///
    /// # Errors
    /// `Io` when `into` has no place for whole records.
    pub fn fill(&self, first: u64, into: &mut [u8]) -> Result<(), EngineError> {
        whole_records(into.len() as u64)?;
        let (records, _) = into.as_chunks_mut::<RECORD_BYTES>();
        let mut sequence = Sequence::after(self.start.wrapping_add(u128::from(first)));
        match self.format {
            Format::Binary => binary(&mut sequence, records),
            Format::Ascii => {
                let numbers = first..;
                for (record, number) in records.iter_mut().zip(numbers) {
                    ascii(sequence.draw(), number, record);
                }
            }
        }
        if let Some(ranks) = &self.ranks {
            self.skew(ranks, first, records);
        }
        Ok(())
    }

    fn skew(&self, ranks: &Zipf<f64>, first: u64, records: &mut [[u8; RECORD_BYTES]]) {
        let mut sequence = Sequence::after(self.start.wrapping_add(u128::from(first)));
        for record in records {
            let number = sequence.draw();
            let own = (number >> 64) as u64 ^ number as u64;
            let rank = ranks.sample(&mut SplitMix64::seed_from_u64(own));
            // SplitMix's states of neighbouring ranks lie an odd distance apart, not one step.
            let place = self.seed ^ (rank as u64).wrapping_mul(0xd134_2543_de82_ef95);
            let mut of_rank = SplitMix64::seed_from_u64(place);
            let drawn = u128::from(of_rank.next_u64()) << 64 | u128::from(of_rank.next_u64());
            match self.format {
                Format::Binary => record[..KEY_BYTES].copy_from_slice(&part(drawn)),
                Format::Ascii => record[..KEY_BYTES].copy_from_slice(&printable_key(drawn)),
            }
        }
    }
}

/// The high 80 bits, first byte first.
#[inline]
fn part(number: u128) -> [u8; KEY_BYTES] {
    let [a, b, c, d, e, f, g, h, i, j, ..] = number.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j]
}

fn binary(sequence: &mut Sequence, records: &mut [[u8; RECORD_BYTES]]) {
    // Record n needs the numbers n + 1 to n + 10: nine of them are the next record's as well.
    let mut high = [0_u64; BATCH + PARTS - 1];
    let mut low = [0_u16; BATCH + PARTS - 1];
    let ahead = 0..PARTS - 1;
    for at in ahead.clone() {
        let number = sequence.draw();
        (high[at], low[at]) = ((number >> 64) as u64, (number >> 48) as u16);
    }
    for batch in records.chunks_mut(BATCH) {
        for at in ahead.end..ahead.end + batch.len() {
            let number = sequence.draw();
            (high[at], low[at]) = ((number >> 64) as u64, (number >> 48) as u16);
        }
        for (at, record) in batch.iter_mut().enumerate() {
            let (parts, _) = record.as_chunks_mut::<KEY_BYTES>();
            for (k, (part, mask)) in parts.iter_mut().zip(&MASKS).enumerate() {
                part[..8].copy_from_slice(&(high[at + k] ^ mask.0).to_be_bytes());
                part[8..].copy_from_slice(&(low[at + k] ^ mask.1).to_be_bytes());
            }
        }
        high.copy_within(batch.len()..batch.len() + ahead.end, 0);
        low.copy_within(batch.len()..batch.len() + ahead.end, 0);
    }
}

#[inline]
fn ascii(drawn: u128, number: u64, record: &mut [u8; RECORD_BYTES]) {
    record[..10].copy_from_slice(&printable_key(drawn));
    record[10..12].fill(b' ');
    record[12..28].fill(b'0');
    for (place, digit) in record[28..44].iter_mut().zip(0..) {
        *place = hexadecimal(number >> (60 - 4 * digit));
    }
    record[44..46].fill(b' ');
    let (fours, _) = record[46..98].as_chunks_mut::<4>();
    for (four, digit) in fours.iter_mut().zip(0..) {
        *four = [hexadecimal((drawn as u64) >> (48 - 4 * digit)); 4];
    }
    record[98..].copy_from_slice(b"\r\n");
}

#[inline]
fn hexadecimal(number: u64) -> u8 {
    DIGITS[(number & 15) as usize]
}

#[inline]
fn printable_key(drawn: u128) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let (pairs, _) = key.as_chunks_mut::<2>();
    let mut high = (drawn >> 64) as u64;
    for pair in &mut pairs[..4] {
        *pair = PAIR[(high % PAIRS) as usize];
        high /= PAIRS;
    }
    pairs[4] = PAIR[(drawn as u64 % PAIRS) as usize];
    key
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Summary;
    use super::*;

    fn made(format: Format, seed: u64, skew: f64, first: u64, records: usize) -> Vec<u8> {
        let mut bytes = vec![0; records * RECORD_BYTES];
        Generator::new(format, seed, skew).unwrap().fill(first, &mut bytes).unwrap();
        bytes
    }

    fn checksum(format: Format, first: u64, records: usize) -> String {
        let bytes = made(format, 0, 0.0, first, records);
        Summary::of(&bytes).unwrap().to_result().checksum
    }

    /// What `gensort -c [-a] [-bFIRST] RECORDS` of version 1.5, built on this machine, printed;
    /// a million records are summed up from files, in `tests/records.rs`.
    #[test]
    fn checksums_are_those_of_gensort() {
        let first = 123_456_789_012_345;
        assert_eq!(checksum(Format::Binary, 0, 1), "9ea593a0");
        assert_eq!(checksum(Format::Binary, 0, 1000), "1ea6370b955");
        assert_eq!(checksum(Format::Binary, first, 1000), "1facb1f5e6f");
        assert_eq!(checksum(Format::Ascii, 0, 1), "3fcaea0a");
        assert_eq!(checksum(Format::Ascii, 0, 1000), "1f5dfb3631a");
        assert_eq!(checksum(Format::Ascii, 99_999_999, 1000), "1ee04dd8b93");
    }

    /// 1 GiB, as PennySort and JouleSort count records; made and looked at a chunk at a time.
    #[test]
    #[ignore = "long: make test-long"]
    fn a_gibibyte_of_records_sums_up_to_what_gensort_says() {
        let generator = Generator::new(Format::Ascii, 0, 0.0).unwrap();
        let mut chunk = vec![0; crate::chunks::CHUNK_BYTES];
        let records = 10_737_418_u64;
        let mut summary = Summary::default();
        while summary.records < records {
            let left = (records - summary.records) as usize * RECORD_BYTES;
            let length = chunk.len().min(left);
            generator.fill(summary.records, &mut chunk[..length]).unwrap();
            summary.add(&chunk[..length]).unwrap();
        }
        assert_eq!(summary.to_result().checksum, "51e88faefe7b34");
    }

    /// What `valsort` said of those million records: `First unordered record is record 2`, which
    /// counts from 0, and 499452 unordered ones.
    #[test]
    fn order_is_judged_as_by_valsort() {
        let found = Summary::of(&made(Format::Binary, 0, 0.0, 0, 1_000_000)).unwrap();
        assert_eq!((found.unordered, found.first_unordered), (499_452, Some(2)));
    }

    #[test]
    fn records_look_as_the_benchmark_says() {
        let ascii = made(Format::Ascii, 0, 0.0, 0, 2);
        let second = String::from_utf8(ascii[100..].to_vec()).unwrap();
        let filler = "77779999444488885555CCCC77775555555".to_owned() + "5BBBB666644446666";
        assert_eq!(second, format!("~sHd0jDv6X  {:032X}  {filler}\r\n", 1));
        assert_eq!(&made(Format::Binary, 0, 0.0, 0, 1)[..10], b"JimGrayRIP");
    }

    #[test]
    fn a_range_made_in_pieces_is_the_same() {
        for (format, skew) in [(Format::Binary, 0.0), (Format::Ascii, 0.0), (Format::Binary, 1.0)] {
            let whole = made(format, 7, skew, 5, 300);
            let mut pieces = made(format, 7, skew, 5, 65);
            pieces.extend(made(format, 7, skew, 70, 1));
            pieces.extend(made(format, 7, skew, 71, 234));
            assert!(whole == pieces, "{format:?} {skew}");
        }
    }

    #[test]
    fn a_seed_makes_other_records() {
        for format in [Format::Binary, Format::Ascii] {
            let (none, one) = (made(format, 0, 0.0, 0, 100), made(format, 1, 0.0, 0, 100));
            let same = none.chunks(100).zip(one.chunks(100)).filter(|two| two.0 == two.1).count();
            assert_eq!(same, 0);
        }
    }

    #[test]
    fn keys_are_as_frequent_as_zipf_says() {
        let bytes = made(Format::Ascii, 3, 1.0, 0, 200_000);
        let mut keys: Vec<&[u8]> = bytes.chunks(100).map(|record| &record[..10]).collect();
        assert!(keys.iter().all(|key| key.iter().all(|byte| (b' '..=b'~').contains(byte))));
        keys.sort_unstable();
        let mut counts: Vec<usize> = keys.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let harmonic = 32.0 * std::f64::consts::LN_2 + 0.577_215_664_9;
        for (rank, count) in counts.iter().enumerate().take(5) {
            let expected = 200_000.0 / (rank as f64 + 1.0) / harmonic;
            let off = (*count as f64 - expected).abs() / expected.sqrt();
            assert!(off < 4.5, "rank {rank}: {count}, expected {expected}");
        }
    }

    #[test]
    fn frequent_keys_lie_anywhere() {
        let bytes = made(Format::Binary, 0, 0.5, 0, 10_000);
        let below = bytes.chunks(100).filter(|record| record[0] < 128).count();
        assert!((4700..5300).contains(&below), "{below}");
    }

    #[test]
    fn half_a_record_is_no_place() {
        let generator = Generator::new(Format::Binary, 0, 0.0).unwrap();
        assert!(generator.fill(0, &mut [0; 150]).is_err());
    }
}
