//! Garbage, and who takes it away.

use super::document::{Collecting, Collector as Document};
use crate::random::Random;

/// How much collections of the same heap differ.
const PAUSE_CV: f64 = 0.2;
/// However much lives, so much of the heap is free after a collection: a server that is out of
/// memory is another thing than one that is slow.
const FREED_MIN_FRAC: f64 = 0.05;

/// What a collection that begins means to everybody else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Begun {
    /// How long it takes.
    pub lasts_ns: u64,
}

/// A heap and its collector.
#[derive(Debug)]
pub(super) struct Collector {
    document: Document,
    used_mb: f64,
    /// What a collection under way will leave.
    leaves_mb: f64,
    running: bool,
}

impl Collector {
    /// The heap holds what lives, and as much garbage as chance has it.
    pub fn new(document: &Document, random: &mut Random) -> Self {
        let begins_at = match document.kind {
            Collecting::Stopping => document.heap_mb,
            Collecting::Concurrent => document.begin_frac * document.heap_mb,
        };
        let garbage = random.unit() * (begins_at - document.live_mb).max(0.0);
        let used_mb = document.live_mb + garbage;
        Self { document: document.clone(), used_mb, leaves_mb: 0.0, running: false }
    }

    /// A request puts something on the heap, one of so many under way; whether a collection begins.
    pub fn allocate(&mut self, requests: u32, random: &mut Random) -> Option<Begun> {
        let own_mb = self.document.allocates_mb * random.exponential();
        self.used_mb += own_mb;
        if self.running {
            self.leaves_mb += own_mb;
            return None;
        }
        let heap_mb = self.document.heap_mb;
        let begins_at = match self.document.kind {
            Collecting::Stopping => heap_mb,
            Collecting::Concurrent => self.document.begin_frac * heap_mb,
        };
        if self.used_mb < begins_at {
            return None;
        }
        let living_mb = self.document.live_mb + self.document.allocates_mb * f64::from(requests);
        self.leaves_mb = living_mb.min((1.0 - FREED_MIN_FRAC) * begins_at.min(heap_mb));
        self.running = true;
        let lasts_ms = self.document.ms_per_live_mb * living_mb * random.around_one(PAUSE_CV);
        Some(Begun { lasts_ns: (lasts_ms * 1e6) as u64 })
    }

    /// The collection is done.
    pub fn end(&mut self) {
        self.running = false;
        self.used_mb = self.leaves_mb.min((1.0 - FREED_MIN_FRAC) * self.document.heap_mb);
    }

    /// Whether all stands still.
    pub fn stops(&self) -> bool {
        let full = self.used_mb >= self.document.heap_mb;
        self.running && (full || self.document.kind == Collecting::Stopping)
    }

    /// Part of the processors that is left for requests.
    pub fn leaves_frac(&self) -> f64 {
        let beside = self.running && self.document.kind == Collecting::Concurrent;
        if beside { 1.0 - self.document.cores_frac } else { 1.0 }
    }

    /// How much longer a request works that begins now.
    pub fn assist(&self) -> f64 {
        let beside = self.running && self.document.kind == Collecting::Concurrent;
        if beside { 1.0 + self.document.assist_frac } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(kind: Collecting) -> Document {
        Document {
            kind,
            heap_mb: 100.0,
            live_mb: 20.0,
            allocates_mb: 1.0,
            ms_per_live_mb: 2.0,
            begin_frac: 0.7,
            cores_frac: 0.25,
            assist_frac: 0.5,
        }
    }

    /// Allocations until a collection begins, twice: the first begins with some garbage.
    fn until_begun(collector: &mut Collector, random: &mut Random) -> (usize, Begun) {
        (1..10_000)
            .find_map(|at| Some((at, collector.allocate(10, random)?)))
            .unwrap_or((0, Begun { lasts_ns: 0 }))
    }

    #[test]
    fn all_stands_still_when_the_heap_is_full() {
        let mut random = Random::new(5);
        let mut collector = Collector::new(&document(Collecting::Stopping), &mut random);
        let (mut count, mut lasts_ms) = (0.0, 0.0);
        until_begun(&mut collector, &mut random);
        for _ in 0..400 {
            assert!(collector.stops());
            collector.end();
            assert!(!collector.stops());
            let (allocations, begun) = until_begun(&mut collector, &mut random);
            (count, lasts_ms) =
                (count + allocations as f64, lasts_ms + begun.lasts_ns as f64 / 1e6);
        }
        // 30 MB live with ten requests: 70 MB are free, of a megabyte each, and one overshoots.
        assert!((count / 400.0 / 70.5 - 1.0).abs() < 0.03, "{count}");
        assert!((lasts_ms / 400.0 / 60.0 - 1.0).abs() < 0.03, "{lasts_ms}");
    }

    #[test]
    fn beside_the_requests_it_takes_processors_and_stops_only_those_that_fill_the_heap() {
        let mut random = Random::new(5);
        let mut collector = Collector::new(&document(Collecting::Concurrent), &mut random);
        assert_eq!((collector.leaves_frac(), collector.assist()), (1.0, 1.0));
        until_begun(&mut collector, &mut random);
        assert_eq!((collector.leaves_frac(), collector.assist()), (0.75, 1.5));
        assert!(!collector.stops() && collector.used_mb < 80.0);
        for _ in 0..60 {
            assert_eq!(collector.allocate(10, &mut random), None);
        }
        assert!(collector.stops(), "{}", collector.used_mb);
        collector.end();
        // What came meanwhile is still there.
        assert!(collector.used_mb > 60.0 && !collector.stops(), "{}", collector.used_mb);
    }
}
