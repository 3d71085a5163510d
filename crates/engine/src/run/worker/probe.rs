//! Looks up every k-th read in the page cache just before it is made.

#![forbid(unsafe_code)]

use crate::evidence::residency::{Residency, probe_every};
use crate::run::recorder::Tally;
use crate::run::worker::{Context, MEASURING};
use leadline_base::request::Request;

/// One worker's lookups. How many depends on how fast requests turned out to be in the warm-up, so
/// that lookups cost next to nothing.
#[derive(Debug, Default)]
pub struct Probe {
    residency: Option<Residency>,
    size_mean_bytes: f64,
    /// Requests until the next look; never reaches 0 where nothing can be looked up.
    countdown: u64,
    every: u64,
    began_ns: u64,
}

impl Probe {
    /// Looks up reads of about `size_mean_bytes` through `residency`.
    #[must_use]
    pub fn new(residency: Residency, size_mean_bytes: f64) -> Self {
        Self { residency: Some(residency), size_mean_bytes, ..Self::default() }
    }

    /// The worker starts at `now_ns`.
    pub fn start(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        self.countdown = if self.residency.is_some() { 1 } else { u64::MAX };
    }

    /// Called before every request; looks it up when its turn has come, and says whether it did.
    #[inline]
    pub fn before(&mut self, request: &Request, context: &Context, tally: &mut Tally) -> bool {
        self.countdown -= 1;
        let due = self.countdown == 0;
        if due {
            self.look(request, context, tally);
        }
        due
    }

    #[cold]
    fn look(&mut self, request: &Request, context: &Context, tally: &mut Tally) {
        self.countdown = 1;
        if context.signals.stage() != MEASURING {
            return;
        }
        if self.every == 0 {
            let turns = context.live.read().0.max(1) as f64;
            let spent_ns = context.signals.clock.now_ns().saturating_sub(self.began_ns) as f64;
            self.every = u64::from(probe_every(spent_ns / turns, self.size_mean_bytes));
        }
        self.countdown = self.every;
        let residency = self.residency.as_ref();
        let cached = residency.and_then(|residency| {
            residency.cached_bytes(request.offset_bytes, request.length_bytes)
        });
        if let Some(cached_bytes) = cached {
            tally.found.record(request, cached_bytes);
        }
    }
}
