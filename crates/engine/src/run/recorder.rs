//! What one worker counts while it runs, and the slices of time a run is cut into.

#![forbid(unsafe_code)]

use leadline_base::histogram::Histogram;
use leadline_wire::job::measure::{Arrivals, LoadAsked};

use crate::access::arrival::ArrivalStream;
use crate::backend::{Connection, Wire};
use crate::evidence::residency::Found;
use crate::run::load_seen::LoadSeen;
use leadline_base::request::{Kind, Request};

/// Requests of one of several streams that completed within the window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamTally {
    /// How many.
    pub requests: u64,
    /// Those that were reads.
    pub reads: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Response times, added up.
    pub response_ns: u64,
    /// How often its data began anew, warm-up included.
    pub rounds: u64,
}

/// Requests of one kind that completed within the window.
#[derive(Clone, Debug, Default)]
pub struct KindTally {
    /// Bytes moved.
    pub bytes: u64,
    /// Response times.
    pub latency: Histogram,
}

/// The server went away during the run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lost {
    /// In words.
    pub why: String,
    /// Requests that were sent and never answered.
    pub requests: u64,
}

/// Everything counted over the measured window; workers' tallies merge to the whole.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Reads.
    pub read: KindTally,
    /// Writes.
    pub write: KindTally,
    /// Waits of a replay until what was written is on the device.
    pub sync: KindTally,
    /// Requests that started where the worker's previous one ended.
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
    /// What looked-up reads found in the page cache.
    pub found: Found,
    /// What only an open loop counts; `latency` of [`Self::read`] and [`Self::write`] then holds
    /// due → completed.
    pub open: Option<Box<OpenTally>>,
    /// Bytes over a network for the requests counted.
    pub wire: Wire,
    /// What the connection to a server was like.
    pub connection: Option<Connection>,
    /// Set when the server went away.
    pub lost: Option<Lost>,
    /// Each of several streams; empty where there is one.
    pub streams: Vec<StreamTally>,
}

/// How late a request may be sent before it counts as late.
pub const LATE_NS: u64 = 1_000_000;

/// The measured window, in nanoseconds of the clock that times the requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// When it opened.
    pub opened_ns: u64,
    /// When it closed.
    pub closed_ns: u64,
}

/// The moments of one request of an open loop, in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Passage {
    /// When it was due.
    pub due_ns: u64,
    /// From when on the slot that sent it had nothing else to do.
    pub free_ns: u64,
    /// Of that, how much later than it need have been: [`Self::generator_ns`] of the slot's
    /// request before; 0 for its first.
    pub behind_ns: u64,
    /// When it was sent.
    pub submitted_ns: u64,
}

impl Passage {
    /// The part of its lateness that the generator caused, here or with the slot's request before:
    /// a target that was asked late must not be blamed for what queued up meanwhile (Lindley's
    /// recursion with and without the generator's own delays). Carry it to the slot's next request.
    #[inline]
    #[must_use]
    pub fn generator_ns(&self) -> u64 {
        let ready_ns = self.free_ns.saturating_sub(self.behind_ns);
        self.submitted_ns.saturating_sub(ready_ns.max(self.due_ns))
    }

    #[inline]
    fn late_ns(&self) -> u64 {
        self.submitted_ns.saturating_sub(self.due_ns)
    }
}

/// What only an open loop counts.
///
/// A request that was due but not done when the window closed has waited a known least time. It is
/// in [`Self::due_to_completed`] with that age (censored at the window's end), and one that was not
/// even sent is in [`Self::due_to_submitted`] likewise: left out, a stall that lasts to the end
/// would not show.
#[derive(Clone, Debug, Default)]
pub struct OpenTally {
    /// From due to sent, of requests completed, in flight or waiting when the window closed.
    pub due_to_submitted: Histogram,
    /// From sent to done, of requests completed.
    pub submitted_to_completed: Histogram,
    /// From due to done, of requests completed, in flight or waiting when the window closed.
    pub due_to_completed: Histogram,
    /// Due in the window and sent over [`LATE_NS`] late, mostly because the target kept the slot.
    pub late_target: u64,
    /// Due in the window and sent over [`LATE_NS`] late, mostly although a slot was free.
    pub late_generator: u64,
    /// Due in the window and not sent when it closed.
    pub missed: u64,
    /// In flight when the window opened.
    pub in_flight_opened: u64,
    /// In flight when the window closed.
    pub in_flight_closed: u64,
    /// Slots that stood still for the target when the window closed, their request's wait being
    /// mostly its fault: what keeps the requests nobody took.
    pub kept_by_target: u64,
    /// Slots that stood still for the generator then.
    pub kept_by_generator: u64,
    /// Time slots waited for the next request to be due.
    pub idle_ns: u64,
    /// What a trial of the workbench keeps, when it was asked for.
    pub load: Option<Box<LoadSeen>>,
}

