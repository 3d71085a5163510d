//! Stack distances: how many other pages were used since a page was used last (Mattson 1970).
//!
//! A Fenwick tree has a mark where each page was used last; the marks after a page's own are the
//! distance. Exact, and a logarithm of the references for each.

use crate::hash::ByNumber;

/// Tells of each reference how many other pages came since the last to its own.
///
/// # Arguments
///
/// * `pages`: of each reference, in order.
/// * `tell`: gets a reference's place, and None where the page was never used before.
pub fn distances(
    pages: impl ExactSizeIterator<Item = u64>,
    mut tell: impl FnMut(usize, Option<u64>),
) {
    let mut marks = Marks(vec![0; pages.len() + 1]);
    let mut last: ByNumber<u64, u32> = ByNumber::default();
    for (place, page) in pages.enumerate() {
        let before = last.insert(page, place as u32);
        let distance = before.map(|before| {
            let distance = last.len() as u64 - marks.up_to(before as usize);
            marks.add(before as usize, -1);
            distance
        });
        marks.add(place, 1);
        tell(place, distance);
    }
}

/// Sums of what was added up to a place.
struct Marks(Vec<u32>);

impl Marks {
    fn add(&mut self, place: usize, what: i32) {
        let mut node = place + 1;
        while node < self.0.len() {
            self.0[node] = self.0[node].wrapping_add_signed(what);
            node += node & node.wrapping_neg();
        }
    }

    fn up_to(&self, place: usize) -> u64 {
        let (mut node, mut sum) = (place + 1, 0);
        while node > 0 {
            sum += u64::from(self.0[node]);
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn found(pages: &[u64]) -> Vec<Option<u64>> {
        let mut told = Vec::new();
        distances(pages.iter().copied(), |_, distance| told.push(distance));
        told
    }

    /// The definition, reference by reference.
    fn naive(pages: &[u64]) -> Vec<Option<u64>> {
        let distance = |place: usize| {
            let before = pages[..place].iter().rposition(|page| *page == pages[place])?;
            let between: HashSet<u64> = pages[before + 1..place].iter().copied().collect();
            Some(between.len() as u64)
        };
        (0..pages.len()).map(distance).collect()
    }

    #[test]
    fn a_loop_has_the_distance_of_its_other_pages() {
        assert_eq!(
            found(&[1, 2, 3, 1, 2, 3, 3]),
            [None, None, None, Some(2), Some(2), Some(2), Some(0)]
        );
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_definition(
            pages in proptest::collection::vec(0_u64..40, 0..300)
        ) {
            prop_assert_eq!(found(&pages), naive(&pages));
        }
    }
}
