//! The server put together, and its clock.

use std::collections::VecDeque;

use super::collector::Collector;
use super::cores::Cores;
use super::document::{Clients, Document, Law};
use super::gate::{Entry, Gate};
use super::request::{Answer, Attempt, End, Job, Request};
use super::slab::{Id, Slab};
use super::speed::{STEP_NS, Speed};
use crate::calendar::Calendar;
use crate::document::Refused;
use crate::parts::servers::Servers;
use crate::random::Random;

/// A batch job does not ask a storage that is so far behind: it waits for its own answers too.
const BATCH_WAITS_NS: u64 = 200_000_000;

/// Something that happens at its time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The storage has served a job.
    Stored(Id),
    /// The other server has answered a job.
    Asked(Id),
    /// A client has waited too long for an attempt.
    TimedOut(Attempt),
    /// A client, who is waiting for nothing else, sends a request again.
    Again(Id),
    /// The collector is done.
    Collected,
    /// Speed takes a step.
    Drift,
    /// A batch job begins or ends.
    BatchTurn,
    /// A batch job asks the storage.
    BatchIo,
}

/// A server in virtual time.
#[derive(Debug)]
pub struct Server {
    document: Document,
    random: Random,
    calendar: Calendar<Event>,
    now_ns: u64,
    requests: Slab<Request>,
    jobs: Slab<Job>,
    serial: u64,
    ended: VecDeque<End>,
    workers: Gate,
    cores: Cores,
    storage: Servers,
    /// How much longer the storage takes in this trial.
    degraded: f64,
    hit_frac: f64,
    locks: Vec<Gate>,
    connections: Gate,
    collector: Option<Collector>,
    /// When the collection under way is done.
    collected_ns: u64,
    speed: Speed,
    batch_busy: bool,
    /// Whether the next request of a batch job is in the calendar.
    batch_io_coming: bool,
}

impl Server {
    /// A server that has just been started, for one trial.
    ///
    /// # Errors
    /// The document says what it is that makes no sense.
    pub fn new(document: &Document, seed: u64) -> Result<Self, Refused> {
        document.validate()?;
        let mut random = Random::new(seed);
        let speed = Speed::new(&document.speed, &mut random);
        let storage = document.storage.as_ref();
        let degraded = storage.is_some_and(|storage| random.unit() < storage.degraded_share);
        let cache = document.cache.as_ref();
        let hit_frac = cache.map_or(0.0, |cache| {
            if random.unit() < cache.cold_share { cache.cold_hit_frac } else { cache.hit_frac }
        });
        let stripes = document.lock.as_ref().map_or(0, |lock| lock.stripes);
        let connections = document.pool.as_ref().map_or(1, |pool| pool.connections);
        let collector = document.collector.as_ref();
        let collector = collector.map(|collector| Collector::new(collector, &mut random));
        let mut server = Self {
            calendar: Calendar::default(),
            now_ns: 0,
            requests: Slab::default(),
            jobs: Slab::default(),
            serial: 0,
            ended: VecDeque::new(),
            workers: Gate::new(document.workers, document.backlog),
            cores: Cores::new(&document.cores),
            storage: Servers::new(storage.map_or(1, |storage| storage.channels)),
            degraded: storage.filter(|_| degraded).map_or(1.0, |storage| storage.degraded_factor),
            hit_frac,
            locks: (0..stripes).map(|_| Gate::new(1, u32::MAX)).collect(),
            connections: Gate::new(connections, u32::MAX),
            collector,
            collected_ns: 0,
            speed,
            batch_busy: false,
            batch_io_coming: false,
            random,
            document: document.clone(),
        };
        server.begin_background();
        Ok(server)
    }

    /// What goes on by itself, as it is in the long run.
    fn begin_background(&mut self) {
        if self.speed.changes() {
            self.calendar.at(STEP_NS, Event::Drift);
        }
        if let Some(batch) = &self.document.batch {
            let busy_frac = batch.mean_busy_s / (batch.mean_busy_s + batch.mean_idle_s);
            self.batch_busy = self.random.unit() >= busy_frac; // turned round at once
            self.turn_batch();
        }
        self.change_cores();
    }

    /// A request is due, no earlier than anything before it.
    pub fn submit(&mut self, due_ns: u64) {
        self.now_ns = due_ns.max(self.now_ns);
        self.serial += 1;
        let serial = self.serial;
        let due_ns = self.now_ns;
        let request = self.requests.put(Request { due_ns, serial, attempts: 0, paused: false });
        self.send(request);
    }