impl OpenTally {
    /// Counts how a request was sent; `edge_ns` of a request under way at the opening is not here.
    #[inline]
    fn sent(&mut self, passage: &Passage, opened_ns: u64) {
        let late_ns = passage.late_ns();
        self.due_to_submitted.record(late_ns);
        self.in_flight_opened += u64::from(passage.submitted_ns < opened_ns);
        self.idle_ns += passage.due_ns.saturating_sub(passage.free_ns.max(opened_ns));
        if late_ns > LATE_NS && passage.due_ns >= opened_ns {
            let generator = passage.generator_ns() > late_ns / 2;
            self.late_generator += u64::from(generator);
            self.late_target += u64::from(!generator);
        }
    }

    /// Notes who keeps a slot at the window's end, given what the generator did to its request.
    fn keep(&mut self, generator_ns: u64, waited_ns: u64) {
        let generator = generator_ns > waited_ns / 2;
        self.kept_by_generator += u64::from(generator);
        self.kept_by_target += u64::from(!generator);
    }

    fn merge(&mut self, other: &Self) {
        self.due_to_submitted.merge(&other.due_to_submitted);
        self.submitted_to_completed.merge(&other.submitted_to_completed);
        self.due_to_completed.merge(&other.due_to_completed);
        self.late_target += other.late_target;
        self.late_generator += other.late_generator;
        self.missed += other.missed;
        self.in_flight_opened += other.in_flight_opened;
        self.in_flight_closed += other.in_flight_closed;
        self.kept_by_target += other.kept_by_target;
        self.kept_by_generator += other.kept_by_generator;
        self.idle_ns += other.idle_ns;
        match (&mut self.load, &other.load) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (None, theirs) => self.load.clone_from(theirs),
            (Some(_), None) => {}
        }
    }
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

    /// An empty tally for these arrivals: that of an open loop has its histograms at once, so that
    /// recording allocates nothing.
    #[must_use]
    pub fn of(arrivals: &Arrivals) -> Self {
        let open = (*arrivals != Arrivals::Closed {}).then(Box::default);
        Self { open, ..Self::default() }
    }

    /// An open loop's with what a trial of the workbench keeps, over a window that is to be
    /// `seconds` long.
    #[must_use]
    pub fn with_load(mut self, asked: Option<&LoadAsked>, seconds: f64) -> Self {
        if let (Some(open), Some(asked)) = (&mut self.open, asked) {
            open.load = Some(Box::new(LoadSeen::new(asked, seconds)));
        }
        self
    }

    /// With room to count so many streams apart.
    #[must_use]
    pub fn with_streams(self, streams: usize) -> Self {
        Self { streams: vec![StreamTally::default(); streams], ..self }
    }

    /// Counts one completed request as one of its stream's.
    #[inline]
    pub fn count_stream(&mut self, request: &Request, response_ns: u64) {
        let Some(own) = self.streams.get_mut(usize::from(request.stream)) else { return };
        own.requests += 1;
        own.reads += u64::from(request.kind == Kind::Read);
        own.bytes += request.length_bytes;
        own.response_ns += response_ns;
    }

    /// Counts one request of an open loop that completed within the window: its spans, lateness,
    /// edge, and what its slot did before. Only for a tally made [`Self::of`] an open loop.
    #[inline]
    pub fn record_open(
        &mut self,
        request: &Request,
        passage: &Passage,
        completed_ns: u64,
        opened_ns: u64,
    ) {
        let waited_ns = completed_ns.saturating_sub(passage.due_ns);
        self.record(request, waited_ns);
        self.edge_ns -= opened_ns.saturating_sub(passage.submitted_ns) as i64;
        self.own_ns += own_ns(passage, opened_ns);
        let Some(open) = &mut self.open else { return };
        open.sent(passage, opened_ns);
        open.submitted_to_completed.record(completed_ns.saturating_sub(passage.submitted_ns));
        open.due_to_completed.record(waited_ns);
        if let Some(load) = &mut open.load {
            load.done(passage, completed_ns, opened_ns);
        }
    }

    /// Counts the request during which the window closed: as completed if it was done by then,
    /// otherwise as [`Self::cut_in_flight`] does.
    #[cold]
    pub fn finish_open(
        &mut self,
        request: &Request,
        passage: &Passage,
        completed_ns: u64,
        window: Window,
    ) {
        if completed_ns <= window.closed_ns {
            if completed_ns >= window.opened_ns {
                self.record_open(request, passage, completed_ns, window.opened_ns);
            }
        } else {
            self.cut_in_flight(passage, window);
        }
    }

    /// Counts a request that was sent but not done when the window closed; one that was sent later
    /// still counts as [`Self::cut_held`] does.
    #[cold]
    pub fn cut_in_flight(&mut self, passage: &Passage, window: Window) {
        let Window { opened_ns, closed_ns } = window;
        if passage.submitted_ns >= closed_ns {
            return self.cut_held(passage, window);
        }
        self.edge_ns += closed_ns.saturating_sub(passage.submitted_ns.max(opened_ns)) as i64;
        self.own_ns += own_ns(passage, opened_ns);
        let Some(open) = &mut self.open else { return };
        open.sent(passage, opened_ns);
        open.in_flight_closed += 1;
        let waited_ns = closed_ns.saturating_sub(passage.due_ns);
        open.keep(passage.generator_ns(), waited_ns);
        open.due_to_completed.record(waited_ns);
        if let Some(load) = &mut open.load {
            load.waiting(passage.due_ns, window);
        }
    }

    /// Counts a slot that held a request it had not sent when the window closed (`submitted_ns` is
    /// not read), whether or not the request was due by then.
    #[cold]
    pub fn cut_held(&mut self, passage: &Passage, window: Window) {
        let Window { opened_ns, closed_ns } = window;
        if passage.due_ns >= closed_ns {
            return self.cut_free(passage.free_ns, window);
        }
        let passage = Passage { submitted_ns: closed_ns, ..*passage };
        self.own_ns += own_ns(&passage, opened_ns);
        if let Some(open) = &mut self.open {
            open.idle_ns += passage.due_ns.saturating_sub(passage.free_ns.max(opened_ns));
            open.keep(passage.generator_ns(), passage.late_ns());
        }
        self.cut_unsent(passage.due_ns, window);
    }

    /// Counts a slot that had been free since `free_ns` and held nothing when the window closed.
    #[cold]
    pub fn cut_free(&mut self, free_ns: u64, window: Window) {
        if let Some(open) = &mut self.open {
            open.idle_ns += window.closed_ns.saturating_sub(free_ns.max(window.opened_ns));
        }
    }

    /// Counts the tickets from `first_untaken` on that were due when the window closed but that no
    /// slot took; `schedule` starts at `start_ns` and has given out none of them yet.
    #[cold]
    pub fn cut_untaken(
        &mut self,
        mut schedule: ArrivalStream,
        first_untaken: u64,
        start_ns: u64,
        window: Window,
    ) {
        let mut due_ns = start_ns.saturating_add(schedule.due_of(first_untaken));
        while due_ns < window.closed_ns {
            self.cut_unsent(due_ns, window);
            due_ns = start_ns.saturating_add(schedule.next_due_ns());
        }
    }

    fn cut_unsent(&mut self, due_ns: u64, window: Window) {
        let Some(open) = &mut self.open else { return };
        open.due_to_submitted.record(window.closed_ns - due_ns);
        open.due_to_completed.record(window.closed_ns - due_ns);
        open.missed += u64::from(due_ns >= window.opened_ns);
        if let Some(load) = &mut open.load {
            load.waiting(due_ns, window);
        }
    }

    /// Adds another worker's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.read, &other.read),
            (&mut self.write, &other.write),
            (&mut self.sync, &other.sync),
        ] {
            mine.bytes += theirs.bytes;
            mine.latency.merge(&theirs.latency);
        }
        self.sequential += other.sequential;
        self.length_squares += other.length_squares;
        self.edge_ns += other.edge_ns;
        self.own_ns += other.own_ns;
        self.think_ns += other.think_ns;
        self.found.merge(&other.found);
        if let Some(theirs) = &other.open {
            self.open.get_or_insert_default().merge(theirs);
        }
        self.wire.sent += other.wire.sent;
        self.wire.received += other.wire.received;
        if let Some(theirs) = &other.connection {
            self.connection.get_or_insert_default().merge(theirs);
        }
        self.streams.resize(self.streams.len().max(other.streams.len()), StreamTally::default());
        for (mine, theirs) in self.streams.iter_mut().zip(&other.streams) {
            mine.requests += theirs.requests;
            mine.reads += theirs.reads;
            mine.bytes += theirs.bytes;
            mine.response_ns += theirs.response_ns;
            mine.rounds += theirs.rounds;
        }
        match (&mut self.lost, &other.lost) {
            (Some(mine), Some(theirs)) => mine.requests += theirs.requests,
            (None, theirs) => self.lost.clone_from(theirs),
            _ => {}
        }
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

    /// Sum of response times (sent → completed) within the window, all workers together, in
    /// nanoseconds.
    #[must_use]
    pub fn waiting_ns(&self) -> f64 {
        let total = match &self.open {
            Some(open) => open.submitted_to_completed.sum_ns() as f64,
            None => {
                let kinds = [&self.read, &self.write, &self.sync];
                kinds.map(|kind| kind.latency.sum_ns() as f64).iter().sum()
            }
        };
        (total + self.edge_ns as f64).max(0.0)
    }

    /// Time slots of an open loop waited for the next request to be due; 0 in a closed loop.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.idle_ns)
    }
}

/// The time within the window in which a slot had a request due and had not sent it.
#[inline]
fn own_ns(passage: &Passage, opened_ns: u64) -> u64 {
    let from_ns = passage.due_ns.max(passage.free_ns).max(opened_ns);
    passage.submitted_ns.saturating_sub(from_ns)
}

#[cfg(test)]
mod tests;
