//! The slices of time that a run is cut into.

#![forbid(unsafe_code)]

use leadline_wire::event::measure::Slice;

/// Joins neighbouring slices until no more than `most` remain; sums are kept.
#[must_use]
pub fn coalesce(slices: &[Slice], most: usize) -> Vec<Slice> {
    let group = slices.len().div_ceil(most.max(1)).max(1);
    slices.chunks(group).filter_map(joined).collect()
}

/// One slice that covers all of `slices`; none when there are none.
#[must_use]
pub fn joined(slices: &[Slice]) -> Option<Slice> {
    let first = slices.first()?;
    Some(Slice {
        start_s: first.start_s,
        seconds: slices.iter().map(|slice| slice.seconds).sum(),
        operations: slices.iter().map(|slice| slice.operations).sum(),
        bytes: slices.iter().map(|slice| slice.bytes).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalescing_keeps_the_sums_and_the_limit() {
        let slices: Vec<Slice> = (0..1001)
            .map(|index| Slice { start_s: f64::from(index), seconds: 1.0, operations: 2, bytes: 3 })
            .collect();
        let few = coalesce(&slices, 300);
        assert!(few.len() <= 300, "{}", few.len());
        assert_eq!(joined(&few), joined(&slices));
        assert_eq!(coalesce(&[], 300), vec![]);
    }

    #[test]
    fn neighbours_are_joined_in_equal_groups_from_the_first_on() {
        let slices: Vec<Slice> = (0..7)
            .map(|index| Slice {
                start_s: f64::from(index),
                seconds: 1.0,
                operations: 1 << index,
                bytes: 0,
            })
            .collect();
        let starts =
            |most| coalesce(&slices, most).iter().map(|slice| slice.start_s).collect::<Vec<_>>();
        assert_eq!(starts(3), [0.0, 3.0, 6.0]);
        assert_eq!(starts(7).len(), 7);
        assert_eq!(starts(0), [0.0], "at least one is left");
        assert_eq!(coalesce(&slices, 3)[1].operations, 8 + 16 + 32);
    }
}
