//! The loop with one request outstanding.

use crate::backend::Backend;
use crate::clock::sleep_until;
use crate::error::EngineError;
use crate::job::Request;
use crate::recorder::{Passage, Tally};
use crate::worker::pace::{Pace, wait_until};
use crate::worker::{Context, Demand, Issue, MEASURING, STOPPED, WAIT_SLICE_NS, WARMING};

/// An issuer whose backend returns when the request is done.
#[derive(Debug)]
pub struct Blocking<B> {
    backend: B,
    demand: Demand,
}

impl<B: Backend> Blocking<B> {
    /// An issuer that has not started yet.
    pub fn new(backend: B, demand: Demand) -> Self {
        Self { backend, demand }
    }

    /// Closed loop: a request follows the completion of the one before, after thinking.
    fn follow(mut self, context: &Context) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let itself = self.backend.measures_itself();
        let mut free_ns = clock.now_ns();
        self.demand.start(free_ns);
        loop {
            let request = self.demand.draw(context);
            let began_ns = if itself { free_ns } else { clock.now_ns() };
            let moved = self.backend.transfer(&request)?;
            let ended_ns = clock.now_ns();
            context.live.add(1, moved);
            match signals.stage() {
                MEASURING => {
                    let opened_ns = signals.opened_ns();
                    if ended_ns >= opened_ns {
                        self.demand.tally.record(&request, ended_ns - began_ns);
                        self.demand.tally.edge_ns -= opened_ns.saturating_sub(began_ns) as i64;
                        self.demand.tally.own_ns += began_ns.saturating_sub(free_ns.max(opened_ns));
                    }
                }
                STOPPED => {
                    self.finish(context, &request, [free_ns, began_ns, ended_ns]);
                    return Ok(self.demand.tally);
                }
                _ => {}
            }
            free_ns =
                if self.demand.think_ns == 0 { ended_ns } else { self.think(context, ended_ns) };
        }
    }

    /// Open loop: a request is sent when it is due, or as soon after as this issuer is free.
    fn keep_pace(mut self, context: &Context, mut pace: Pace) -> Result<Tally, EngineError> {
        let (signals, clock) = (context.signals, context.signals.clock);
        let (mut free_ns, mut behind_ns) = (clock.now_ns(), 0);
        self.demand.start(free_ns);
        loop {
            let request = self.demand.draw(context);
            let due_ns = pace.take();
            let mut passage = Passage { due_ns, free_ns, behind_ns, submitted_ns: due_ns };
            if !wait_until(due_ns, signals, clock) {
                if signals.opened_ns() != u64::MAX {
                    self.demand.tally.cut_held(&passage, signals.window());
                }
                return Ok(self.demand.tally);
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
                    }
                    return Ok(self.demand.tally);
                }
                _ => {}
            }
            (free_ns, behind_ns) = (ended_ns, passage.generator_ns());
        }
    }
}

impl<B: Backend> Issue for Blocking<B> {
    fn issue(self, context: &Context) -> Result<Tally, EngineError> {
        match context.schedule {
            None => self.follow(context),
            Some(schedule) => self.keep_pace(context, schedule.view(context.signals.started_ns())),
        }
    }
}

impl<B> Blocking<B> {
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
