//! A tournament over sorted runs: the least of their next records, at one comparison a level.
//!
//! A node is the first eight bytes of a key and the number of its run; only where those eight are
//! equal are the records looked at. Then the whole key decides, and the earlier run among equals.
//! All runs lie at the same depth, so that no branch depends on which of them won.

#![forbid(unsafe_code)]

use super::entries::{KEY_BYTES, RECORD_BYTES};

/// Bytes of a key in a node.
const PREFIX_BYTES: usize = 8;
/// The run of a node that offers nothing any more: behind every record.
const NOTHING: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    prefix: u64,
    run: u64,
}

/// The losers of every game, and the winner of the last.
#[derive(Debug)]
pub struct LoserTree {
    /// `nodes[0]` is the winner; the game `nodes[i]` is between those of `2i` and `2i + 1`, where
    /// run `r` comes in at `nodes.len() + r`.
    nodes: Vec<Node>,
    depth: u32,
}

impl Node {
    const NONE: Self = Self { prefix: u64::MAX, run: NOTHING };

    #[inline]
    fn of(run: usize, records: &[u8]) -> Self {
        match records.first_chunk() {
            Some(front) => Self { prefix: u64::from_be_bytes(*front), run: run as u64 },
            None => Self::NONE,
        }
    }

    fn is_before(self, other: Self, fronts: &[&[u8]]) -> bool {
        if self.prefix == other.prefix {
            return self.wins_tie(other, fronts);
        }
        self.prefix < other.prefix
    }

    #[cold]
    fn wins_tie(self, other: Self, fronts: &[&[u8]]) -> bool {
        if self.run == NOTHING || other.run == NOTHING {
            return self.run < other.run;
        }
        let place = |node: Self| {
            let rest =
                fronts.get(node.run as usize).and_then(|run| run.get(PREFIX_BYTES..KEY_BYTES));
            (rest, node.run)
        };
        place(self) < place(other)
    }
}

impl LoserTree {
    /// A tournament of runs; a run's records that are left begin with the one it offers, and are
    /// empty at its end.
    #[must_use]
    pub fn new(fronts: &[&[u8]]) -> Self {
        let places = fronts.len().next_power_of_two();
        let mut winners = vec![Node::NONE; 2 * places];
        for (run, records) in fronts.iter().enumerate() {
            winners[places + run] = Node::of(run, records);
        }
        let mut nodes = vec![Node::NONE; places];
        for game in (1..places).rev() {
            let (one, other) = (winners[2 * game], winners[2 * game + 1]);
            let first = one.is_before(other, fronts);
            winners[game] = if first { one } else { other };
            nodes[game] = if first { other } else { one };
        }
        nodes[0] = winners[1];
        Self { nodes, depth: places.trailing_zeros() }
    }

    /// The run with the least record; none when all are at their ends.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub fn winner(&self) -> Option<usize> {
        let run = self.nodes[0].run;
        (run != NOTHING).then_some(run as usize)
    }

    /// Lets the winning run offer its next record, the first of `fronts[run]`.
    #[inline]
    pub fn replace(&mut self, run: usize, fronts: &[&[u8]]) {
        let nodes = self.nodes.as_mut_slice();
        let mut game = (run + nodes.len()) / 2;
        let mut winner = Node::of(run, fronts[run]);
        for _ in 0..self.depth {
            let other = nodes[game];
            let mut loses = other.prefix < winner.prefix;
            if other.prefix == winner.prefix {
                loses = other.wins_tie(winner, fronts);
            }
            nodes[game] = if loses { winner } else { other };
            if loses {
                winner = other;
            }
            game /= 2;
        }
        nodes[0] = winner;
    }
}

/// Merges until `out`, room for whole records, is full or a run's records in memory are at their
/// end: bytes written, and that run, which has to offer its next record before the tree is asked
/// again.
pub fn merge_into(
    tree: &mut LoserTree,
    fronts: &mut [&[u8]],
    out: &mut [u8],
) -> (usize, Option<usize>) {
    let room = out.len();
    for (number, place) in out.chunks_exact_mut(RECORD_BYTES).enumerate() {
        let Some(run) = tree.winner() else { return (number * RECORD_BYTES, None) };
        let (record, rest) = fronts[run].split_at(RECORD_BYTES);
        super::gather::fetch(rest, 4 * RECORD_BYTES);
        place.copy_from_slice(record);
        fronts[run] = rest;
        if rest.is_empty() {
            return ((number + 1) * RECORD_BYTES, Some(run));
        }
        tree.replace(run, fronts);
    }
    (room, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::keys_for_tests as keys;

    #[test]
    fn any_number_of_runs_comes_out_in_order_ties_by_run() {
        for kind in keys::KINDS.into_iter().chain(["greatest"]) {
            let mut records = keys::records(kind, 2000);
            if kind == "greatest" {
                // As great as a node that offers nothing.
                records.chunks_exact_mut(RECORD_BYTES).for_each(|record| record[..10].fill(255));
            }
            let wanted = keys::sorted(&records);
            for runs in [1, 2, 3, 5, 8, 13] {
                // Consecutive runs, so that the earlier of equal records is in the earlier run.
                let parts = records.chunks(2000_usize.div_ceil(runs) * RECORD_BYTES);
                let sorted: Vec<Vec<u8>> = parts.map(keys::sorted).collect();
                let mut fronts: Vec<&[u8]> = sorted.iter().map(Vec::as_slice).collect();
                let mut tree = LoserTree::new(&fronts);
                let mut merged = vec![0; records.len()];
                let mut filled = 0;
                while tree.winner().is_some() {
                    let end = merged.len().min(filled + 777 * RECORD_BYTES);
                    let (copied, ended) =
                        merge_into(&mut tree, &mut fronts, &mut merged[filled..end]);
                    filled += copied;
                    if let Some(run) = ended {
                        tree.replace(run, &fronts);
                    }
                }
                assert_eq!(filled, records.len());
                assert!(merged == wanted, "{kind}, {runs} runs");
            }
        }
        assert_eq!(LoserTree::new(&[]).winner(), None);
    }
}
