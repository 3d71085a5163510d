//! Which rank reads and owns which blocks of a matrix, and which blocks are outstanding together.
//!
//! A rank reads consecutive rows and owns consecutive columns, which are consecutive blocks of the
//! output. What a rank owns is received tile by tile: some of its columns, and of those some of
//! every rank's rows. All ranks send the tiles in the same order.

use std::ops::Range;

use crate::transpose::shape::Shape;

/// Shorter segments than this cost disks more than they bring: 64 KiB.
const SEGMENT_BLOCKS: u64 = 16;

/// A matrix divided among ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    shape: Shape,
    ranks: u64,
    /// Tiles beside one another, each with some of every owner's columns.
    across: u64,
    /// Tiles below one another, each with some of every reader's rows.
    down: u64,
}

/// Blocks next to each other in the input that go to one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deal {
    /// The tile that they belong to.
    pub tile: u64,
    /// Their owner.
    pub to: usize,
    /// Number of the first.
    pub first: u64,
    /// How many.
    pub blocks: u64,
}

impl Grid {
    /// One tile when it has at most `blocks_max` blocks; otherwise tiles of at most half as many,
    /// so that one is received while another is written.
    #[must_use]
    pub fn new(shape: Shape, ranks: usize, blocks_max: u64) -> Self {
        let whole = Self { shape, ranks: ranks as u64, across: 1, down: 1 };
        if whole.tile_blocks_max() <= blocks_max {
            return whole;
        }
        let most = (blocks_max / 2).max(1);
        let (widest, highest) = whole.sides();
        let mut columns = (most / shape.rows).min(widest);
        let mut rows = highest;
        if columns < SEGMENT_BLOCKS.min(widest) {
            // Whole columns would be read in short segments: squares, as far as they fit.
            let side = (most / whole.ranks).isqrt().max(1);
            rows = side.min(highest);
            columns = (most / whole.ranks / rows).clamp(1, widest);
        }
        Self { across: widest.div_ceil(columns), down: highest.div_ceil(rows), ..whole }
    }

    /// How many tiles.
    #[must_use]
    pub fn tiles(&self) -> u64 {
        self.across * self.down
    }

    /// Whether a tile has all rows, and so is written in one piece.
    #[must_use]
    pub fn has_whole_columns(&self) -> bool {
        self.down == 1
    }

    /// Blocks of a whole column.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.shape.rows
    }

    /// Blocks of the largest tile of any owner.
    #[must_use]
    pub fn tile_blocks_max(&self) -> u64 {
        let (widest, highest) = self.sides();
        let rows = (self.ranks * highest.div_ceil(self.down)).min(self.shape.rows);
        rows * widest.div_ceil(self.across)
    }

    /// Longest segment that a rank reads, in blocks.
    #[must_use]
    pub fn segment_blocks_max(&self) -> u64 {
        let (widest, highest) = self.sides();
        if self.across == 1 { highest * self.shape.columns } else { widest.div_ceil(self.across) }
    }

    /// Columns that a rank owns.
    #[must_use]
    pub fn columns_of(&self, rank: usize) -> Range<u64> {
        part(0..self.shape.columns, self.ranks, rank as u64)
    }

    /// Columns of an owner in a tile.
    #[must_use]
    pub fn columns_in(&self, rank: usize, tile: u64) -> Range<u64> {
        part(self.columns_of(rank), self.across, tile / self.down)
    }

    /// Rows of a reader in a tile.
    #[must_use]
    pub fn rows_in(&self, rank: usize, tile: u64) -> Range<u64> {
        let rows = part(0..self.shape.rows, self.ranks, rank as u64);
        part(rows, self.down, tile % self.down)
    }

    /// What a rank sends, in order; where a tile has all columns, its blocks are read in order.
    pub fn deals(self, reader: usize) -> impl Iterator<Item = Deal> + Send {
        (0..self.tiles()).flat_map(move |tile| {
            self.rows_in(reader, tile).flat_map(move |row| {
                (0..self.ranks as usize).filter_map(move |to| {
                    let columns = self.columns_in(to, tile);
                    let first = row * self.shape.columns + columns.start;
                    let blocks = columns.end - columns.start;
                    (blocks > 0).then_some(Deal { tile, to, first, blocks })
                })
            })
        })
    }

    /// Blocks that a rank reads next to one another, as first and number, in the order of
    /// [`Self::deals`].
    pub fn reads(self, reader: usize) -> Box<dyn Iterator<Item = (u64, u64)> + Send> {
        if self.across > 1 {
            return Box::new(self.deals(reader).map(|deal| (deal.first, deal.blocks)));
        }
        Box::new((0..self.tiles()).map(move |tile| {
            let rows = self.rows_in(reader, tile);
            (rows.start * self.shape.columns, (rows.end - rows.start) * self.shape.columns)
        }))
    }

    /// Most columns of an owner, and most rows of a reader.
    fn sides(&self) -> (u64, u64) {
        (self.shape.columns.div_ceil(self.ranks), self.shape.rows.div_ceil(self.ranks))
    }
}

