//! A provider's limits on a volume: token buckets, each counting requests or bytes.
//!
//! Requests go on in the order in which they came, each when all buckets have its tokens. What a
//! bucket is short of comes at its rate, so when a request may go is known at its arrival.

use crate::calendar::Event;
use crate::document::{Bucket as Document, Tokens, Volume};
use crate::io::{Hub, IoId, Part, PartId, Span, ns};

#[derive(Debug)]
struct Bucket {
    document: Document,
    /// Tokens in it at `at_ns`; below none when they are promised.
    tokens: f64,
    at_ns: f64,
}

impl Bucket {
    fn cost(&self, bytes: u64) -> f64 {
        match self.document.tokens {
            Tokens::Requests => bytes.div_ceil(self.document.unit_bytes) as f64,
            Tokens::Bytes => bytes as f64,
        }
    }

    /// Takes tokens from `now_ns` on: when they are there.
    ///
    /// A request larger than the bucket takes what it is short of later, at the bucket's rate.
    fn take(&mut self, now_ns: f64, tokens: f64) -> f64 {
        let per_ns = self.document.per_s * 1e-9;
        let come = (now_ns - self.at_ns).max(0.0) * per_ns;
        self.tokens = (self.tokens + come).min(self.document.depth) - tokens;
        self.at_ns = now_ns;
        now_ns + (-self.tokens).max(0.0) / per_ns
    }
}

/// All buckets of a volume, and the way to it.
#[derive(Debug)]
pub(crate) struct Buckets {
    below: PartId,
    latency_ns: f64,
    latency_cv: f64,
    buckets: Vec<Bucket>,
}

impl Buckets {
    /// Filled as far as the document says.
    pub fn new(document: &Volume, below: PartId, now_ns: u64) -> Self {
        let filled = |document: &Document| Bucket {
            tokens: document.depth * document.begin_frac,
            document: document.clone(),
            at_ns: now_ns as f64,
        };
        Self {
            below,
            latency_ns: document.latency_us * 1e3,
            latency_cv: document.latency_cv,
            buckets: document.buckets.iter().map(filled).collect(),
        }
    }
}

impl Part for Buckets {
    fn submit(&mut self, hub: &mut Hub, io: IoId) {
        let (now_ns, bytes) = (hub.now_ns as f64, hub.io(io).span.bytes);
        let when = |bucket: &mut Bucket| bucket.take(now_ns, bucket.cost(bytes));
        let begin_ns = self.buckets.iter_mut().map(when).fold(now_ns, f64::max);
        let way_ns = self.latency_ns * hub.random.around_one(self.latency_cv);
        hub.at(ns(begin_ns + way_ns), Event::Submit(self.below, io));
    }

    fn warm(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        down.push((self.below, span));
    }
}
