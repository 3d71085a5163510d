//! A machine put together from its document, and its clock.

use crate::calendar::Event;
use crate::document::{Document, Refused};
use crate::io::{End, FAR_NS, Hub, IoId, Owner, Part, PartId, Span};
use crate::parts::array::Array;
use crate::parts::buckets::Buckets;
use crate::parts::disk::Disk;
use crate::parts::flash::Flash;
use crate::parts::neighbour::Neighbour;
use crate::parts::network::Network;
use crate::parts::page_memory::PageMemory;
use crate::parts::processors::Processors;
use crate::parts::station::Station;
use crate::parts::threads::Threads;
use crate::parts::tier::Tier;

/// Steps after which a run ends, however much virtual time is left: some seconds of the host's.
pub const EFFORT_MAX: u64 = 16_000_000;

/// Pages touched before the clock starts, at most, for each page that the host's memory holds.
const WARM_TURNS: u64 = 3;
/// Windows of lookups that must agree before the memory counts as warm.
const WARM_WINDOW_MIN: u64 = 8192;
/// Shares of hits this near to each other agree.
const WARM_AGREES: f64 = 0.01;

/// One request of a worker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// First byte.
    pub from_bytes: u64,
    /// Length, above 0.
    pub bytes: u64,
    /// Whether it writes.
    pub write: bool,
    /// Number of the worker: one file handle, with its own read-ahead.
    pub worker: u32,
    /// What a write waits for.
    pub safety: Safety,
}

/// What a write waits for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Safety {
    /// Nothing but its copy.
    #[default]
    None,
    /// That it is on the medium itself (`O_DSYNC`).
    Through,
    /// That everything dirty is, when its copy has been made (`fsync`).
    Flush,
}

/// A machine in virtual time.
#[derive(Debug)]
pub struct Machine {
    hub: Hub,
    parts: Vec<Box<dyn Part>>,
    host_memory: Option<PartId>,
    data_bytes: u64,
}

/// What is asked of a machine as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Bytes of the data file, which lies at the start of the device.
    pub data_bytes: u64,
    /// Seed of everything random in the machine.
    pub seed: u64,
    /// Virtual time at which it starts.
    pub start_ns: u64,
}

/// The part that workers hand their requests to.
const FRONT: PartId = PartId(0);

impl Machine {
    /// A machine that has just been started, its memories empty.
    ///
    /// # Errors
    /// The document says what it is that makes no sense.
    pub fn new(document: &Document, setting: Setting) -> Result<Self, Refused> {
        document.validate()?;
        let (data_bytes, capacity) = (setting.data_bytes, document.capacity_bytes());
        if data_bytes == 0 || data_bytes > capacity {
            return Err(Refused(format!(
                "the data are {data_bytes} bytes, they must be between 1 and the machine's \
                 {capacity}"
            )));
        }
        let hub = Hub::new(setting.seed, setting.start_ns.min(FAR_NS));
        let mut machine = Self { hub, parts: Vec::new(), host_memory: None, data_bytes };
        machine.put_together(document);
        Ok(machine)
    }

    /// Parts stand in the order in which requests pass them.
    fn put_together(&mut self, document: &Document) {
        let below = self.coming(1);
        self.parts.push(Box::new(Processors::new(&document.processors, below)));
        if let Some(cache) = &document.cache {
            let (id, below) = (self.coming(0), self.coming(1));
            self.parts.push(Box::new(PageMemory::new(cache, id, below, self.data_bytes, true)));
            self.host_memory = Some(id);
        }
        if let Some(network) = &document.network {
            let (id, below) = (self.coming(0), self.coming(1));
            self.parts.push(Box::new(Network::new(network, id, below)));
        }
        if let Some(server) = &document.server {
            let (id, below) = (self.coming(0), self.coming(1));
            self.parts.push(Box::new(Threads::new(server, id, below)));
            if let Some(cache) = &server.cache {
                let (id, below) = (self.coming(0), self.coming(1));
                let memory = PageMemory::new(cache, id, below, self.data_bytes, false);
                self.parts.push(Box::new(memory));
            }
        }
        if let Some(volume) = &document.volume {
            let below = self.coming(1);
            self.parts.push(Box::new(Buckets::new(volume, below, self.hub.now_ns)));
        }
        self.put_hardware_together(document);
    }

    /// What others on the same hardware share.
    fn put_hardware_together(&mut self, document: &Document) {
        let capacity = document.capacity_bytes();
        if let Some(neighbour) = &document.neighbour {
            let (id, below) = (self.coming(0), self.coming(1));
            let tenant = Neighbour::new(neighbour, id, below, capacity, &mut self.hub);
            self.parts.push(Box::new(tenant));
        }
        if let Some(tier) = &document.tier {
            let ids = [self.coming(0), self.coming(1), self.coming(2)];
            self.parts.push(Box::new(Tier::new(tier, ids, capacity)));
            self.parts.push(Box::new(Flash::new(&tier.flash, &mut self.hub.random)));
        }
        let Some(array) = &document.array else {
            self.put_media(document, 1);
            return;
        };
        let id = self.coming(0);
        let members = (1..=array.members as usize).map(|member| self.coming(member)).collect();
        self.parts.push(Box::new(Array::new(array, id, members)));
        self.put_media(document, array.members);
    }

    fn put_media(&mut self, document: &Document, number: u32) {
        // To age a drive takes long, and members are alike.
        let drive = document.flash.as_ref().map(|flash| Flash::new(flash, &mut self.hub.random));
        for _ in 0..number {
            if let Some(disk) = &document.disk {
                let id = self.coming(0);
                self.parts.push(Box::new(Disk::new(disk, id)));
            } else if let Some(drive) = &drive {
                self.parts.push(Box::new(drive.clone()));
            } else if let Some(station) = &document.station {
                self.parts.push(Box::new(Station::new(station)));
            }
        }
    }

