//! What one issuer counts while it runs, and the slices of time a run is cut into.

use crate::histogram::Histogram;
use crate::job::{Kind, Request};

/// Requests of one kind that completed within the window.
#[derive(Clone, Debug, Default)]
pub struct KindTally {
    /// Bytes moved.
    pub bytes: u64,
    /// Response times.
    pub latency: Histogram,
}

/// Everything counted over the measured window; issuers' tallies merge to the whole.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Reads.
    pub read: KindTally,
    /// Writes.
    pub write: KindTally,
    /// Requests that started where the issuer's previous one ended.
    pub sequential: u64,
    /// Sum of squares of request lengths, in bytes squared.
    pub length_squares: f64,
    /// Response time that lies outside the window (negative: before it) of requests that straddle
    /// its edges: added to the sum of response times it gives the time spent waiting *within* the
    /// window.
    pub edge_ns: i64,
    /// Time between a completion and the next request, thinking apart: Leadline's own cost.
    pub own_ns: u64,
    /// Time spent thinking on purpose.
    pub think_ns: u64,
}

impl Tally {
    /// Counts one completed request.
    #[inline]
    pub fn record(&mut self, request: &Request, response_ns: u64) {
        let tally = match request.kind {
            Kind::Read => &mut self.read,
            Kind::Write => &mut self.write,
        };
        tally.bytes += request.length_bytes;
        tally.latency.record(response_ns);
        self.sequential += u64::from(request.sequential);
        let length = request.length_bytes as f64;
        self.length_squares += length * length;
    }

    /// Adds another issuer's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.read, &other.read), (&mut self.write, &other.write)] {
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
        }
        self.sequential += other.sequential;
        self.length_squares += other.length_squares;
        self.edge_ns += other.edge_ns;
        self.own_ns += other.own_ns;
        self.think_ns += other.think_ns;
    }

    /// Completed requests.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.read.latency.count() + self.write.latency.count()
    }

    /// Bytes moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.read.bytes + self.write.bytes
    }

    /// Sum of response times within the window, all issuers together, in nanoseconds.
    #[must_use]
    pub fn waiting_ns(&self) -> f64 {
        let total = self.read.latency.sum_ns() as f64 + self.write.latency.sum_ns() as f64;
        (total + self.edge_ns as f64).max(0.0)
    }
}

/// One slice of the run's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Slice {
    /// Seconds from the start of the phase.
    pub start_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Requests completed in it.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
}

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
}
