//! One lane: a thread that keeps every disk's queue filled.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::io::Error;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use leadline_base::error::EngineError;

use super::queue::{Bell, Call, Queue};
use crate::memory::Region;
use crate::stripes::{Extent, StripeFile, Transfer, place};

/// What a lane does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verb {
    Read { direct: bool },
    Write { direct: bool },
}

/// What was asked for.
enum Order {
    Move { offset: u64, length: usize, region: Region },
    Sync,
}

/// A move that is done; a sync has no memory and shows as no `Done`.
#[derive(Debug)]
pub(super) struct Done {
    pub offset: u64,
    pub length: usize,
    pub region: Region,
}

type Outcome = Result<Option<Done>, EngineError>;

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    done: VecDeque<Outcome>,
    /// Nothing more will be ordered.
    closing: bool,
    /// The thread has ended.
    ended: bool,
}

struct Shared {
    state: Mutex<State>,
    ready: Condvar,
    /// Wakes the thread where it waits for the kernel.
    bell: Arc<Bell>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller's end.
pub(super) struct Lane {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    pending: usize,
}

impl Lane {
    pub fn open(extents: Vec<Extent>, verb: Verb, depth: u32) -> Result<Self, EngineError> {
        let bell = Arc::new(Bell::new()?);
        let shared = Arc::new(Shared { state: Mutex::default(), ready: Condvar::new(), bell });
        let (told, hear) = mpsc::sync_channel(1);
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("leadline-lane".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                let _ended = Ended(Arc::clone(&theirs));
                // The ring is made by the thread that uses it, so that the kernel may run its
                // completion work there alone.
                match Worker::new(theirs, extents, verb, depth) {
                    Ok(mut worker) => {
                        let _ = told.send(Ok(()));
                        worker.run();
                    }
                    Err(error) => {
                        let _ = told.send(Err(error));
                    }
                }
            })
            .map_err(|error| {
                EngineError::target(format!("no more threads can be started: {error}"))
            })?;
        let lane = Self { shared, thread: Some(thread), pending: 0 };
        hear.recv().map_err(|_| EngineError::fault("a lane's thread ended at once"))??;
        Ok(lane)
    }

    pub fn submit(&mut self, offset: u64, length: usize, region: Region) {
        self.order(Order::Move { offset, length, region });
    }

    pub fn take(&mut self) -> Result<Done, EngineError> {
        self.wait()?.ok_or_else(|| EngineError::fault("a lane handed back no memory"))
    }

    pub fn try_take(&mut self) -> Option<Result<Done, EngineError>> {
        let outcome = self.shared.state().done.pop_front()?;
        self.pending -= 1;
        outcome.transpose()
    }

    /// Waits until the disks have everything; all that was submitted must have been taken.
    pub fn sync(&mut self) -> Result<(), EngineError> {
        self.order(Order::Sync);
        self.wait().map(|_| ())
    }

    pub fn pending(&self) -> usize {
        self.pending
    }

    fn order(&mut self, order: Order) {
        self.pending += 1;
        self.shared.state().orders.push_back(order);
        self.shared.bell.ring();
    }

    fn wait(&mut self) -> Outcome {
        if self.pending == 0 {
            return Err(EngineError::fault("a lane was asked for more than was submitted"));
        }
        let mut state = self.shared.state();
        loop {
            if let Some(outcome) = state.done.pop_front() {
                self.pending -= 1;
                return outcome;
            }
            if state.ended {
                return Err(EngineError::fault("a lane's thread ended before its work"));
            }
            state = self.shared.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.closing = true;
            state.orders.clear();
        }
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Says that the thread has ended, however it did.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.ready.notify_all();
    }
}

/// One request to the kernel.
struct Request {
    /// Counted from the lane's first order.
    order: u64,
    extent: usize,
    what: What,
}

enum What {
    Move(Transfer),
    Sync { file: usize },
}

impl Request {
    fn disk(&self) -> usize {
        match &self.what {
            What::Move(transfer) => transfer.file,
            What::Sync { file } => *file,
        }
    }
}

/// An order at work.
struct Progress {
    requests_left: usize,
    region: Option<(u64, usize, Region)>,
    error: Option<EngineError>,
}

#[derive(Default)]
struct Disk {
    waiting: VecDeque<Request>,
    in_flight: usize,
}

