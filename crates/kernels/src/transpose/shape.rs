//! A matrix of blocks and where each of its blocks goes.

#![forbid(unsafe_code)]

use leadline_base::error::EngineError;

use super::BLOCK_BYTES;

/// A matrix of blocks, as the input has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shape {
    /// Rows of the input.
    pub rows: u64,
    /// Columns of the input.
    pub columns: u64,
}

impl Shape {
    /// Says that an input of `bytes` has this shape.
    ///
    /// # Errors
    /// `BadJob`: how many blocks there are and how many there should be.
    pub fn must_be_of(self, bytes: u64) -> Result<(), EngineError> {
        let block = BLOCK_BYTES as u64;
        let Self { rows, columns } = self;
        if bytes == 0 {
            return Err(EngineError::bad_job(format!(
                "the input is empty: there is nothing to transpose; give one of {rows} x {columns} \
                 blocks of {block} bytes"
            )));
        }
        if !bytes.is_multiple_of(block) {
            return Err(EngineError::bad_job(format!(
                "{bytes} bytes are no whole blocks of {block} bytes ({} are left over), so they \
                 cannot be transposed; pad the input to whole blocks or give another",
                bytes % block
            )));
        }
        if bytes / block != self.blocks() {
            return Err(EngineError::bad_job(format!(
                "{rows} rows x {columns} columns are {} blocks of {block} bytes, but the input has \
                 {}; give rows and columns whose product is {}",
                self.blocks(),
                bytes / block,
                bytes / block
            )));
        }
        Ok(())
    }

    /// Blocks in all.
    #[must_use]
    pub fn blocks(self) -> u64 {
        self.rows * self.columns
    }

    /// Where the input's block `position` is in the output.
    #[must_use]
    pub fn transposed(self, position: u64) -> u64 {
        (position % self.columns) * self.rows + position / self.columns
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_paper_s_example_of_eight_by_eight() {
        let shape = Shape { rows: 8, columns: 8 };
        assert_eq!([0, 1, 2, 8, 9].map(|p| shape.transposed(p)), [0, 8, 16, 1, 9]);
    }

    #[test]
    fn an_input_of_another_length_is_refused_with_what_would_fit() {
        let shape = Shape { rows: 3, columns: 5 };
        shape.must_be_of(15 * 4096).unwrap();
        let said = shape.must_be_of(16 * 4096).unwrap_err().message;
        assert!(said.contains("15 blocks") && said.contains("product is 16"), "{said}");
        let said = shape.must_be_of(15 * 4096 + 7).unwrap_err().message;
        assert!(said.contains("7 are left over"), "{said}");
        assert!(shape.must_be_of(0).is_err());
    }

    proptest! {
        #[test]
        fn transposing_twice_is_nothing(rows in 1_u64..90, columns in 1_u64..90,
                                        at in 0_u64..8100) {
            let (shape, back) = (Shape { rows, columns }, Shape { rows: columns, columns: rows });
            let position = at % shape.blocks();
            prop_assert_eq!(back.transposed(shape.transposed(position)), position);
            let (row, column) = (position / columns, position % columns);
            prop_assert_eq!(shape.transposed(position), column * rows + row);
        }
    }
}
