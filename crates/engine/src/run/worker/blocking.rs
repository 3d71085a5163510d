//! The loop with one request outstanding.
//!
//! The clock is read just before and just after a request, so that a response time holds the
//! request and one reading. A reading takes 15 ns here, which is felt by requests of half a
//! microsecond: after a request that took less than [`QUICK_NS`] the next one's beginning is
//! reckoned, from the end of the one before and the calibrated time that the loop needs in between.

#![forbid(unsafe_code)]

use leadline_base::clock::sleep_until;
use leadline_base::error::EngineError;

use crate::access::stream::{AccessStream, Draw};
use crate::backend::Backend;
use crate::run::recorder::{Passage, Tally};
use crate::run::worker::pace::{Pace, wait_until};
use crate::run::worker::{Context, Demand, Issue, MEASURING, STOPPED, WAIT_SLICE_NS, WARMING};
use leadline_base::request::Request;

/// Response time below which the beginning of the next request is reckoned, not read; above it a
/// reading is less than a hundredth.
const QUICK_NS: u64 = 1_500;

/// A worker whose backend returns when the request is done.
#[derive(Debug)]
pub struct Blocking<B, S = AccessStream> {
    backend: B,
    demand: Demand<S>,
}

impl<B: Backend, S: Draw> Blocking<B, S> {
    /// A worker that has not started yet.
    pub fn new(backend: B, demand: Demand<S>) -> Self {
        Self { backend, demand }
    }

    /// Closed loop: a request follows the completion of the one before, after thinking.
    fn follow(mut self, context: &Context) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let itself = self.backend.measures_itself();
        // A backend that measures Leadline itself has the whole turn as its response.
        let between_ns = if itself { 0 } else { self.demand.cost.between_ns as u64 };
        let mut free_ns = clock.now_ns();
        let mut quick = itself;
        self.demand.start(free_ns);
        loop {
            let (request, looked_up) = self.demand.draw(context);
            let began_ns = if quick && !looked_up { free_ns + between_ns } else { clock.now_ns() };
            let moved = self.backend.transfer(&request)?;
            let ended_ns = clock.now_ns().max(began_ns);
            context.live.add(1, moved);
            match signals.stage() {
                MEASURING => {
                    let opened_ns = signals.opened_ns();
                    if ended_ns >= opened_ns {
                        self.demand.tally.record(&request, ended_ns - began_ns);
                        self.demand.count_stream(&request, ended_ns - began_ns);
                        self.demand.tally.edge_ns -= opened_ns.saturating_sub(began_ns) as i64;
                        self.demand.tally.own_ns += began_ns.saturating_sub(free_ns.max(opened_ns));
                    }
                }
                STOPPED => {
                    self.finish(context, &request, [free_ns, began_ns, ended_ns]);
                    return Ok(self.demand.counted());
                }
                _ => {}
            }
            if self.demand.think_ns == 0 {
                quick = itself || ended_ns - began_ns < QUICK_NS;
                free_ns = ended_ns;
            } else {
                free_ns = self.think(context, ended_ns);
            }
        }
    }

    /// Open loop: a request is sent when it is due, or as soon after as this worker is free.
    fn keep_pace(mut self, context: &Context, mut pace: Pace) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let (mut free_ns, mut behind_ns) = (clock.now_ns(), 0);
        self.demand.start(free_ns);
        loop {
            let (request, _) = self.demand.draw(context);
            let due_ns = pace.take();
            let mut passage = Passage { due_ns, free_ns, behind_ns, submitted_ns: due_ns };
            if !wait_until(due_ns, signals, clock) {
                if signals.opened_ns() != u64::MAX {
                    self.demand.tally.cut_held(&passage, signals.window());
                }
                return Ok(self.demand.counted());
            }
            passage.submitted_ns = clock.now_ns();
            let moved = self.backend.transfer(&request)?;
            let ended_ns = clock.now_ns();
            context.live.add(1, moved);
            match signals.stage() {
                MEASURING => {
                    let opened_ns = signals.opened_ns();
                    if ended_ns >= opened_ns {
                        self.demand.tally.record_open(&request, &passage, ended_ns, opened_ns);
                        self.demand.count_stream(&request, ended_ns - passage.submitted_ns);
                    }
                }
                STOPPED => {
                    if signals.opened_ns() != u64::MAX {
                        self.demand.tally.finish_open(
                            &request,
                            &passage,
                            ended_ns,
                            signals.window(),
                        );
                        if ended_ns <= signals.closed_ns() && ended_ns >= signals.opened_ns() {
                            self.demand.count_stream(&request, ended_ns - passage.submitted_ns);
                        }
                    }
                    return Ok(self.demand.counted());
                }
                _ => {}
            }
            (free_ns, behind_ns) = (ended_ns, passage.generator_ns());
        }
    }
}

impl<B: Backend, S: Draw> Issue for Blocking<B, S> {
    fn issue(self, context: &Context) -> Result<Tally, EngineError> {
        match context.schedule {
            None => self.follow(context),
            Some(schedule) => self.keep_pace(context, schedule.view(context.signals.started_ns())),
        }
    }
}

impl<B, S: Draw> Blocking<B, S> {
    /// The request during which the window closed: counted if it was done in time, else only its
    /// time within.
    #[cold]
    fn finish(&mut self, context: &Context, request: &Request, times: [u64; 3]) {
        let [free_ns, began_ns, ended_ns] = times;
        let (opened_ns, closed_ns) = (context.signals.opened_ns(), context.signals.closed_ns());
        if opened_ns == u64::MAX {
            return;
        }
        if ended_ns >= opened_ns && ended_ns <= closed_ns {
            self.demand.tally.record(request, ended_ns - began_ns);
            self.demand.count_stream(request, ended_ns - began_ns);
            self.demand.tally.edge_ns -= opened_ns.saturating_sub(began_ns) as i64;
        } else {
            self.demand.tally.edge_ns += closed_ns.saturating_sub(began_ns.max(opened_ns)) as i64;
        }
        self.demand.tally.own_ns += began_ns.min(closed_ns).saturating_sub(free_ns.max(opened_ns));
    }

    /// Thinks after a completion; returns when it was over.
    fn think(&mut self, context: &Context, from_ns: u64) -> u64 {
        let signals = context.signals;
        let until_ns = from_ns + self.demand.think_ns;
        let mut now = from_ns;
        while now < until_ns && signals.stage() != STOPPED {
            sleep_until(until_ns.min(now + WAIT_SLICE_NS));
            now = signals.clock.now_ns();
        }
        if signals.stage() != WARMING {
            self.demand.tally.think_ns +=
                now.min(signals.closed_ns()).saturating_sub(from_ns.max(signals.opened_ns()));
        }
        now
    }
}