struct Worker {
    /// Before what it names: dropped, it waits for what is under way.
    queue: Queue,
    shared: Arc<Shared>,
    extents: Vec<Extent>,
    verb: Verb,
    depth: usize,
    disks: Vec<Disk>,
    slots: Vec<Option<Request>>,
    free: Vec<usize>,
    progress: VecDeque<Progress>,
    /// Number of the first order in `progress`.
    first_order: u64,
}

impl Worker {
    fn new(
        shared: Arc<Shared>,
        extents: Vec<Extent>,
        verb: Verb,
        depth: u32,
    ) -> Result<Self, EngineError> {
        let disks = extents.iter().map(|extent| extent.stripes.files.len()).max().unwrap_or(1);
        let count = disks * depth as usize;
        Ok(Self {
            queue: Queue::new(count, &shared.bell)?,
            shared,
            extents,
            verb,
            depth: depth as usize,
            disks: (0..disks).map(|_| Disk::default()).collect(),
            slots: (0..count).map(|_| None).collect(),
            free: (0..count).rev().collect(),
            progress: VecDeque::new(),
            first_order: 0,
        })
    }

    /// Works until the lane is closed and nothing is under way, or the ring fails.
    fn run(&mut self) {
        loop {
            let closing = self.take_orders();
            if closing {
                self.disks.iter_mut().for_each(|disk| disk.waiting.clear());
            }
            if closing && self.in_flight() == 0 {
                return;
            }
            if let Err(error) = self.turn() {
                self.fail(&error);
                return;
            }
            self.deliver();
        }
    }

    fn in_flight(&self) -> usize {
        self.disks.iter().map(|disk| disk.in_flight).sum()
    }

