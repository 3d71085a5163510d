//! Which blocks are in memory together.
//!
//! A tile of r rows and c columns is read in segments of c blocks and written in segments of r, or
//! in one segment where it spans all columns or all rows. Disks like long segments, so r and c are
//! chosen such that the shorter of the two is as long as the memory allows.

#![forbid(unsafe_code)]

use super::shape::Shape;

/// A part of the matrix that is in memory at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tile {
    /// First row of the input.
    pub row: u64,
    /// How many.
    pub rows: u64,
    /// First column of the input.
    pub column: u64,
    /// How many.
    pub columns: u64,
}

/// Consecutive blocks of input or output.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    /// Number of the first.
    pub first: u64,
    /// How many.
    pub blocks: u64,
}

/// How a matrix is cut into tiles: evenly, so that no tile at the edge is a sliver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plan {
    /// What is cut.
    pub shape: Shape,
    /// How many tiles lie below one another.
    down: u64,
    /// How many lie beside one another.
    across: u64,
}

impl Plan {
    /// The best plan with at most `blocks_max` blocks in a tile; at least one.
    ///
    /// Every way to cut the shorter side is tried, with the fewest cuts of the other that fit: fewer
    /// make segments longer. The shorter side has a million blocks at most (the wire's limit).
    #[must_use]
    pub fn new(shape: Shape, blocks_max: u64) -> Self {
        let Shape { rows, columns } = shape;
        let short = rows.min(columns);
        let long = rows.max(columns);
        let plans = (1..=short).filter_map(|cuts| {
            let others = fewest_cuts(long, short.div_ceil(cuts), blocks_max.max(1))?;
            let (down, across) = if rows <= columns { (cuts, others) } else { (others, cuts) };
            Some(Self { shape, down, across })
        });
        plans.max_by_key(|plan| plan.merit()).unwrap_or(Self { shape, down: rows, across: columns })
    }

    /// The shorter of the two segments of the smallest tile; then, the fewer tiles the better.
    fn merit(self) -> (u64, std::cmp::Reverse<u64>) {
        let Shape { rows, columns } = self.shape;
        let (rows, columns) = (rows / self.down, columns / self.across);
        let read = if self.across == 1 { rows * columns } else { columns };
        let write = if self.down == 1 { rows * columns } else { rows };
        (read.min(write), std::cmp::Reverse(self.down * self.across))
    }

    /// How many tiles.
    #[must_use]
    pub fn count(self) -> u64 {
        self.down * self.across
    }

    /// Blocks of the largest tile.
    #[must_use]
    pub fn blocks_max(self) -> u64 {
        self.shape.rows.div_ceil(self.down) * self.shape.columns.div_ceil(self.across)
    }

    /// Blocks of the longest read.
    #[must_use]
    pub fn longest_read(self) -> u64 {
        let columns = self.shape.columns.div_ceil(self.across);
        if self.across == 1 { self.shape.rows.div_ceil(self.down) * columns } else { columns }
    }

    /// Tile number `index`, in row-major order.
    #[must_use]
    pub fn tile(self, index: u64) -> Tile {
        let (row, row_end) = part(self.shape.rows, self.down, index / self.across);
        let (column, column_end) = part(self.shape.columns, self.across, index % self.across);
        Tile { row, rows: row_end - row, column, columns: column_end - column }
    }

    /// Consecutive blocks of the input that make up `tile`.
    pub fn reads(self, tile: Tile) -> impl Iterator<Item = Segment> + Send {
        let whole = tile.columns == self.shape.columns;
        let (count, blocks) =
            if whole { (1, tile.rows * tile.columns) } else { (tile.rows, tile.columns) };
        (0..count).map(move |index| Segment {
            first: (tile.row + index) * self.shape.columns + tile.column,
            blocks,
        })
    }

    /// Consecutive blocks of the output that `tile` becomes, in the order of its slots.
    pub fn writes(self, tile: Tile) -> impl Iterator<Item = Segment> + Send {
        let whole = tile.rows == self.shape.rows;
        let (count, blocks) =
            if whole { (1, tile.rows * tile.columns) } else { (tile.columns, tile.rows) };
        (0..count).map(move |index| Segment {
            first: (tile.column + index) * self.shape.rows + tile.row,
            blocks,
        })
    }

    /// Which slot of `tile`'s memory the input's block `position` belongs to: memory is in the
    /// output's order.
    #[must_use]
    pub fn slot(self, tile: Tile, position: u64) -> u64 {
        let (row, column) = (position / self.shape.columns, position % self.shape.columns);
        (column - tile.column) * tile.rows + (row - tile.row)
    }
}

/// Fewest parts of `side` such that one of them, `beside` blocks high, has at most `most` blocks;
/// none when a single block is too much.
fn fewest_cuts(side: u64, beside: u64, most: u64) -> Option<u64> {
    let long = (most / beside).min(side);
    (long > 0).then(|| side.div_ceil(long))
}

