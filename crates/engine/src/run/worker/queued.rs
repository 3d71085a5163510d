//! The loop with several requests outstanding.
//!
//! Slots that are free stand in a queue with the time from which they may send; all think equally
//! long, so the queue is in the order of time. A turn sends for every slot that may, waits for at
//! least one completion and collects all there are. A response time runs from the moment the batch
//! was begun to the moment its completion was seen, as for any program that keeps a queue.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use leadline_base::clock::sleep_until;
use leadline_base::error::{EngineError, ErrorKind};

use crate::access::stream::{AccessStream, Draw};
use crate::backend::{Completion, QueueBackend};
use crate::run::recorder::{Lost, Passage, Tally};
use crate::run::worker::pace::{Pace, SPIN_NS};
use crate::run::worker::{Context, Demand, Issue, MEASURING, STOPPED, WAIT_SLICE_NS, WARMING};
use leadline_base::request::Request;

/// One slot's request. In a closed loop it is due when it is sent.
#[derive(Clone, Copy, Debug)]
struct Flight {
    request: Request,
    passage: Passage,
    outstanding: bool,
}

/// A slot that waits for its next request.
#[derive(Clone, Copy, Debug)]
struct Idle {
    slot: usize,
    /// Since when it has been free.
    free_ns: u64,
    /// Until when it thinks.
    ready_ns: u64,
    /// How much later it became free than it need have; see [`Passage`].
    behind_ns: u64,
}

/// A worker whose backend keeps a queue.
#[derive(Debug)]
pub struct Queued<Q, S = AccessStream> {
    backend: Q,
    demand: Demand<S>,
    flights: Vec<Flight>,
    idle: VecDeque<Idle>,
    done: Vec<Completion>,
    /// When the ticket in hand is due; an open loop has one in hand while a slot is free.
    due_ns: Option<u64>,
}

impl<Q: QueueBackend, S: Draw> Queued<Q, S> {
    /// A worker with `depth` slots that has not started yet.
    pub fn new(backend: Q, demand: Demand<S>, depth: usize) -> Self {
        let passage = Passage { due_ns: 0, free_ns: 0, behind_ns: 0, submitted_ns: 0 };
        let flight = Flight { request: Request::NONE, passage, outstanding: false };
        Self {
            backend,
            demand,
            flights: vec![flight; depth],
            idle: VecDeque::with_capacity(depth),
            done: Vec::with_capacity(depth),
            due_ns: None,
        }
    }

    /// From when on the slot that is first in line may send, if there is one.
    #[inline]
    fn next_ns(&mut self, pace: &mut Option<Pace>) -> Option<u64> {
        let idle = self.idle.front()?;
        match pace {
            None => Some(idle.ready_ns),
            Some(pace) => Some(*self.due_ns.get_or_insert_with(|| pace.take())),
        }
    }

    /// Sends for every slot that may at `now_ns`; returns from when on the next one may.
    #[inline]
    fn send(
        &mut self,
        context: &Context,
        pace: &mut Option<Pace>,
        now_ns: u64,
    ) -> Result<Option<u64>, EngineError> {
        while let Some(next_ns) = self.next_ns(pace) {
            if next_ns > now_ns {
                return Ok(Some(next_ns));
            }
            let Some(idle) = self.idle.pop_front() else { break };
            let (request, _) = self.demand.draw(context);
            let due_ns = self.due_ns.take().unwrap_or(now_ns);
            let Idle { free_ns, behind_ns, .. } = idle;
            let passage = Passage { due_ns, free_ns, behind_ns, submitted_ns: now_ns };
            self.flights[idle.slot] = Flight { request, passage, outstanding: true };
            self.backend.prepare(idle.slot, &request)?;
            if pace.is_none() && context.signals.stage() != WARMING {
                self.count_idle(context, idle, now_ns);
            }
        }
        Ok(None)
    }

    /// Splits the time a slot of a closed loop was free, within the window, into thinking and
    /// Leadline's own.
    #[inline]
    fn count_idle(&mut self, context: &Context, idle: Idle, until_ns: u64) {
        let (opened_ns, closed_ns) = (context.signals.opened_ns(), context.signals.closed_ns());
        let within = |from: u64, to: u64| to.min(closed_ns).saturating_sub(from.max(opened_ns));
        self.demand.tally.think_ns += within(idle.free_ns, idle.ready_ns.min(until_ns));
        self.demand.tally.own_ns += within(idle.ready_ns, until_ns);
    }

    /// Waits for a completion, or until a slot may send at `next_ns`; nothing may come of it.
    #[inline]
    fn turn(&mut self, now_ns: u64, next_ns: Option<u64>) -> Result<(), EngineError> {
        self.done.clear();
        // The last stretch before a request is due is spent looking, not sleeping.
        let wake_ns =
            next_ns.map(|next_ns| next_ns.saturating_sub(SPIN_NS).min(now_ns + WAIT_SLICE_NS));
        if self.idle.len() < self.flights.len() {
            let timeout_ns = wake_ns.map(|wake_ns| wake_ns.saturating_sub(now_ns));
            return self.backend.turn(timeout_ns, &mut self.done);
        }
        if let Some(wake_ns) = wake_ns.filter(|wake_ns| *wake_ns > now_ns) {
            sleep_until(wake_ns);
        }
        Ok(())
    }