    /// Cuts what was ordered into requests; true when the lane is closing.
    fn take_orders(&mut self) -> bool {
        let (orders, closing) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.orders), state.closing)
        };
        for order in orders {
            let number = self.first_order + self.progress.len() as u64;
            let progress = match order {
                Order::Move { offset, length, region } => self.cut(number, offset, length, region),
                Order::Sync => self.sync(number),
            };
            self.progress.push_back(progress);
        }
        self.deliver();
        closing
    }

    fn cut(&mut self, order: u64, offset: u64, length: usize, mut region: Region) -> Progress {
        let memory = region.as_mut_ptr();
        let mut progress = Progress { requests_left: 0, region: None, error: None };
        let mut covered = 0;
        for (extent, found) in self.extents.iter().enumerate() {
            let Some((at, place, bytes)) = found.overlap(offset, length) else { continue };
            if place + bytes > region.len() {
                break;
            }
            covered += bytes;
            let pieces = found.stripes.transfers(at, bytes, memory.wrapping_add(place));
            progress.requests_left += pieces.len();
            for transfer in pieces {
                let disk = transfer.file;
                let request = Request { order, extent, what: What::Move(transfer) };
                self.disks[disk].waiting.push_back(request);
            }
        }
        if covered != length {
            progress.error = Some(EngineError::fault(format!(
                "a lane was asked for bytes {offset} to {} of a data set, or into a region, that \
                has fewer",
                offset + length as u64
            )));
        }
        progress.region = Some((offset, length, region));
        progress
    }

    fn sync(&mut self, order: u64) -> Progress {
        let mut progress = Progress { requests_left: 0, region: None, error: None };
        for (extent, found) in self.extents.iter().enumerate() {
            for file in 0..found.stripes.files.len() {
                let request = Request { order, extent, what: What::Sync { file } };
                self.disks[file].waiting.push_back(request);
                progress.requests_left += 1;
            }
        }
        progress
    }

    /// Fills the queues, waits for the kernel or the bell, and collects what is done.
    fn turn(&mut self) -> Result<(), EngineError> {
        for disk in 0..self.disks.len() {
            while self.disks[disk].in_flight < self.depth {
                let Some(request) = self.disks[disk].waiting.pop_front() else { break };
                self.send(request)?;
            }
        }
        for (slot, code) in self.queue.wait(&self.shared.bell)? {
            self.complete(slot, code)?;
        }
        Ok(())
    }

    fn send(&mut self, request: Request) -> Result<(), EngineError> {
        let Some(slot) = self.free.pop() else {
            return Err(EngineError::fault("a lane has fewer slots than its disks have places"));
        };
        let file = &self.extents[request.extent].stripes.files[request.disk()];
        let (file, call) = call_of(&request, file, self.verb);
        self.disks[request.disk()].in_flight += 1;
        self.slots[slot] = Some(request);
        self.queue.send(slot, file, call)
    }

    fn complete(&mut self, slot: usize, code: i32) -> Result<(), EngineError> {
        let Some(mut request) = self.slots.get_mut(slot).and_then(Option::take) else {
            return Err(EngineError::fault("a completion for a slot that sent nothing"));
        };
        self.free.push(slot);
        let disk = request.disk();
        self.disks[disk].in_flight -= 1;
        let file = &self.extents[request.extent].stripes.files[disk];
        let again = match &mut request.what {
            _ if matches!(-code, libc::EINTR | libc::EAGAIN) => Ok(true),
            What::Sync { .. } if code >= 0 => Ok(false),
            What::Sync { .. } => Err(not_synced(file, code)),
            What::Move(transfer) if code > 0 => {
                transfer.advance(code as usize);
                Ok(transfer.bytes > 0)
            }
            What::Move(transfer) => {
                if code == -libc::EINVAL && is_direct(transfer, file, self.verb) {
                    file.refuse_direct();
                    Ok(true)
                } else {
                    Err(failed(transfer, file, self.verb, code))
                }
            }
        };
        if matches!(again, Ok(true)) {
            self.disks[disk].waiting.push_front(request);
            return Ok(());
        }
        let index = (request.order - self.first_order) as usize;
        if let Some(progress) = self.progress.get_mut(index) {
            progress.requests_left -= 1;
            if let Err(error) = again {
                progress.error.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Hands over what is done, from the oldest on.
    fn deliver(&mut self) {
        let mut outcomes = Vec::new();
        while self.progress.front().is_some_and(|oldest| oldest.requests_left == 0) {
            let Some(oldest) = self.progress.pop_front() else { break };
            self.first_order += 1;
            let done =
                oldest.region.map(|(offset, length, region)| Done { offset, length, region });
            outcomes.push(oldest.error.map_or(Ok(done), Err));
        }
        if !outcomes.is_empty() {
            self.shared.state().done.extend(outcomes);
            self.shared.ready.notify_all();
        }
    }

    /// The ring failed: every order fails with it.
    fn fail(&mut self, error: &EngineError) {
        let count = self.progress.len();
        // What the kernel may still write to must not be handed out again.
        self.progress.drain(..).for_each(std::mem::forget);
        self.shared.state().done.extend((0..count).map(|_| Err(error.clone())));
        self.shared.ready.notify_all();
    }
}

/// Whether a transfer passes the cache.
fn is_direct(transfer: &Transfer, file: &StripeFile, verb: Verb) -> bool {
    let (Verb::Read { direct } | Verb::Write { direct }) = verb;
    direct && transfer.is_aligned() && file.direct().is_some()
}

fn call_of(request: &Request, file: &StripeFile, verb: Verb) -> (RawFd, Call) {
    let transfer = match &request.what {
        What::Move(transfer) => transfer,
        What::Sync { .. } => return (file.file.as_raw_fd(), Call::Sync),
    };
    let way = file.direct().filter(|_| is_direct(transfer, file, verb)).unwrap_or(&file.file);
    let (at, pieces) = (transfer.at, transfer.pieces.as_ptr());
    let count = transfer.pieces.len() as u32;
    let call = match verb {
        Verb::Read { .. } => Call::Read { at, pieces, count },
        Verb::Write { .. } => Call::Write { at, pieces, count },
    };
    (way.as_raw_fd(), call)
}

fn failed(transfer: &Transfer, file: &StripeFile, verb: Verb, code: i32) -> EngineError {
    let place = place(&file.path, transfer.at);
    let error = Error::from_raw_os_error(-code);
    match (verb, -code) {
        (Verb::Read { .. }, 0) => EngineError::io(format!(
            "reading ended {place}, {} bytes too early: the file was shortened meanwhile; make the \
            data set again",
            transfer.bytes
        )),
        (Verb::Read { .. }, _) => EngineError::io(format!(
            "reading failed {place}: {error}; look at the kernel log for the disk below it"
        )),
        (Verb::Write { .. }, libc::ENOSPC | libc::EDQUOT) => EngineError::target(format!(
            "writing failed {place}: {error}; room for at least {} bytes more is missing: free it, \
            or give another directory",
            transfer.bytes
        )),
        (Verb::Write { .. }, _) => EngineError::io(format!(
            "writing failed {place}: {error}; look at the kernel log for the disk below it"
        )),
    }
}

fn not_synced(file: &StripeFile, code: i32) -> EngineError {
    EngineError::io(format!(
        "{} could not be brought to its disk: {}; look at the kernel log for it",
        file.path.display(),
        Error::from_raw_os_error(-code)
    ))
}