    /// The id of the part that comes after so many others.
    fn coming(&self, others: usize) -> PartId {
        PartId((self.parts.len() + others) as u16)
    }

    /// Takes a request at `now_ns`, which never falls; `token` names it when it ends.
    pub fn submit(&mut self, now_ns: u64, token: u64, request: &Request) {
        self.hub.now_ns = now_ns.clamp(self.hub.now_ns, FAR_NS);
        let span = Span { from: request.from_bytes, bytes: request.bytes, write: request.write };
        let io = self.hub.open(span, request.worker, Owner::Client(token));
        let cached = self.host_memory.is_some();
        let it = self.hub.io_mut(io);
        it.flush = request.write && cached && request.safety == Safety::Flush;
        it.durable = request.write && !it.flush && request.safety != Safety::None;
        self.hub.submit(FRONT, io);
        while let Some(event) = self.hub.next_now() {
            self.happen(event);
        }
    }

    /// The next request that ends before `until_ns`. Ends come in order.
    ///
    /// None also when the machine has taken [`EFFORT_MAX`] steps.
    pub fn next_end(&mut self, until_ns: u64) -> Option<End> {
        loop {
            if let Some(end) = self.hub.ended.pop_front() {
                return Some(end);
            }
            if self.hub.effort >= EFFORT_MAX {
                return None;
            }
            let event = self.hub.next(until_ns)?;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Submit(part, io) => self.parts[part.0 as usize].submit(&mut self.hub, io),
            Event::Wake(part, what) => self.parts[part.0 as usize].wake(&mut self.hub, what),
            Event::Done(io) => self.done(io),
        }
    }

    fn done(&mut self, io: IoId) {
        match self.hub.io(io).owner {
            Owner::Client(token) => {
                if self.host_memory.is_none() {
                    self.hub.count_below(self.hub.io(io).span);
                }
                let found_bytes = self.hub.io(io).found;
                self.hub.ended.push_back(End { at_ns: self.hub.now_ns, token, found_bytes });
            }
            Owner::Part(part, parent) => {
                self.parts[part.0 as usize].child_ended(&mut self.hub, parent, io);
            }
            Owner::Alone(part) => self.parts[part.0 as usize].own_ended(&mut self.hub, io),
        }
        self.hub.close(io);
    }

    /// Brings the memories to where they stay under a workload, before the clock starts.
    ///
    /// The data have just been read in pieces in no order; then come requests of the workload, as
    /// `draw` gives them, until the share of hits in the host's memory no longer changes, within
    /// a bound on the pages touched.
    pub fn warm(&mut self, piece_bytes: u64, mut draw: impl FnMut() -> Request) {
        let mut down = Vec::new();
        self.read_all_over(piece_bytes.max(4096), &mut down);
        let (mut before, mut share) = (self.lookups(), f64::NAN);
        if before.1 == 0 {
            return; // no memory
        }
        let window = (before.1 / 4).max(WARM_WINDOW_MIN);
        let most = before.1 + WARM_TURNS * window * 4;
        let mut draws = 0;
        loop {
            let request = draw();
            let span =
                Span { from: request.from_bytes, bytes: request.bytes, write: request.write };
            self.pass(span, &mut down);
            draws += 1;
            let now = self.lookups();
            if now.1 - before.1 < window && draws < most {
                continue;
            }
            let found = (now.0 - before.0) as f64 / (now.1 - before.1).max(1) as f64;
            if (found - share).abs() <= WARM_AGREES || now.1 >= most || draws >= most {
                return;
            }
            (before, share) = (now, found);
        }
    }

    /// Reads pieces of the data in no order until the host's memory is full, or all are read.
    fn read_all_over(&mut self, piece_bytes: u64, down: &mut Vec<(PartId, Span)>) {
        let pieces = self.data_bytes.div_ceil(piece_bytes);
        let first = self.hub.random.below(pieces);
        let step = coprime(pieces, (pieces as f64 * 0.618_033_988_75) as u64);
        let (mut at, mut held) = (first, u64::MAX);
        for read in 0..pieces {
            let from = at * piece_bytes;
            let bytes = piece_bytes.min(self.data_bytes - from);
            self.pass(Span { from, bytes, write: false }, down);
            at = (at + step) % pieces;
            if read % 64 == 63 {
                let now = self.parts.iter().map(|part| part.resident_bytes()).sum();
                if now == held {
                    return;
                }
                held = now;
            }
        }
    }

    fn pass(&mut self, span: Span, down: &mut Vec<(PartId, Span)>) {
        down.push((FRONT, span));
        while let Some((part, span)) = down.pop() {
            if let Some(part) = self.parts.get_mut(part.0 as usize) {
                part.warm(span, down);
            }
        }
    }

    fn lookups(&self) -> (u64, u64) {
        let all = self.parts.iter().map(|part| part.warm_lookups());
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// The time on its clock.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.hub.now_ns
    }

    /// Steps that it has taken: what it costs the host.
    #[must_use]
    pub fn effort(&self) -> u64 {
        self.hub.effort
    }

    /// Bytes of the data in the host's memory.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let memory = self.host_memory.and_then(|id| self.parts.get(id.0 as usize));
        memory.map_or(0, |part| part.resident_bytes()).min(self.data_bytes)
    }

    /// Bytes read and written below the host's memory so far.
    #[must_use]
    pub fn device_bytes(&self) -> (u64, u64) {
        self.hub.below
    }
}

/// A number from `near` on, at least 1, that shares no divisor with `of`.
fn coprime(of: u64, near: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (near.max(1)..).find(|&step| divisor(step, of) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests;