/// Begin and end of part `index` when `whole` is divided into `parts` as evenly as can be.
fn part(whole: u64, parts: u64, index: u64) -> (u64, u64) {
    let (even, longer) = (whole / parts, whole % parts);
    let begin = |index: u64| index * even + index.min(longer);
    (begin(index), begin(index + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(rows: u64, columns: u64, blocks_max: u64) -> Plan {
        Plan::new(Shape { rows, columns }, blocks_max)
    }

    /// Moves numbers instead of blocks, by the plan alone.
    fn transpose_by(plan: Plan) -> Vec<Option<u64>> {
        let mut output = vec![None; usize::try_from(plan.shape.blocks()).unwrap_or(0)];
        for index in 0..plan.count() {
            let tile = plan.tile(index);
            let mut memory = vec![None; (tile.rows * tile.columns) as usize];
            for read in plan.reads(tile) {
                for position in read.first..read.first + read.blocks {
                    let slot = plan.slot(tile, position) as usize;
                    assert_eq!(memory[slot].replace(position), None, "a slot is taken twice");
                }
            }
            let mut next = memory.into_iter();
            for write in plan.writes(tile) {
                for to in write.first..write.first + write.blocks {
                    assert_eq!(output[to as usize], None, "a block is written twice");
                    output[to as usize] = next.next().flatten();
                }
            }
            assert_eq!(next.next(), None, "a block is not written");
        }
        output
    }

    /// The best of all ways to cut evenly, by trying each.
    fn best_by_trying(shape: Shape, blocks_max: u64) -> u64 {
        let all = (1..=shape.rows)
            .flat_map(|down| (1..=shape.columns).map(move |across| Plan { shape, down, across }));
        let fits = all.filter(|plan| plan.blocks_max() <= blocks_max);
        fits.map(|plan| plan.merit().0).max().unwrap_or(0)
    }

    #[test]
    fn what_fits_is_one_tile_read_and_written_in_one_go() {
        let plan = plan(7, 13, 91);
        assert_eq!(plan.count(), 1);
        let whole = Segment { first: 0, blocks: 91 };
        assert_eq!(plan.reads(plan.tile(0)).collect::<Vec<_>>(), [whole]);
        assert_eq!(plan.writes(plan.tile(0)).collect::<Vec<_>>(), [whole]);
    }

    #[test]
    fn rows_and_columns_alone_are_cut_into_the_longest_segments() {
        for (rows, columns) in [(1, 1000), (1000, 1)] {
            let plan = plan(rows, columns, 100);
            assert_eq!((plan.count(), plan.merit().0), (10, 100));
        }
    }

    #[test]
    fn a_wide_matrix_of_few_rows_takes_all_of_them() {
        // 4 rows, a million columns, 4096 blocks: 1024 columns each; a square would read 64.
        let plan = plan(4, 1_000_000, 4096);
        assert_eq!(plan.down, 1);
        assert!(plan.merit().0 >= 1000, "{:?}", plan.merit());
    }

    #[test]
    fn edges_are_no_slivers() {
        // Squares of 100 would leave a column of 1.
        let plan = plan(101, 1001, 10_000);
        let tiles: Vec<Tile> = (0..plan.count()).map(|index| plan.tile(index)).collect();
        let narrowest = tiles.iter().map(|tile| tile.columns.min(tile.rows)).min();
        assert!(narrowest >= Some(50), "{tiles:?}");
    }

    #[test]
    fn the_largest_matrix_of_the_wire_is_planned_at_once() {
        let plan = plan(1 << 20, (1 << 20) - 1, 1 << 15);
        assert!(plan.blocks_max() <= 1 << 15 && plan.merit().0 >= 180, "{plan:?}");
    }

    proptest! {
        #[test]
        fn every_block_goes_where_it_belongs(rows in 1_u64..60, columns in 1_u64..60,
                                             blocks_max in 0_u64..900) {
            let plan = plan(rows, columns, blocks_max);
            prop_assert!(plan.blocks_max() <= blocks_max.max(1));
            let output = transpose_by(plan);
            for position in 0..plan.shape.blocks() {
                let to = plan.shape.transposed(position) as usize;
                prop_assert_eq!(output[to], Some(position));
            }
        }

        #[test]
        fn the_shorter_segment_is_as_long_as_any_plan_s(rows in 1_u64..80, columns in 1_u64..80,
                                                        blocks_max in 1_u64..900) {
            let shape = Shape { rows, columns };
            let (ours, best) = (plan(rows, columns, blocks_max).merit().0,
                                best_by_trying(shape, blocks_max));
            prop_assert_eq!(ours, best);
        }
    }
}
