//! A tournament over sorted runs: the least of their next records, at one comparison a level.
//!
//! A node is an entry whose position is the number of its run: the key in the upper bits, so a
//! comparison is of whole keys, ties go to the earlier run, and the winner says where it comes
//! from.

use super::entries::{Entry, position_of};

/// What a run offers that has nothing left: above every record's entry.
pub const NOTHING: Entry = Entry::MAX;

/// The losers of every game, and the winner of the last.
#[derive(Debug)]
pub struct LoserTree {
    /// `nodes[0]` is the winner; the game `nodes[i]` is between those of `2i` and `2i + 1`, where
    /// run `r` comes in at `r + runs`.
    nodes: Vec<Entry>,
}

impl LoserTree {
    /// A tournament of the runs' first entries; run `r` offers `firsts[r]`.
    #[must_use]
    pub fn new(firsts: &[Entry]) -> Self {
        let runs = firsts.len();
        let mut winners = vec![NOTHING; runs.max(1)];
        winners.extend_from_slice(firsts);
        let mut nodes = vec![NOTHING; runs.max(1)];
        for game in (1..runs).rev() {
            let (one, other) = (winners[2 * game], winners[2 * game + 1]);
            winners[game] = one.min(other);
            nodes[game] = one.max(other);
        }
        nodes[0] = winners.get(1).copied().unwrap_or(NOTHING);
        Self { nodes }
    }

    /// The least entry, [`NOTHING`] when all runs are at their ends.
    #[inline]
    #[must_use]
    pub fn winner(&self) -> Entry {
        self.nodes[0]
    }

    /// The run of the least entry.
    #[inline]
    #[must_use]
    pub fn run(&self) -> usize {
        position_of(self.nodes[0])
    }

    /// Replaces the winner by the next entry of its run.
    #[inline]
    pub fn replace(&mut self, run: usize, next: Entry) {
        let nodes = self.nodes.as_mut_slice();
        let mut game = (run + nodes.len()) / 2;
        let mut winner = next;
        while game > 0 {
            let other = nodes[game];
            let loses = other < winner;
            nodes[game] = if loses { winner } else { other };
            winner = if loses { other } else { winner };
            game /= 2;
        }
        nodes[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::entries::at_position;
    use crate::sort::keys_for_tests as keys;

    #[test]
    fn any_number_of_runs_comes_out_in_order_ties_by_run() {
        for (kind, mut entries) in keys::all(2000) {
            entries.sort_unstable_by_key(|entry| position_of(*entry));
            for runs in [1, 2, 3, 5, 8, 13] {
                let mut sorted: Vec<Vec<Entry>> = (0..runs)
                    .map(|run| {
                        let part = entries.iter().skip(run).step_by(runs);
                        let mut part: Vec<Entry> =
                            part.map(|entry| at_position(*entry, run as u64)).collect();
                        part.sort_unstable_by(|one, other| other.cmp(one));
                        part
                    })
                    .collect();
                let mut next = |run: usize| sorted[run].pop().unwrap_or(NOTHING);
                let firsts: Vec<Entry> = (0..runs).map(&mut next).collect();
                let mut tree = LoserTree::new(&firsts);
                let mut merged = Vec::new();
                while tree.winner() != NOTHING {
                    merged.push(tree.winner());
                    let run = tree.run();
                    tree.replace(run, next(run));
                }
                assert_eq!(merged.len(), 2000);
                assert!(merged.is_sorted(), "{kind}, {runs} runs");
            }
        }
        assert_eq!(LoserTree::new(&[]).winner(), NOTHING);
    }
}
