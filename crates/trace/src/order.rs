//! Records put in the order of their times, as far as they are nearly so already.
//!
//! A trace is written when requests end, or by several processors, so that neighbours change
//! places. What is further out of order has another reason, and is refused.

use std::collections::VecDeque;

use crate::record::{Record, Refused, Sink};

/// Records that wait for earlier ones.
const WAITING: usize = 4096;
/// Records that may come later than all that wait, before it is looked at how many.
const LATE_MAX: u64 = 1000;
/// Of how many records one may.
const LATE_SHARE: u64 = 1000;

/// Puts records in order before they are taken.
pub struct InOrder<S> {
    /// Who takes them.
    pub sink: S,
    waiting: VecDeque<Record>,
    last_ns: u64,
    records: u64,
    /// Records that came too late for their place, and the first of them.
    pub late: (u64, u64),
}

impl<S: Sink> InOrder<S> {
    /// Nothing waits.
    pub fn before(sink: S) -> Self {
        let waiting = VecDeque::with_capacity(WAITING + 1);
        Self { sink, waiting, last_ns: 0, records: 0, late: (0, 0) }
    }

    /// All that waits is taken.
    ///
    /// # Errors
    ///
    /// The trace is not in order, or cannot be described.
    pub fn finish(&mut self) -> Result<(), Refused> {
        while let Some(first) = self.waiting.pop_front() {
            self.hand_on(first)?;
        }
        self.require_order()
    }

    fn hand_on(&mut self, mut record: Record) -> Result<(), Refused> {
        if record.at_ns < self.last_ns {
            if self.late.0 == 0 {
                self.late.1 = self.records.saturating_sub(self.waiting.len() as u64);
            }
            self.late.0 += 1;
            if self.late.0.is_multiple_of(LATE_MAX) {
                self.require_order()?;
            }
            record.at_ns = self.last_ns;
        }
        self.last_ns = record.at_ns;
        self.sink.take(record)
    }

    fn require_order(&self) -> Result<(), Refused> {
        let (late, first) = self.late;
        if late > 0 && late * LATE_SHARE > self.records {
            return Err(Refused(format!(
                "its times go backwards: {late} of {} requests come after later ones, the first \
                 is request {first}, so that no order can be told; sort it by time first (`sort \
                 -s -n`, with -t, and -k for a CSV), or give one recording alone",
                self.records
            )));
        }
        Ok(())
    }
}

impl<S: Sink> Sink for InOrder<S> {
    fn take(&mut self, record: Record) -> Result<(), Refused> {
        self.records += 1;
        let later = self.waiting.iter().rev().take_while(|each| each.at_ns > record.at_ns).count();
        self.waiting.insert(self.waiting.len() - later, record);
        if self.waiting.len() > WAITING
            && let Some(first) = self.waiting.pop_front()
        {
            self.hand_on(first)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::record::Deed;

    struct Times(Vec<u64>);

    impl Sink for Times {
        fn take(&mut self, record: Record) -> Result<(), Refused> {
            self.0.push(record.at_ns);
            Ok(())
        }
    }

    fn ordered(times: impl Iterator<Item = u64>) -> Result<(Vec<u64>, u64), Refused> {
        let mut order = InOrder::before(Times(Vec::new()));
        for at_ns in times {
            order.take(Record { at_ns, ..Record::of(Deed::Read) })?;
        }
        order.finish()?;
        Ok((order.sink.0, order.late.0))
    }

    #[test]
    fn neighbours_that_changed_places_are_put_right() {
        let (found, late) = ordered((0..50_000).map(|number| number ^ 1023)).unwrap();
        assert_eq!(
            found,
            (0..50_000 / 1024 * 1024 + 1024).filter(|at| at ^ 1023 < 50_000).collect::<Vec<_>>()
        );
        assert_eq!(late, 0);
    }

    #[test]
    fn one_that_comes_far_too_late_counts_at_the_time_that_it_is_then() {
        let times = (0..20_000).map(|number| if number == 15_000 { 3 } else { number });
        let (found, late) = ordered(times).unwrap();
        assert_eq!(late, 1);
        assert!(found.is_sorted());
        assert_eq!(found.len(), 20_000);
    }

    #[test]
    fn two_recordings_one_after_the_other_are_refused_with_the_place() {
        let refused = ordered((0..10_000).chain(0..10_000)).unwrap_err();
        assert!(refused.0.contains("go backwards"), "{refused}");
        assert!(refused.0.contains("of 1"), "{refused}");
    }
}
