//! The loop with several requests outstanding.
//!
//! Slots that are free stand in a queue with the time from which they may send; all think equally
//! long, so the queue is in the order of time. A turn sends for every slot that may, waits for at
//! least one completion and collects all there are. A response time runs from the moment the batch
//! was begun to the moment its completion was seen, as for any program that keeps a queue.

use std::collections::VecDeque;

use crate::access::AccessStream;
use crate::backend::{Completion, QueueBackend};
use crate::clock::sleep_until;
use crate::error::EngineError;
use crate::job::Request;
use crate::recorder::Tally;
use crate::worker::{Context, Issue, MEASURING, STOPPED, WAIT_SLICE_NS, WARMING};

/// One slot's request.
#[derive(Clone, Copy, Debug)]
struct Flight {
    request: Request,
    sent_ns: u64,
    outstanding: bool,
}

/// A slot that waits for its next request: it was free from `free_ns` on and thinks until
/// `ready_ns`.
#[derive(Clone, Copy, Debug)]
struct Idle {
    slot: usize,
    free_ns: u64,
    ready_ns: u64,
}

/// An issuer whose backend keeps a queue.
#[derive(Debug)]
pub struct Queued<Q> {
    backend: Q,
    stream: AccessStream,
    think_ns: u64,
    flights: Vec<Flight>,
    idle: VecDeque<Idle>,
    done: Vec<Completion>,
    tally: Tally,
}

impl<Q: QueueBackend> Queued<Q> {
    /// An issuer with `depth` slots that has not started yet.
    pub fn new(backend: Q, stream: AccessStream, think_ns: u64, depth: usize) -> Self {
        let flight = Flight { request: Request::NONE, sent_ns: 0, outstanding: false };
        Self {
            backend,
            stream,
            think_ns,
            flights: vec![flight; depth],
            idle: VecDeque::with_capacity(depth),
            done: Vec::with_capacity(depth),
            tally: Tally::default(),
        }
    }

    /// Sends for every slot that may at `now_ns`.
    #[inline]
    fn send(&mut self, context: &Context, now_ns: u64) -> Result<(), EngineError> {
        while let Some(idle) = self.idle.front().copied().filter(|idle| idle.ready_ns <= now_ns) {
            self.idle.pop_front();
            let request = self.stream.draw();
            self.flights[idle.slot] = Flight { request, sent_ns: now_ns, outstanding: true };
            self.backend.prepare(idle.slot, &request)?;
            if context.signals.stage() != WARMING {
                self.count_idle(context, idle, now_ns);
            }
        }
        Ok(())
    }

    /// Splits the time a slot was free, within the window, into thinking and Leadline's own.
    #[inline]
    fn count_idle(&mut self, context: &Context, idle: Idle, until_ns: u64) {
        let (opened_ns, closed_ns) = (context.signals.opened_ns(), context.signals.closed_ns());
        let within = |from: u64, to: u64| to.min(closed_ns).saturating_sub(from.max(opened_ns));
        self.tally.think_ns += within(idle.free_ns, idle.ready_ns.min(until_ns));
        self.tally.own_ns += within(idle.ready_ns, until_ns);
    }

    /// Waits for a completion, or for the next slot that may send; nothing may come of it.
    #[inline]
    fn turn(&mut self, now_ns: u64) -> Result<(), EngineError> {
        self.done.clear();
        let outstanding = self.idle.len() < self.flights.len();
        let next_ns = self.idle.front().map(|idle| idle.ready_ns.min(now_ns + WAIT_SLICE_NS));
        if outstanding {
            let patience_ns = next_ns.map(|next_ns| next_ns.saturating_sub(now_ns));
            return self.backend.turn(patience_ns, &mut self.done);
        }
        sleep_until(next_ns.unwrap_or(now_ns));
        Ok(())
    }

    /// Counts what was collected at `now_ns` of a window open since `opened_ns`.
    #[inline]
    fn count(&mut self, opened_ns: u64, now_ns: u64) {
        for completion in &self.done {
            let flight = self.flights[completion.slot];
            if now_ns >= opened_ns {
                self.tally.record(&flight.request, now_ns - flight.sent_ns);
                self.tally.edge_ns -= opened_ns.saturating_sub(flight.sent_ns) as i64;
            }
        }
    }

    /// Frees the slots that were collected at `now_ns`.
    #[inline]
    fn release(&mut self, context: &Context, now_ns: u64) {
        let mut bytes = 0;
        for completion in &self.done {
            bytes += completion.bytes;
            self.flights[completion.slot].outstanding = false;
            let ready_ns = now_ns + self.think_ns;
            self.idle.push_back(Idle { slot: completion.slot, free_ns: now_ns, ready_ns });
        }
        context.live.add(self.done.len() as u64, bytes);
    }

    /// Accounts for what is outstanding or idle when the window closes, and waits until the target
    /// has let go of every buffer. What was collected last counts if it was in time; if not, it was
    /// outstanding when the window closed.
    #[cold]
    fn finish(mut self, context: &Context, now_ns: u64) -> Result<Tally, EngineError> {
        let (opened_ns, closed_ns) = (context.signals.opened_ns(), context.signals.closed_ns());
        if now_ns <= closed_ns {
            self.count(opened_ns, now_ns);
            self.release(context, now_ns);
            self.done.clear();
        }
        if opened_ns != u64::MAX {
            for flight in self.flights.iter().filter(|flight| flight.outstanding) {
                let from_ns = flight.sent_ns.max(opened_ns);
                self.tally.edge_ns += closed_ns.saturating_sub(from_ns) as i64;
            }
            for index in 0..self.idle.len() {
                self.count_idle(context, self.idle[index], closed_ns);
            }
        }
        let mut left = self.flights.len() - self.idle.len() - self.done.len();
        while left > 0 {
            self.done.clear();
            self.backend.turn(None, &mut self.done)?;
            left -= self.done.len();
        }
        Ok(self.tally)
    }
}

impl<Q: QueueBackend> Issue for Queued<Q> {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.backend.begin()
    }

    fn issue(mut self, context: &Context) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let began_ns = clock.now_ns();
        for slot in 0..self.flights.len() {
            self.idle.push_back(Idle { slot, free_ns: began_ns, ready_ns: began_ns });
        }
        loop {
            let now_ns = clock.now_ns();
            self.send(context, now_ns)?;
            self.turn(now_ns)?;
            let now_ns = clock.now_ns();
            match signals.stage() {
                MEASURING => self.count(signals.opened_ns(), now_ns),
                STOPPED => return self.finish(context, now_ns),
                _ => {}
            }
            self.release(context, now_ns);
        }
    }
}