    /// Counts what was collected at `now_ns` of a window open since `opened_ns`.
    #[inline]
    fn count(&mut self, opened_ns: u64, now_ns: u64) {
        if now_ns < opened_ns {
            return;
        }
        let tally = &mut self.demand.tally;
        for completion in &self.done {
            tally.wire.sent += completion.wire.sent;
            tally.wire.received += completion.wire.received;
            let Flight { request, passage, .. } = &self.flights[completion.slot];
            if tally.open.is_some() {
                tally.record_open(request, passage, now_ns, opened_ns);
            } else {
                tally.record(request, now_ns - passage.submitted_ns);
                tally.edge_ns -= opened_ns.saturating_sub(passage.submitted_ns) as i64;
            }
            if S::MIXED {
                tally.count_stream(request, now_ns - passage.submitted_ns);
            }
        }
    }

    /// Frees the slots that were collected at `now_ns`.
    #[inline]
    fn release(&mut self, context: &Context, now_ns: u64) {
        let mut bytes = 0;
        let ready_ns = now_ns + self.demand.think_ns;
        for completion in &self.done {
            bytes += completion.bytes;
            let flight = &mut self.flights[completion.slot];
            flight.outstanding = false;
            let behind_ns = flight.passage.generator_ns();
            self.idle.push_back(Idle {
                slot: completion.slot,
                free_ns: now_ns,
                ready_ns,
                behind_ns,
            });
        }
        context.live.add(self.done.len() as u64, bytes);
    }

    /// Accounts for what is outstanding or idle when the window closes, and waits until the target
    /// has let go of every buffer. What was collected last counts if it was in time; if not, it was
    /// outstanding when the window closed.
    #[cold]
    fn finish(mut self, context: &Context, now_ns: u64) -> Result<Tally, EngineError> {
        let window = context.signals.window();
        if now_ns <= window.closed_ns {
            self.count(window.opened_ns, now_ns);
            self.release(context, now_ns);
            self.done.clear();
        }
        if window.opened_ns != u64::MAX {
            self.cut(context);
        }
        let mut left = self.flights.len() - self.idle.len() - self.done.len();
        while left > 0 {
            self.done.clear();
            if let Err(error) = self.backend.turn(None, &mut self.done) {
                self.lose(context, error, left)?;
                break;
            }
            left -= self.done.len();
        }
        self.demand.tally.connection = self.backend.connection();
        Ok(self.demand.counted())
    }

    /// The backend failed. Of a server that went away what was counted stays, and nothing is made
    /// of the requests it never answered.
    #[cold]
    fn give_up(mut self, context: &Context, error: EngineError) -> Result<Tally, EngineError> {
        let left = self.flights.iter().filter(|flight| flight.outstanding).count();
        self.lose(context, error, left)?;
        context.signals.wait_for_close();
        self.cut(context);
        self.demand.tally.connection = self.backend.connection();
        Ok(self.demand.counted())
    }

    #[cold]
    fn lose(
        &mut self,
        context: &Context,
        error: EngineError,
        requests: usize,
    ) -> Result<(), EngineError> {
        if error.kind != ErrorKind::Lost {
            return Err(error);
        }
        context.signals.lost.store(true, Ordering::Relaxed);
        context.signals.fail();
        self.demand.tally.lost = Some(Lost { why: error.message, requests: requests as u64 });
        Ok(())
    }

    /// Counts the time of every slot up to the window's end.
    fn cut(&mut self, context: &Context) {
        let window = context.signals.window();
        let open = self.demand.tally.open.is_some();
        for flight in self.flights.iter().filter(|flight| flight.outstanding) {
            let tally = &mut self.demand.tally;
            if open {
                tally.cut_in_flight(&flight.passage, window);
            } else {
                let from_ns = flight.passage.submitted_ns.max(window.opened_ns);
                tally.edge_ns += window.closed_ns.saturating_sub(from_ns) as i64;
            }
        }
        for index in 0..self.idle.len() {
            let idle = self.idle[index];
            let tally = &mut self.demand.tally;
            if let Some(due_ns) = self.due_ns.take() {
                let Idle { free_ns, behind_ns, .. } = idle;
                let passage = Passage { due_ns, free_ns, behind_ns, submitted_ns: due_ns };
                tally.cut_held(&passage, window);
            } else if open {
                tally.cut_free(idle.free_ns, window);
            } else {
                self.count_idle(context, idle, window.closed_ns);
            }
        }
    }
}

impl<Q: QueueBackend, S: Draw> Issue for Queued<Q, S> {
    fn begin(&mut self) -> Result<(), EngineError> {
        self.backend.begin()
    }

    fn issue(mut self, context: &Context) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let mut pace = context.schedule.map(|schedule| schedule.view(signals.started_ns()));
        let began_ns = clock.now_ns();
        self.demand.start(began_ns);
        for slot in 0..self.flights.len() {
            self.idle.push_back(Idle { slot, free_ns: began_ns, ready_ns: began_ns, behind_ns: 0 });
        }
        loop {
            let now_ns = clock.now_ns();
            let next_ns = self.send(context, &mut pace, now_ns)?;
            if let Err(error) = self.turn(now_ns, next_ns) {
                return self.give_up(context, error);
            }
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
