//! CRC-32 (ISO 3309, as zlib's) of whole records, summed.
//!
//! A record is shorter than what general libraries need before they multiply without carries, and
//! always of one length. So every 16 bytes are multiplied at once by what their distance from the
//! end of the record stands for, with no chain between them (after Gopal et al., "Fast CRC
//! Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009).

use super::RECORD_BYTES;

/// Sum of the checksums of `records`.
#[must_use]
pub fn sum(records: &[[u8; RECORD_BYTES]]) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1") {
        // SAFETY: this processor has what `by_multiplication::sum` is compiled for.
        return unsafe { by_multiplication::sum(records) };
    }
    by_tables(records)
}

fn by_tables(records: &[[u8; RECORD_BYTES]]) -> u128 {
    records.iter().map(|record| u128::from(crc32fast::hash(record))).sum()
}

#[cfg(target_arch = "x86_64")]
mod by_multiplication {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_extract_epi32, _mm_loadu_si128,
        _mm_set_epi32, _mm_set_epi64x, _mm_srli_si128, _mm_xor_si128,
    };

    use super::RECORD_BYTES;

    const BLOCK_BYTES: usize = size_of::<__m128i>();

    /// Whole blocks, behind the first four bytes.
    const BLOCKS: usize = RECORD_BYTES / BLOCK_BYTES;

    /// The polynomial but for its highest power, which comes first.
    const POLYNOMIAL: u32 = 0x04c1_1db7;

    /// The polynomial, lowest power first.
    const REFLECTED: i64 = 0x1_db71_0641;

    /// The quotient of `x^64` and the polynomial, lowest power first, for Barrett's reduction.
    const QUOTIENT: i64 = 0x1_f701_1641;

    /// `x^exponent` modulo the polynomial, as a product of reflected numbers needs it.
    pub(super) const fn power(exponent: u32) -> i64 {
        let mut rest = 1_u32;
        let mut done = 0;
        while done < exponent {
            rest = if rest >> 31 == 1 { rest << 1 ^ POLYNOMIAL } else { rest << 1 };
            done += 1;
        }
        (rest.reverse_bits() as i64) << 1
    }

    /// What the two halves of a block stand for, by how many blocks follow it.
    const AHEAD: [(i64, i64); BLOCKS + 1] = {
        let mut ahead = [(0, 0); BLOCKS + 1];
        let mut blocks = 1;
        while blocks < ahead.len() {
            let bits = (blocks * BLOCK_BYTES * 8) as u32;
            ahead[blocks] = (power(bits + 32), power(bits - 32));
            blocks += 1;
        }
        ahead
    };

    /// Sum of the checksums.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(super) fn sum(records: &[[u8; RECORD_BYTES]]) -> u128 {
        let mut whole = 0;
        for record in records {
            whole += u128::from(checksum(record));
        }
        whole
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn checksum(record: &[u8; RECORD_BYTES]) -> u32 {
        let ([a, b, c, d], rest) = (record.first_chunk().unwrap_or(&[0; 4]), &record[4..]);
        let first = !i32::from_le_bytes([*a, *b, *c, *d]);
        let mut sum = _mm_clmulepi64_si128::<0x11>(
            _mm_set_epi32(first, 0, 0, 0),
            _mm_set_epi64x(AHEAD[BLOCKS].1, AHEAD[BLOCKS].0),
        );
        let (blocks, _) = rest.as_chunks::<BLOCK_BYTES>();
        for (block, (low, high)) in blocks.iter().zip(AHEAD.iter().rev().skip(1)) {
            // SAFETY: `block` is 16 readable bytes; the load asks for no alignment.
            let block = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
            sum = _mm_xor_si128(sum, moved(block, *low, *high));
        }
        rest_of(sum)
    }

    /// A block as far ahead as `low` and `high` say; the last one, 0 blocks ahead, as it is.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn moved(block: __m128i, low: i64, high: i64) -> __m128i {
        if (low, high) == (0, 0) {
            return block;
        }
        let by = _mm_set_epi64x(high, low);
        _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(block, by),
            _mm_clmulepi64_si128::<0x11>(block, by),
        )
    }

    /// The rest of 128 bits divided by the polynomial, inverted at last.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    fn rest_of(sum: __m128i) -> u32 {
        const { assert!(AHEAD[1].1 == power(96)) };
        let lowest = _mm_set_epi32(0, 0, 0, -1);
        let by = _mm_set_epi64x(AHEAD[1].1, power(64));
        let sum = _mm_xor_si128(_mm_clmulepi64_si128::<0x10>(sum, by), _mm_srli_si128::<8>(sum));
        let sum = _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(_mm_and_si128(sum, lowest), by),
            _mm_srli_si128::<4>(sum),
        );
        let barrett = _mm_set_epi64x(QUOTIENT, REFLECTED);
        let quotient = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(sum, lowest), barrett);
        let taken = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(quotient, lowest), barrett);
        !(_mm_extract_epi32::<1>(_mm_xor_si128(sum, taken)).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_checksum_is_that_of_zlib() {
        // zlib.crc32(bytes(range(100)))
        let record = std::array::from_fn(|at| at as u8);
        assert_eq!(by_tables(&[record]), 0x58c9_32f5);
        assert_eq!(sum(&[record]), 0x58c9_32f5);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn powers_are_those_of_the_literature() {
        assert_eq!(by_multiplication::power(128 + 32), 0x1_7519_97d0);
        assert_eq!(by_multiplication::power(128 - 32), 0x0_ccaa_009e);
        assert_eq!(by_multiplication::power(64), 0x1_63cd_6124);
    }

    proptest! {
        #[test]
        fn both_ways_agree(bytes in prop::collection::vec(any::<u8>(), 300..=300)) {
            let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
            prop_assert_eq!(sum(records), by_tables(records));
        }
    }
}