    /// The next request that ends before `until_ns`. Ends come in order.
    pub fn next_end(&mut self, until_ns: u64) -> Option<End> {
        loop {
            if let Some(end) = self.ended.pop_front() {
                return Some(end);
            }
            let worked_ns = self.cores.next_ns().unwrap_or(u64::MAX);
            let happens_ns = self.calendar.next_ns().unwrap_or(u64::MAX);
            let at_ns = worked_ns.min(happens_ns);
            if at_ns >= until_ns {
                return None;
            }
            self.now_ns = at_ns;
            if worked_ns <= happens_ns {
                if let Some(job) = self.cores.end_first(at_ns) {
                    self.worked(job);
                }
            } else if let Some((_, event)) = self.calendar.pop_before(until_ns) {
                self.happen(event);
            }
        }
    }

    /// When those requests were due that have not ended.
    pub fn waiting(&self) -> impl Iterator<Item = u64> {
        self.requests.iter().map(|request| request.due_ns)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Stored(_) | Event::Asked(_) if self.stands_still() => {
                // Noticed when all goes on again, which is what happens first then.
                self.calendar.at(self.collected_ns, event);
            }
            Event::Stored(job) => self.stored(job),
            Event::Asked(job) => self.asked(job),
            Event::TimedOut(attempt) => {
                if self.counts(attempt) {
                    self.again_or_end(attempt.request, Answer::GivenUp);
                }
            }
            Event::Again(request) => self.send(request),
            Event::Collected => {
                if let Some(collector) = &mut self.collector {
                    collector.end();
                }
                self.change_cores();
            }
            Event::Drift => {
                self.speed.step(&mut self.random);
                self.calendar.at(self.now_ns + STEP_NS, Event::Drift);
                self.change_cores();
            }
            Event::BatchTurn => self.turn_batch(),
            Event::BatchIo => self.ask_for_batch(),
        }
    }

    /// A client sends an attempt.
    fn send(&mut self, request: Id) {
        let Some(it) = self.requests.get(request) else { return };
        it.attempts += 1;
        it.paused = false;
        let attempt = Attempt { request, serial: it.serial, number: it.attempts };
        if let Some(clients) = &self.document.clients {
            let at_ns = self.now_ns + ns(clients.timeout_ms * 1e6);
            self.calendar.at(at_ns, Event::TimedOut(attempt));
        }
        let job = self.jobs.put(Job { attempt, lock: None });
        match self.workers.enter(job) {
            Entry::Inside => self.work(job),
            Entry::Waits => {}
            Entry::Refused => {
                self.jobs.take(job);
                self.again_or_end(request, Answer::Refused);
            }
        }
    }

    /// Whether somebody still waits for the answer to this attempt.
    fn counts(&mut self, attempt: Attempt) -> bool {
        self.requests.get(attempt.request).is_some_and(|it| {
            it.serial == attempt.serial && it.attempts == attempt.number && !it.paused
        })
    }

    /// An attempt failed: the client tries again after a while, or gives up.
    fn again_or_end(&mut self, request: Id, answer: Answer) {
        let Some(it) = self.requests.get(request) else { return };
        let clients = self.document.clients.as_ref();
        let Some(clients) = clients.filter(|clients| it.attempts <= clients.resends) else {
            self.end(request, answer);
            return;
        };
        it.paused = true;
        let wait_ns = backoff_ns(clients, it.attempts) * (0.5 + self.random.unit());
        self.calendar.at(self.now_ns + ns(wait_ns), Event::Again(request));
    }

    fn end(&mut self, request: Id, answer: Answer) {
        if let Some(it) = self.requests.take(request) {
            self.ended.push_back(End { at_ns: self.now_ns, due_ns: it.due_ns, answer });
        }
    }

    /// A worker has taken a job.
    fn work(&mut self, job: Id) {
        let cores = &self.document.cores;
        let assist = self.collector.as_ref().map_or(1.0, Collector::assist);
        let work_ns = draw(cores.work, &mut self.random) * cores.work_ms * 1e6 * assist;
        if work_ns > 0.0 {
            self.cores.enter(self.now_ns, job, work_ns);
        } else {
            self.worked(job);
        }
    }

    fn worked(&mut self, job: Id) {
        self.allocate();
        let Some(storage) = &self.document.storage else {
            self.ask(job);
            return;
        };
        if storage.io_ms <= 0.0 {
            self.ask(job);
            return;
        }
        let stripes = self.locks.len() as u64;
        let share = self.document.lock.as_ref().map_or(0.0, |lock| lock.write_share);
        if stripes > 0 && self.random.unit() < share {
            let stripe = self.random.below(stripes) as u16;
            if let Some(it) = self.jobs.get(job) {
                it.lock = Some(stripe);
            }
            if self.locks[usize::from(stripe)].enter(job) == Entry::Inside {
                self.store(job);
            }
        } else if self.random.unit() >= self.hit_frac {
            self.store(job);
        } else {
            self.ask(job);
        }
    }

    fn allocate(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        let before = (collector.stops(), collector.leaves_frac());
        if let Some(begun) = collector.allocate(self.workers.inside(), &mut self.random) {
            self.collected_ns = self.now_ns + begun.lasts_ns;
            self.calendar.at(self.collected_ns, Event::Collected);
        }
        if before != (collector.stops(), collector.leaves_frac()) {
            self.change_cores();
        }
    }

    fn store(&mut self, job: Id) {
        let end_ns = self.storage_end_ns();
        self.calendar.at(end_ns, Event::Stored(job));
    }

    /// When the storage has served one more.
    fn storage_end_ns(&mut self) -> u64 {
        let Some(storage) = &self.document.storage else { return self.now_ns };
        let mean_ns = storage.io_ms * 1e6 * self.degraded * self.speed.factor(self.now_ns);
        let service_ns = draw(storage.io, &mut self.random) * mean_ns;
        self.storage.serve(self.now_ns, ns(service_ns))
    }

    fn stored(&mut self, job: Id) {
        if let Some(stripe) = self.jobs.get(job).and_then(|it| it.lock.take())
            && let Some(next) = self.locks[usize::from(stripe)].leave()
        {
            self.store(next);
        }
        self.ask(job);
    }

    /// A job wants a connection.
    fn ask(&mut self, job: Id) {
        if self.document.pool.is_none() {
            self.answer(job);
        } else if self.connections.enter(job) == Entry::Inside {
            self.query(job);
        }
    }

    fn query(&mut self, job: Id) {
        let Some(pool) = &self.document.pool else { return };
        let mean_ns = pool.query_ms * 1e6 * self.speed.factor(self.now_ns);
        let end_ns = self.now_ns + ns(draw(pool.query, &mut self.random) * mean_ns);
        self.calendar.at(end_ns, Event::Asked(job));
    }

    fn asked(&mut self, job: Id) {
        if let Some(next) = self.connections.leave() {
            self.query(next);
        }
        self.answer(job);
    }

    /// A job is done: its answer goes to the client, if that still waits for it.
    fn answer(&mut self, job: Id) {
        if let Some(it) = self.jobs.take(job)
            && self.counts(it.attempt)
        {
            self.end(it.attempt.request, Answer::Answered);
        }
        if let Some(next) = self.workers.leave() {
            self.work(next);
        }
    }

    fn stands_still(&self) -> bool {
        self.collector.as_ref().is_some_and(Collector::stops)
    }

    fn change_cores(&mut self) {
        let collector = self.collector.as_ref();
        let stops = collector.is_some_and(Collector::stops);
        let speed = if stops { 0.0 } else { 1.0 / self.speed.factor(self.now_ns) };
        let batch = self.document.batch.as_ref().filter(|_| self.batch_busy);
        let left = 1.0 - batch.map_or(0.0, |batch| batch.cores_frac);
        let left = left * collector.map_or(1.0, Collector::leaves_frac);
        self.cores.change(self.now_ns, speed, left);
    }

    fn turn_batch(&mut self) {
        let Some(batch) = &self.document.batch else { return };
        self.batch_busy = !self.batch_busy;
        let mean_s = if self.batch_busy { batch.mean_busy_s } else { batch.mean_idle_s };
        let length_ns = ns(self.random.exponential() * mean_s * 1e9);
        self.calendar.at(self.now_ns + length_ns, Event::BatchTurn);
        self.expect_batch_io();
        self.change_cores();
    }

    /// Puts the next request of a batch job into the calendar.
    fn expect_batch_io(&mut self) {
        let Some(batch) = &self.document.batch else { return };
        if !self.batch_busy || self.batch_io_coming || batch.ios_per_s == 0.0 {
            return;
        }
        self.batch_io_coming = true;
        let gap_ns = self.random.exponential() * 1e9 / batch.ios_per_s;
        self.calendar.at(self.now_ns + ns(gap_ns), Event::BatchIo);
    }

    fn ask_for_batch(&mut self) {
        self.batch_io_coming = false;
        if self.batch_busy && self.storage.free_ns() < self.now_ns + BATCH_WAITS_NS {
            self.storage_end_ns();
        }
        self.expect_batch_io();
    }
}

/// Mean wait before the attempt after this one.
fn backoff_ns(clients: &Clients, number: u32) -> f64 {
    clients.backoff_ms * 1e6 * f64::from(number.saturating_sub(1).min(20)).exp2()
}

/// A draw; the mean of all is 1.
fn draw(law: Law, random: &mut Random) -> f64 {
    match law {
        Law::Constant {} => 1.0,
        Law::Exponential {} => random.exponential(),
        Law::Lognormal { cv } => random.around_one(cv),
    }
}

fn ns(nanoseconds: f64) -> u64 {
    crate::io::ns(nanoseconds)
}