/// Part `number` of `parts` that are as even as can be.
fn part(range: Range<u64>, parts: u64, number: u64) -> Range<u64> {
    let whole = range.end - range.start;
    let begin = |number: u64| range.start + number * (whole / parts) + number.min(whole % parts);
    begin(number)..begin(number + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_block_is_read_once_and_goes_to_the_owner_of_its_column(
            rows in 1_u64..40, columns in 1_u64..40, ranks in 1_usize..6, blocks_max in 1_u64..600,
        ) {
            let shape = Shape { rows, columns };
            let grid = Grid::new(shape, ranks, blocks_max);
            let mut seen = vec![0; shape.blocks() as usize];
            for reader in 0..ranks {
                let dealt: Vec<_> = grid.deals(reader).collect();
                prop_assert!(dealt.is_sorted_by_key(|deal| deal.tile));
                for deal in &dealt {
                    for block in deal.first..deal.first + deal.blocks {
                        seen[block as usize] += 1;
                        let owned = grid.columns_in(deal.to, deal.tile);
                        prop_assert!(owned.contains(&(block % columns)));
                        prop_assert!(grid.rows_in(reader, deal.tile).contains(&(block / columns)));
                    }
                }
                let blocks = |first: u64, blocks: u64| first..first + blocks;
                let read: Vec<_> = grid.reads(reader).flat_map(|(f, n)| blocks(f, n)).collect();
                let sent: Vec<_> =
                    dealt.iter().flat_map(|deal| blocks(deal.first, deal.blocks)).collect();
                prop_assert_eq!(read, sent);
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
        }

        #[test]
        fn a_tile_of_any_owner_fits(
            rows in 1_u64..40, columns in 1_u64..40, ranks in 1_usize..6, blocks_max in 12_u64..600,
        ) {
            let grid = Grid::new(Shape { rows, columns }, ranks, blocks_max);
            let most = if grid.tiles() == 1 { blocks_max } else { blocks_max / 2 };
            for tile in 0..grid.tiles() {
                let rows = (0..ranks).map(|rank| grid.rows_in(rank, tile));
                let high: u64 = rows.map(|rows| rows.end - rows.start).sum();
                for rank in 0..ranks {
                    let columns = grid.columns_in(rank, tile);
                    let blocks = high * (columns.end - columns.start);
                    prop_assert!(blocks <= grid.tile_blocks_max(), "{:?}", grid);
                    prop_assert!(blocks <= most.max(ranks as u64), "{:?}", grid);
                }
            }
        }
    }

    #[test]
    fn long_segments_come_first() {
        let shape = Shape { rows: 1000, columns: 1000 };
        let whole_columns = Grid::new(shape, 4, 100_000);
        assert!(whole_columns.has_whole_columns() && whole_columns.segment_blocks_max() >= 16);
        let squares = Grid::new(shape, 4, 8000);
        assert!(!squares.has_whole_columns() && squares.segment_blocks_max() >= 16, "{squares:?}");
    }
}
