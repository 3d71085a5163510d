//! Bins whose width grows with what is in them.

/// Bins that are exact below a power of two, and beyond split every octave into as many.
#[derive(Clone, Copy, Debug)]
pub struct Bins {
    bits: u32,
}

impl Bins {
    /// `2^bits` bins in every octave.
    pub const fn per_octave(bits: u32) -> Self {
        Self { bits }
    }

    /// The bin of a number.
    #[inline]
    pub fn of(self, value: u64) -> usize {
        if value < 1 << self.bits {
            return value as usize;
        }
        let octave = value.ilog2() - self.bits;
        (u64::from(octave + 1) << self.bits) as usize + (value >> octave) as usize
            - (1 << self.bits)
    }

    /// The least number in a bin.
    pub fn least(self, bin: usize) -> u64 {
        let bin = bin as u64;
        if bin < 1 << self.bits {
            return bin;
        }
        let octave = (bin >> self.bits) - 1;
        ((1 << self.bits) + (bin & ((1 << self.bits) - 1))) << octave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_the_bin_that_begins_at_or_below_it() {
        for bins in [Bins::per_octave(0), Bins::per_octave(2), Bins::per_octave(5)] {
            for value in (0..5000).chain([1 << 20, (1 << 40) - 1, 1 << 40]) {
                let bin = bins.of(value);
                assert!(
                    bins.least(bin) <= value && value < bins.least(bin + 1),
                    "{value} {bins:?}"
                );
            }
        }
    }
}
